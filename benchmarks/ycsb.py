"""YCSB's core workloads A to F (pure): the same mixes over rows of 10 fields of 100 bytes.

    ycsb-a   50 % reads, 50 % updates of one field                 zipfian
    ycsb-b   95 % reads,  5 % updates of one field                 zipfian
    ycsb-c   reads                                                 zipfian
    ycsb-d   95 % reads,  5 % inserts                              the latest rows most
    ycsb-e   95 % scans of 1 to 100 rows (uniform), 5 % inserts    zipfian begin
    ycsb-f   50 % reads, 50 % reads and then a put of one field    zipfian

Rows have 10 fields of 100 bytes, ``f:field0`` to ``f:field9``; their keys (``user`` and 20 digits) are hashes, so rows
with neighbouring numbers are far apart in the table.

A read gets the whole row.  A scan is one operation of three calls (open, list, close), and a read with its put is one
operation of two calls.  Calls are packed before the clock starts; a key that is known only later (of a row just
inserted) is put into a packed call.

Knows nothing of sockets and clocks; chance comes in as ``rng``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from columnar.bench import calls, dataset
from columnar.bench.calls import CallSpec, Keyed, Numbered
from columnar.bench.dataset import Cells, TableData
from columnar.bench.protocols import FRAME_HEAD, BadReply, Wire
from columnar.bench.workloads import CALLS_PER_ROW, MORE_CALLS, Chance, Session, Workload, repeating
from columnar.wire import idl
from gauge.popularity import Scattered, Zipf, fnv64

YCSB_TABLE: Final = b"bench_ycsb"
FIELDS: Final = 10
FIELD_BYTES: Final = 100
PACKED: Final = 8_192  # different operations of a workload, at most
LONGEST_SCAN: Final = 100
INSERT_SHARE: Final = 0.05
INSERT_FRAMES: Final = 16  # different values of inserted rows
_INSERT: Final = -1  # in a list of draws
_ROW_BYTES: Final = FIELDS * FIELD_BYTES


def ycsb_column(field: int) -> bytes:
    return b"f:field%d" % field


def ycsb_cells(number: int) -> Cells:
    whole = dataset.text(b"ycsb %d" % number, _ROW_BYTES)
    places = range(0, len(whole), FIELD_BYTES)
    return [(ycsb_column(field), whole[at : at + FIELD_BYTES]) for field, at in enumerate(places)]


def ycsb_key(number: int) -> bytes:
    return b"user%020d" % fnv64(number)


TABLE: Final = TableData(YCSB_TABLE, b"f", ycsb_cells, key=ycsb_key)


def _read(key: bytes, units: int = 1) -> CallSpec:
    return CallSpec("getRow", (YCSB_TABLE, key), calls.list_of(1), units=units, reply_bytes=_ROW_BYTES)


def _update(key: bytes, rng: Chance) -> CallSpec:
    column = ycsb_column(rng.randrange(FIELDS))
    value = dataset.text(b"%d" % rng.randrange(1 << 30), FIELD_BYTES)
    return CallSpec("mutateRow", (YCSB_TABLE, key, calls.puts([(column, value)])), calls.VOID_SUCCESS)


def _packed(rows: int) -> int:
    return min(PACKED, CALLS_PER_ROW * rows)


def _operations(one: Callable[[bytes, Chance], list[CallSpec]], rows: int, rng: Chance) -> list[CallSpec]:
    """Return operations on zipfian rows."""
    scattered = Scattered(rows)
    keys = (ycsb_key(scattered.number(rng.random())) for _ in range(_packed(rows)))
    return [spec for key in keys for spec in one(key, rng)]


def _read_or_update(reads: float, key: bytes, rng: Chance) -> list[CallSpec]:
    return [_read(key) if rng.random() < reads else _update(key, rng)]


def _read_modify_write(key: bytes, rng: Chance) -> list[CallSpec]:
    return [_read(key)] if rng.random() < 0.5 else [_read(key, MORE_CALLS), _update(key, rng)]


class Rows:
    """The existing rows: those of the data set, and those that this process has inserted since.

    The list of inserted rows lives as long as one run of load.
    """

    __slots__ = ("_came", "_first", "_next")

    def __init__(self, first: int, next_number: int) -> None:
        self._first = first
        self._next = next_number
        self._came: list[int] = []

    def new(self) -> int:
        """Return the number of a row to insert."""
        number = self._next
        self._next += 1
        return number

    def came(self, number: int) -> None:
        """Note that the insert of row ``number`` was acknowledged, so the row can be read."""
        self._came.append(number)

    def newest(self, age: int) -> int:
        """Return the row after which ``age`` rows were inserted."""
        inserted = len(self._came)
        return self._came[-1 - age] if age < inserted else self._first - 1 - (age - inserted) % self._first


class Inserts:
    """Packed inserts, into which the key is put."""

    __slots__ = ("_frames", "good")

    def __init__(self, wire: Wire) -> None:
        key = ycsb_key(0)
        self.good = wire.good_begin("mutateRow", calls.VOID_SUCCESS)
        self._frames = [
            Keyed(calls.call("mutateRow", YCSB_TABLE, key, calls.puts(ycsb_cells(number)), wire=wire), key)
            for number in range(INSERT_FRAMES)
        ]

    def frame(self, number: int) -> bytes:
        return self._frames[number % INSERT_FRAMES].frame(ycsb_key(number))


def _rows_of(rows: int, rng: Chance) -> Rows:
    """Return rows whose inserted numbers begin at a random place, so that no two runs insert the same rows."""
    return Rows(rows, (1 + rng.randrange(1 << 20)) << 32)


class Latest:
    """Workload D: inserts, and reads of rows that are likelier the later they were inserted."""

    __slots__ = ("_at", "_draws", "_good", "_inserts", "_new", "_read", "_rows")

    def __init__(self, draws: list[int], at: int, rows: Rows, inserts: Inserts, wire: Wire) -> None:
        """Take ``draws``: for each operation the age of the row to read, or _INSERT."""
        self._draws = draws
        self._at = at
        self._rows = rows
        self._inserts = inserts
        key = ycsb_key(0)
        read = _read(key).packed(wire)
        self._read, self._good = Keyed(read.frame, key), read.good
        self._new = _INSERT  # the row under way, if it is an insert

    def first(self) -> bytes:
        age = self._draws[self._at]
        self._at = (self._at + 1) % len(self._draws)
        if age == _INSERT:
            self._new = self._rows.new()
            return self._inserts.frame(self._new)
        self._new = _INSERT
        return self._read.frame(ycsb_key(self._rows.newest(age)))

    def take_reply(self, reply: bytes) -> tuple[bytes, int]:
        if self._new == _INSERT:
            if not reply.startswith(self._good, FRAME_HEAD) or len(reply) < _ROW_BYTES:
                raise BadReply(reply)
        else:
            if not reply.startswith(self._inserts.good, FRAME_HEAD):
                raise BadReply(reply)
            self._rows.came(self._new)
        return self.first(), 1


def _latest(count: int, rng: Chance, connections: int, wire: Wire) -> list[Session]:
    ranks = Zipf(count)
    draws = [_INSERT if rng.random() < INSERT_SHARE else ranks.rank(rng.random()) for _ in range(_packed(count))]
    rows, inserts = _rows_of(count, rng), Inserts(wire)
    return [Latest(draws, number * len(draws) // connections, rows, inserts, wire) for number in range(connections)]


class ShortScan(NamedTuple):
    opening: bytes  # the frame that opens it
    length: int


class ScanCalls:
    """The shared part of the scans of all connections: packed calls, and the first bytes of good answers."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.opened = wire.good_begin("scannerOpenWithScan", calls.I32_SUCCESS)
        self.listed = wire.good_begin("scannerGetList", calls.LIST_SUCCESS)
        self.closed = wire.good_begin("scannerClose", calls.VOID_SUCCESS)
        self.list_by_length = [Numbered(wire, "scannerGetList", length) for length in range(LONGEST_SCAN + 1)]
        self.close = Numbered(wire, "scannerClose")

    def short_scan(self, key: bytes, length: int) -> ShortScan:
        scan = idl.hbase.TScan(startRow=key, caching=length, cacheBlocks=True)
        return ShortScan(calls.call("scannerOpenWithScan", YCSB_TABLE, scan, wire=self.wire), length)


class Scans:
    """Workload E: short scans, and inserts."""

    __slots__ = ("_at", "_awaited", "_calls", "_inserts", "_rows", "_scan_length", "_scanner", "_scans")

    def __init__(
        self, scans: list[ShortScan | None], at: int, rows: Rows, inserts: Inserts, scan_calls: ScanCalls
    ) -> None:
        """Take the ``scans``, of which None means an insert."""
        self._scans = scans
        self._at = at
        self._rows = rows
        self._inserts = inserts
        self._calls = scan_calls
        self._awaited = b""
        self._scan_length = 0  # the length of the scan under way
        self._scanner = 0

    def first(self) -> bytes:
        scan = self._scans[self._at]
        self._at = (self._at + 1) % len(self._scans)
        if scan is None:
            self._awaited = self._inserts.good
            return self._inserts.frame(self._rows.new())
        self._awaited, self._scan_length = self._calls.opened, scan.length
        return scan.opening

    def take_reply(self, reply: bytes) -> tuple[bytes, int]:
        awaited, known = self._awaited, self._calls
        if awaited is known.opened:
            self._scanner = known.wire.id_at(reply, awaited)
            self._awaited = known.listed
            return known.list_by_length[self._scan_length].frame(self._scanner), MORE_CALLS
        if awaited is known.listed:
            if not 0 < known.wire.count_at(reply, awaited) <= self._scan_length:
                raise BadReply(reply)
            self._awaited = known.closed
            return known.close.frame(self._scanner), MORE_CALLS
        if not reply.startswith(awaited, FRAME_HEAD):
            raise BadReply(reply)
        return self.first(), 1


def _scans(count: int, rng: Chance, connections: int, wire: Wire) -> list[Session]:
    numbers, scan_calls = Scattered(count), ScanCalls(wire)
    packed = [
        None
        if rng.random() < INSERT_SHARE
        else scan_calls.short_scan(ycsb_key(numbers.number(rng.random())), 1 + rng.randrange(LONGEST_SCAN))
        for _ in range(_packed(count))
    ]
    rows, inserts = _rows_of(count, rng), Inserts(wire)
    return [
        Scans(packed, number * len(packed) // connections, rows, inserts, scan_calls) for number in range(connections)
    ]


def _ring(one: Callable[[bytes, Chance], list[CallSpec]]) -> Callable[..., list[Session]]:
    return partial(repeating, partial(_operations, one))


YCSB: Final[dict[str, Workload]] = {
    f"ycsb-{letter}": Workload(f"ycsb-{letter}", f"YCSB {letter.upper()}, {title}", "operations", sessions, (TABLE,))
    for letter, title, sessions in (
        ("a", "half reads, half updates", _ring(partial(_read_or_update, 0.5))),
        ("b", "95 % reads, 5 % updates", _ring(partial(_read_or_update, 0.95))),
        ("c", "reads", _ring(partial(_read_or_update, 1.0))),
        ("d", "reads of the latest, 5 % inserts", _latest),
        ("e", "short scans, 5 % inserts", _scans),
        ("f", "half of the reads with a put", _ring(_read_modify_write)),
    )
}
