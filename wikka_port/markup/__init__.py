"""The wiki's own markup: text -> tokens -> fragments -> HTML.

Reading order: ``tokens`` (the kinds of tokens), ``lexer`` (text to tokens), ``targets`` (the target of a link),
``compiler`` (tokens to fragments; the structure of each format is in ``wikka_html``, with ``tables``, ``lists`` and
``embedded``, and in ``markdown_html``),
``document`` (the entry point: ``parse`` and ``render``), ``links`` (the links of a text).
"""
