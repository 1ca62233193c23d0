"""Moving from WikkaWiki: its SQL dump, database, accounts, rights and settings.

    sql_dump         bytes of a dump -> rows
    stored_text      bytes of a value -> text, whatever the connection's character set was
    source_database  rows -> one SQLite file of WikkaWiki's own tables, and the tables of such a file
    source_pages     that file -> parts of pages for ``importer``
"""
