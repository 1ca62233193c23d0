"""Files of pages: pictures and attachments, their versions and their bytes.

Reading order: ``file_rows`` (tables and the protocol of an upload), ``chunks``; bytes in: ``upload_form`` and
``resumable``; their content: ``content_types``, ``file_names`` and ``picture_metadata``; bytes out: ``conditional``.
"""
