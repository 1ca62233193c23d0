"""(pure) A page as a template: what another page that includes it gets of its text, with the values of the call.

    {{{name}}}   {{{1}}}   {{{name|else}}}    the value of the call, else the words behind the bar, else nothing

    shown only             in Wikka markup                     in Markdown
    where it is read       /*noinclude*/ .. /*/noinclude*/     <!--noinclude--> .. <!--/noinclude-->
    where it is included   /*includeonly .. */                 <!--includeonly .. -->

To the markup these marks are comments, so a page that is read shows what it should without being changed; only an
include looks for them.

Knows nothing of pages and of rights.
"""

from __future__ import annotations

import re
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


def parts(text: str, markup: str) -> Iterator[tuple[PartKind, str]]:
    """Yield the parts of a page's text in their order, without the marks.  O(len(text)).

    A part "noinclude" without an end reaches to the end of the text; a comment without an end is none.
    """
    opening, close_no, close_only = _MARKS.get(markup, _MARKS[WIKKA])
    at = 0
    while found := opening.search(text, at):
        kind: PartKind = "noinclude" if found["no"] else "includeonly"
        close = close_no if found["no"] else close_only
        end = text.find(close, found.end())
        if end < 0 and not found["no"]:
            break
        yield "shown", text[at : found.start()]
        yield kind, text[found.end() : end if end >= 0 else len(text)]
        at = end + len(close) if end >= 0 else len(text)
    yield "shown", text[at:]


def has_parts(text: str, markup: str) -> bool:
    """Return whether a text has parts that are shown in one place and not in the other."""
    return _MARKS.get(markup, _MARKS[WIKKA])[0].search(text) is not None


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


def filled(text: str, given: Mapping[str, str]) -> str:
    """Return ``text`` with the values of a call filled in.  Raises ValueError with a sentence for its author."""
    if "{{{" not in text:
        return text
    left = INCLUDE_CHARS_MAX

    def value(found: re.Match[str]) -> str:
        nonlocal left
        said = given.get(found[1].lower(), found[2] or "")
        left -= len(said)
        if left < 0:
            most = figure(INCLUDE_CHARS_MAX)
            raise ValueError(_("the page is longer than {most} characters with what the call gives", most=most))
        return said

    return PARAMETER.sub(value, text)
