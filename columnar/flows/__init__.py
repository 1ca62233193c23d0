"""Followers of changes: who follows which table, how far each is, and what they still need of a change log."""
