"""The revision that follows another (pure): all that its row and its page's row will say.

A revision number does not come again at one name by a save, unless a move to the name was given up: a row that is no
page any more keeps the last number (``page_rows.number_before``), and the next page of the name counts on from there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Unpack

from wikka_port import schema
from wikka_port.markup.formats import WIKKA
from wikka_port.names import page_key
from wikka_port.page_languages import ENGLISH
from wikka_port.page_rows import Cells, RevisionDraft, StoredPage, Writing, number_before, number_in, stored_page_of
from wikka_port.schema import Head, revision_token
from wikka_port.texts import _, figure

BODY_BYTES_MAX: Final = 4 * 1024 * 1024  # under the store's bound of a cell, and what one can still edit


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
    """The revision that follows the one in ``row`` (cells of the page; none: a new one); ``begin``: a first head.

    ``stored``: the page of ``row``, where that was made of it already.
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
        source=given.get("source"),
        origin=given.get("origin", b""),
    )


def _next_head(name: str, row: Cells, old: Head) -> Head:
    """Make one without a token.  A page that begins where one was moved away has a history of its own, numbered on."""
    if old.number or not old.token:
        return Head(old.number + 1, b"", old.history)
    return Head(number_before(row) + 1, b"", schema.new_history(page_key(name), old.token))


def _markup_after(row: Cells, given: str | None) -> str:
    """Return the value that ``meta:format`` becomes; "": there is no such cell, nor was one."""
    stored = row.get(schema.FORMAT, b"").decode(errors="replace")
    return stored if given is None or (given == WIKKA and not stored) else given


def _language_after(row: Cells, given: str | None) -> str:
    """Return the value that ``meta:language`` becomes; "": there is no such cell, nor was one.

    English needs none; a page that had another language says so.
    """
    stored = row.get(schema.LANGUAGE, b"").decode(errors="replace")
    return stored if given is None or (given in ("", ENGLISH) and not stored) else given or ENGLISH


def _kept(given: str | None, stored: str) -> str:
    return stored if given is None else _storable(given)


def _storable(text: str) -> str:
    """Lone surrogates have no UTF-8."""
    return text.encode(errors="replace").decode()
