"""Followers of changes: which followers a table has, how far each has read, and which part of a log they still need."""
