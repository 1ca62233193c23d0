"""Edits that are not saved yet: drafts in the store, and who is writing.

Reading order: ``rows`` (the table and its cells, pure), ``keeping`` (kept, found, thrown away), ``owners`` (whose).
"""
