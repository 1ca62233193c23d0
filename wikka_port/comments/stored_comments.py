"""Comments of pages in the store: parts of lists, additions, edits and removals (``comment_rows``).

    comments.add("Page", history, NewComment(...), allow=allow)
    comments.change("Page", history, 17, edit=lambda comment: replace(comment, text="..."), allow=allow)
    comments.part("Page's history", head, order="threaded", part=1)

``allow`` is called with the name of the page and the rights in its row, in the step that commits: on Columnar the
commit requires that rights and text are as they were then.  A page that was renamed meanwhile is found by its history.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from wikka_port import schema
from wikka_port.accounts.rows import Cells, Rows
from wikka_port.comments.comment_lists import LISTS, number_of_thread_row, thread_row, threads_end
from wikka_port.comments.comment_rows import (
    COMMENT_FAMILY,
    COMMENTS,
    COMMENTS_HEAD,
    DEPTH_MAX,
    GRACE_MS,
    NO_COMMENTS,
    NUMBER_CHARS,
    NUMBER_MAX,
    REMOVED,
    SENT_TWICE,
    STAGED,
    STAGED_FAMILY,
    TOKEN,
    Comment,
    CommentsHead,
    comment_of,
    comment_row,
    comments_in,
    committed_cells,
    op_ms,
    parse_comment_row,
    path_under,
    staged_column,
    token_of_form,
)
from wikka_port.comments.committing import Allow, CommentedPage, Committing, Lists, NoLists
from wikka_port.comments.refusals import NoSuchComment, ParentGone, TooManyComments
from wikka_port.comments.threads import PART, THREADED, Part, in_order, part_with, parts_of, range_of
from wikka_port.files.committing import PageRows
from wikka_port.moving.journal import DELETED
from wikka_port.names import normalise
from wikka_port.page_rows import head_of, is_there


@dataclass(frozen=True, slots=True)
class NewComment:
    """A comment that somebody sends."""

    text: str
    author: str
    signed: str
    form: str  # id of the form; the same form sent twice adds one comment
    markup: str
    parent: int = 0
    browser: str = ""
    before: int = 0  # the newest number when the form was made
    time_ms: int = 0  # of an import; 0: now
    state: str = "shown"
    edited_ms: int = 0
    removed_by: str = ""
    origin: str = ""


Edit = Callable[[Comment], Comment]  # raises CommentRefused


class StoredComments:
    """The comments of a wiki.  Thread-safe.  Every method may raise StoreUnavailable and InvalidName."""

    def __init__(
        self,
        rows: Rows,
        pages: PageRows,
        clock_ms: Callable[[], int],
        on_step_done: Callable[[str], None] = lambda step: None,
        lists: Lists | None = None,
    ) -> None:
        """Call ``on_step_done`` after each step, for tests that crash there."""
        self.on_step_done = on_step_done
        self._rows = rows
        self._clock = clock_ms
        self._lists = lists or NoLists()
        self._committing = Committing(rows, pages, clock_ms, lambda step: self.on_step_done(step), self._lists)

    def of_deleted(self, pages: PageRows) -> StoredComments:
        """Return the comments of deleted pages, which ``pages`` finds; no list of the wiki names these pages."""
        return StoredComments(self._rows, pages, self._clock, lists=_OfNoPage(self._lists))

    # --- reading -----------------------------------------------------------------------------------

    def find_commented(self, page: str) -> CommentedPage:
        """Return the page with the number of its comments.  Raises NoPageToComment, CommentsBusy."""
        return self._committing.find_commented(normalise(page))

    def comment_at(self, history: bytes, number: int, head: CommentsHead) -> Comment | None:
        return self._committing.comment_at(history, number, head)

    def part(
        self, history: bytes, head: CommentsHead, *, order: str, part: int = 1, after: str = "", at: int = 0
    ) -> Part:
        """Return a part of a page's comments with one call, and for threads of more than PART comments with a scan.

        ``after`` is the path after which a part of such threads begins.  If ``at`` is given, the part has that comment;
        for such threads it costs a further get, or a scan.
        """
        parts = parts_of(head.number)
        if order == THREADED and parts > 1:
            return self._threads_with(history, head, at) if at else self._threads(history, head, _after(history, after))
        if 0 < at <= head.number:
            part = part_with(head.number, order, at)
        part = min(max(part, 1), parts)
        first, last = range_of(head.number, order, part)
        found = self._range(history, head, first, last) if head.number else []
        return Part(in_order(found, order), order, part, parts)

    def _range(self, history: bytes, head: CommentsHead, first: int, last: int) -> list[Comment]:
        """Return the comments of these numbers, with one call: a get of known rows is one, a scan is three."""
        found = []
        rows = self._rows.rows(COMMENTS, [comment_row(history, number) for number in range(first, last + 1)])
        for number in range(first, last + 1):
            cells = committed_cells(number, rows.get(comment_row(history, number), {}), head)
            if cells:
                found.append(comment_of(number, cells))
        return found

    def _threads_with(self, history: bytes, head: CommentsHead, at: int) -> Part:
        """Return the part that begins with the thread of a comment, or with the comment if the thread is too long."""
        one = self.comment_at(history, at, head)
        if one is None:
            return self._threads(history, head, _after(history, ""))
        found = self._threads(history, head, thread_row(history, one.path[:NUMBER_CHARS]))
        if any(other.number == at for other in found.comments):
            return found
        return self._threads(history, head, thread_row(history, one.path))

    def _threads(self, history: bytes, head: CommentsHead, start: bytes) -> Part:
        keys = self._rows.row_keys(LISTS, start, threads_end(history), limit=PART + 1)
        numbers = [number_of_thread_row(key) for key in keys[:PART]]
        rows = self._rows.rows(COMMENTS, [comment_row(history, number) for number in numbers])
        found = []
        for row, stored in rows.items():
            number = parse_comment_row(row)[1]
            if cells := committed_cells(number, stored, head):
                found.append(comment_of(number, cells))
        shown = in_order(found, THREADED)
        onward = shown[-1].path if len(keys) > PART and shown else ""
        is_first = start == thread_row(history, "")
        return Part(shown, THREADED, 1 if is_first else 0, parts_of(head.number), onward)

    def every(self, history: bytes, head: CommentsHead) -> Iterator[Comment]:
        """Yield all comments of a page, the oldest first, in steps."""
        for first in range(1, head.number + 1, PART):
            yield from self._range(history, head, first, min(head.number, first + PART - 1))

    # --- writing -----------------------------------------------------------------------------------

    def add(self, page: str, history: bytes, new: NewComment, *, allow: Allow) -> Comment:
        """Add a comment, once for each form.  Raises CommentRefused and what ``allow`` raises."""
        sent: list[Comment] = []

        def make(place: CommentedPage) -> tuple[Comment, None] | None:
            token = token_of_form(place.history, new.form)
            found = self._sent_before(place, token, new.before)
            if found is not None:
                sent.append(found)
                return None
            number = place.head.number + 1
            if number > NUMBER_MAX:
                raise TooManyComments(place.name, NUMBER_MAX)
            return self._made(place, new, number, token), None

        made = self._committing.commit_change(normalise(page), history, make, allow)
        return sent[-1] if made is None else made

    def _made(self, place: CommentedPage, new: NewComment, number: int, token: str) -> Comment:
        parent = self.comment_at(place.history, new.parent, place.head) if new.parent else None
        if new.parent and (parent is None or (parent.state == REMOVED and not new.time_ms)):
            raise ParentGone
        return Comment(
            number=number,
            time_ms=new.time_ms or self._clock(),
            author=new.author,
            signed=new.signed,
            text=new.text,
            path=path_under(parent, number),
            token=token,
            markup=new.markup,
            parent=new.parent,
            state=new.state,
            edited_ms=new.edited_ms,
            removed_by=new.removed_by,
            browser=new.browser,
            origin=new.origin,
        )

    def _sent_before(self, place: CommentedPage, token: str, before: int) -> Comment | None:
        """Return the comment that the same form has added, or None."""
        number, head = place.head.number, place.head
        numbers = range(max(1, before + 1, number - SENT_TWICE + 1), number + 1)
        rows = self._rows.rows(COMMENTS, [comment_row(place.history, one) for one in numbers], [TOKEN])
        for row, cells in rows.items():
            if cells.get(TOKEN) == token.encode():
                return self.comment_at(place.history, parse_comment_row(row)[1], head)
        return None

    def change(self, page: str, history: bytes, number: int, edit: Edit, *, allow: Allow) -> Comment | None:
        """Change a comment by ``edit``; return it, or None if it is so already.  Raises CommentRefused."""

        def make(place: CommentedPage) -> tuple[Comment, Comment] | None:
            before = self.comment_at(place.history, number, place.head)
            if before is None:
                raise NoSuchComment
            after = replace(edit(before), op=before.op)
            return None if after == before else (after, before)

        return self._committing.commit_change(normalise(page), history, make, allow)

    # --- upkeep ------------------------------------------------------------------------------------

    def staged(self) -> list[tuple[bytes, bytes]]:
        """Return row and column of each staged change.  O(staged changes): they have a family of their own."""
        found = self._rows.scan(COMMENTS, columns=[STAGED_FAMILY])
        return [(row, column) for row, cells in found for column in cells]

    def sweep(self) -> int:
        """Finish the staged changes that a crash left, after GRACE_MS; return their number."""
        old = [one for one in self.staged() if self._clock() - _staged_ms(one[1]) > GRACE_MS]
        self.finish_staged(old)
        return len(old)

    def finish_staged(self, found: Collection[tuple[bytes, bytes]]) -> None:
        """Apply the staged changes that heads of pages name, and remove the others."""
        heads = self._heads() if found else {}
        for row, column in found:
            history = row[: schema.KEY_BYTES]
            head = heads.get(history, NO_COMMENTS)
            if head.of and (row, column) == (comment_row(history, head.of), staged_column(head.op)):
                self._committing.apply_last(history, head)
            else:
                self._rows.delete(COMMENTS, row, [column])

    def _heads(self) -> dict[bytes, CommentsHead]:
        """Return the heads of all pages with comments, deleted ones too, by history.  O(these pages)."""
        found = {}
        for table in (schema.PAGES, DELETED):
            for key, cells in self._rows.scan(table, columns=[COMMENT_FAMILY, schema.VERSIONCOUNT]):
                if COMMENTS_HEAD in cells and is_there(cells):
                    found[head_of(cells).place(key)] = comments_in(cells)
        return found


class _OfNoPage(NoLists):
    """Lists of comments whose page is deleted: the page is in none, until it is brought back."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists

    def list_comment(self, row: bytes, before: Cells, now: Cells, at_ms: int) -> None:
        self._lists.list_comment(row, before, now, at_ms)


def _after(history: bytes, path: str) -> bytes:
    """Return the row from which the threads after ``path``, as typed in an address, are read."""
    is_path = path.isascii() and path.isdigit() and len(path) <= DEPTH_MAX * NUMBER_CHARS
    return thread_row(history, path) + b"\0" if is_path else thread_row(history, "")


def _staged_ms(column: bytes) -> int:
    return op_ms(column.removeprefix(STAGED))
