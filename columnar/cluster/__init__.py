"""Requests between servers: routes, frames, and the life of a forwarded call."""
