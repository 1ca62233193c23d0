"""Lists of comments of the whole wiki, the newest first: all of them, or those of one account.

A list names where comments lie (``comment_lists``); text, author and state are read from the comments themselves, and
the present name of a page from the rows of names.  So removed comments and those of deleted pages are left out, and a
list costs some calls for each step of LISTED_STEP rows, however many comments there are.  A change that is committed
counts, applied or not (``comment_rows``): after a crash a removed text is in no list.

A token, with which a list continues, is the last row that was read, without its salt.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from columnar.client import Connection
from wikka_port import schema
from wikka_port.accounts.rows import Cells
from wikka_port.comments.comment_lists import (
    LISTS,
    comment_row_of_list,
    names_in,
    page_row,
    recent_prefixes,
    user_prefix,
)
from wikka_port.comments.comment_rows import (
    CELLS_FAMILY,
    COMMENT_FAMILY,
    COMMENTS,
    COMMENTS_HEAD,
    NUMBER_CHARS,
    STAGED_FAMILY,
    Comment,
    CommentsHead,
    comment_of,
    comments_in,
    committed_cells,
    parse_comment_row,
)
from wikka_port.limits import LISTED_STEP
from wikka_port.names import page_key
from wikka_port.page_rows import head_of, is_there
from wikka_port.schema import KEY_BYTES
from wikka_port.store import Store, rows_in_steps

BEGINNING_CHARS: Final = 120  # of a comment in a list
TOKEN_CHARS: Final = 13 + NUMBER_CHARS + KEY_BYTES + NUMBER_CHARS


@dataclass(frozen=True, slots=True)
class ListedComment:
    """A comment with its page."""

    page: str
    comment: Comment
    token: str  # with which the list continues after it

    @property
    def time_ms(self) -> int:
        return self.comment.time_ms

    @property
    def beginning(self) -> str:
        return beginning_of(self.comment.text)


@dataclass(frozen=True, slots=True)
class CommentedName:
    """The present name of a page, and the last change of its comments."""

    name: str
    head: CommentsHead


@dataclass(frozen=True, slots=True)
class ListStep:
    """The comments of a step, and the token to continue with; "" at the end."""

    found: Sequence[ListedComment]
    onward: str


def beginning_of(text: str, most: int = BEGINNING_CHARS) -> str:
    """Return the beginning of a text in one line."""
    line = " ".join(text[: 2 * most].split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def recent_comments(store: Store, *, user: str = "", before: str = "", limit: int = LISTED_STEP) -> ListStep:
    """Return the comments among the next ``limit`` rows of the list of all comments, or of those of an account."""
    prefixes = [user_prefix(user)] if user else recent_prefixes()
    token = before.encode(errors="replace")[:TOKEN_CHARS]
    return store.run(lambda c: _step(c, prefixes, token, limit))


def _step(connection: Connection, prefixes: Sequence[bytes], token: bytes, limit: int) -> ListStep:
    ranges = [_places(connection, prefix, token, limit + 1) for prefix in prefixes]
    places = list(islice(heapq.merge(*ranges), limit + 1))
    onward = places[limit - 1].decode(errors="replace") if len(places) > limit else ""
    return ListStep(list(_comments(connection, places[:limit])), onward)


def _places(connection: Connection, prefix: bytes, token: bytes, limit: int) -> Iterator[bytes]:
    """Yield the rows of a list after ``token``, without their prefix."""
    start = prefix + token + b"\0" if token else prefix
    rows = connection.table(LISTS).scan(
        row_start=start, row_stop=prefix + b";", batch_size=min(limit, LISTED_STEP), limit=limit
    )
    for row, _ in rows:
        yield row[len(prefix) :]


def _comments(connection: Connection, places: Sequence[bytes]) -> Iterator[ListedComment]:
    rows = {place: comment_row_of_list(place) for place in places}
    families = (CELLS_FAMILY, STAGED_FAMILY)
    stored = dict(rows_in_steps(connection.table(COMMENTS), dict.fromkeys(rows.values()), *families))
    pages = pages_of_histories(connection, {row[:KEY_BYTES] for row in stored})
    for place, row in rows.items():
        history, number = parse_comment_row(row)
        if row not in stored or history not in pages:
            continue
        cells = committed_cells(number, stored[row], pages[history].head)
        comment = comment_of(number, cells) if cells else None
        if comment is not None and comment.is_visible:
            yield ListedComment(pages[history].name, comment, place.decode(errors="replace"))


def pages_of_histories(connection: Connection, histories: Iterable[bytes]) -> dict[bytes, CommentedName]:
    """Return the pages as they are now, by history; a row of names may lag behind a rename."""
    wanted = {page_row(history): history for history in histories}
    listed = dict(rows_in_steps(connection.table(LISTS), wanted, b"l"))
    possible = [(wanted[row], name) for row, cells in listed.items() for name in names_in(cells)]
    keys = {page_key(name) for _, name in possible}
    columns = (schema.VERSIONCOUNT, COMMENTS_HEAD)
    pages: dict[bytes, Cells] = dict(rows_in_steps(connection.table(schema.PAGES), keys, *columns))
    found = {}
    for history, name in possible:
        row = pages.get(page_key(name), {})
        head = head_of(row)
        if head.number and head.place(page_key(name)) == history:
            found[history] = CommentedName(name, comments_in(row))
    return found


def newest_pages(found: Iterable[ListedComment]) -> list[ListedComment]:
    """Return the newest comment of each page, of comments the newest first."""
    by_page: dict[str, ListedComment] = {}
    for one in found:
        by_page.setdefault(one.page, one)
    return list(by_page.values())


def comment_counts(store: Store, after: str = "") -> tuple[dict[str, int], str]:
    """Return the number of shown comments of some pages that have any, and the token to continue with."""

    def work(connection: Connection) -> tuple[dict[str, int], str]:
        start = page_row(after.encode(errors="replace")) + b"\0" if after else page_row(b"")
        rows = connection.table(LISTS).scan(row_start=start, row_stop=b"q", limit=LISTED_STEP, batch_size=LISTED_STEP)
        listed = dict(rows)
        keys = {page_key(name): name for cells in listed.values() for name in names_in(cells)}
        pages = rows_in_steps(connection.table(schema.PAGES), keys, COMMENT_FAMILY, schema.VERSIONCOUNT)
        found = {keys[key]: comments_in(cells).count for key, cells in pages if is_there(cells)}
        onward = max(listed)[1:].decode() if len(listed) == LISTED_STEP else ""
        return {name: count for name, count in found.items() if count}, onward

    return store.run(work)
