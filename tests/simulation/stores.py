"""The store of a region while its owner has it open, and the steps in which it is brought up to date.

packed := (row "=" value "\\n")*         the operations of a record
value  := register " " counter " " version      the version counts all writes of the world: only checks look at it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from columnar.model.owner_messages import Segments
from columnar.storage.capture import Capture
from columnar.storage.ownership import (
    COMPLETE,
    Ownership,
    complete_in,
    epoch_to_own,
    logs_to_replay,
    pack_complete,
)
from columnar.storage.recovery import lacking
from columnar.storage.server_log import MARK, Operation, Record, Written, marks_of
from tests.simulation.disk import Files, LogFolder, Pair

Waiter = Callable[[bool], None]  # True: on disk


@dataclass(frozen=True, slots=True)
class Value:
    register: int = 0
    counter: int = 0
    version: int = 0

    def packed(self) -> bytes:
        return b"%d %d %d" % (self.register, self.counter, self.version)


NOTHING = Value()


def unpacked(data: bytes | None) -> Value:
    return Value(*map(int, data.split())) if data is not None else NOTHING


def record_of(written: Written) -> Record:
    region, epoch, number, previous, operations = written
    packed = b"".join(b"%s=%s\n" % (key, value) for _, key, value, _ in operations if value is not None)
    return Record(region, epoch, number, previous, packed)


def pairs_of(record: Record) -> list[Pair]:
    pairs: list[Pair] = []
    for line in record.packed.splitlines():
        key, _, value = line.partition(b"=")
        pairs.append((key, value))
    return pairs


class OpenStore:
    """An open store.  Reads see every write at once; writes since the last ``hand_over`` are in this process only."""

    def __init__(self, region_id: int, epoch: int, files: Files, data: dict[bytes, bytes], claim: Pair | None) -> None:
        """Take ``claim``, the pair of ``complete`` that is written with the first mark; None is a deliberate fault."""
        self._claim = claim
        self.region_id = region_id
        self.epoch = epoch  # which its records carry
        self.files = files
        self.data = data
        self.capture: Capture | None = None
        self.is_open = True
        self.has_failed = False
        self.gathered: list[Pair] = []
        self.touched: dict[bytes, None] | None = None  # rows that were written since a split or merge copied them
        self.waiting: list[Waiter] = []  # for the next fsync
        self.under_way: list[Waiter] | None = None  # for the one that runs

    @property
    def name(self) -> str:
        return region_name(self.region_id)

    @property
    def is_quiet(self) -> bool:
        return not self.waiting and self.under_way is None

    @property
    def is_synced(self) -> bool:
        """Whether the store's own log has all writes on disk."""
        return self.files.synced == len(self.files.log)

    def write(self, row: bytes, value: Value) -> None:
        packed = value.packed()
        self.data[row] = packed
        self.gathered.append((row, packed))
        if self.touched is not None:
            self.touched[row] = None
        if self.capture is not None:
            operation: Operation = ("cells", row, packed, None)
            self.capture.note([operation], len(packed))

    def hand_over(self) -> None:
        if self.gathered:
            capture, pairs = self.capture, self.gathered
            self.gathered = []
            if capture is None:
                self.files.append(pairs)
                return
            self._append_marked(capture, pairs)

    def begin_capture(self, era: bytes, stamp: Callable[[], int]) -> None:
        """Begin a capture: remove earlier owners' marks, and let ``complete`` say that the store has their logs."""
        self.capture = Capture(self.name, self.epoch, era, stamp)
        self._append_marked(self.capture, [self._claim] if self._claim is not None else [])

    def _append_marked(self, capture: Capture, pairs: list[Pair]) -> None:
        key, floor = capture.mark()
        old, span = capture.outdated()
        self.files.append([*pairs, *((one, None) for one in old), (key, floor)], span)
        capture.batch_written()

    def raise_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        if self.capture is not None:
            self.capture.epoch = epoch

    def take_waiting(self) -> None:
        assert self.under_way is None, "one fsync of a store at a time"
        self.under_way, self.waiting = self.waiting, []

    def ended(self, is_on_disk: bool) -> None:
        waiters, self.under_way = self.under_way or [], None
        for waiter in waiters:
            waiter(is_on_disk)

    def fail(self) -> None:
        self.has_failed, self.is_open = True, False
        waiting, self.waiting = self.waiting, []
        self.ended(False)
        for waiter in waiting:
            waiter(False)


def region_name(region_id: int) -> str:
    return f"r{region_id}"


# --- bringing in -------------------------------------------------------------------------------------

Behind = tuple[LogFolder, Segments]  # a log, and how far it may be read


@dataclass(frozen=True, slots=True)
class Lapses:
    """The deliberate faults of replaying logs."""

    no_complete: bool = False
    no_epochs: bool = False


def bring_in(
    files: Files, data: dict[bytes, bytes], ownership: Ownership, find: Callable[[str], Behind], lapses: Lapses
) -> Iterator[None]:
    """Replay logs as ``recovery.bring_in`` does; the process may die at each yield.

    ``data`` is the content of the store.  Raises DamagedData."""
    complete = 0 if lapses.no_complete else complete_in(data.get(COMPLETE), ownership.region)
    epoch = epoch_to_own(ownership, complete)
    wanted = logs_to_replay(ownership, complete)
    if not wanted:
        return
    for name, epochs in wanted:
        log, extents = find(name)
        part = log.of_region(ownership.region, None if lapses.no_epochs else epochs, extents)
        first, end = marks_of(part.identity)
        marks = {key: value for key, value in data.items() if first <= key < end}
        for pair, record in lacking(part, marks):
            pairs = [*pairs_of(record), pair]
            files.append(pairs)
            data.update((key, value) for key, value in pairs if value is not None)
        yield
    if not lapses.no_complete:
        data[COMPLETE] = pack_complete(epoch, ownership.region)
        files.append([(COMPLETE, data[COMPLETE])])
    files.sync(len(files.log))
    yield


def is_row(key: bytes) -> bool:
    return key != COMPLETE and not key.startswith(MARK)
