"""(pure) A page as a template: what another page that includes it gets of its text, with the values of the call.

    {{{name}}}   {{{1}}}   {{{name|else}}}    the value of the call, else the words behind the bar, else nothing

    shown only             in Wikka markup                     in Markdown
    where it is read       /*noinclude*/ .. /*/noinclude*/     <!--noinclude--> .. <!--/noinclude-->
    where it is included   /*includeonly .. */                 <!--includeonly .. -->

To the markup these marks are comments, so a page that is read shows what it should without being changed; only an
include looks for them.  Marks and names in code are as typed: between ``%%`` in Wikka markup, and in Markdown between
fences and backticks; lines of code that are only indented have no marks around them and are no code here.

Knows nothing of pages and of rights.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from wikka_port.limits import INCLUDE_CHARS_MAX
from wikka_port.markup.formats import MARKDOWN, WIKKA
from wikka_port.markup.targets import PARAMETER
from wikka_port.texts import _, figure

PartKind = Literal["shown", "noinclude", "includeonly"]
# The opening marks, and the end of a comment.
_MARKS: Final = {
    WIKKA: (re.compile(r"/\*(?:(?P<no>noinclude)\*/|includeonly(?![^\W_]))"), "/*/noinclude*/", "*/"),
    MARKDOWN: (re.compile(r"<!--(?:(?P<no>noinclude)-->|includeonly(?![^\W_]))"), "<!--/noinclude-->", "-->"),
}


# What Wikka markup reads up to its closing without reading what is in it.
_VERBATIM: Final = re.compile(r'""|%%|``|/\*')
_VERBATIM_ENDS: Final = {"/*": "*/"}
_FENCE: Final = re.compile(
    r"^[ \t>]*+(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]++)?(?P<fence>`{3,}+(?=[^`\n]*+$)|~{3,}+)", re.MULTILINE
)
_FENCE_END: Final = re.compile(r"^[ \t>]*+(?P<fence>`{3,}+|~{3,}+)[ \t]*+$", re.MULTILINE)
_TICKS_OR_GAP: Final = re.compile(r"`++|\n[ \t>]*+(?=\n)")


class _Code:
    """The places of code in a text.  O(len(text)) to find, O(log places) to ask."""

    def __init__(self, text: str, markup: str) -> None:
        found = _in_markdown(text) if markup == MARKDOWN else _in_wikka(text)
        self._begins, self._ends = [], []
        for begin, end in found:
            self._begins.append(begin)
            self._ends.append(end)

    def has(self, position: int) -> bool:
        place = bisect_right(self._begins, position) - 1
        return place >= 0 and position < self._ends[place]


def _in_wikka(text: str) -> Iterator[tuple[int, int]]:
    missing: set[str] = set()  # marks without a further closing, which no search has to look for again
    at = 0
    while "%%" not in missing and (found := _VERBATIM.search(text, at)):
        at, mark = found.end(), found[0]
        end = -1 if mark in missing else text.find(_VERBATIM_ENDS.get(mark, mark), at)
        if end < 0:
            missing.add(mark)
            continue
        at = end + 2
        if mark == "%%":
            yield found.start(), at


def _in_markdown(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    while opening := _FENCE.search(text, at):
        yield from _ticks(text, at, opening.start())
        fence = opening["fence"]
        ends = _FENCE_END.finditer(text, opening.end())
        closing = next((one for one in ends if one["fence"].startswith(fence)), None)
        end = closing.end() if closing else len(text)
        yield opening.start(), end
        at = end
    yield from _ticks(text, at, len(text))


def _ticks(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the places between equal runs of backticks, which an empty line ends."""
    runs = list(_TICKS_OR_GAP.finditer(text, begin, end))
    nearest: dict[int, int] = {}  # length -> the next run of it
    partner: dict[int, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        if runs[number][0].startswith("`"):
            length = len(runs[number][0])
            if length in nearest:
                partner[number] = nearest[length]
            nearest[length] = number
        else:
            nearest.clear()
    number = 0
    while number < len(runs):
        run = runs[number]
        is_typed = run.start() > begin and text[run.start() - 1] == "\\"  # the sign itself
        if number not in partner or is_typed:
            number += 1
            continue
        yield run.start(), runs[partner[number]].end()
        number = partner[number] + 1


def parts(text: str, markup: str) -> Iterator[tuple[PartKind, str]]:
    """Yield the parts of a page's text in their order, without the marks.  O(len(text)).

    A part "noinclude" without an end reaches to the end of the text; a comment without an end is none.
    """
    opening, close_no, close_only = _MARKS.get(markup, _MARKS[WIKKA])
    code, at, begin = _Code(text, markup), 0, 0
    while found := opening.search(text, begin):
        if code.has(found.start()):
            begin = found.end()
            continue
        kind: PartKind = "noinclude" if found["no"] else "includeonly"
        close = close_no if found["no"] else close_only
        end = text.find(close, found.end())
        while found["no"] and end >= 0 and code.has(end):
            end = text.find(close, end + 1)
        if end < 0 and not found["no"]:
            break
        yield "shown", text[at : found.start()]
        yield kind, text[found.end() : end if end >= 0 else len(text)]
        at = begin = end + len(close) if end >= 0 else len(text)
    yield "shown", text[at:]


def has_parts(text: str, markup: str) -> bool:
    """Return whether a text has parts that are shown in one place and not in the other."""
    return _MARKS.get(markup, _MARKS[WIKKA])[0].search(text) is not None and len(list(parts(text, markup))) > 1


def written(kind: PartKind, text: str, markup: str) -> str:
    """Return a part with its marks, each on a line of its own; its text must not end a comment."""
    _opening, close_no, close_only = _MARKS[markup]
    begin = close_no.partition("/noinclude")[0]
    gap = "\n\n" if markup == MARKDOWN else "\n"
    if kind == "noinclude":
        return f"{begin}noinclude{close_only}{gap}{text}{gap}{close_no}"
    return f"{begin}includeonly\n{text}\n{close_only}" if kind == "includeonly" else text


def included_text(text: str, markup: str) -> str:
    """Return what an including page gets of a text."""
    return "".join(part for kind, part in parts(text, markup) if kind != "noinclude")


def filled(text: str, given: Mapping[str, str], markup: str = WIKKA) -> str:
    """Return ``text`` with the values of a call filled in.  Raises ValueError with a sentence for its author."""
    if "{{{" not in text:
        return text
    left, code = INCLUDE_CHARS_MAX, _Code(text, markup)

    def value(found: re.Match[str]) -> str:
        nonlocal left
        if code.has(found.start()):
            return found[0]
        said = given.get(found[1].lower(), found[2] or "")
        left -= len(said)
        if left < 0:
            most = figure(INCLUDE_CHARS_MAX)
            raise ValueError(_("the page is longer than {most} characters with what the call gives", most=most))
        return said

    return PARAMETER.sub(value, text)
