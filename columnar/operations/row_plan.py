"""The plan of one call's rows: batches of one region each, checked before the first write.

Planning runs in steps of STEP_S, between which other requests are served.  Invariants of ``operations.writes``:
    I1. A step of a row has at most ``limits.ROW_OPERATIONS`` operations.  A row that a call names very often gets
        several steps, in the order given.
    I2. Work is linear in the size of the call, however often the call names a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Final

from columnar.limits import BATCH_BYTES, ROW_OPERATIONS
from columnar.model.mutation import Contribute, Durability, Operation, Put, RowMutation, RowPuts, RowWrite
from columnar.operations.access import TableAccess
from columnar.regions.tables import ServedTable

Work = list[tuple[ServedTable, list[RowWrite]]]  # batches, each of rows of one region
Make = Callable[[Any], RowWrite | None]  # the checked write of one element of a call

STEP_S: Final = 0.02  # of planning, and of writing planned batches
CLOCK_CHECK_ELEMENTS: Final = 16  # elements between two clock checks
OPERATION_BYTES: Final = 256  # counted for an operation beside its value: a batch has at most 16,000 operations
PUT_BYTES: Final = 64  # counted for a put of a bulk load, which costs a third


class _Joined:
    """Several mutations of one row in one call, joined into one step."""

    __slots__ = ("durability", "hops", "operations", "row", "sends")

    def __init__(self, first: RowMutation) -> None:
        self.row = first.row
        self.operations: list[Operation] = list(first.operations)
        self.durability = first.durability
        self.hops = first.hops
        self.sends = first.sends

    def add(self, other: RowMutation) -> None:
        self.operations += other.operations
        if other.durability is Durability.SYNC:
            self.durability = Durability.SYNC
        self.hops = max(self.hops, other.hops)
        self.sends += other.sends

    def mutation(self) -> RowMutation:
        return RowMutation(self.row, tuple(self.operations), (), self.durability, self.hops, self.sends)


def _spelled_out(write: RowWrite) -> RowMutation:
    return write.spelled_out() if isinstance(write, RowPuts) else write


class RowPlan:
    """Plans the elements of one call into batches."""

    def __init__(self, access: TableAccess, served: ServedTable, elements: Sequence[Any], make: Make) -> None:
        self.served = served
        self.work: Work = []
        self._access = access
        self._requested = elements
        self._make = make
        self._at = 0  # in ``_requested``
        self._by_row: dict[bytes, RowWrite | _Joined] = {}
        self._parts: list[dict[bytes, RowWrite | _Joined]] = []  # each part has a row at most once (I1)
        self._left: list[RowWrite | _Joined] = []  # rows of the part that is put into batches; the next row is last
        self._open: dict[int, tuple[list[RowWrite], int]] = {}  # by region, its last batch and the batch's bytes

    def step(self) -> bool:
        """Plan for STEP_S; return whether all rows are planned.

        Raises CallerError, RegionTooBusy, RegionNotLocal, or RegionUnavailable, after which a retry continues.
        """
        ends = perf_counter() + STEP_S
        elements, at = self._requested, self._at
        while at < len(elements):
            write = self._make(elements[at])
            at = self._at = at + 1
            if write is not None:
                self._join(write)
            if not at % CLOCK_CHECK_ELEMENTS and perf_counter() >= ends:
                return False
        if self._by_row:
            self._parts.append(self._by_row)
            self._by_row = {}
            self._parts.reverse()
        return self._place(ends)

    def _join(self, write: RowWrite) -> None:
        present = self._by_row.get(write.row)
        if present is None:
            self._by_row[write.row] = write
            return
        if not isinstance(present, _Joined):
            present = self._by_row[write.row] = _Joined(_spelled_out(present))
        mutation = _spelled_out(write)
        if len(present.operations) + len(mutation.operations) > ROW_OPERATIONS:
            self._parts.append(self._by_row)
            self._by_row = {write.row: write}
        else:
            present.add(mutation)

    def _place(self, ends: float) -> bool:
        served, placed = self._access.again(self.served), 0  # only the newest ``ServedTable`` follows splits
        while self._left or self._parts:
            if not self._left:
                self._left = list(self._parts.pop().values())
                self._left.reverse()
                self._open.clear()
            one = self._left[-1]
            region = self._access.writable(served, one.row)
            self._left.pop()
            self._put(region.info.region_id, one.mutation() if isinstance(one, _Joined) else one)
            placed += 1
            if not placed % CLOCK_CHECK_ELEMENTS and perf_counter() >= ends:
                return False
        return True

    def pass_over(self) -> RowWrite:
        """Remove and return the row whose region is not local."""
        one = self._left.pop()
        return one.mutation() if isinstance(one, _Joined) else one

    def take_all_rows(self) -> list[tuple[ServedTable, RowWrite]]:
        """Return all rows, planned or not, after all were checked; several steps of one row are in their order."""
        assert self._at == len(self._requested), "no region is looked for before all is checked"
        rows = [write for _, batch in self.work for write in batch]
        left = [*reversed(self._left), *(one for part in reversed(self._parts) for one in part.values())]
        rows += [one.mutation() if isinstance(one, _Joined) else one for one in left]
        return [(self.served, write) for write in rows]

    def _put(self, region_id: int, write: RowWrite) -> None:
        """Add the row to a batch of its region.  A batch over ``limits.BATCH_BYTES`` has a single row."""
        size = size_of(write)
        batch = self._open.get(region_id)
        if batch is None or batch[1] + size > BATCH_BYTES:
            batch = ([], 0)
            self.work.append((self.served, batch[0]))
        batch[0].append(write)
        self._open[region_id] = (batch[0], batch[1] + size)


def size_of(mutation: RowWrite) -> int:
    """Return roughly the bytes that the mutation takes."""
    if isinstance(mutation, RowPuts):
        size = PUT_BYTES * len(mutation.values)
        for value in mutation.values:
            size += len(value)
        return size
    size = OPERATION_BYTES * len(mutation.operations)
    for send in mutation.sends:
        size += send.size_bytes
    for operation in mutation.operations:
        if isinstance(operation, Put):
            size += len(operation.value)
        elif isinstance(operation, Contribute):
            size += operation.size_bytes
    return size
