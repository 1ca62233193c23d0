"""The way out of a wiki, and back in: pages with revisions, rights and files in forms that other programs read.

Read ``records`` (what every form carries, and its digest), then ``page_source`` (records from the store) and
``record_import`` (records into the store).  Each form is a module of its own: ``json_lines`` is the exact one.
"""
