"""The functions of ``triggers``, run by the application if the store has no triggers.

Each effect is written at the timestamp of the page's revision.  An import may save pages with times that do not rise;
so when a family is deleted, each of its cells with a later timestamp is deleted at that timestamp.

Order: calls reach the disk one after another.  Within a call, of up to ROWS_PER_CALL rows of one table, effects have
no order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from columnar.client import Connection
from columnar.triggers.api import Change, ChangedCell, Delete, Effect, Put
from wikka_port import schema, triggers
from wikka_port.comments import comment_lists
from wikka_port.comments.comment_rows import COMMENTS, OP, comments_in, op_ms
from wikka_port.editing.suggestions import REVIEW, SUGGESTIONS
from wikka_port.files import thumbnail_trigger
from wikka_port.files.file_rows import BLOBS, FILE_FAMILY, file_column
from wikka_port.limits import ROWS_PER_CALL
from wikka_port.moving.journal import MOVES
from wikka_port.notices import fan_out, move_notices
from wikka_port.notices.notice_rows import WATCHERS, WATCHES, page_target, rows_of_target, turned
from wikka_port.page_changes import alone
from wikka_port.search import indexing
from wikka_port.store import Store


def run_indexes(connection: Connection, change: Change) -> None:
    """Write all index cells that follow from the change, and wait for the disk.  Raises the client's errors."""
    for one in triggers.REGISTRATIONS:
        carry_out(connection, alone(one.call([change], connection)), change.timestamp)


def notify_watchers(connection: Connection, change: Change) -> None:
    """Write the notices of a change of a page.  Raises the client's errors."""
    carry_out(connection, fan_out.notices(change, connection), change.timestamp)


def notify_of_moves(connection: Connection, row: bytes, now: Mapping[bytes, bytes], put: bytes) -> None:
    """Write the notices of a move, or of those of a job, as the trigger does when ``put`` changes in ``moves``."""
    change = Change(MOVES, row, 0, "", (ChangedCell("put", put, 0, now[put]),), now)
    carry_out(connection, move_notices.notices(change, connection), time.time_ns() // 1_000_000)


class DerivedLists:
    """Lists of comments and watchers, written by the application if no trigger does (``comments.committing.Lists``).

    The watchers of a page are notified of its comments, too.
    """

    def __init__(self, store: Store, is_wanted: Callable[[], bool]) -> None:
        self._store = store
        self._is_wanted = is_wanted

    def list_page(self, key: bytes, row: Mapping[bytes, bytes], put: Mapping[bytes, bytes]) -> None:
        if self._is_wanted():
            now, head = {**row, **put}, comments_in(put)
            effects = list(comment_lists.page_effects(key, row, now, careful=True))
            self._store.run(lambda c: carry_out(c, effects, head.at_ms))
            cells = tuple(ChangedCell("put", column, head.at_ms, cell) for column, cell in put.items())
            change = Change(schema.PAGES, key, head.at_ms, "", cells, now, row)
            self._store.run(lambda c: notify_watchers(c, change))

    def derive_watchers(self, changed: Mapping[bytes, Mapping[bytes, bytes]]) -> None:
        """Write the rows of ``watchers`` for rows of ``watches`` as they are now."""
        if self._is_wanted():
            effects = [one for row, now in changed.items() for one in fan_out.watcher_effects(row, now)]
            self._store.run(lambda c: carry_out(c, effects, time.time_ns() // 1_000_000))

    def notify_author(self, row: bytes, now: Mapping[bytes, bytes]) -> None:
        """Notify the author of a text under review of the decision."""
        if self._is_wanted():
            at_ms = time.time_ns() // 1_000_000
            change = Change(SUGGESTIONS, row, at_ms, "", (ChangedCell("put", REVIEW, at_ms, now[REVIEW]),), now)
            self._store.run(lambda c: carry_out(c, fan_out.notice_of_decision(change, c), at_ms))

    def list_comment(self, row: bytes, before: Mapping[bytes, bytes], now: Mapping[bytes, bytes], at_ms: int) -> None:
        if self._is_wanted():
            effects = list(comment_lists.comment_effects(row, before, now))
            self._store.run(lambda c: carry_out(c, effects, at_ms))
            self._store.run(lambda c: index_comment(c, row, before, now, at_ms))

    def index_file(self, place: tuple[bytes, bytes], name: str) -> None:
        """Write the words of a file that has changed; ``place`` is the row of its page, which may be deleted."""
        if self._is_wanted() and place[0] == schema.PAGES:
            self._store.run(lambda c: index_file(c, place[1], name, time.time_ns() // 1_000_000))


def index_comment(
    connection: Connection, row: bytes, before: Mapping[bytes, bytes], now: Mapping[bytes, bytes], at_ms: int
) -> None:
    """Write the words of a comment that was ``before`` and is ``now``.  Raises the client's errors."""
    change = Change(COMMENTS, row, at_ms, "", (), now, before)  # no cells: all words are written
    carry_out(connection, alone(indexing.index_comments([change], connection)), at_ms)


def index_file(connection: Connection, key: bytes, name: str, at_ms: int) -> None:
    """Write the words of a file of the page ``key`` as it is now.  Raises the client's errors."""
    row = connection.table(schema.PAGES).row(key, columns=[FILE_FAMILY, schema.VERSIONCOUNT])
    change = Change(schema.PAGES, key, at_ms, "", (ChangedCell("put", file_column(name), at_ms),), row, {})
    carry_out(connection, alone(indexing.index([change], connection)), at_ms)


def rename_in_comment_lists(connection: Connection, name: str, new: str) -> None:
    """Move the rows of an account's comments to its ``new`` name, if no trigger does; a second call changes nothing."""
    old, begin = comment_lists.user_prefix(name), comment_lists.user_prefix(new)
    found = connection.table(comment_lists.LISTS).scan(row_prefix=old, include_timestamp=True, batch_size=ROWS_PER_CALL)
    for row, cells in list(found):
        for column, (value, stamp) in cells.items():
            moved = Put(comment_lists.LISTS, begin + row[len(old) :], {column: value})
            carry_out(connection, [moved, Delete(comment_lists.LISTS, row, [column])], stamp)


def erase_comments(connection: Connection, history: bytes, *, plain: bool) -> None:
    """Remove all comments of a history; with ``plain`` also their rows in the lists, which a trigger removes else."""
    if COMMENTS not in connection.tables():  # an older folder, before it is prepared
        return
    table = connection.table(COMMENTS)
    while rows := list(table.scan(row_prefix=history, limit=ROWS_PER_CALL, batch_size=ROWS_PER_CALL)):
        if plain:
            effects = [one for row, cells in rows for one in comment_lists.comment_effects(row, cells, {})]
            now_ms = time.time_ns() // 1_000_000  # later than a repair, which may have written after the last change
            at_ms = max(now_ms, *(op_ms(cells.get(OP, b"")) for _, cells in rows))
            carry_out(connection, effects, at_ms)
            for row, cells in rows:
                index_comment(connection, row, cells, {}, at_ms)
        with table.batch() as batch:
            for row, _ in rows:
                batch.delete(row)


def erase_watches(connection: Connection, history: bytes, *, plain: bool) -> None:
    """Remove all watches of a history; with ``plain`` also their rows of ``watchers``, which a trigger removes else."""
    if WATCHERS not in connection.tables():  # an older folder, before it is prepared
        return
    start, stop = rows_of_target(page_target(history))
    table = connection.table(WATCHERS)
    while rows := [row for row, _ in table.scan(row_start=start, row_stop=stop, limit=ROWS_PER_CALL)]:
        for name, doomed in ((WATCHES, [turned(row) for row in rows]), (WATCHERS, rows if plain else [])):
            with connection.table(name).batch() as batch:
                for row in doomed:
                    batch.delete(row)
        start = rows[-1] + b"\0"


def make_smaller_pictures(connection: Connection, sha256: str, at_ms: int) -> None:
    """Make the smaller versions of a picture that has become live.  Raises the client's errors."""
    row = sha256.encode()
    change = Change(BLOBS, row, at_ms, "", (), connection.table(BLOBS).row(row), {})
    carry_out(connection, thumbnail_trigger.pictures(change, connection), at_ms)


def carry_out(connection: Connection, effects: Iterable[Effect], at_ms: int) -> None:
    """Write the effects in their order, and wait until all are on disk.  Raises the client's errors."""
    together: list[Put | Delete] = []
    for effect in effects:
        write = effect if isinstance(effect, Put | Delete) else None
        if together and (write is None or write.table != together[0].table or len(together) >= ROWS_PER_CALL):
            _write(connection, together, at_ms)
            together = []
        if write is not None:
            together.append(write)
    if together:
        _write(connection, together, at_ms)


def _write(connection: Connection, effects: list[Put | Delete], at_ms: int) -> None:
    """Write effects on one table."""
    table = connection.table(effects[0].table)
    later: dict[int, list[tuple[bytes, bytes]]] = {}
    with table.batch(timestamp=at_ms) as batch:
        for effect in effects:
            if isinstance(effect, Put):
                batch.put(effect.row, effect.cells)
                continue
            batch.delete(effect.row, effect.columns)
            for family in [column for column in effect.columns or () if b":" not in column]:
                stored: Mapping[bytes, tuple[bytes, int]] = table.row(effect.row, [family], include_timestamp=True)
                for column, (_, stamp) in stored.items():
                    if stamp > at_ms:
                        later.setdefault(stamp, []).append((effect.row, column))
    for stamp, cells in later.items():
        for row, column in cells:
            table.delete(row, [column], timestamp=stamp)
