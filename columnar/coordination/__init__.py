"""Coordination: which processes and nodes are alive, and how to make certain that one is not."""
