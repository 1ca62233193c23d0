"""Reads the rows of one queue in its region, and makes mutations of single cells.  Owned by the loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from columnar.limits import STEP_BYTES
from columnar.model.mutation import Delete, Durability, Operation, Put, RowMutation
from columnar.model.queue_place import FAMILY
from columnar.model.read import ReadSpec, projection
from columnar.queues import keys
from columnar.queues.keys import Message, Subqueue
from columnar.regions.read.region_reads import get_whole_row
from columnar.regions.read.row_reader import RowCursor, visible_cells
from columnar.regions.region import Region
from columnar.storage.layout import range_start


@dataclass(frozen=True, slots=True)
class Found:
    """A message that is given out, or shown."""

    n: int
    lease: int  # 0: not given out
    subqueue: Subqueue
    attempts: int
    until_ms: int
    message: Message
    error: bytes
    first_ms: int = 0  # when it was popped first; 0: it was not


class QueueRows:
    def __init__(self, region: Region, queue: bytes) -> None:
        self._region = region
        self._queue = queue
        self._spec = ReadSpec(projection(region.table, ()))

    def named(self, name: bytes, above: int = 0) -> int | None:
        """Return the number of the message that has the name, if it is higher than ``above``."""
        data = self.cells(keys.name_row(self._queue, name)).get(keys.NAMED)
        n = 0 if data is None else keys.unpack_named(data)
        return n if n > above else None

    def message(self, subqueue: Subqueue, n: int) -> Message | None:
        data = self.cells(keys.message_row(self._queue, subqueue, n)).get(keys.MESSAGE)
        return None if data is None else keys.unpack_message(data)

    def removal(self, subqueue: Subqueue, n: int, name: bytes) -> list[RowMutation]:
        """Return the removal of a message, and of its name, without a wait for the fsync; its lease is another row."""
        rows = [delete_of(keys.message_row(self._queue, subqueue, n), keys.MESSAGE, False)]
        if name and self.named(name) == n:  # else a later message has the name
            rows.append(delete_of(keys.name_row(self._queue, name), keys.NAMED, False))
        return rows

    def cells(self, row: bytes) -> dict[bytes, bytes]:
        found = get_whole_row(self._region, row, self._spec)
        return {column.partition(b":")[2]: value for column, value, _ in found}

    def first_rows(self, start: bytes, stop: bytes, most: int) -> list[tuple[bytes, dict[bytes, bytes]]]:
        return [one for one, _ in zip(self.scan(start, stop), range(most), strict=False)]

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
        region = self._region
        cursor = RowCursor.over(
            region.store, region.views, self._spec.projection, range_start(start), range_start(stop),
            reverse=False, cost=2 * STEP_BYTES,
        )  # fmt: skip
        while (found := cursor.next_row()) is not None:
            row, raw = found
            cells = visible_cells(region.store, row, raw, self._spec, region.now_ms)
            values = {column.partition(b":")[2]: value for column, value, _ in cells}
            if values:
                yield row, values


def put_of(row: bytes, qualifier: bytes, value: bytes, synced: bool = True) -> RowMutation:
    return _mutation(row, Put(FAMILY, qualifier, value), synced)


def delete_of(row: bytes, qualifier: bytes, synced: bool = True) -> RowMutation:
    return _mutation(row, Delete(FAMILY, qualifier), synced)


def _mutation(row: bytes, operation: Operation, synced: bool) -> RowMutation:
    return RowMutation(row, (operation,), (), Durability.SYNC if synced else Durability.ASYNC)
