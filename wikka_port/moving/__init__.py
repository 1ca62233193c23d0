"""Moves of pages: rename, delete, undelete, purge.

Reading order: ``journal`` (the record of a move, written before its first step; deleted pages), ``steps`` (the steps on
one row), ``mover`` (the protocol, and hidden revisions), ``jobs`` (work on many pages), ``runner``.
"""
