"""The dead messages of a queue: moved beside the others after their last attempt, shown, brought back, removed.

A dead message is a row of its queue, with the message and its last lease, so its error, attempts, group and priority
are known, and it keeps its number when it comes back.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from columnar.errors import RegionTooBusy
from columnar.model.mutation import Delete, Durability, Put, RowMutation
from columnar.model.queue_place import FAMILY
from columnar.queues import keys
from columnar.queues.keys import LeaseCell, Message
from columnar.queues.queue_rows import Found, delete_of, put_of
from columnar.queues.queue_state import QUEUE_LEASES, Touched

if TYPE_CHECKING:
    from columnar.queues.desk import Desk

DEAD_BYTES: Final = 4 * 1024 * 1024  # of the messages of one step


def move_dead(desk: Desk, dead: list[Touched]) -> None:
    """Make rows of dead messages of messages that are held, and forget these."""
    rows: list[RowMutation] = []
    found = 0
    for touched in dead:
        message = desk.rows.message(touched.subqueue, touched.n)
        if message is not None:  # else somebody has deleted it from the table
            found += 1
            puts = (
                Put(FAMILY, keys.MESSAGE, keys.pack_message(message)),
                Put(FAMILY, keys.LEASE, keys.pack_lease(touched.cell)),
            )
            rows.append(RowMutation(keys.dead_row(desk.queue, touched.n), puts, (), Durability.ASYNC))
        rows.append(delete_of(keys.message_row(desk.queue, touched.subqueue, touched.n), keys.MESSAGE, False))
        rows.append(delete_of(keys.lease_row(desk.queue, touched.n), keys.LEASE, False))
    count, old = len(dead), desk.totals
    try:
        desk.write_rows(rows, replace(old, messages=old.messages - count, dead=old.dead + found), synced=False)
    except BaseException:
        desk.note_broken()  # their timers are used up: the next desk reads the rows
        raise
    for touched in dead:
        desk.state.forget_message(touched)
    if desk.state.settings.dead_to:
        desk.on_dead(desk)


def find_dead(desk: Desk, after: int, count: int) -> list[Found]:
    """Return dead messages with numbers above ``after``, ascending, up to DEAD_BYTES and one."""
    found: list[Found] = []
    size = 0
    start, stop = keys.dead_row(desk.queue, after + 1), keys.dead_span(desk.queue)[1]
    for row, cells in desk.rows.scan(start, stop):
        lease, message = _parts(cells)
        found.append(Found(keys.n_of(row), 0, lease.subqueue, lease.attempts, 0, message, lease.error))
        size += len(message.body)
        if len(found) == count or size > DEAD_BYTES:
            break
    return found


def redrive(desk: Desk, numbers: Sequence[int], count: int) -> tuple[int, Any]:
    """Bring dead messages back, without their attempts: those named, or the ``count`` oldest.

    Returns how many came back, fewer than asked for if they have many bytes, and the future of the fsync.  Raises
    RegionTooBusy until the rows of a purge are removed that came after one of them.
    """
    moving = desk.background.moving  # they would be in both queues
    chosen = [one for one in _chosen(desk, numbers, count) if one.n not in moving]
    if not chosen:
        return 0, None
    if len(desk.state.touched) + len(chosen) > QUEUE_LEASES:
        raise RegionTooBusy(f"queue {desk.queue.decode('latin-1')} has too many messages that were popped; commit some")
    if any(one.n <= desk.purged for one in chosen):  # the sweep would remove their rows, too
        text = "is purged at the moment, and its earlier messages cannot come back meanwhile; try again"
        raise RegionTooBusy(f"queue {desk.queue.decode('latin-1')} {text}")
    now_ms, old = desk.region.now_ms, desk.totals
    rows: list[RowMutation] = []
    back: list[tuple[int, LeaseCell]] = []
    for one in chosen:
        cell = LeaseCell(now_ms, 0, 0, one.subqueue, one.message.name, one.error)
        back.append((one.n, cell))
        rows.append(
            put_of(keys.message_row(desk.queue, one.subqueue, one.n), keys.MESSAGE, keys.pack_message(one.message))
        )
        rows.append(put_of(keys.lease_row(desk.queue, one.n), keys.LEASE, keys.pack_lease(cell)))
        rows.append(_removal(desk, one.n))
        if one.message.name and desk.rows.named(one.message.name) is None:  # a purge has removed it
            rows.append(put_of(keys.name_row(desk.queue, one.message.name), keys.NAMED, keys.pack_named(one.n)))
    waiting = desk.write_rows(rows, replace(old, messages=old.messages + len(back), dead=old.dead - len(back)))
    for n, cell in back:  # before the fsync: a crash brings the same messages back as dead ones
        desk.state.load_lease(n, cell)
    desk.on_ready(len(back))
    return len(back), waiting


def remove_dead(desk: Desk, numbers: Sequence[int], count: int) -> tuple[int, Any]:
    """Remove dead messages for ever: those named, or the ``count`` oldest; returns as ``redrive`` does."""
    chosen, old = _chosen(desk, numbers, count), desk.totals
    if not chosen:
        return 0, None
    rows: list[RowMutation] = []
    for one in chosen:
        rows.append(_removal(desk, one.n))
        if one.message.name and desk.rows.named(one.message.name) == one.n:
            rows.append(delete_of(keys.name_row(desk.queue, one.message.name), keys.NAMED))
    return len(chosen), desk.write_rows(rows, replace(old, dead=old.dead - len(chosen)))


def _chosen(desk: Desk, numbers: Sequence[int], count: int) -> list[Found]:
    if not numbers:
        return find_dead(desk, 0, count)
    found: list[Found] = []
    size = 0
    for n in dict.fromkeys(numbers):
        cells = desk.rows.cells(keys.dead_row(desk.queue, n))
        if cells and size <= DEAD_BYTES:
            lease, message = _parts(cells)
            found.append(Found(n, 0, lease.subqueue, lease.attempts, 0, message, lease.error))
            size += len(message.body)
    return found


def _parts(cells: dict[bytes, bytes]) -> tuple[LeaseCell, Message]:
    return keys.unpack_lease(cells[keys.LEASE]), keys.unpack_message(cells[keys.MESSAGE])


def _removal(desk: Desk, n: int) -> RowMutation:
    return RowMutation(keys.dead_row(desk.queue, n), (Delete(FAMILY, keys.MESSAGE), Delete(FAMILY, keys.LEASE)))
