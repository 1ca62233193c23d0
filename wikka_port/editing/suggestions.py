"""Suggested changes: texts for a page, suggested by people who may read but not write it.

    table          row                             families               ends
    suggestions    md5 of page (32), id (16)       s (text), at (whose)   30 days after it was made

    s:text s:note                          as typed
    at:who at:owner at:time                the shown name; the owner, as for drafts (``kept_drafts``); the time (ms)
    at:base at:token at:format             the revision that it began from and its token; the format of the text
    at:signed                              the kind of the shown name (``schema``)

A person has at most SUGGESTED_BY_ONE suggestions on a page, and a page SUGGESTED_OF_PAGE.  Beyond that a new one is
refused; no older one is displaced.  The counts are checked before the write, so concurrent suggestions may exceed the
bounds by their number.  Lists read only the family ``at``.

Taking a suggestion is an edit (``handlers/suggestion``); the suggestion is deleted after the save.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final

from wikka_port.accounts.rows import Rows
from wikka_port.limits import SUGGESTED_BY_ONE, SUGGESTED_OF_PAGE, SUGGESTIONS_S
from wikka_port.markup.formats import WIKKA, is_format
from wikka_port.names import page_key
from wikka_port.schema import TableSpec, cells_of, fields_in
from wikka_port.texts import _

SUGGESTIONS: Final = b"suggestions"
_FAMILY: Final = {"max_versions": 1, "time_to_live": SUGGESTIONS_S}
TABLES: Final = (TableSpec(SUGGESTIONS, {"s": _FAMILY, "at": _FAMILY}, {}),)

_AT: Final = b"at"
_OWNER: Final = b"at:owner"
_KEY_CHARS: Final = 32
_ID: Final = re.compile("[0-9a-f]{16}")


class TooMany(Exception):
    """The person or the page has too many suggestions; ``str()`` is a sentence for the person."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    who: Annotated[str, b"at:who"]
    owner: Annotated[str, _OWNER]
    signed: Annotated[str, b"at:signed"]
    time_ms: Annotated[int, b"at:time"]
    base: Annotated[int, b"at:base"]
    markup: Annotated[str, b"at:format"]
    text: Annotated[str | None, b"s:text"] = None  # None if the family ``at`` alone was requested
    note: Annotated[str, b"s:note"] = ""
    id: str = ""  # "": not stored yet
    base_token: Annotated[str, b"at:token"] = ""


class Suggestions:
    """The table of suggestions.  Thread-safe.  Every method may raise StoreUnavailable and InvalidName."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def add(self, name: str, one: Suggestion) -> Suggestion:
        """Store a suggestion, and return it with its id.  Raises TooMany."""
        there = self.of(name)
        if sum(other.owner == one.owner for other in there) >= SUGGESTED_BY_ONE:
            said = _(
                "You have suggested {count} changes of this page that nobody has looked at yet.", count=SUGGESTED_BY_ONE
            )
            raise TooMany(said)
        if len(there) >= SUGGESTED_OF_PAGE:
            said = _(
                "{count} changes of this page wait to be looked at, and that is the most.", count=SUGGESTED_OF_PAGE
            )
            raise TooMany(said)
        made = replace(one, id=secrets.token_hex(8))
        self._rows.put(SUGGESTIONS, _row(name, made.id), cells_of(made))
        return made

    def of(self, name: str) -> list[Suggestion]:
        """Return the suggestions of a page without their texts, the newest first."""
        start = page_key(name)
        found = []
        for row, cells in self._rows.scan(SUGGESTIONS, start, columns=(_AT,), limit=2 * SUGGESTED_OF_PAGE):
            if not row.startswith(start):
                break
            one = _unpack(row, cells)
            if one is not None:
                found.append(one)
        return sorted(found, key=lambda one: -one.time_ms)

    def one(self, name: str, suggestion_id: str) -> Suggestion | None:
        if not _ID.fullmatch(suggestion_id):
            return None
        row = _row(name, suggestion_id)
        found = _unpack(row, self._rows.row(SUGGESTIONS, row))
        return found if found is not None and found.text is not None else None

    def delete_suggestion(self, name: str, suggestion_id: str) -> None:
        self._rows.delete(SUGGESTIONS, _row(name, suggestion_id))

    def forget(self, owners: Collection[str]) -> int:
        """Delete all suggestions of ``owners``; return their number.  O(all suggestions)."""
        count = 0
        for row, cells in self._rows.scan(SUGGESTIONS, columns=(_AT,)):
            if cells.get(_OWNER, b"").decode(errors="replace") in owners:
                self._rows.delete(SUGGESTIONS, row)
                count += 1
        return count


def _row(name: str, suggestion_id: str) -> bytes:
    return page_key(name) + suggestion_id.encode()


def _unpack(row: bytes, cells: Mapping[bytes, bytes]) -> Suggestion | None:
    """Return the suggestion in a row, or None if it is incomplete, since the time to live of some cells is over."""
    try:
        one = Suggestion(id=row[_KEY_CHARS:].decode(errors="replace"), **fields_in(Suggestion, cells))
    except ValueError:
        return None
    return one if is_format(one.markup) else replace(one, markup=WIKKA)
