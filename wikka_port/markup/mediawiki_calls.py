"""(pure) What stands in the place of a closed call or parameter of a MediaWiki text: wikitext, or a mark.

The first that applies: the place of the notes, the value of a variable, a footnote, the expansion of the dump's own
template, a page that is no template, the words, links and tables of a template that is known by its name
(``mediawiki_templates``), the expansion of a template with parser functions, and the words of a call that nobody knows.

Knows nothing of levels and of where calls begin and end; ``mediawiki_scan`` finds them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

from wikka_port.markup.mediawiki_expansion import BLOCKS, expanded, template_title
from wikka_port.markup.mediawiki_pieces import Draft, Piece, collapse, literal
from wikka_port.markup.mediawiki_templates import Call, made_of, note_of, piece_of, words_of_unknown
from wikka_port.markup.mediawiki_titles import NO_SITE
from wikka_port.markup.mediawiki_variables import needs_site, page_of, value_of
from wikka_port.markup.mediawiki_words import words_of

_NOTE_TEMPLATES: Final = frozenset({"reflist", "references", "refs", "notelist", "atsauces"})
_TAG_TEMPLATES: Final = frozenset({"anchor", "anchors", "anker", "ancre", "ancla", "visible anchor", "якорь"})
_NOTE_END: Final = re.compile(r"\s*+</ref\s*+>", re.IGNORECASE)
_LINE_REST: Final = re.compile(r"[ \t]*+(?:\n|\Z)")  # nothing but blanks
_PARAMETER: Final = re.compile(r"\{\{\{([^{}|]*)(?:\|(.*))?\}\}\}", re.DOTALL)
_WORDS: Final = re.compile(r"[^\x02\x03|={}\[\]<>\n']*")  # the same wherever they stand
_ALONE_AFTER: Final = re.compile(r"[ \t]*+(?:\Z|\n[ \t]*+(?:\n|\Z)|\n=)")  # a line without words, or a heading
_BLOCK_MARK: Final = re.compile(
    r"(?:\A|\n)[ \t:]*+\{\||\n\|\}|</?(?:table|div|blockquote|center|ul|ol|dl|li|dd|dt|td|th|tr|poem|gallery)\b",
    re.IGNORECASE,
)
_LINE_BEFORE: Final = 80  # characters, enough for indents


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a call."""

    text: str  # of the page
    begin: int
    end: int  # after the call
    braces_end: int  # after all braces there
    within: Literal["root", "template", "link", "ref"]  # the construct around it
    begins_note: bool  # whether it is the first thing in a note

    def is_whole_note(self) -> bool:
        return self.begins_note and _NOTE_END.match(self.text, self.end) is not None


def notes_place(draft: Draft, text: str, end: int) -> str:
    """Return the line in which the author wants the notes; ``end`` is the position after their tag or call."""
    return f"\n{draft.place_notes()}\n{continued(draft, text, end)}"


def continued(draft: Draft, text: str, end: int) -> str:
    """Return an empty mark if text continues the line of the notes, so that this text begins no list or heading."""
    return "" if _LINE_REST.match(text, end) else draft.mark(Piece("", block=""))


class Calls:
    """Converts the calls of one text; ``scan`` reads the wikitext of a template.

    ``marks`` are those whose words may be a part of a link's target.
    """

    def __init__(self, draft: Draft, scan: Callable[[Draft, str], str]) -> None:
        self._draft = draft
        self._scan = scan
        self.marks: set[str] = set()

    def replaced(self, source: str, place: Place) -> str:
        """Return wikitext or a mark for a call or a parameter; ``source`` has its braces, its constructs are marks."""
        draft = self._draft
        if source.startswith("{{{"):
            return self._parameter(source, place)
        call = Call.of(source, draft.dialect.language)
        if draft.notes_mark is None and _is_place_of_notes(draft, call):
            return notes_place(draft, place.text, place.braces_end)
        if (value := value_of(draft, call.title, call.given)) is not None:
            return value
        if (note := note_of(call)) is not None:
            return draft.note(note[0], collapse(note[1]), is_use=True)
        if (text := self._expanded(call, source, place, functional=False)) is not None:
            return text
        if (page := page_of(draft, call.title, call.given)) is not None:
            return self._page(page, source, place)
        if (made := made_of(draft, call)) is not None:
            draft.converted[made[0]] += 1
            return self._mark(made[1], source)
        if (text := self._expanded(call, source, place, functional=True)) is not None:
            return text
        return self._unknown(call, source, place)

    def _page(self, page: Piece, source: str, place: Place) -> str:
        """Return the mark of a page that is no template: an include, or a link where none can stand."""
        draft = self._draft
        draft.converted["included page"] += 1
        is_within = place.within != "root" or _is_in_item(place.text, place.begin)
        if is_within or not draft.expansion.includes_left:
            return draft.mark(replace(page, typed=source, block=None))
        draft.expansion.note_include()
        return draft.mark(replace(page, typed=source))

    def _unknown(self, call: Call, source: str, place: Place) -> str:
        """Return what words a call of an unknown template has, or the mark that hides it."""
        draft = self._draft
        if needs_site(draft.dialect, call.title) and _begins_address(place.text, place.begin):
            self._hidden(source, "template")
            return NO_SITE
        is_tag = call.name in _TAG_TEMPLATES
        if is_tag or (call.lines > 1 and _begins_line(place.text, place.begin)):
            return self._hidden(source, "template", is_tag=is_tag)
        kind, words, piece = words_of_unknown(draft, call, is_whole_note=place.is_whole_note())
        draft.unconverted[kind] += 1
        mark = self._listed(piece, source)
        draft.unknown[mark] = bool(words)
        return mark

    def _mark(self, piece: Piece, source: str) -> str:
        """Return the mark of a call."""
        mark = self._draft.mark(replace(piece, typed=source))
        self.marks.add(mark)
        return mark

    def _listed(self, piece: Piece, source: str) -> str:
        """Return the mark of a call whose source is listed at the end of the page."""
        self._draft.sources.append(len(self._draft.pieces))
        return self._mark(piece, source)

    def _expanded(self, call: Call, source: str, place: Place, *, functional: bool) -> str | None:
        """Return what a template of the dump makes of a call: wikitext or its mark; None if there is none.

        In the text of the page it stays wikitext, so that its lines can be lists, headings and tables.  A call that is
        a paragraph by itself becomes an include, if that shows the same.
        """
        draft, is_root = self._draft, place.within == "root"
        if call.name == "!":
            return None
        text = expanded(draft, call.title, call.given, functional=functional)
        if text is None or (not is_root and "{|" in text):
            return None
        include = _include(draft, call, text, place) if is_root else ""
        draft.converted["template: include" if include else "template: its own text"] += 1
        text = draft.expansion.within(self._scan, draft, text)
        if include:
            draft.expansion.note_include()
            piece = piece_of(draft, text)  # where the paragraph turns out to be one of a list, a cell or a quotation
            return self._mark(Piece(piece.inline, piece.plain, block=include), source)
        if not text.strip():
            return self._mark(Piece("", block=""), source)
        if is_root:
            return f"\n{text}" if text.startswith(BLOCKS) else text
        return text if _WORDS.fullmatch(text) else self._mark(piece_of(draft, text), source)

    def _parameter(self, source: str, place: Place) -> str:
        """Show a parameter of the template that is this page: its default, else as typed."""
        draft = self._draft
        if "\n" in source and place.within == "root":  # in code: Vim's marks of a fold, for example
            draft.unconverted["parameter"] += 1
            _name, *given = source[3:-3].split("|")
            return given[0] if given else source
        found = _PARAMETER.fullmatch(source)
        if found is None or found[2] == "":
            return self._hidden(source, "parameter")
        draft.unconverted["parameter"] += 1
        if found[2] is None:
            return self._mark(Piece(literal(source), collapse(source)), source)
        return self._listed(piece_of(draft, found[2]), source)

    def _hidden(self, source: str, kind: str, *, is_tag: bool = False) -> str:
        """List a source at the end of the page, and return the empty mark in its place.

        ``is_tag`` if the call makes a tag, which shows nothing but fills its line.
        """
        draft = self._draft
        draft.unconverted[kind] += 1
        mark = self._listed(Piece("", block=""), source)
        if kind != "parameter" and not is_tag:
            draft.unknown[mark] = False
        return mark

    def hidden_text(self, source: str) -> str:
        """Hide text that including pages alone show; its source is listed with the calls of templates."""
        return self._hidden(source, "html <includeonly>")


def _is_place_of_notes(draft: Draft, call: Call) -> bool:
    return call.name in _NOTE_TEMPLATES or call.name in words_of(draft.dialect.language).notes


def _begins_line(text: str, position: int) -> bool:
    before = text[max(position - _LINE_BEFORE, 0) : position]
    return not before.rpartition("\n")[2].strip(" \t:")


def _is_in_item(text: str, position: int) -> bool:
    """Return whether the line begins with the sign of an item, a cell or a heading."""
    before = text[max(position - _LINE_BEFORE, 0) : position]
    return before.rpartition("\n")[2].lstrip(" \t").startswith(("*", "#", ":", ";", "|", "!", "="))


def _begins_address(text: str, begin: int) -> bool:
    """Return whether a single bracket is before the call at ``begin``."""
    before = text[max(begin - 2, 0) : begin]
    return before[-1:] == "[" and before != "[["


def _stands_alone(place: Place) -> bool:
    """Return whether nothing else is in the lines of a call, and no words in the lines around them."""
    before = place.text[max(place.begin - _LINE_BEFORE, 0) : place.begin]
    if place.begin and not before.endswith("\n"):
        return False
    above = before[:-1].rpartition("\n")[2].rstrip(" \t")
    if place.begin > 1 and above and not above.endswith("="):
        return False
    return _ALONE_AFTER.match(place.text, place.end) is not None


def _is_within_block(text: str, position: int) -> bool:
    """Return whether a table, or an element of HTML that makes a block, is open before the position.  O(position)."""
    depth = 0
    for found in _BLOCK_MARK.finditer(text, 0, position):
        depth += -1 if found[0].startswith(("\n|}", "</")) else 1
    return depth != 0


def _include(draft: Draft, call: Call, expansion: str, place: Place) -> str:
    """Return the action that includes the template of a call and shows its ``expansion``, or "" if none does."""
    if draft.dialect.include_call is None or not _stands_alone(place):
        return ""
    if not draft.expansion.may_include() or _is_within_block(place.text, place.begin):
        return ""
    title = template_title(draft.dialect, call.title)
    return draft.dialect.include_call(title, call.given, expansion) if title != draft.title else ""
