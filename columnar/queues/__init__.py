"""Queues: messages that wait in the table ``columnar:queues``, and are given out until they are committed."""
