"""(pure) The tree of the braces of a MediaWiki text: calls, parameters, and what parts no values in them.

    {{name|value|key=value}}    a Group of kind "{{", with a part between each two bars
    {{{name|default}}}          a Group of kind "{{{"
    [[target|label]]            a Group of kind "[[": its bars are no bars of a call around it
    <nowiki>..</nowiki>         a Group of kind "<" with one text, and so are comments: they are as typed
    <ref name=x>..</ref>        a Group of kind "<>": neither its bars nor its signs "=" are those of a call around it

All else is text, and so are braces and brackets without an end.  A run of braces makes parameters and calls from the
inside, as ``mediawiki_scan`` reads it.  The time is linear: a node moves once from a level without an end to the level
below, and text is read once more for each element around it, which are of different names.

Knows nothing of what calls mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal

from wikka_port.markup.mediawiki_raw import TAGS, Closings

Kind = Literal["{{", "{{{", "[[", "<", "<>"]
_ELEMENTS: Final = ("ref", "references", "poem", "gallery")  # that have calls in them
_RAW: Final = "|".join(sorted({*TAGS, "includeonly"} - {*_ELEMENTS}))
_TOKEN: Final = re.compile(
    rf"(?P<comment><!--)|<(?P<raw>{_RAW})(?P<attributes>(?:[\s/][^<>]*+)?)>"
    rf"|<(?P<element>{'|'.join(_ELEMENTS)})(?P<given>(?:[\s/][^<>]*+)?)>"
    r"|(?P<open>\{\{++)|(?P<shut>\}\}++)|(?P<link>\[\[)|(?P<unlink>\]\])|(?P<bar>\|)",
    re.IGNORECASE,
)
CLOSING: Final = {"{{": "}}", "{{{": "}}}", "[[": "]]"}


@dataclass(frozen=True, slots=True)
class Group:
    kind: Kind
    parts: tuple[tuple[Node, ...], ...]
    source: tuple[int, int]  # where it is in the text
    is_plain: bool  # whether no parameter, and no call with a colon in its name, is in it


Node = str | Group
Nodes = tuple[Node, ...]


@dataclass(slots=True)
class _Level:
    """An open construct."""

    braces: int = 0  # that are still open; 0: the text itself, or a link
    begin: int = 0
    parts: list[list[Node]] = field(default_factory=lambda: [[]])


def parsed(text: str) -> Nodes:
    """Return the tree of a text.  O(len(text))."""
    return _Parser(text, 0, len(text)).run()


class _Parser:
    def __init__(self, text: str, begin: int, end: int) -> None:
        self._text = text
        self._begin = begin
        self._end = end
        self._levels = [_Level()]
        self._calls: list[int] = []  # the levels of open braces, the innermost last
        self._closing = Closings(text, end).after

    def run(self) -> Nodes:
        position, text = self._begin, self._text
        while match := _TOKEN.search(text, position, self._end):
            self._add(text[position : match.start()])
            position = self._token(match)
        self._add(text[position : self._end])
        self._fold(0)
        return tuple(self._levels[0].parts[0])

    def _add(self, node: Node) -> None:
        if node:
            self._levels[-1].parts[-1].append(node)

    def _token(self, match: re.Match[str]) -> int:
        """Read one token; return where to continue."""
        kind = match.lastgroup
        if match["comment"]:
            return self._verbatim(match, "-->")
        if match["raw"]:
            return self._verbatim(match, rf"</{match['raw'].lower()}\s*+>", match["attributes"])
        if match["element"]:
            return self._element(match)
        if kind == "open":
            self._calls.append(len(self._levels))
            self._levels.append(_Level(len(match[0]), match.start()))
        elif kind == "shut":
            self._close_run(len(match[0]), match.start())
        elif kind == "link":
            self._levels.append(_Level(begin=match.start()))
        elif kind == "unlink" and len(self._levels) > 1 and not self._levels[-1].braces:
            level = self._levels.pop()
            self._close(level, "[[", (level.begin, match.end()))
        elif kind == "bar" and len(self._levels) > 1:
            self._levels[-1].parts.append([])
        else:
            self._add(match[0])
        return match.end()

    def _verbatim(self, match: re.Match[str], pattern: str, attributes: str = "") -> int:
        """Read what is as typed up to its end; an element without an end is text, a comment reaches to the end."""
        if attributes.endswith("/"):
            self._add(Group("<", ((match[0],),), match.span(), is_plain=True))
            return match.end()
        closing = self._closing(pattern, match.end())
        if closing is None and not match["comment"]:
            self._add(match[0])
            return match.end()
        end = closing.end() if closing else self._end
        self._add(Group("<", ((self._text[match.start() : end],),), (match.start(), end), is_plain=True))
        return end

    def _element(self, match: re.Match[str]) -> int:
        """Read an element with all that is in it; calls that are open before it do not close there."""
        pattern = rf"</{match['element'].lower()}\s*+>"
        closing = None if match["given"].endswith("/") else self._closing(pattern, match.end())
        if closing is None:
            return self._verbatim(match, pattern, match["given"])
        # nothing of this name ends within it, so elements are nested no deeper than there are names
        within = _Parser(self._text, match.end(), closing.start()).run()
        nodes = (match[0], *within, closing[0])
        self._add(Group("<>", (nodes,), (match.start(), closing.end()), _are_plain((nodes,))))
        return closing.end()

    def _close_run(self, left: int, position: int) -> None:
        """Close calls and parameters with a run of braces."""
        while left >= 2 and self._calls:
            self._fold(self._calls[-1])
            level = self._levels[-1]
            count = level.braces
            taken = min(left, count)
            taken = 3 if taken >= 3 and (count % 2 or left == 3) else 2
            left -= taken
            position += taken
            self._levels.pop()
            self._calls.pop()
            rest = count - taken
            if rest >= 2:  # these stay open around it
                self._calls.append(len(self._levels))
                self._levels.append(_Level(rest, level.begin))
            elif rest:
                self._add("{")
            self._close(level, "{{{" if taken == 3 else "{{", (level.begin + rest, position))
        self._add("}" * left)

    def _close(self, level: _Level, kind: Kind, source: tuple[int, int]) -> None:
        """Add a closed construct to the level around it."""
        parts = tuple(tuple(part) for part in level.parts)
        is_plain = kind != "{{{" and _are_plain(parts)
        if kind == "{{" and any(":" in node for node in parts[0] if isinstance(node, str)):
            is_plain = False
        self._add(Group(kind, parts, source, is_plain))

    def _fold(self, depth: int) -> None:
        """Add the unclosed levels above ``depth`` to the level at ``depth``, as text."""
        base = self._levels[depth]
        for level in self._levels[depth + 1 :]:
            base.parts[-1].append("{" * level.braces or "[[")
            for place, part in enumerate(level.parts):
                if place and depth:
                    base.parts.append([])
                elif place:
                    base.parts[-1].append("|")
                base.parts[-1].extend(part)
        del self._levels[depth + 1 :]
        while self._calls and self._calls[-1] > depth:
            self._calls.pop()


def _are_plain(parts: tuple[Nodes, ...]) -> bool:
    return all(isinstance(node, str) or node.is_plain for part in parts for node in part)


def source_of(text: str, group: Group) -> str:
    """Return a group as it is in its text."""
    return text[group.source[0] : group.source[1]]
