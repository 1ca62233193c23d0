"""Traces: requests with times, read from logs, sorted, sampled, made; nothing here knows of HTTP or a target."""
