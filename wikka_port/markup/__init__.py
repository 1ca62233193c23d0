"""The wiki's own markup: text -> tokens -> fragments -> HTML.

Reading order: ``tokens`` (what there is), ``lexer`` (text to tokens), ``targets`` (what a link means),
``compiler`` (tokens to fragments; the structure of each format is in ``wikka_html``, with ``tables``, ``lists`` and
``embedded``, and in ``markdown_html``),
``document`` (the entry point: ``parse`` and ``render``), ``links`` (what a text links to).
"""
