"""Notices of renames, deletions and undeletions to those who watch the pages; the trigger ``wiki-moves``.

A move notifies when its journal says that it is done (``m:state``), the moves of a job together when ``m:notified``
gets their number (``moving.journal.MovesOfJob``): each watcher gets one notice, with the ids of the moves of his pages,
NOTICED_MOVES at most.  Both cells are written on a condition, so a move is in one notice whatever is killed.

Watchers are found by the page's history, and by the pages above its old and its new name.  The watchers of all pages
of a job are read WATCHERS_AT_ONCE by WATCHERS_AT_ONCE in the order of their names, so an account is complete before
its notice is written; a checkpoint has the last account.

Nothing here checks a right, and a notice has no name that its reader does not see (``notice_rows``).
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Final

from columnar.client import Connection
from columnar.triggers.api import Barrier, Change, Checkpoint, Effect
from wikka_port.limits import FAN_OUT_SLICE, FAN_OUT_STEP, NOTICED_MOVES, WATCHERS_AT_ONCE
from wikka_port.moving.journal import DELETE, DONE, ITEM, MOVES, NOTIFIED, RENAME, STATE, UNDELETE, Move
from wikka_port.notices.fan_out import cells_of_notice, to_account
from wikka_port.notices.notice_rows import (
    MAIL,
    MOVED,
    WATCHERS,
    Notice,
    id_of_moves,
    rows_of_target,
    targets_of,
)
from wikka_port.schema import OF_ACCOUNTS, fields_in, folded

_KINDS: Final = (RENAME, DELETE, UNDELETE)
_READ_TOGETHER: Final = 200  # moves
_SCANNED_TOGETHER: Final = 25  # targets between two barriers, so that other triggers run

Targets = Mapping[bytes, list[int]]  # places in the list of moves


@dataclass(slots=True)
class _Watcher:
    moves: set[int] = field(default_factory=set)  # NOTICED_MOVES at most
    mail: bytes = b""

    def add(self, places: Collection[int], mail: bytes) -> None:
        self.moves = set(sorted({*self.moves, *places})[:NOTICED_MOVES])
        self.mail = self.mail or mail


def notices(change: Change, client: Connection) -> Iterator[Effect]:
    """Yield the notices of a move, or of the moves of a job."""
    put = {cell.column: cell.value for cell in change.changes if cell.kind == "put"}
    moves: list[Move] = []
    if change.is_repeat:  # an operator has the change delivered again
        return
    if NOTIFIED in put:
        moves = _moves_of_job(change.row, put[NOTIFIED], client)
    elif put.get(STATE) == DONE:
        found = _move_of(change.row, change.now)
        moves = [] if found is None or found.job else [found]
    if moves:
        yield from _fan_out(moves, id_of_moves(change.row, put.get(NOTIFIED, b"")), change.progress, client)


def _moves_of_job(row: bytes, number: bytes, client: Connection) -> list[Move]:
    items = client.table(MOVES).row(row, columns=[ITEM[:-1]])
    ids = sorted(column[len(ITEM) :] for column, value in items.items() if value == number)
    found = []
    for start in range(0, len(ids), _READ_TOGETHER):
        step = ids[start : start + _READ_TOGETHER]
        found += [_move_of(one, cells) for one, cells in client.table(MOVES).rows(step, columns=[b"m"])]
    return sorted((one for one in found if one is not None), key=lambda one: (one.target, one.at_ms))


def _move_of(row: bytes, cells: Mapping[bytes, bytes]) -> Move | None:
    """Return a move that notifies, or None of a job, of a purge, and of a quiet move."""
    one = Move(row, **fields_in(Move, cells)) if STATE in cells and b"m:head" in cells else None
    return one if one is not None and one.kind in _KINDS and not one.quiet else None


def _targets_of(moves: Sequence[Move]) -> Targets:
    """Return by target the places of the moves that its watchers learn of, the first NOTICED_MOVES."""
    found: dict[bytes, list[int]] = {}
    for place, one in enumerate(moves):
        names = (one.target,) if one.kind == DELETE else (one.target, one.source)
        for target in dict.fromkeys(target for name in names for target in targets_of(one.history, name)):
            places = found.setdefault(target, [])
            if len(places) < NOTICED_MOVES:
                places.append(place)
    return found


def _fan_out(moves: Sequence[Move], notice_id: bytes, progress: bytes, client: Connection) -> Iterator[Effect]:
    """Yield the rows of all watchers in the order of their names; ``progress`` is the last one of an earlier run."""
    targets = _targets_of(moves)
    by = {folded(one.by).encode() for one in moves if one.signed in OF_ACCOUNTS}
    time_ms = max(one.at_ms for one in moves)
    after, is_last, count = progress, False, 0
    while not is_last:
        found, ceiling = yield from _next_watchers(targets, after, client)
        is_last = ceiling is None
        for account, watcher in sorted(found.items()):
            if account not in by:
                notice = _notice(moves, watcher, notice_id, time_ms)
                yield from to_account(account, notice, cells_of_notice(notice), watcher.mail)
            count += 1
            if count % FAN_OUT_SLICE == 0:
                yield Barrier()
            if count % FAN_OUT_STEP == 0:
                yield Checkpoint(account)
        after = ceiling or after


def _notice(moves: Sequence[Move], watcher: _Watcher, notice_id: bytes, time_ms: int) -> Notice:
    places = sorted(watcher.moves)
    first, ids = moves[places[0]], b"".join(moves[place].id for place in places)
    return Notice(time_ms, notice_id, MOVED, first.target, first.history, moves=ids)


def _next_watchers(
    targets: Targets, after: bytes, client: Connection
) -> Generator[Effect, None, tuple[dict[bytes, _Watcher], bytes | None]]:
    """Return the watchers that follow ``after``, and the last name up to which they are complete; None: they are all.

    At most three times WATCHERS_AT_ONCE accounts are in memory.
    """
    found: dict[bytes, _Watcher] = {}
    ceiling: bytes | None = None
    for number, (target, places) in enumerate(targets.items(), 1):
        first, stop = rows_of_target(target)
        start = first + after + b"\0" if after else first
        rows = client.table(WATCHERS).scan(
            row_start=start, row_stop=stop, limit=WATCHERS_AT_ONCE, batch_size=WATCHERS_AT_ONCE
        )
        read = 0
        for row, cells in rows:
            read += 1
            account = row[len(first) :]
            if ceiling is None or account <= ceiling:
                found.setdefault(account, _Watcher()).add(places, cells.get(MAIL, b""))
        if read == WATCHERS_AT_ONCE:
            ceiling = account if ceiling is None else min(ceiling, account)
        if len(found) > 2 * WATCHERS_AT_ONCE:
            ceiling = min(nsmallest(WATCHERS_AT_ONCE, found)[-1], ceiling or b"\xff")
            found = {one: watcher for one, watcher in found.items() if one <= ceiling}
        if number % _SCANNED_TOGETHER == 0:
            yield Barrier()
    if ceiling is not None:
        found = {one: watcher for one, watcher in found.items() if one <= ceiling}
    return found, ceiling
