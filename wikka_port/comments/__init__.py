"""Comments on pages: what people write under a page's text, in threads.

Reading order: ``comment_rows`` (tables and the protocol of a change), ``threads`` (the orders in which comments are
shown), ``committing``, ``stored_comments``; then ``comment_lists`` (lists of the whole wiki) and ``comment_check``.
"""
