"""The table of contents (pure): headings as a nested list of links.

``{{toc levels="2-3" title="On this page"}}``; ``levels`` is one number or a range of 1 to 5.  The heading of level 1
that a page begins with is its title, which needs no entry.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from wikka_port.markup.fragments import Heading, escape
from wikka_port.texts import _

_LEVELS: Final = re.compile(r"\s*([1-6])\s*(?:(?:-|\.\.|,)\s*([1-6])\s*)?")


def toc_html(headings: Sequence[Heading], arguments: Mapping[str, str]) -> str:
    """A ``nav`` with id "toc"; "" where there is no heading to list."""
    wanted = _LEVELS.fullmatch(arguments.get("levels", ""))
    first, last = (int(wanted[1]), int(wanted[2] or wanted[1])) if wanted else (1, 6)
    below = headings[1:] if headings and headings[0].level == 1 else headings
    shown = [heading for heading in below if first <= heading.level <= last]
    if not shown:
        return ""
    title = arguments.get("title", "") or _("Contents")
    out = [f'<nav class="toc" id="toc" aria-label="{escape(title)}"><p class="toc-title">{escape(title)}</p>']
    opened: list[int] = []  # levels whose list and item are open
    for heading in shown:
        while opened and opened[-1] > heading.level:
            opened.pop()
            out.append("</li></ul>")
        if opened and opened[-1] == heading.level:
            out.append("</li><li>")
        else:
            out.append("<ul><li>")
            opened.append(heading.level)
        out.append(f'<a href="#{heading.id}">{escape(heading.text)}</a>')
    out += ["</li></ul>" for _ in opened]
    out.append("</nav>\n")
    return "".join(out)
