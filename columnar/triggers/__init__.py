"""Asynchronous triggers: user code that runs after each durable change of a table, at least once."""
