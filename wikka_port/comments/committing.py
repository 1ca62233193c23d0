"""Steps 1 to 4 of the protocol (``comment_rows``): a change of a page's comments is staged, committed and applied.

A commit fails if the page's comments, its text or its rights have changed since they were read, and the change is then
made anew from what is there.  On a plain HBase it is conditional on the comments; the rights are read just before, and
the page's row is read again afterwards: if a move had marked the page, the commit is repeated at its new row.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from wikka_port import schema
from wikka_port.accounts.rows import Cells, Rows
from wikka_port.comments.comment_rows import (
    COMMENTS,
    COMMENTS_HEAD,
    COMMENTS_NAMED,
    OP,
    STAGED,
    Comment,
    CommentsHead,
    comment_of,
    comment_row,
    comments_in,
    committed_cells,
    op_ms,
    pack,
    staged_column,
    token_of_change,
    unpack,
)
from wikka_port.comments.refusals import CommentsBusy, NoPageToComment
from wikka_port.files.committing import FilledPage, PageRows, find_page
from wikka_port.files.refusals import FilesBusy, NoSavedPage
from wikka_port.notices.mentions import mentioned
from wikka_port.page_rows import head_of, is_there
from wikka_port.rights.rules import REVISION, PageRights

ATTEMPTS: Final = 20  # a commit fails only if another one has succeeded meanwhile
Allow = Callable[[str, PageRights], None]  # takes the page's name and rights; raises if not allowed


class Lists(Protocol):
    """The writer of the lists, if the application keeps them (``comment_lists``)."""

    def list_page(self, key: bytes, row: Cells, put: Cells) -> None:
        """Write the name of a page whose comments have changed; ``row`` is the page's, ``put`` what was put in it."""

    def list_comment(self, row: bytes, before: Cells, now: Cells, at_ms: int) -> None:
        """Write the rows of a comment that has changed."""


class NoLists:
    """Write nothing: triggers keep the lists."""

    def list_page(self, key: bytes, row: Cells, put: Cells) -> None: ...

    def list_comment(self, row: bytes, before: Cells, now: Cells, at_ms: int) -> None: ...


@dataclass(frozen=True, slots=True)
class CommentedPage:
    """A page as a change of its comments finds it."""

    page: FilledPage

    @property
    def name(self) -> str:
        return self.page.name

    @property
    def history(self) -> bytes:
        return self.page.history

    @property
    def head(self) -> CommentsHead:
        return comments_in(self.page.row)


# Returns the comment as the change makes it, with a higher number for a new one, and as it was (None: it is new); or
# None if the comment is as the change would make it.  Raises CommentRefused.
Make = Callable[[CommentedPage], "tuple[Comment, Comment | None] | None"]


class Committing:
    """Commits changes.  Thread-safe.  Every method may raise StoreUnavailable and InvalidName."""

    def __init__(
        self,
        rows: Rows,
        pages: PageRows,
        clock_ms: Callable[[], int],
        on_step_done: Callable[[str], None],
        lists: Lists,
    ) -> None:
        self._rows = rows
        self._pages = pages
        self._clock = clock_ms
        self._on_step_done = on_step_done
        self._lists = lists

    def find_commented(self, page: str, history: bytes = b"") -> CommentedPage:
        """Return the page, by its history if that is given, whatever its name.

        Raises NoPageToComment, CommentsBusy.
        """
        try:
            return CommentedPage(find_page(self._pages, page, history))
        except NoSavedPage:
            raise NoPageToComment(page) from None
        except FilesBusy:
            raise CommentsBusy(page) from None

    def comment_at(self, history: bytes, number: int, head: CommentsHead) -> Comment | None:
        """Return a committed comment, or None if there is none of the number."""
        if not 0 < number <= head.number:
            return None
        cells = committed_cells(number, self._rows.row(COMMENTS, comment_row(history, number)), head)
        return comment_of(number, cells) if cells else None

    def commit_change(self, page: str, history: bytes, make: Make, allow: Allow) -> Comment | None:
        """Run steps 1 to 4; return the comment, or None if there was nothing to change."""
        staged: tuple[bytes, bytes] | None = None  # row and column
        put: CommentsHead | None = None  # on a plain HBase: committed to a row that the page may have left
        for _attempt in range(ATTEMPTS):
            place = self.find_commented(page, history)
            history = place.history
            self.apply_last(history, place.head)
            if put is not None and place.head == put:
                return self.comment_at(history, put.of, put)
            self._unstage(staged)
            staged = None
            allow(place.name, place.page.rights)
            made = make(place)
            if made is None:
                return None
            comment, before = made
            head = _head_after(place.head, comment, before, self._clock())
            comment = replace(comment, op=head.op)
            staged = (comment_row(history, comment.number), staged_column(head.op))
            self._rows.put(COMMENTS, staged[0], {staged[1]: pack(comment)})
            self._on_step_done("stage")
            puts = {COMMENTS_HEAD: head.pack(), **_named(comment, before)}
            if not self._put_head(place, puts):
                continue
            self._on_step_done("commit")
            if self._rows.is_atomic or self._stayed(place):
                self._lists.list_page(place.page.key, place.page.row, puts)
                self.apply_last(history, head)
                return comment
            put, staged = head, None
            self._clear_left_row(place, head)
        raise CommentsBusy(page)

    def _unstage(self, staged: tuple[bytes, bytes] | None) -> None:
        if staged is not None:
            self._rows.delete(COMMENTS, staged[0], [staged[1]])

    def _put_head(self, place: CommentedPage, puts: Cells) -> bool:
        """Run step 3; return False if the comments, the rights or the text of the page have changed."""
        row = place.page.row
        expected = {COMMENTS_HEAD: row.get(COMMENTS_HEAD)}
        if self._rows.is_atomic:
            expected |= {one: row.get(one) for one in (REVISION, schema.VERSIONCOUNT)}
        return self._rows.change(*place.page.place, expected, puts)

    def _stayed(self, place: CommentedPage) -> bool:
        """Return whether no move had marked the page when the head was put (plain HBase)."""
        now = self._rows.row(*place.page.place, [schema.VERSIONCOUNT])
        return now.get(schema.VERSIONCOUNT) == place.page.row.get(schema.VERSIONCOUNT)

    def _clear_left_row(self, place: CommentedPage, head: CommentsHead) -> None:
        """Remove the cell that was put in a row after the page had left it."""
        row = self._rows.row(*place.page.place)
        is_left = not is_there(row) or head_of(row).place(place.page.key) != place.history
        if is_left and row.get(COMMENTS_HEAD) == head.pack():
            self._rows.delete(*place.page.place, [COMMENTS_HEAD, COMMENTS_NAMED])

    def apply_last(self, history: bytes, head: CommentsHead) -> None:
        """Run step 4 for the change that ``head`` names, unless it is done."""
        if not head.of:
            return
        row, column = comment_row(history, head.of), staged_column(head.op)
        stored = self._rows.row(COMMENTS, row)
        if column in stored:
            self._apply(row, column, stored)

    def _apply(self, row: bytes, column: bytes, stored: Cells) -> None:
        """Apply a staged cell that was committed, or remove it if it, or a later change, was applied."""
        cells = unpack(stored[column])
        at_ms = op_ms(cells[OP])
        if op_ms(stored.get(OP, b"")) < at_ms:
            self._rows.put(COMMENTS, row, cells, timestamp=at_ms)
            self._on_step_done("apply")
        before = {one: cell for one, cell in stored.items() if not one.startswith(STAGED)}
        self._lists.list_comment(row, before, cells, at_ms)
        self._rows.delete(COMMENTS, row, [column])
        self._on_step_done("clear")


def _named(comment: Comment, before: Comment | None) -> dict[bytes, bytes]:
    """Return the cell of the accounts that a change mentions newly; {} if it is no addition and mentions none."""
    names = mentioned(comment.text, before.text if before is not None else "") if comment.is_visible else ()
    if before is not None and not names:
        return {}
    return {COMMENTS_NAMED: json.dumps(names, ensure_ascii=False).encode("utf-8", "replace")}


def _head_after(head: CommentsHead, comment: Comment, before: Comment | None, now_ms: int) -> CommentsHead:
    """Return the head after the change."""
    at_ms = max(now_ms, head.at_ms + 1)
    was_visible = before is not None and before.is_visible
    return CommentsHead(
        number=max(head.number, comment.number),
        count=head.count + comment.is_visible - was_visible,
        of=comment.number,
        at_ms=at_ms,
        token=token_of_change(comment, at_ms),
    )
