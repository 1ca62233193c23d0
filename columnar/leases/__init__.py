"""Leases with fencing tokens: who holds what, until when, and who waits for it."""
