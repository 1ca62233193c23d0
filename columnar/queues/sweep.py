"""Removes the rows of purged messages, and of messages past their retention, in short steps.

A purge takes effect at once, by a number up to which all messages are purged; a sweep removes their rows afterwards,
and goes on after a crash.  A sweep alone removes messages past their retention, but for those that were popped or
delayed: they are removed when they would be given out again.

Invariants:
    I1. A sweep removes no message above its bound, and none that somebody holds, unless it is purged.
    I2. A sweep that ends early leaves what is to be removed to the next one.

Owned by the loop.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from columnar.model.mutation import RowMutation
from columnar.queues import keys
from columnar.queues.desk import Desk, expired_up_to
from columnar.queues.queue_rows import delete_of

SWEPT_ROWS: Final = 500  # of one step
SWEPT_BYTES: Final = 1024 * 1024  # of their values, which are read


class Sweep:
    """The rounds of one desk: ``remove_rows`` until it returns True."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._purged = desk.purged
        queue = desk.queue
        spans = [keys.messages_span(queue)]
        if self._purged:
            spans += [keys.leases_span(queue), keys.names_span(queue)]
        self._spans = spans
        self._kind = 0  # the number of the span: messages, leases, names
        self._at = spans[0][0]  # the first row that is still to be looked at
        self._expired = expired_up_to(desk.state.settings)

    def remove_rows(self) -> bool:
        """Remove the next rows; return whether all are removed.  Raises StoreBusy and RegionUnavailable."""
        desk = self._desk
        rows: list[RowMutation] = []
        start, expired = self._at, 0
        if self._kind == 0:
            start, expired = self._messages(rows)
        else:
            start = self._named(rows)
        old = desk.totals
        if rows:
            totals = replace(old, messages=old.messages - expired) if expired else None
            desk.write_rows(rows, totals, synced=False)
        self._at = start
        if start < self._stop:
            return False
        if self._kind + 1 < len(self._spans):
            self._kind += 1
            self._at = self._spans[self._kind][0]
            return False
        if self._purged and self._purged == desk.purged:
            desk.end_purge()
        return True

    @property
    def _stop(self) -> bytes:
        return self._spans[self._kind][1]

    def _messages(self, rows: list[RowMutation]) -> tuple[bytes, int]:
        """Add removals of the next messages; return where the next step begins, and how many were past retention."""
        desk, start, size, looked, expired = self._desk, self._at, 0, 0, 0
        while looked < SWEPT_ROWS and size < SWEPT_BYTES:
            found = next(desk.rows.scan(start, self._stop), None)
            if found is None:
                return self._stop, expired
            subqueue, n = keys.place_of(desk.queue, found[0])
            if n > max(self._purged, self._expired):
                start = keys.after_subqueue(desk.queue, subqueue)
                looked += 1
                continue
            for row, cells in desk.rows.scan(found[0], keys.after_subqueue(desk.queue, subqueue)):
                n = keys.n_of(row)
                if looked >= SWEPT_ROWS or size >= SWEPT_BYTES or n > max(self._purged, self._expired):
                    break
                start = row + b"\x00"
                looked += 1
                size += len(cells[keys.MESSAGE])
                if n > self._purged and n in desk.state.touched:
                    continue
                expired += n > self._purged
                name = keys.unpack_message(cells[keys.MESSAGE]).name if n > self._purged else b""
                rows += desk.rows.removal(subqueue, n, name)  # purged names have rows of their own in this sweep
        return start, expired

    def _named(self, rows: list[RowMutation]) -> bytes:
        """Add the removals of purged leases or names; return where the next step begins."""
        desk = self._desk
        found = desk.rows.first_rows(self._at, self._stop, SWEPT_ROWS)
        for row, cells in found:
            if self._kind == 1 and keys.n_of(row) <= self._purged:
                rows.append(delete_of(row, keys.LEASE, False))
            elif self._kind == 2 and keys.unpack_named(cells[keys.NAMED]) <= self._purged:
                rows.append(delete_of(row, keys.NAMED, False))
        return self._stop if len(found) < SWEPT_ROWS else found[-1][0] + b"\x00"
