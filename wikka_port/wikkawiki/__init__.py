"""Moving from WikkaWiki: its SQL dump, its database, and pages out of it.

Read ``sql_dump`` (bytes of a dump to rows) and ``stored_text`` (bytes of a value to text), which are pure; then
``source_database`` (one SQLite file of WikkaWiki's tables), ``source_pages`` (that file to parts of pages for
``importer``) and ``comparison`` (both sides at the end).
"""
