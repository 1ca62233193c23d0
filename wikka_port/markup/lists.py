"""(pure) Indented lines: lists, indents and comment threads, opened and closed line by line.

    "" plain indent    "-" bullets    "&" thread    "1" "a" "A" "i" "I" numbered

Knows nothing of the content of items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wikka_port.markup.tokens import Item

MAX_DEPTH: Final = 12  # deeper lines are shown at this depth, since a browser's own stack is finite

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class _Open:
    depth: int
    kind: str
    end: str  # closes the item and the list


def _kind(marker: str, current: str | None) -> str:
    """Return the kind of list that an item with this ``marker`` continues or begins.

    In a list of letters every single letter continues the list, so "i" after "h" is no Roman number.
    """
    if not marker or marker in "-&":
        return marker
    if marker.isdigit():
        return "1"
    style = "a" if marker.islower() else "A"
    if current == style and len(marker) == 1:
        return style
    roman = "i" if style == "a" else "I"
    return roman if len(marker) > 1 or marker == roman or (current == roman and marker in "ivxIVX") else style


class ListStack:
    """The open lists, outermost first."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: list[_Open] = []

    def __bool__(self) -> bool:
        return bool(self._open)

    def item(self, item: Item) -> str:
        """Return the HTML between the last line and the content of this item, which closes and opens lists."""
        out = []
        depth = min(item.depth, MAX_DEPTH)
        opened = self._open
        while opened and opened[-1].depth > depth:
            out.append(opened.pop().end)
        current = opened[-1].kind if opened and opened[-1].depth == depth else None
        kind = _kind(item.marker, current)
        if kind == current:
            out.append("</li>\n<li>" if kind else "<br>\n")
            return "".join(out)
        if current is not None:
            out.append(opened.pop().end)
        outer = opened[-1].depth if opened else 0
        start, end = _container(kind, item.marker, depth - outer)
        opened.append(_Open(depth, kind, end))
        out.append(start)
        return "".join(out)

    def close(self) -> str:
        html = "".join(entry.end for entry in reversed(self._open))
        self._open.clear()
        return html


def _container(kind: str, marker: str, levels: int) -> tuple[str, str]:
    if kind == "":
        return '<div class="indent">' * levels, "</div>\n" * levels
    if kind == "-":
        return "<ul>\n<li>", "</li>\n</ul>\n"
    if kind == "&":
        return '<ul class="thread">\n<li>', "</li>\n</ul>\n"
    if kind == "1":
        start = f' start="{int(marker)}"' if int(marker) != 1 else ""
        return f"<ol{start}>\n<li>", "</li>\n</ol>\n"
    letter = _LETTERS.find(marker.lower()) + 1 if kind in "aA" and len(marker) == 1 else 1
    start = f' start="{letter}"' if letter > 1 else ""
    return f'<ol type="{kind}"{start}>\n<li>', "</li>\n</ol>\n"
