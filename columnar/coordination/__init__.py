"""Coordination: who is alive, and how to make certain that somebody is not."""
