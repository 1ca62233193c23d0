"""Drafts in the store: one row for each edit form with typed text.

    table    row                                          families              ends
    drafts   md5 of page (32), owner (32), id (16)        d (text), at (whose)  30 days after its last write

All parts are hexadecimal.  ``owner`` is a prefix of the SHA-256 of an account's folded name, or of the value of a
browser's cookie: so no request can name a row, and a reader of the store cannot forge a cookie from a row.  ``id`` is
the edit form's, so two windows, or two sections of one page, do not overwrite each other.

    d:text d:note                    as typed
    at:who at:since at:time          the shown name; begin of this period of writing; time of the last ``keep`` (ms)
    at:base at:section               the revision that the edit began from; id of the section's heading, b"": whole page
    at:token                         the token of that revision; absent or b"": not known
    at:language                      the language that was chosen for the page; absent or b"": unchanged
    at:format                        the format of the text (``markup.formats``); absent or b"": the page's

The list of people who are writing reads only the family ``at``.  A row begins with its page, so this list is one
short scan of the table itself, and no index is needed that could lag behind.

Rules:
    D1. Only its owner reads and deletes a draft; ``edit_forms`` takes the owner from the session or a cookie.
    D2. ``keep`` returns only after the store's answer.
    D3. An owner has at most KEPT_PER_PAGE drafts of a page; one more displaces the draft that was kept longest ago.

Handlers reach drafts through ``rights.guarded``, which checks the right to edit the page.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final

from wikka_port.accounts.rows import Rows
from wikka_port.limits import KEPT_PER_PAGE, PRESENT_DRAFTS_SCANNED, PRESENT_MS
from wikka_port.markup.formats import is_format
from wikka_port.names import page_key
from wikka_port.page_languages import known
from wikka_port.schema import TableSpec, cells_of, fields_in, folded

DRAFTS: Final = b"drafts"
DRAFTS_S: Final = 30 * 24 * 3600  # from the last ``keep``
_FAMILY: Final = {"max_versions": 1, "time_to_live": DRAFTS_S}
TABLES: Final = (TableSpec(DRAFTS, {"d": _FAMILY, "at": _FAMILY}, {}),)

TEXT: Final = b"d:text"
WHO: Final = b"at:who"
SINCE: Final = b"at:since"
TIME: Final = b"at:time"
BASE: Final = b"at:base"
TOKEN: Final = b"at:token"
FORMAT: Final = b"at:format"
LANGUAGE: Final = b"at:language"
AT: Final = b"at"  # the family without the text

_KEY_CHARS: Final = 32
_OWNER_CHARS: Final = 32
_ID: Final = re.compile("[0-9a-f]{16}")
ID_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class KeptDraft:
    id: str
    owner: str
    who: Annotated[str, WHO]
    since_ms: Annotated[int, SINCE]
    time_ms: Annotated[int, TIME]
    base: Annotated[int, BASE]
    section: Annotated[str, b"at:section"]
    text: Annotated[str | None, TEXT] = None  # None if the family ``at`` alone was requested
    note: Annotated[str, b"d:note"] = ""
    markup: Annotated[str, FORMAT] = ""  # format of the text; "": the page's
    base_token: Annotated[str, TOKEN] = ""
    language: Annotated[str, LANGUAGE] = ""  # the chosen language of the page; "": unchanged


def is_id(value: str) -> bool:
    return _ID.fullmatch(value) is not None


def owner_of_account(name: str) -> str:
    return _owner("account", folded(name))


def owner_of_browser(cookie: str) -> str:
    return _owner("browser", cookie)


def _owner(kind: str, what: str) -> str:
    return hashlib.sha256(f"{kind}\n{what}".encode("utf-8", "replace")).hexdigest()[:_OWNER_CHARS]


def _row_prefix(name: str, owner: str = "") -> bytes:
    """Return the prefix of the rows of a page, or of an owner's rows of a page.  Raises InvalidName."""
    return page_key(name) + owner.encode()


def draft_row(name: str, owner: str, draft_id: str) -> bytes:
    assert is_id(draft_id), "checked where the form is read"
    return _row_prefix(name, owner) + draft_id.encode()


def _owner_in(row: bytes) -> str:
    return row[_KEY_CHARS : _KEY_CHARS + _OWNER_CHARS].decode(errors="replace")


def _id_in(row: bytes) -> str:
    return row[_KEY_CHARS + _OWNER_CHARS :].decode(errors="replace")


def unpack_draft(row: bytes, cells: Mapping[bytes, bytes]) -> KeptDraft | None:
    """Return the draft in a row, or None if it is incomplete, since the time to live of some cells is over."""
    try:
        draft = KeptDraft(_id_in(row), _owner_in(row), **fields_in(KeptDraft, {SINCE: b"0", BASE: b"0", **cells}))
    except ValueError:
        return None
    return replace(draft, markup=draft.markup if is_format(draft.markup) else "", language=known(draft.language))


@dataclass(frozen=True, slots=True)
class Other:
    """Another person who is writing the page."""

    name: str
    since_ms: int


class Drafts:
    """The table of drafts.  Thread-safe.  Every method may raise StoreUnavailable and InvalidName."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def keep(self, name: str, draft: KeptDraft) -> KeptDraft:
        """Store ``draft`` and return it as stored; if a period of writing continues, its beginning is kept."""
        own = {one.id: one for one in self._found(_row_prefix(name, draft.owner), 2 * KEPT_PER_PAGE)}
        before = own.pop(draft.id, None)
        if before is not None and draft.time_ms - before.time_ms < PRESENT_MS:
            draft = replace(draft, since_ms=before.since_ms)
        self._rows.put(DRAFTS, draft_row(name, draft.owner, draft.id), cells_of(draft))
        surplus = len(own) + 1 - KEPT_PER_PAGE
        for one in sorted(own.values(), key=lambda one: one.time_ms)[: max(0, surplus)]:
            self.delete_draft(name, draft.owner, one.id)
        return draft

    def is_kept(self, name: str, owner: str, draft_id: str) -> bool:
        return bool(self._rows.row(DRAFTS, draft_row(name, owner, draft_id), (AT,)))

    def own(self, name: str, owners: Collection[str]) -> list[KeptDraft]:
        """Return the drafts of ``owners`` with texts, the newest first; of two drafts of one id only the newer one."""
        wanted = [
            draft_row(name, owner, one.id)
            for owner in owners
            for one in self._found(_row_prefix(name, owner), 2 * KEPT_PER_PAGE)
        ]
        read = (unpack_draft(row, cells) for row, cells in self._rows.rows(DRAFTS, wanted).items())
        found: dict[str, KeptDraft] = {}
        for one in sorted((one for one in read if one is not None), key=lambda one: -one.time_ms):
            if one.text is not None:
                found.setdefault(one.id, one)
        return list(found.values())

    def delete_draft(self, name: str, owner: str, draft_id: str) -> None:
        self._rows.delete(DRAFTS, draft_row(name, owner, draft_id))

    def others(self, name: str, owners: Collection[str], now_ms: int) -> list[Other]:
        """Return the people with drafts kept within PRESENT_MS, except ``owners``, ordered by when they began."""
        found: dict[str, KeptDraft] = {}
        for one in self._found(_row_prefix(name), PRESENT_DRAFTS_SCANNED):
            if one.owner in owners or not one.who or now_ms - one.time_ms >= PRESENT_MS:
                continue
            known = found.get(one.owner)
            if known is None or one.since_ms < known.since_ms:
                found[one.owner] = one
        return [Other(one.who, one.since_ms) for one in sorted(found.values(), key=lambda one: one.since_ms)]

    def forget(self, owner: str) -> int:
        """Delete all drafts of ``owner``; return their number.  O(all drafts)."""
        count = 0
        for row, _ in self._rows.scan(DRAFTS, columns=(AT,)):
            if _owner_in(row) == owner:
                self._rows.delete(DRAFTS, row)
                count += 1
        return count

    def _found(self, start: bytes, most: int) -> Iterator[KeptDraft]:
        """Yield the drafts whose rows begin with ``start``, without their texts."""
        for row, cells in self._rows.scan(DRAFTS, start, columns=(AT,), limit=most):
            if not row.startswith(start):
                return
            one = unpack_draft(row, cells)
            if one is not None:
                yield one
