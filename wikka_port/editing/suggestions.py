"""Texts that somebody has to accept before they are saved: suggested changes, and edits and comments under review.

    table          row                             families               ends
    suggestions    md5 of page (32), id (16)       s (text), at (whose)   30 days after it was made
                   "of:", owner, ":", inverted     at                     the same
                   ms (13), row of a review

    s:text s:note                          as typed
    at:who at:owner at:time                the shown name; the owner, as for drafts (``kept_drafts``); the time (ms)
    at:base at:token at:format             the revision that it began from and its token; the format of the text
    at:signed                              the kind of the shown name (``schema``)
    at:review                              of an edit or comment under review: ``Review``, as JSON
    at:waiting                             its network; the cell is there until somebody has decided
    at:by                                  the shown name of the writer who has refused a suggestion
    at:followed                            timestamp of a review that has come with its renamed page: it notifies nobody
    at:of                                  in a row "of:...", by which an owner finds the own reviews, the newest first

A suggestion is by a person who may read the page and not write it; the page's writers take or refuse it.  A refused one
becomes a review with a decision: ``refuse`` puts ``at:review``, ``at:by`` and all other cells in one step, so its text
stays for 30 days more, for its author, the page's writers and administrators, and the trigger of decisions notifies
its author.

An edit or a comment under review is by a person who may write, and antispam has doubts (``antispam.judging``):
administrators accept or refuse it, and only they and its author see it.  Its state stays readable for its author.

A person has at most SUGGESTED_BY_ONE suggestions on a page, and a page SUGGESTED_OF_PAGE.  At most REVIEWS_MAX texts
wait for a review, REVIEWS_OF_NETWORK of them from one network.  Beyond that a new one is refused; no older one is
displaced.  A page keeps the newest REFUSED_OF_PAGE of its refused suggestions, and REFUSED_BY_ONE of one person.  The
counts are checked before the write, so concurrent ones may exceed the bounds by their number.  Lists read only the
family ``at``.

A review's row "of:..." is put before the review, so a crash leaves one without a review, which no list shows.  Reviews
of older wikis have none until ``wikka prepare`` or a repair puts it.

A text that its author saves anew, by the form of a text that waits and so without a further review, supersedes that
one; so does a newer change of the same comment.  A crash between the two leaves both, and saving it once more ends it.
Texts of different forms for one page may be about different places of it: all wait, and each says so.

Taking or accepting is an edit (``handlers/suggestion``, ``review_decisions``).  A taken suggestion is deleted after the
save, and the review gets its state.  A crash in between leaves a text that waits though it is saved; accepting it once
more changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Annotated, Final

from columnar.client import Connection
from wikka_port.accounts.rows import Rows
from wikka_port.editing.kept_drafts import ID_BYTES
from wikka_port.limits import (
    REFUSED_BY_ONE,
    REFUSED_OF_PAGE,
    REVIEWS_LISTED,
    REVIEWS_MAX,
    REVIEWS_OF_NETWORK,
    SUGGESTED_BY_ONE,
    SUGGESTED_OF_PAGE,
    SUGGESTIONS_S,
)
from wikka_port.markup.formats import WIKKA, is_format
from wikka_port.names import page_key
from wikka_port.schema import TIME_MAX_MS, TableSpec, cells_of, fields_in
from wikka_port.texts import _

SUGGESTIONS: Final = b"suggestions"
_FAMILY: Final = {"max_versions": 1, "time_to_live": SUGGESTIONS_S}
TABLES: Final = (TableSpec(SUGGESTIONS, {"s": _FAMILY, "at": _FAMILY}, {}),)

FAMILY: Final = b"at"  # the cells beside the text
_OWNER: Final = b"at:owner"
_TIME: Final = b"at:time"
REVIEW: Final = b"at:review"
_WAITING: Final = b"at:waiting"
FOLLOWED: Final = b"at:followed"
OWN: Final = b"at:of"
_OF_OWNER: Final = b"of:"  # the beginning of the rows that have it: after every page's
WAITING, ACCEPTED, REFUSED, WITHDRAWN = "waiting", "accepted", "refused", "withdrawn"
SUPERSEDED: Final = "superseded"  # by a newer text of its author
EDIT, COMMENT, SUGGESTION = "edit", "comment", "suggestion"
_KEY_CHARS: Final = 32
_FORGOTTEN_STEP: Final = 200  # rows that are deleted in one call
_ID_CHARS: Final = 16
_ROW_CHARS: Final = _KEY_CHARS + _ID_CHARS
_ID: Final = re.compile(f"[0-9a-f]{{{_ID_CHARS}}}")


Decided = Callable[[bytes, Mapping[bytes, bytes]], object]


class TooMany(Exception):
    """The person or the page has too many suggestions; ``str()`` is a sentence for the person."""


@dataclass(frozen=True, slots=True)
class Review:
    """The part of an edit or comment under review that a suggestion does not have."""

    page: str  # its name
    kind: str  # EDIT, COMMENT or SUGGESTION
    reasons: tuple[tuple[str, dict[str, str | int]], ...] = ()  # code and values (``antispam.judging.Reason``)
    network: str = ""  # for administrators
    state: str = WAITING
    said: str = ""  # the administrator's words to the author
    language: str = ""
    form: str = ""  # id of the form
    # of a comment
    parent: int = 0
    edit: int = 0  # the number of the comment that it changes; 0: it is a new one
    history: str = ""  # of the page for which the form was made
    browser: str = ""


@dataclass(frozen=True, slots=True)
class Suggestion:
    who: Annotated[str, b"at:who"]
    owner: Annotated[str, _OWNER]
    signed: Annotated[str, b"at:signed"]
    time_ms: Annotated[int, _TIME]
    base: Annotated[int, b"at:base"]
    markup: Annotated[str, b"at:format"]
    text: Annotated[str | None, b"s:text"] = None  # None if the family ``at`` alone was requested
    note: Annotated[str, b"s:note"] = ""
    id: str = ""  # "": not stored yet
    base_token: Annotated[str, b"at:token"] = ""
    packed_review: Annotated[str, REVIEW] = ""  # "": a suggestion that waits
    refused_by: Annotated[str, b"at:by"] = ""  # the shown name of the writer who has refused a suggestion

    @property
    def review(self) -> Review | None:
        """The review, or None of a suggestion that waits.  Raises ValueError if the cell is damaged."""
        return unpack_review(self.packed_review) if self.packed_review else None

    @property
    def version(self) -> str:
        """A digest of what a form shows, by which a decision names it: the same form sent again replaces the text."""
        shown = f"{self.time_ms} {self.note}\n{self.text}"
        return hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest()[:_ID_CHARS]


def pack_review(review: Review) -> str:
    return json.dumps(asdict(review), ensure_ascii=False, sort_keys=True)


def unpack_review(cell: str) -> Review:
    found = json.loads(cell)
    reasons = tuple((str(code), dict(values)) for code, values in found.pop("reasons"))
    return Review(**found, reasons=reasons)


class Suggestions:
    """The table of suggestions.  Thread-safe.  Every method may raise StoreUnavailable and InvalidName."""

    def __init__(self, rows: Rows, on_decided: Decided = lambda row, now: None) -> None:
        """Call ``on_decided`` with the row and its cells after a decision."""
        self._rows = rows
        self._on_decided = on_decided

    def add(self, name: str, one: Suggestion) -> Suggestion:
        """Store a suggestion, and return it with its id; one that has an id already is stored once.  Raises TooMany."""
        there = [other for other in self.of(name) if other.id != one.id]
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
        made = replace(one, id=one.id or secrets.token_hex(8))
        if one.id and self.reviewed(name, one.id) is not None:  # accepted once more after a crash: it was refused since
            return made
        self._rows.put(SUGGESTIONS, _row(name, made.id), cells_of(made))
        return made

    def of(self, name: str) -> list[Suggestion]:
        """Return the suggestions of a page that wait, without their texts and without reviews, the newest first."""
        return sorted((one for one in self._of_page(name) if not one.packed_review), key=lambda one: -one.time_ms)

    def refused_of(self, name: str) -> list[Suggestion]:
        """Return the suggestions that writers of the page have refused, without their texts, the newest first."""
        return sorted((one for one in self._of_page(name) if one.refused_by), key=lambda one: -one.time_ms)

    def _of_page(self, name: str) -> Iterator[Suggestion]:
        start = page_key(name)
        limit = 2 * (SUGGESTED_OF_PAGE + REFUSED_OF_PAGE) + REVIEWS_MAX
        for row, cells in self._rows.scan(SUGGESTIONS, start, columns=(FAMILY,), limit=limit):
            if not row.startswith(start):
                break
            one = suggestion_of(row, cells)
            if one is not None:
                yield one

    def one(self, name: str, suggestion_id: str) -> Suggestion | None:
        """Return a suggestion with its text, or None if there is none; a review is none."""
        found = self._stored(name, suggestion_id)
        return found if found is not None and found.review is None else None

    def refuse(self, name: str, one: Suggestion, by: str, said: str = "") -> bool:
        """Refuse a suggestion, for its author and the writers to read; the text is kept as the module describes.

        ``one`` has its text, ``by`` is the shown name of the writer, ``said`` are the words to the author.  Returns
        False, with nothing written, if somebody has decided since ``one`` was read.
        """
        review = Review(name, SUGGESTION, state=REFUSED, said=said, form=secrets.token_hex(ID_BYTES))
        made = replace(one, packed_review=pack_review(review), refused_by=by)
        row, cells = _row(name, one.id), cells_of(made)
        own = own_row(row, cells)
        assert own is not None, "it is a review by now"
        self._rows.put(SUGGESTIONS, own, {OWN: b"yes"})
        expected = {REVIEW: None, _OWNER: cells[_OWNER], _TIME: cells[_TIME]}
        if not self._rows.change(SUGGESTIONS, row, expected, {REVIEW: cells.pop(REVIEW), **cells}):
            return False
        self._on_decided(row, cells_of(made))
        self._drop_oldest(name, one.owner)
        return True

    def _drop_oldest(self, name: str, owner: str) -> None:
        """Delete the refused suggestions of a page beyond the bounds."""
        refused = self.refused_of(name)
        of_owner = [one for one in refused if one.owner == owner][REFUSED_BY_ONE:]
        for one in {one.id: one for one in (*of_owner, *refused[REFUSED_OF_PAGE:])}.values():
            row = _row(name, one.id)
            own = own_row(row, cells_of(one))
            self._rows.delete(SUGGESTIONS, row)
            if own is not None:
                self._rows.delete(SUGGESTIONS, own)

    def _stored(self, name: str, suggestion_id: str) -> Suggestion | None:
        if not _ID.fullmatch(suggestion_id):
            return None
        row = _row(name, suggestion_id)
        found = suggestion_of(row, self._rows.row(SUGGESTIONS, row))
        return found if found is not None and found.text is not None else None

    # --- reviews -----------------------------------------------------------------------------------

    def add_for_review(self, one: Suggestion, review: Review) -> Suggestion:
        """Store an edit or a comment until somebody decides; the same form sent again replaces it.  Raises TooMany."""
        made = replace(one, id=_id_of_form(review.kind, one.owner, review.form or secrets.token_hex(8)))
        made = replace(made, packed_review=pack_review(review))
        row, waiting, network = _row(review.page, made.id), dict(self._waiting()), review.network or "-"
        if row not in waiting:
            of_network = sum(other == network for other in waiting.values())
            if len(waiting) >= REVIEWS_MAX or of_network >= REVIEWS_OF_NETWORK:
                raise TooMany(_("Very many texts wait to be looked at. Your text is below: please send it later."))
        cells = {**cells_of(made), _WAITING: network.encode("utf-8", "replace")}
        own = own_row(row, cells)
        assert own is not None, "it is a review"
        self._rows.put(SUGGESTIONS, own, {OWN: b"yes"})
        self._rows.put(SUGGESTIONS, row, cells)
        if review.edit:
            self.supersede_changes([one.owner], review.history, review.edit, but=made.id)
        return made

    def supersede(self, name: str, kind: str, owners: Collection[str], form: str) -> None:
        """Note that a newer text of the form was saved at once: a former one of it waits no longer.  A get an owner."""
        for owner in owners:
            self._supersede(name, _id_of_form(kind, owner, form))

    def supersede_changes(self, owners: Collection[str], history: str, edit: int, *, but: str = "") -> None:
        """Note that the comment ``edit`` has a newer change of its author: former ones wait no longer, ``but`` does."""
        for one in self.reviews_of(owners):
            review = one.review
            if review is not None and (review.history, review.edit) == (history, edit) and one.id != but:
                self._supersede(review.page, one.id)

    def _supersede(self, name: str, review_id: str) -> None:
        one = self.reviewed(name, review_id)
        if one is not None and one.review is not None and one.review.state == WAITING:
            self.decide(one, SUPERSEDED)

    def waiting_beside(self, one: Suggestion) -> list[Suggestion]:
        """Return what else of the author of a text under review waits for the same page, the newest first."""
        beside = []
        for other in self.reviews_of([one.owner]):
            first, second = one.review, other.review
            if first is None or second is None or other.id == one.id:
                continue
            if second.state == WAITING and second.page == first.page:
                beside.append(other)
        return beside

    def _waiting(self) -> list[tuple[bytes, str]]:
        """Return row and network of each text that waits."""
        found = self._rows.scan(SUGGESTIONS, columns=(_WAITING,), limit=REVIEWS_MAX + 1)
        return [(row, cells[_WAITING].decode(errors="replace")) for row, cells in found]

    def waiting(self, limit: int = REVIEWS_MAX) -> list[Suggestion]:
        """Return the texts that wait for a review, without the texts themselves, the oldest first."""
        rows = [row for row, _ in self._waiting()]
        stored = self._rows.rows(SUGGESTIONS, rows, (FAMILY,))
        found = (suggestion_of(row, cells) for row, cells in stored.items() if cells.get(REVIEW))
        return list(islice(sorted((one for one in found if one is not None), key=lambda one: one.time_ms), limit))

    def reviews_of(self, owners: Collection[str], limit: int = REVIEWS_LISTED) -> list[Suggestion]:
        """Return up to ``limit`` reviews of ``owners``, decided or not, without texts, the newest first.

        Reads these alone, whatever others have sent: a call for each owner and one for the texts, none without owners.
        """
        rows = dict.fromkeys(own[-_ROW_CHARS:] for owner in owners for own in self._own_rows(owner, 2 * limit))
        stored = self._rows.rows(SUGGESTIONS, list(rows), (FAMILY,))
        found = (suggestion_of(row, cells) for row, cells in stored.items() if cells.get(REVIEW))
        return sorted((one for one in found if one is not None), key=lambda one: -one.time_ms)[:limit]

    def _own_rows(self, owner: str, limit: int) -> list[bytes]:
        return own_rows_of(self._rows, owner, limit)

    def reviewed(self, name: str, suggestion_id: str) -> Suggestion | None:
        """Return a text under review or a refused suggestion with its text, decided or not; None if there is none."""
        found = self._stored(name, suggestion_id)
        return found if found is not None and found.review is not None else None

    def decide(self, one: Suggestion, state: str, said: str = "") -> bool:
        """Note the decision on a review, for its author; it waits no longer.

        Returns False, with nothing written, if somebody has decided since ``one`` was read, or its author has sent
        another text (a plain HBase does not compare that).
        """
        review = one.review
        assert review is not None, "a suggestion is deleted instead"
        packed = pack_review(replace(review, state=state, said=said))
        row, before = _row(review.page, one.id), one.packed_review.encode()
        expected = {REVIEW: before, _TIME: b"%d" % one.time_ms}
        if not self._rows.change(SUGGESTIONS, row, expected, {REVIEW: packed.encode()}, [_WAITING]):
            return False
        self._on_decided(row, cells_of(replace(one, packed_review=packed)))
        return True

    # --- all -----------------------------------------------------------------------------------------

    def delete_suggestion(self, name: str, suggestion_id: str) -> None:
        self._rows.delete(SUGGESTIONS, _row(name, suggestion_id))

    def forget(self, owners: Collection[str]) -> int:
        """Delete all suggestions and reviews of ``owners``; return their number.  O(all suggestions)."""
        count = 0
        for owner in owners:
            while own := self._own_rows(owner, _FORGOTTEN_STEP):
                self._rows.delete_rows(SUGGESTIONS, own)
        for row, cells in self._rows.scan(SUGGESTIONS, columns=(FAMILY,)):
            if cells.get(_OWNER, b"").decode(errors="replace") in owners:
                self._rows.delete(SUGGESTIONS, row)
                count += 1
        return count


def _id_of_form(kind: str, owner: str, form: str) -> str:
    """Return the id of a text under review: the same form has the same."""
    return hashlib.sha256(f"{kind} {owner} {form}".encode("utf-8", "replace")).hexdigest()[:_ID_CHARS]


def _row(name: str, suggestion_id: str) -> bytes:
    return page_key(name) + suggestion_id.encode()


def own_row(row: bytes, cells: Mapping[bytes, bytes]) -> bytes | None:
    """Return the row "of:..." of the review in ``row``, or None if ``row`` has no review."""
    owner, time_ms = cells.get(_OWNER, b""), cells.get(_TIME, b"")
    if not cells.get(REVIEW) or not time_ms.isdigit():
        return None
    return b"%s%s:%013d%s" % (_OF_OWNER, owner, max(0, TIME_MAX_MS - int(time_ms)), row)


def own_rows_of(rows: Rows, owner: str, limit: int) -> list[bytes]:
    """Return the rows "of:..." of an owner, the newest first; a form that was sent again has one for each time."""
    begin = _OF_OWNER + owner.encode() + b":"
    return rows.row_keys(SUGGESTIONS, begin, begin + b":", limit=limit)  # ":" is after each digit


def rows_by_id(own: Collection[bytes]) -> dict[str, bytes]:
    """Return the reviews' rows in rows "of:...", by id."""
    return {id_of_row(row): row for row in (one[-_ROW_CHARS:] for one in own)}


def own_rows(connection: Connection) -> Iterator[tuple[bytes, int]]:
    """Yield the row "of:..." of each review with the review's timestamp, by which both end.  O(all suggestions)."""
    for row, stamped in connection.table(SUGGESTIONS).scan(columns=[FAMILY], include_timestamp=True, batch_size=200):
        own = own_row(row, {column: value for column, (value, _) in stamped.items()})
        if own is not None:
            yield own, stamped[REVIEW][1]


def renamed_review(cells: Mapping[bytes, bytes], name: str) -> dict[bytes, bytes]:
    """Return the cells of a row whose page has another name by now, as they are beside it; a review says its page."""
    try:
        review = unpack_review(cells[REVIEW].decode()) if cells.get(REVIEW) else None
    except (ValueError, KeyError, TypeError, AttributeError):
        review = None  # a damaged one is none
    return dict(cells) if review is None else {**cells, REVIEW: pack_review(replace(review, page=name)).encode()}


def id_of_row(row: bytes) -> str:
    return row[_KEY_CHARS:].decode(errors="replace")


def suggestion_of(row: bytes, cells: Mapping[bytes, bytes]) -> Suggestion | None:
    """Return the suggestion in a row, or None if it is incomplete, since the time to live of some cells is over."""
    try:
        one = Suggestion(id=id_of_row(row), **fields_in(Suggestion, cells))
        if one.packed_review:
            unpack_review(one.packed_review)  # a damaged one is none
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return one if is_format(one.markup) else replace(one, markup=WIKKA)
