"""Derived rows of comments: the lists of the whole wiki, and the threads of pages with many comments.

    table           row                                                            cell            serves
    comment_lists   "t", history key, path                                         l:n             a page's threads
                    "r", salt, inverted ms (13), inverted number (7),              l:n             newest comments
                         history key, number (7)
                    "u", folded name, 00, the same from the inverted ms on         l:n             an account's comments
                    "p", history key                                               l:PAGE KEY      name of the page

All rows but those of "p" follow from one comment, and the trigger ``wiki-comments`` writes them when a change of the
comment is applied; they say where the comment lies, and a reader takes text, state and author from the comment itself.
So an edit or a removal changes no list.  A row of "p" has a cell for each page key under which the history lies or is
about to: the trigger ``wiki-indexes`` puts and deletes the cell of a page with the page's own changes.  So a rename, a
deletion and an undeletion cost one cell, whatever the number of comments.

All cells get the timestamp of the change that they follow from (``triggers``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from columnar.triggers.api import Change, Delete, Effect, Put
from wikka_port import schema
from wikka_port.comments.comment_rows import (
    COMMENTS_HEAD,
    NUMBER_CHARS,
    NUMBER_MAX,
    OP,
    Comment,
    comment_of,
    parse_comment_row,
)
from wikka_port.page_rows import Cells, head_of, is_there
from wikka_port.schema import CHANGE_SALTS, KEY_BYTES, TIME_MAX_MS, TableSpec, change_salt, folded

LISTS: Final = b"comment_lists"
FAMILY: Final = b"l"
TABLES: Final = (TableSpec(LISTS, {"l": {"max_versions": 1}}, {"DELETE_MARKERS": str(schema.MARKERS_MS)}),)
LISTED: Final = b"l:n"
PAGE: Final = b"l:"
FAMILIES: Final = (b"c",)  # of ``comments``
_TIME_CHARS: Final = 13
_PLACE_CHARS: Final = KEY_BYTES + NUMBER_CHARS


# --- keys ------------------------------------------------------------------------------------------


def thread_row(history: bytes, path: str) -> bytes:
    return b"t" + history + path.encode()


def threads_end(history: bytes) -> bytes:
    return b"t" + history + b";"  # after every digit


def number_of_thread_row(row: bytes) -> int:
    return int(row[-NUMBER_CHARS:])


def recent_prefixes() -> list[bytes]:
    """Return the prefixes of the list of all comments, one for each salt."""
    return [b"r" + salt for salt in CHANGE_SALTS]


def _recent_row(history: bytes, comment: Comment) -> bytes:
    return b"r" + change_salt(history) + _place(history, comment)


def user_prefix(name: str) -> bytes:
    return b"u" + folded(name).encode() + b"\0"


def _place(history: bytes, comment: Comment) -> bytes:
    time_ms = min(max(comment.time_ms, 0), TIME_MAX_MS)
    # comments of a WikkaWiki have times of whole seconds: of one second the highest number is the newest
    inverted = b"%0*d%0*d" % (_TIME_CHARS, TIME_MAX_MS - time_ms, NUMBER_CHARS, NUMBER_MAX - comment.number)
    return inverted + history + b"%0*d" % (NUMBER_CHARS, comment.number)


def comment_row_of_list(row: bytes) -> bytes:
    """Return the row in ``comments`` that a row of a list of times names."""
    return row[-_PLACE_CHARS:]


def page_row(history: bytes) -> bytes:
    return b"p" + history


def names_in(cells: Mapping[bytes, bytes]) -> list[str]:
    """Return the names in a row of "p", mostly one."""
    return [cell.decode(errors="replace") for column, cell in cells.items() if column.startswith(PAGE)]


# --- a comment -------------------------------------------------------------------------------------


def rows_of_comment(history: bytes, comment: Comment) -> set[bytes]:
    found = {thread_row(history, comment.path), _recent_row(history, comment)}
    if comment.is_of_account:
        found.add(user_prefix(comment.author) + _place(history, comment))
    return found


def comment_effects(row: bytes, before: Cells, now: Cells) -> Iterator[Effect]:
    """Yield the effects on the lists of a comment that was ``before`` and is ``now`` ({}: it is not there)."""
    old, new = _listed(row, before), _listed(row, now)
    for one in sorted(old - new):
        yield Delete(LISTS, one, [FAMILY])
    for one in sorted(new):
        yield Put(LISTS, one, {LISTED: b"1"})


def _listed(row: bytes, cells: Cells) -> set[bytes]:
    if OP not in cells:
        return set()
    history, number = parse_comment_row(row)
    return rows_of_comment(history, comment_of(number, cells))


def lists_of_batch(batch: Sequence[Change]) -> Iterator[tuple[Change, Effect]]:
    """Yield the effects of the trigger ``wiki-comments``."""
    for change in batch:
        try:
            parse_comment_row(change.row)
        except ValueError:
            continue
        # ``before`` has only the cells that the change touched
        before = {**change.now, **change.before} if OP in change.now else change.before
        for effect in comment_effects(change.row, before, change.now):
            yield change, effect


# --- a page ----------------------------------------------------------------------------------------


def page_effects(key: bytes, before: Cells, now: Cells, *, careful: bool) -> Iterator[Effect]:
    """Yield the effects of a page's change on the names of histories with comments.

    ``before`` has at least the cells that the change touched.  A page that never had comments has no effects, so a wiki
    whose folder has no table for them yet is not disturbed.
    """
    was, stays = is_there(before), is_there(now)
    place = head_of(now).place(key) if stays else b""
    if was and COMMENTS_HEAD in before and head_of(before).place(key) != place:
        yield Delete(LISTS, page_row(head_of(before).place(key)), [PAGE + key])
    is_new = careful or COMMENTS_HEAD not in before or not was
    if stays and COMMENTS_HEAD in now and is_new:
        yield Put(LISTS, page_row(place), {PAGE + key: now.get(schema.NAME, b"")})
