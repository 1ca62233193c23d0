"""Edits that are not saved yet: drafts in the store, and who is writing.

Reading order: ``kept_drafts`` (the table; kept, found, thrown away), ``edit_forms`` (whose, and what a form shows).
"""
