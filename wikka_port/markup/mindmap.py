"""Mind maps (pure): a pasted FreeMind ``<map>`` shown as a nested list.

Only ``node`` elements and their TEXT count.  The source is scanned, not parsed as XML: there are no
entities to expand and nothing to load, and a broken map still shows what it has.
"""

from __future__ import annotations

import html
import re
from typing import Final

from wikka_port.markup.fragments import escape

MAX_DEPTH: Final = 20
_NODE: Final = re.compile(r"<node\b([^<>]*+)>|</node\s*>")
_TEXT: Final = re.compile(r"\bTEXT=\"([^\"]*+)\"")


def outline_html(source: str) -> str:
    out = ['<figure class="mindmap"><ul>']
    opened: list[bool] = []  # for each open node: has it a list of children yet?
    skipped = 0  # open nodes below MAX_DEPTH
    for node in _NODE.finditer(source):
        attributes = node[1]
        if attributes is None:
            if skipped:
                skipped -= 1
            elif opened:
                out.append("</ul></li>" if opened.pop() else "</li>")
            continue
        closed = attributes.rstrip().endswith("/")
        if len(opened) >= MAX_DEPTH:
            skipped += not closed
            continue
        if opened and not opened[-1]:
            out.append("<ul>")
            opened[-1] = True
        text = _TEXT.search(attributes)
        out.append("<li>" + (escape(html.unescape(text[1])) if text else ""))
        if closed:
            out.append("</li>")
        else:
            opened.append(False)
    while opened:
        out.append("</ul></li>" if opened.pop() else "</li>")
    out.append("</ul></figure>\n")
    return "".join(out)
