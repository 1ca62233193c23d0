"""The inboxes of accounts: read, marked as read, cleared; and the pages and changes that notices are about.

A notice has no content (``notice_rows``).  ``pages_of`` finds the present name and rights of each page, and
``changes_of`` reads the revisions and comments themselves, with one call for all pages, one for all revisions and one
for all comments.  ``visible_of`` finds without their texts whether there is something to show, for the number of unread
ones.  A page that has been renamed since is found by its history, which costs some calls for each.

"Read" is a time in the account's row: all notices up to it are read.  The newest notice's time lies beside it, so a
request knows without a call that nothing is unread.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wikka_port import schema
from wikka_port.accounts.rows import Cells, Rows
from wikka_port.accounts.tables import ID, NEWS, SEEN, USERS
from wikka_port.comments.comment_rows import (
    AUTHOR,
    COMMENT_STATE,
    COMMENTS,
    COMMENTS_HEAD,
    OP,
    STAGED_FAMILY,
    VISIBLE,
    Comment,
    comment_of,
    comment_row,
    comments_in,
    committed_cells,
)
from wikka_port.editing.suggestions import FAMILY as REVIEW_FAMILY
from wikka_port.editing.suggestions import (
    SUGGESTIONS,
    Review,
    Suggestion,
    id_of_row,
    own_rows_of,
    rows_by_id,
    suggestion_of,
)
from wikka_port.files.committing import PageRows, find_page
from wikka_port.files.refusals import FilesBusy, NoSavedPage
from wikka_port.limits import (
    NOTICES_COUNTED,
    REVIEWS_LISTED,
    ROWS_PER_CALL,
    UNREAD_ACCOUNTS,
    UNREAD_KEPT_MS,
)
from wikka_port.moving.journal import DELETE, DELETED, MOVES, STATE, Move
from wikka_port.names import InvalidName, page_key
from wikka_port.notices.notice_rows import (
    COMMENT,
    INBOX,
    MOVED,
    REVIEW,
    Notice,
    first_row_since,
    is_place,
    notice_of,
    rows_of_account,
)
from wikka_port.notices.watching import Derive, Watching
from wikka_port.page_rows import head_of, hidden_in, is_there, text_in
from wikka_port.rights.rules import FAMILY, PageRights, page_rights
from wikka_port.schema import Head, fields_in, revision_row

_COLUMNS: Final = (FAMILY, schema.OWNER, schema.VERSIONCOUNT, schema.NAME, schema.HIDDEN, COMMENTS_HEAD)
_COMMENT_STATES: Final = (AUTHOR, OP, COMMENT_STATE, STAGED_FAMILY)
Unread = Sequence[Notice]


@dataclass(frozen=True, slots=True)
class NoticedPage:
    """The page of a notice as it is now."""

    name: str
    row: Cells

    @property
    def rights(self) -> PageRights:
        return page_rights(self.row, self.row.get(schema.OWNER, b""))


@dataclass(frozen=True, slots=True)
class NoticedMove:
    move: Move
    page: NoticedPage  # as it is now; a deleted one as it was
    is_there: bool


@dataclass(frozen=True, slots=True)
class Noticed:
    """The pages and texts of notices, as they are now."""

    pages: Mapping[bytes, NoticedPage]  # by history
    moves: Mapping[bytes, Sequence[NoticedMove]]  # by place of the notice, of pages that are there or among the deleted
    reviews: Mapping[bytes, Suggestion]  # by row


@dataclass(frozen=True, slots=True)
class MovedPage:
    """A moved page, as its watcher may see it."""

    kind: str  # rename, delete or undelete
    name: str  # the present one
    former: str = ""  # the name before; "": it may not be seen


@dataclass(frozen=True, slots=True)
class NoticedChange:
    """The revision, comment, moves or review of a notice, as it is now."""

    author: str
    signed: str
    note: str = ""  # of a revision; the reason of a move
    minor: bool = False
    comment: Comment | None = None
    moves: Sequence[MovedPage] = ()
    review: Review | None = None


class StoredNotices:
    """Thread-safe.  Every method may raise StoreUnavailable."""

    def __init__(
        self, rows: Rows, pages: PageRows, clock_ms: Callable[[], int], derive: Derive = lambda changed: None
    ) -> None:
        self.watching = Watching(rows, clock_ms, derive)
        self._rows = rows
        self._pages = pages
        self._clock = clock_ms
        self._lock = threading.Lock()
        # guarded by _lock: by account, until when, after which time, and the unread notices
        self._unread: OrderedDict[bytes, tuple[int, int, Unread]] = OrderedDict()

    # --- reading -----------------------------------------------------------------------------------

    def part(self, account: bytes, *, before: bytes = b"", limit: int) -> tuple[list[Notice], bool]:
        """Return an account's notices after the place ``before``, the newest first, and whether more may follow."""
        first, stop = rows_of_account(account)
        start = first + before + b"\0" if is_place(before) else first
        found = [one for one in self._rows.scan(INBOX, start, limit=limit) if one[0] < stop]
        notices = (notice_of(row, cells) for row, cells in found)
        return [one for one in notices if one is not None], len(found) == limit

    def unread(self, account: bytes, after_ms: int) -> Unread:
        """Return the newest notices later than ``after_ms``, one more than NOTICES_COUNTED at most.

        An edit whose revision is gone is left out: an import that merges a history renumbers revisions.  They are kept
        for UNREAD_KEPT_MS.
        """
        now = self._clock()
        with self._lock:
            kept = self._unread.get(account)
        if kept is not None and now < kept[0] and kept[1] == after_ms:
            return kept[2]
        end = first_row_since(account, after_ms)
        found = self._rows.scan(INBOX, rows_of_account(account)[0], limit=NOTICES_COUNTED + 1)
        notices = [notice for row, cells in found if row < end and (notice := notice_of(row, cells)) is not None]
        edits = {one.place: _revision_of(one) for one in notices if _is_of_edit(one)}
        there = self._rows.rows(schema.REVISIONS, list(edits.values()), [schema.REVISION_AUTHOR])
        notices = [one for one in notices if one.place not in edits or edits[one.place] in there]
        with self._lock:
            self._unread[account] = (now + UNREAD_KEPT_MS, after_ms, notices)
            self._unread.move_to_end(account)
            while len(self._unread) > UNREAD_ACCOUNTS:
                self._unread.popitem(last=False)
        return notices

    def noticed(self, notices: Collection[Notice], owner: str = "") -> Noticed:
        """Return what the notices, the newest first, are about; moves cost two calls more, texts under review one.

        ``owner`` is that of the account's texts, by which those of renamed pages are found, with two calls.
        """
        ids = dict.fromkeys(one for notice in notices for one in notice.move_ids)
        stored = self._rows.rows(MOVES, list(ids), [b"m"])
        moves = {one: Move(one, **fields_in(Move, cells)) for one, cells in stored.items() if STATE in cells}
        named: list[tuple[bytes, str]] = []
        for notice in notices:
            named += [(moves[one].history, moves[one].target) for one in notice.move_ids if one in moves]
            named += [(notice.history, notice.page)] if notice.kind not in (MOVED, REVIEW) else []
        pages = self.pages_of(named)
        deleted = self._deleted({one.row for one in moves.values() if one.kind == DELETE and one.history not in pages})
        found = {one.id: page for one in moves.values() if (page := _page_of(one, pages, deleted)) is not None}
        return Noticed(
            pages,
            {
                notice.place: [
                    NoticedMove(moves[one], found[one], moves[one].history in pages)
                    for one in notice.move_ids
                    if one in found
                ]
                for notice in notices
                if notice.kind == MOVED
            },
            self._reviews({notice.review for notice in notices if notice.kind == REVIEW}, owner),
        )

    def _deleted(self, rows: Collection[bytes]) -> dict[bytes, NoticedPage]:
        found = self._rows.rows(DELETED, sorted(rows), _COLUMNS)
        return {row: NoticedPage(text_in(cells, schema.NAME), cells) for row, cells in found.items() if is_there(cells)}

    def _reviews(self, rows: Collection[bytes], owner: str) -> dict[bytes, Suggestion]:
        found = self._reviews_in(rows)
        left = [row for row in rows if row not in found] if owner else []
        if left:  # their pages were renamed, or their time is over
            present = rows_by_id(own_rows_of(self._rows, owner, 2 * REVIEWS_LISTED))
            now = {row: present[id_of_row(row)] for row in left if id_of_row(row) in present}
            moved = self._reviews_in(set(now.values()))
            found |= {row: moved[place] for row, place in now.items() if place in moved}
        return found

    def _reviews_in(self, rows: Collection[bytes]) -> dict[bytes, Suggestion]:
        found = self._rows.rows(SUGGESTIONS, sorted(rows), [REVIEW_FAMILY])
        stored = ((row, suggestion_of(row, cells)) for row, cells in found.items())
        return {row: one for row, one in stored if one is not None}

    def pages_of(self, notices: Collection[tuple[bytes, str]]) -> dict[bytes, NoticedPage]:
        """Return the present pages, by history, from histories and former names; the newest name stands first.

        A page that was renamed is not found if all notices have a name that a different page has now.
        """
        named: dict[bytes, str] = {}
        for history, name in notices:
            named.setdefault(history, name)
        keys = {history: page_key(name) for history, name in named.items()}
        rows = self._rows.rows(schema.PAGES, sorted(set(keys.values())), _COLUMNS)
        found = {}
        for history, key in keys.items():
            row: Cells | None = rows.get(key, {})
            if not is_there(row or {}) or head_of(row or {}).place(key) != history:
                row = self._moved(named[history], history)
            if row:
                found[history] = NoticedPage(text_in(row, schema.NAME), row)
        return found

    def _moved(self, name: str, history: bytes) -> Cells | None:
        """Return the row of a page that has left its name, or None if it is no page now."""
        try:
            return find_page(self._pages, name, history).row
        except (NoSavedPage, FilesBusy, InvalidName):
            return None

    def changes_of(self, notices: Collection[Notice], pages: Mapping[bytes, NoticedPage]) -> dict[bytes, NoticedChange]:
        """Return what the notices are about, by place, without hidden revisions and comments that are not shown."""
        there = [one for one in notices if one.kind not in (MOVED, REVIEW) and one.history in pages]
        edits = {_revision_of(one): one for one in there if _is_of_edit(one) and not _is_hidden(one, pages)}
        columns = (schema.REVISION_AUTHOR, schema.REVISION_NOTE, schema.SIGNED, schema.MINOR)
        stored = self._rows.rows(schema.REVISIONS, list(edits), columns)
        found = {edits[row].place: _edit(cells) for row, cells in stored.items()}
        comments = {comment_row(one.history, one.comment): one for one in there if one.kind == COMMENT}
        for row, cells in self._rows.rows(COMMENTS, list(comments)).items():
            notice = comments[row]
            committed = committed_cells(notice.comment, cells, comments_in(pages[notice.history].row))
            comment = comment_of(notice.comment, committed) if committed else None
            if comment is not None and comment.is_visible:
                found[notice.place] = NoticedChange(comment.author, comment.signed, comment=comment)
        return found

    def visible_of(self, notices: Collection[Notice], pages: Mapping[bytes, NoticedPage]) -> list[Notice]:
        """Return those of the ``unread`` notices for which ``changes_of`` has something, moves and reviews with them.

        Costs a call if there are comments among them, which reads no text of an applied one.
        """
        comments = {comment_row(one.history, one.comment): one for one in notices if one.kind == COMMENT}
        stored = self._rows.rows(COMMENTS, list(comments), _COMMENT_STATES)
        visible = {
            comments[row].place
            for row, cells in stored.items()
            if _is_visible(comments[row].comment, cells, pages[comments[row].history])
        }
        return [
            one
            for one in notices
            if (one.place in visible if one.kind == COMMENT else not (_is_of_edit(one) and _is_hidden(one, pages)))
        ]

    # --- changing ----------------------------------------------------------------------------------

    def mark_read(self, account: bytes, until_ms: int) -> None:
        """Mark all notices up to a time as read; an earlier time than before changes nothing.

        A time that is later than now and the newest notice counts as the later of both: else notices that come until
        then would never be unread.
        """
        stored = self._rows.row(USERS, account, [ID, SEEN, NEWS])
        seen, newest = stored.get(SEEN, b""), stored.get(NEWS, b"")
        until_ms = min(until_ms, max(self._clock(), int(newest) if newest.isdigit() else 0))
        if ID in stored and (not seen.isdigit() or int(seen) < until_ms):
            self._rows.put(USERS, account, {SEEN: b"%d" % until_ms})
        self._forget_kept(account)

    def remove(self, account: bytes, place: bytes) -> None:
        if is_place(place):
            self._rows.delete(INBOX, rows_of_account(account)[0] + place)
            self._forget_kept(account)

    def clear(self, account: bytes, until: bytes = b"") -> None:
        """Remove an account's notices from the place ``until`` on, which is the newest one; all without it."""
        first, stop = rows_of_account(account)
        start = first + until if is_place(until) else first
        while rows := self._rows.row_keys(INBOX, start, stop, limit=ROWS_PER_CALL):
            self._rows.delete_rows(INBOX, rows)
        self._forget_kept(account)

    def forget(self, account: bytes) -> None:
        """Remove watches and inbox of an account that ends."""
        self.watching.forget(account)
        self.clear(account)

    def _forget_kept(self, account: bytes) -> None:
        with self._lock:
            self._unread.pop(account, None)


def _page_of(
    move: Move, pages: Mapping[bytes, NoticedPage], deleted: Mapping[bytes, NoticedPage]
) -> NoticedPage | None:
    """Return the page of a move, or None if it was deleted by a later one, or erased."""
    return pages.get(move.history) or deleted.get(move.row)


def _is_of_edit(notice: Notice) -> bool:
    return notice.kind not in (COMMENT, MOVED, REVIEW)


def _revision_of(notice: Notice) -> bytes:
    return revision_row(notice.history, Head(notice.head.number, notice.head.token))


def _is_hidden(notice: Notice, pages: Mapping[bytes, NoticedPage]) -> bool:
    return notice.head.number in hidden_in(pages[notice.history].row)


def _is_visible(number: int, cells: Cells, page: NoticedPage) -> bool:
    try:
        committed = committed_cells(number, cells, comments_in(page.row))
    except ValueError:  # ``wikka check`` names it; a page can be read without the number of notices
        return False
    return bool(committed) and committed.get(COMMENT_STATE, VISIBLE.encode()) == VISIBLE.encode()


def _edit(cells: Cells) -> NoticedChange:
    return NoticedChange(
        text_in(cells, schema.REVISION_AUTHOR),
        text_in(cells, schema.SIGNED),
        text_in(cells, schema.REVISION_NOTE),
        cells.get(schema.MINOR) == b"yes",
    )
