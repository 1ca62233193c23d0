"""The wiki's own markup: text -> tokens -> fragments -> HTML.

Reading order: ``tokens`` (what there is), ``lexer`` (text to tokens), ``targets`` (what a link means),
``html`` (tokens to fragments; with ``tables``, ``lists``, ``code_blocks``, ``embedded``, ``mindmap``),
``document`` (the entry point: ``parse`` and ``render``), ``links`` (what a text links to).
"""
