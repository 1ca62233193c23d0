"""The table of contents (pure): headings as a nested list of links.

``{{toc levels="2-3" title="On this page" links="0"}}``; ``levels`` is one number or a range of 1 to 5, or WikkaWiki's
list, as ``h2,h4``; with ``links="0"`` the headings are named and lead nowhere.  The heading of level 1
that a page begins with is its title, which needs no entry.

A page without ``{{toc}}`` has a folded table before its first heading, from ``FROM_HEADINGS`` headings on (the title is
none of them); ``{{notoc}}`` anywhere on the page leaves it out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from wikka_port.markup.calls import is_set
from wikka_port.markup.fragments import ContentsSlot, Heading, escape
from wikka_port.texts import _

FROM_HEADINGS: Final = 3
_NAMED_LEVELS: Final = re.compile(r"\s*h([1-6])\s*(?:,|$)", re.IGNORECASE)
_LEVELS: Final = re.compile(r"\s*([1-6])\s*(?:(?:-|\.\.|,)\s*([1-6])\s*)?")


def toc_html(headings: Sequence[Heading], arguments: Mapping[str, str]) -> str:
    """Return a ``nav`` with id "toc"; "" if there is no heading to list."""
    levels = _levels(arguments.get("levels", ""))
    shown = [heading for heading in _below_title(headings) if heading.level in levels]
    if not shown:
        return ""
    title = arguments.get("title", "") or _("Contents")
    head = f'<nav class="toc" id="toc" aria-label="{escape(title)}"><p class="toc-title">{escape(title)}</p>'
    is_linked = is_set(arguments.get("links", "1"))
    return f"{head}{_list(shown, is_linked=is_linked)}</nav>\n"


def own_contents(headings: Sequence[Heading]) -> list[ContentsSlot]:
    """Return the table that a page has by itself, folded; [] where it has few headings."""
    shown = _below_title(headings)
    if len(shown) < FROM_HEADINGS:
        return []
    title = _("Contents")
    fold = f'<details class="toc" id="toc"><summary class="toc-title">{title}</summary>'
    return [ContentsSlot(f'{fold}<nav aria-label="{title}">{_list(shown)}</nav></details>\n')]


def _levels(typed: str) -> Collection[int]:
    named = {int(level) for level in _NAMED_LEVELS.findall(typed)}
    if named:
        return named
    wanted = _LEVELS.fullmatch(typed)
    return range(int(wanted[1]), int(wanted[2] or wanted[1]) + 1) if wanted else range(1, 7)


def _below_title(headings: Sequence[Heading]) -> list[Heading]:
    """Without the page's title, and those without a word, to which no link can be read."""
    below = headings[1:] if headings and headings[0].level == 1 else headings
    return [heading for heading in below if heading.text]


def _list(shown: Sequence[Heading], *, is_linked: bool = True) -> str:
    out: list[str] = []
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
        text = escape(heading.text)
        out.append(f'<a href="#{heading.id}">{text}</a>' if is_linked else text)
    out += ["</li></ul>" for _ in opened]
    return "".join(out)
