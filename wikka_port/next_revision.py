"""(pure) The next revision of a page: all cells of its row and of its page's row.

A save never uses a revision number of a name twice, unless a move to that name was aborted.  When a page ends, its row
keeps the last number (``page_rows.number_before``), and the next page of the name is numbered from there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Unpack

from wikka_port import schema
from wikka_port.markup.formats import WIKKA
from wikka_port.names import page_key
from wikka_port.page_languages import ENGLISH
from wikka_port.page_rows import (
    Cells,
    Original,
    RevisionDraft,
    StoredPage,
    Writing,
    number_before,
    number_in,
    stored_page_of,
)
from wikka_port.schema import Head, revision_token
from wikka_port.texts import _, figure

BODY_BYTES_MAX: Final = 4 * 1024 * 1024  # below the store's bound of a cell, and still editable in a browser


class PageTooBig(ValueError):
    def __init__(self, size_bytes: int) -> None:
        size, most = figure(size_bytes), figure(BODY_BYTES_MAX)
        super().__init__(_("The text is {size} bytes long and {most} are the most.", size=size, most=most))
        self.size_bytes = size_bytes


def draft_after(
    row: Cells,
    *,
    name: str,
    body: str,
    time_ms: int,
    begin: Head | None = None,
    stored: StoredPage | None = None,
    **given: Unpack[Writing],
) -> RevisionDraft:
    """Make the revision after the one in ``row``, the page's cells (empty for a new page).  Raises PageTooBig.

    ``begin`` replaces the head that follows from ``row``.  ``stored`` is the page parsed from ``row``, if the caller
    has it already.
    """
    size = len(body.encode(errors="replace"))
    if size > BODY_BYTES_MAX:
        raise PageTooBig(size)
    before = stored or stored_page_of(row)
    old, page = before.head, before.page
    earliest = max(page.time_ms if page else 0, number_in(row, schema.STAMP)) + 1
    at = min(max(time_ms, earliest), schema.TIME_MAX_MS)
    head = _next_head(name, row, old) if begin is None else begin
    autolink, minor = given.get("autolink"), given.get("minor", False)
    author, note, body = _storable(given["author"]), _storable(given.get("note", "")), _storable(body)
    previous = old.token if page else b""
    format_after, language_after = _markup_after(row, given.get("markup")), _language_after(row, given.get("language"))
    token = revision_token(name, head.number, at, author, note, body, previous, format_after, language_after)
    return RevisionDraft(
        name=name,
        head=replace(head, token=token),
        previous=previous,
        time_ms=at,
        author=author,
        note=note,
        body=body,
        owner=_kept(given.get("owner"), page.owner if page else ""),
        created_ms=number_in(row, schema.CREATED) if page else at,
        autolink=(page.autolink if page else True) if autolink is None else autolink,
        attribution=_kept(given.get("attribution"), page.attribution if page else ""),
        signed=given.get("signed", ""),
        markup=format_after,
        minor=minor if minor or schema.MINOR in row else None,
        language=language_after,
        original=Original(given.get("source"), given.get("origin", b"")),
        grown=len(body) - len(page.body if page else ""),
    )


def _next_head(name: str, row: Cells, old: Head) -> Head:
    """Make the next head, without a token.

    A new page under the name of a moved page gets a history of its own, whose numbers continue the old ones.
    """
    if old.number or not old.token:
        return Head(old.number + 1, b"", old.history)
    return Head(number_before(row) + 1, b"", schema.new_history(page_key(name), old.token))


def _markup_after(row: Cells, given: str | None) -> str:
    """Return the next value of ``meta:format``, or "" if the page needs no such cell and had none."""
    stored = row.get(schema.FORMAT, b"").decode(errors="replace")
    return stored if given is None or (given == WIKKA and not stored) else given


def _language_after(row: Cells, given: str | None) -> str:
    """Return the next value of ``meta:language``, or "" if the page needs no such cell and had none.

    English needs no cell, unless the page had a different language before.
    """
    stored = row.get(schema.LANGUAGE, b"").decode(errors="replace")
    return stored if given is None or (given in ("", ENGLISH) and not stored) else given or ENGLISH


def _kept(given: str | None, stored: str) -> str:
    return stored if given is None else _storable(given)


def _storable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text.encode(errors="replace").decode()
