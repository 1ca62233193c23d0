"""Watches of pages, and notices of their changes.

``notice_rows`` (tables, and what a crash leaves), ``fan_out`` (the triggers), ``watching``, ``stored_notices``.
"""
