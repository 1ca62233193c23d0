"""Edits that are not saved yet: drafts in the store, suggestions, and the people who are writing.

Reading order: ``kept_drafts`` (the table of drafts), ``edit_forms`` (the owner of a draft, and the drafts that a form
shows), ``suggestions``.
"""
