"""(pure) The requests to an endpoint, workload by workload.

A workload gives each connection a ``Session``, which returns the first call and, for each answer, the next call.  As
much as possible is packed before the clock starts.  A workload is sent to the generator processes, so its functions are
module-level functions.

Knows nothing of sockets and clocks; chance comes in as ``rng``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from columnar.bench import calls, dataset
from columnar.bench.calls import CallSpec, Exchange, Keyed, Numbered
from columnar.bench.dataset import ROWS_TABLE, SMALL_TABLE, TABLES, TableData
from columnar.bench.protocols import BINARY, FRAME_HEAD, BadReply, Wire
from columnar.wire import idl

PACKED: Final = 4_096  # different small calls of a workload, at most
CALLS_PER_ROW: Final = 8  # at most, for a small data set
PACKED_LARGE: Final = 512  # ... of calls with 8 KB
SCAN_ROWS: Final = 500  # a call
LOAD_ROWS: Final = 100
LOAD_FRAMES: Final = 4
MORE_CALLS: Final = -1  # units of an answer after which the operation has a further call
_WRITES_OF_MIXED: Final = 20  # one call in this number is a write


class Chance(Protocol):
    """The part of ``random.Random`` that workloads need."""

    def randrange(self, stop: int, /) -> int: ...

    def random(self) -> float: ...


class Session(Protocol):
    """The calls of one connection, one after the other."""

    def first(self) -> bytes: ...

    def take_reply(self, reply: bytes) -> tuple[bytes, int]:
        """Return the next frame, and the units of work that ``reply`` stands for.  Raises BadReply.

        0 units mean that the reply is not counted.  MORE_CALLS means that the operation has a further call, so its time
        continues.
        """


Sessions = Callable[[int, Chance, int, Wire], list[Session]]


@dataclass(frozen=True, slots=True)
class Workload:
    name: str  # on the command line
    title: str  # in tables
    unit: str  # the work that is counted per second
    sessions: Sessions  # for a number of connections
    tables: tuple[TableData, ...] = TABLES  # that have to be there
    open_loop: bool = True  # operations that can arrive one by one; not those that occupy a connection for long


class Repeating:
    """A session that goes round a ring of packed calls, beginning at a place of its own."""

    __slots__ = ("_at", "_awaited", "_ring")

    def __init__(self, ring: list[Exchange], at: int) -> None:
        self._ring = ring
        self._at = at % len(ring)
        self._awaited = ring[self._at]

    def first(self) -> bytes:
        return self._awaited.frame

    def take_reply(self, reply: bytes) -> tuple[bytes, int]:
        awaited = self._awaited
        if not reply.startswith(awaited.good, FRAME_HEAD) or len(reply) < awaited.reply_bytes:
            raise BadReply(reply)
        self._at = at = self._at + 1 if self._at + 1 < len(self._ring) else 0
        following = self._awaited = self._ring[at]
        return following.frame, awaited.units


def repeating(
    ring: Callable[[int, Chance], list[CallSpec]], rows: int, rng: Chance, connections: int, wire: Wire
) -> list[Session]:
    """Return sessions that go round one ring of calls, each from a place of its own."""
    packed = [spec.packed(wire) for spec in ring(rows, rng)]
    return [Repeating(packed, number * len(packed) // connections) for number in range(connections)]


class Drawing:
    """A session of gets of whole rows, each drawn evenly from all rows: so it reads a table larger than memory.

    A ring has few different calls, whose rows are soon in every cache.
    """

    __slots__ = ("_awaited", "_keyed", "_rng", "_rows")

    def __init__(self, spec: CallSpec, rows: int, rng: Chance, wire: Wire) -> None:
        self._awaited = spec.packed(wire)
        self._keyed = Keyed(self._awaited.frame, spec.args[1])
        self._rows = rows
        self._rng = rng

    def first(self) -> bytes:
        return self._keyed.frame(dataset.row_key(self._rng.randrange(self._rows)))

    def take_reply(self, reply: bytes) -> tuple[bytes, int]:
        awaited = self._awaited
        if not reply.startswith(awaited.good, FRAME_HEAD) or len(reply) < awaited.reply_bytes:
            raise BadReply(reply)
        return self.first(), awaited.units


class Scanning:
    """A session that opens a scanner over the whole table, reads to the end, closes the scanner, and begins again."""

    __slots__ = ("_awaited", "_close", "_closed", "_list", "_listed", "_open", "_opened", "_scanner", "_wire")

    def __init__(self, table: bytes, wire: Wire = BINARY) -> None:
        scan = idl.hbase.TScan(caching=SCAN_ROWS, cacheBlocks=True)
        self._wire = wire
        self._open = calls.call("scannerOpenWithScan", table, scan, wire=wire)
        self._list, self._close = Numbered(wire, "scannerGetList", SCAN_ROWS), Numbered(wire, "scannerClose")
        self._opened = wire.good_begin("scannerOpenWithScan", calls.I32_SUCCESS)
        self._listed = wire.good_begin("scannerGetList", calls.LIST_SUCCESS)
        self._closed = wire.good_begin("scannerClose", calls.VOID_SUCCESS)
        self._awaited = self._opened
        self._scanner = (b"", b"")  # the calls for its next rows and for its end

    def first(self) -> bytes:
        return self._open

    def take_reply(self, reply: bytes) -> tuple[bytes, int]:
        if self._awaited is self._listed:
            count = self._wire.count_at(reply, self._listed)
            if count:
                return self._scanner[0], count
            self._awaited = self._closed
            return self._scanner[1], 0
        if self._awaited is self._opened:
            scanner = self._wire.id_at(reply, self._opened)
            self._scanner = self._list.frame(scanner), self._close.frame(scanner)
            self._awaited = self._listed
            return self._scanner[0], 0
        if not reply.startswith(self._closed, FRAME_HEAD):
            raise BadReply(reply)
        self._awaited = self._opened
        return self._open, 0


Template = tuple[bytearray, list[int]]  # the frame of a batch, and the offsets of its row keys


def _load_templates(wire: Wire) -> list[Template]:
    found = []
    for number in range(LOAD_FRAMES):
        first = number * LOAD_ROWS
        rows = [(dataset.load_key(row), dataset.wide_cells(row)) for row in range(first, first + LOAD_ROWS)]
        frame = bytearray(calls.call("mutateRows", dataset.LOAD_TABLE, calls.batch(rows), wire=wire))
        found.append((frame, [frame.index(key) for key, _ in rows]))
    return found


class Loading:
    """A session of batches of new rows; the row keys of a packed batch get new numbers at each use."""

    def __init__(self, templates: list[Template], next_row: int, wire: Wire) -> None:
        self._good = wire.good_begin("mutateRows", calls.VOID_SUCCESS)
        self._templates = templates  # shared: written and copied within one step
        self._next = next_row
        self._batch_number = 0

    def first(self) -> bytes:
        frame, places = self._templates[self._batch_number % len(self._templates)]
        self._batch_number += 1
        for number, place in enumerate(places, self._next):
            key = dataset.load_key(number)
            frame[place : place + len(key)] = key
        self._next += LOAD_ROWS
        return bytes(frame)

    def take_reply(self, reply: bytes) -> tuple[bytes, int]:
        if not reply.startswith(self._good, FRAME_HEAD):
            raise BadReply(reply)
        return self.first(), LOAD_ROWS


def packed_calls(rows: int) -> int:
    """Return the number of different calls of a workload over ``rows`` rows."""
    return min(PACKED, CALLS_PER_ROW * rows)


def _keys(rows: int, rng: Chance) -> list[bytes]:
    return [dataset.row_key(rng.randrange(rows)) for _ in range(packed_calls(rows))]


def _get_cell(rows: int, rng: Chance) -> list[CallSpec]:
    arguments = [(SMALL_TABLE, key, dataset.SMALL_COLUMN) for key in _keys(rows, rng)]
    return [CallSpec("get", one, calls.list_of(1), reply_bytes=dataset.SMALL_BYTES) for one in arguments]


def _get_row(rows: int, rng: Chance) -> list[CallSpec]:
    return [_get_of(key) for key in _keys(rows, rng)]


def _get_of(key: bytes) -> CallSpec:
    return CallSpec("getRow", (ROWS_TABLE, key), calls.list_of(1), reply_bytes=dataset.ROW_BYTES - dataset.CELLS)


def _get_any(rows: int, rng: Chance, connections: int, wire: Wire) -> list[Session]:
    spec = _get_of(dataset.row_key(0))
    return [Drawing(spec, rows, rng, wire) for _ in range(connections)]


def _get_columns(rows: int, rng: Chance) -> list[CallSpec]:
    columns = [b"d:c00", b"d:c05", b"d:c13"]
    arguments = [(ROWS_TABLE, key, columns) for key in _keys(rows, rng)]
    return [CallSpec("getRowWithColumns", one, calls.list_of(1), reply_bytes=1_000) for one in arguments]


def _put(rows: int, rng: Chance) -> list[CallSpec]:
    keys = [dataset.row_key(rng.randrange(dataset.PUT_ROWS)) for _ in range(packed_calls(rows))]
    cells = [(dataset.PUT_COLUMN, dataset.text(key, dataset.PUT_BYTES)) for key in keys]
    arguments = [(dataset.WRITES_TABLE, key, calls.puts([cell])) for key, cell in zip(keys, cells, strict=True)]
    return [CallSpec("mutateRow", one, calls.VOID_SUCCESS) for one in arguments]


def _increment(_rows: int, _rng: Chance) -> list[CallSpec]:
    one = (dataset.WRITES_TABLE, dataset.COUNT_ROW, dataset.COUNT_COLUMN, 1)
    return [CallSpec("atomicIncrement", one, calls.I64_SUCCESS)]


def _mixed(rows: int, rng: Chance) -> list[CallSpec]:
    found = _get_row(rows, rng)
    for place in range(0, min(len(found), PACKED_LARGE * _WRITES_OF_MIXED), _WRITES_OF_MIXED):
        number = rng.randrange(rows)
        one = (ROWS_TABLE, dataset.row_key(number), calls.puts(dataset.wide_cells(number)))
        found[place] = CallSpec("mutateRow", one, calls.VOID_SUCCESS)
    return found


def _scan(table: bytes, _rows: int, _rng: Chance, connections: int, wire: Wire) -> list[Session]:
    return [Scanning(table, wire) for _ in range(connections)]


def _load(_rows: int, rng: Chance, connections: int, wire: Wire) -> list[Session]:
    """Return sessions that number their rows from different starts, so that rows are new and not overwritten."""
    templates = _load_templates(wire)
    return [Loading(templates, rng.randrange(9_000) * 1_000_000, wire) for _ in range(connections)]


STANDARD: Final[dict[str, Workload]] = {
    workload.name: workload
    for workload in (
        Workload("get-cell", "get one small cell", "gets", partial(repeating, _get_cell)),
        Workload("get-row", "get a row of 14 cells, 8 KB", "rows", partial(repeating, _get_row)),
        Workload("get-columns", "get 3 cells of such a row", "gets", partial(repeating, _get_columns)),
        Workload("put", "durable put of 100 bytes", "puts", partial(repeating, _put)),
        Workload("increment", "increment one hot cell", "increments", partial(repeating, _increment)),
        Workload("mixed", "95 % reads, 5 % writes of 8 KB rows", "calls", partial(repeating, _mixed)),
        Workload("scan-small", "scan, one small cell a row", "rows", partial(_scan, SMALL_TABLE), open_loop=False),
        Workload("scan-rows", "scan, whole 8 KB rows", "rows", partial(_scan, ROWS_TABLE), open_loop=False),
        Workload("load", "load by batches of 100 rows of 8 KB", "rows", _load, open_loop=False),
    )
}
# "all" leaves these out: they are for a data set larger than memory.
FURTHER: Final[dict[str, Workload]] = {
    "get-any-row": Workload("get-any-row", "get any row of the data set, 8 KB", "rows", _get_any, tables=(TABLES[1],)),
}
