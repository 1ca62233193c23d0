"""Calls that no good client makes, against a whole store in a process of its own.

Each gets a declared exception whose message is one short line that begins with HBase's class name; its
connection lives; others are answered meanwhile; nothing is stored; memory stays in bounds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from thriftpy2.thrift import TApplicationException

from columnar.limits import CELL_BYTES, COLUMNS_PER_CALL, FILTER_BYTES, MESSAGE_BYTES, MIB, REPLY_BYTES, ROW_KEY_BYTES
from columnar.wire.idl import columnar, hbase
from tests.support.besieged import LARGE_ROWS, Raw, besieged, furnish
from tests.support.standalone_store import StoreProcess

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks of memory are told by /proc")

GROWTH_BYTES = 6 * MESSAGE_BYTES  # a message of the largest size, decoded, on its way into the engine
MESSAGE_CHARS = 1_000  # of an error
ONE_LINE = re.compile(r"(org\.apache\.hadoop\.hbase\.filter\.)?[A-Z]\w+Exception: [^\n]+")

LONG_KEY = b"k" * (ROW_KEY_BYTES + 1)
LONG_NAME = b"n" * (8 * MIB)
BIG = b"v" * (CELL_BYTES + 1)
IA, IO = "IllegalArgument", "IOError"


def put(column: bytes = b"a:x", value: bytes = b"1") -> list[Any]:
    return [hbase.Mutation(isDelete=False, column=column, value=value)]


def scan(**fields: Any) -> Callable[[Any], Any]:
    return lambda c: c.scannerOpenWithScan(b"t", hbase.TScan(**fields), {})


def filtered(text: bytes) -> Callable[[Any], Any]:
    return scan(filterString=text)


def table(name: bytes, *families: Any) -> Callable[[Any], Any]:
    return lambda c: c.createTable(name, [hbase.ColumnDescriptor(name=one) for one in families or (b"a",)])


def ours(*operations: Any, row: bytes = b"r0", conditions: tuple[Any, ...] = ()) -> Callable[[Any], Any]:
    return lambda c: c.columnarCheckAndMutate(b"t", row, list(conditions), list(operations), {})


def made(attributes: dict[str, str] | None = None, splits: tuple[bytes, ...] = (), **options: Any) -> Any:
    family = columnar.FamilyOptions(**{"name": b"a", **options})
    return lambda c: c.columnarCreateTable(b"new", [family], attributes or {}, list(splits))


Calls = dict[str, tuple[Callable[[Any], Any], str, str]]

ROWS: Calls = {
    "put, key too long": (lambda c: c.mutateRow(b"t", LONG_KEY, put(), {}), IA, "IllegalArgumentException"),
    "get, key too long": (lambda c: c.getRow(b"t", LONG_KEY, {}), IO, "IllegalArgumentException"),
    "batch, one key too long": (
        lambda c: c.mutateRows(
            b"t", [hbase.BatchMutation(row=r, mutations=put()) for r in (b"good", LONG_KEY, b"better")], {}
        ), IA, "IllegalArgumentException"),
    "delete, key too long": (lambda c: c.deleteAllRow(b"t", LONG_KEY, {}), IO, "IllegalArgumentException"),
    "increment, key too long": (
        lambda c: c.atomicIncrement(b"t", LONG_KEY, b"b:n", 1), IA, "IllegalArgumentException"),
    "append, key too long": (
        lambda c: c.append(hbase.TAppend(table=b"t", row=LONG_KEY, columns=[b"a:x"], values=[b"v"])),
        IO, "IllegalArgumentException"),
    "check, key too long": (
        lambda c: c.checkAndPut(b"t", LONG_KEY, b"a:x", b"", put()[0], {}), IA, "IllegalArgumentException"),
    "increment, no row": (lambda c: c.atomicIncrement(b"t", b"", b"b:n", 1), IA, "IllegalArgumentException"),
    "batch, empty row": (
        lambda c: c.mutateRows(b"t", [hbase.BatchMutation(row=b"", mutations=put())], {}),
        IA, "IllegalArgumentException"),
    "ours, empty row": (
        ours(columnar.RowOperation(kind=0, column=b"a:x", value=b"v"), row=b""), IA, "IllegalArgumentException"),
    "ours, key too long": (
        ours(columnar.RowOperation(kind=0, column=b"a:x", value=b"v"), row=LONG_KEY), IA, "IllegalArgumentException"),
}  # fmt: skip

CELLS: Calls = {
    "value too big": (lambda c: c.mutateRow(b"t", b"r0", put(value=BIG), {}), IA, "IllegalArgumentException"),
    "one of a batch too big": (
        lambda c: c.mutateRows(
            b"t", [hbase.BatchMutation(row=b"n%d" % n, mutations=put(value=v)) for n, v in enumerate((b"", BIG))], {}
        ), IA, "IllegalArgumentException"),
    "qualifier too big": (
        lambda c: c.mutateRow(b"t", b"r0", put(b"a:" + BIG), {}), IA, "IllegalArgumentException"),
    "appended too big": (
        lambda c: c.append(hbase.TAppend(table=b"t", row=b"r0", columns=[b"a:x"], values=[BIG[5:]])),
        IO, "DoNotRetryIOException"),
    "checked put too big": (
        lambda c: c.checkAndPut(b"t", b"r0", b"a:x", b"value", put(value=BIG)[0], {}), IA, "IllegalArgumentException"),
    "ours, too big behind a good one": (
        ours(
            columnar.RowOperation(kind=0, column=b"a:y", value=b"v"),
            columnar.RowOperation(kind=0, column=b"a:x", value=BIG),
        ), IO, "DoNotRetryIOException"),
    "many cells, too big together": (
        lambda c: c.mutateRow(b"t", b"r0", [put(b"a:%d" % n, BIG[10:])[0] for n in range(7)], {}),
        IO, "RequestTooBigException"),
    "many rows, too big together": (
        lambda c: c.mutateRows(
            b"t", [hbase.BatchMutation(row=b"n%d" % n, mutations=put(value=BIG[10:])) for n in range(7)], {}
        ), IO, "RequestTooBigException"),
    "more cells than a call may have": (
        lambda c: c.mutateRow(b"t", b"r0", put() * 1_000_001, {}), IO, "RequestTooBigException"),
    "more rows than a call may have": (
        lambda c: c.getRows(b"t", [b"r"] * 1_000_001, {}), IO, "RequestTooBigException"),
    "more columns than a call may have": (
        lambda c: c.getRowWithColumns(b"t", b"r0", [b"a:%d" % n for n in range(COLUMNS_PER_CALL + 1)], {}),
        IO, "RequestTooBigException"),
    "no long": (lambda c: c.atomicIncrement(b"t", b"r0", b"a:x", 1), IO, "DoNotRetryIOException"),
    "a time to live of ten bytes": (
        lambda c: c.mutateRow(b"t", b"r0", put(), {b"_ttl": b"0123456789"}), IA, "IllegalArgumentException"),
}  # fmt: skip

NAMES: Calls = {
    "no such table": (lambda c: c.mutateRow(b"none", b"r", put(), {}), IO, "TableNotFoundException"),
    "a table's name of 8 MiB": (lambda c: c.getRow(LONG_NAME, b"r", {}), IO, "TableNotFoundException"),
    "binary table": (lambda c: c.getRow(b"\x00\xff\n\r", b"r", {}), IO, "TableNotFoundException"),
    "a system's table": (
        lambda c: c.disableTable(b"columnar:dead_letters"), IO, "IllegalArgumentException"),
    "no such family": (lambda c: c.mutateRow(b"t", b"r", put(b"zz:x"), {}), IO, "NoSuchColumnFamilyException"),
    "a family's name of 8 MiB": (
        lambda c: c.mutateRow(b"t", b"r", put(LONG_NAME + b":x"), {}), IO, "NoSuchColumnFamilyException"),
    "a good family, then none": (
        lambda c: c.mutateRow(b"t", b"r0", [*put(b"a:x", b"bad"), *put(b"z:x")], {}),
        IO, "NoSuchColumnFamilyException"),
    "8 MiB without a family": (
        lambda c: c.mutateRow(b"t", b"r", put(b":" + LONG_NAME), {}), IA, "IllegalArgumentException"),
    "no column": (lambda c: c.mutateRow(b"t", b"r", put(b""), {}), IA, "IllegalArgumentException"),
    "lines in a column": (lambda c: c.get(b"t", b"r", b"\n\r\x00", {}), IO, "NoSuchColumnFamilyException"),
    "delete in no family": (lambda c: c.deleteAll(b"t", b"r0", b"zz", {}), IO, "NoSuchColumnFamilyException"),
    "new: empty name": (table(b""), IA, "IllegalArgumentException"),
    "new: bytes as a name": (table(b"\xff\x00\n"), IA, "IllegalArgumentException"),
    "new: a path as a name": (table(b"../../etc/passwd"), IA, "IllegalArgumentException"),
    "new: a name of 8 MiB": (table(LONG_NAME), IA, "IllegalArgumentException"),
    "new: in the system's namespace": (table(b"columnar:mine"), IO, "NamespaceNotFoundException"),
    "new: no family": (lambda c: c.createTable(b"new", []), IO, "DoNotRetryIOException"),
    "new: a nameless family": (table(b"new", b"a", b":"), IA, "IllegalArgumentException"),
    "new: a family that is a path": (table(b"new", b"a/b"), IA, "IllegalArgumentException"),
    "new: a family with a colon": (table(b"new", b"a:b:"), IA, "IllegalArgumentException"),
    "new: a family of 128 bytes": (table(b"new", b"f" * 128), IA, "IllegalArgumentException"),
    "new: a family of 8 MiB": (table(b"new", LONG_NAME), IA, "IllegalArgumentException"),
    "new: a family twice": (table(b"new", b"a", b"b", b"a:"), IA, "IllegalArgumentException"),
    "new: there already": (table(b"t"), "AlreadyExists", "TableExistsException"),
    "ours, new: attribute": (made({"NO_SUCH": "1"}), IA, "IllegalArgumentException"),
    "ours, new: no number": (made({"DELETE_MARKERS": "-1"}), IA, "IllegalArgumentException"),
    "ours, new: versions": (made(maxVersions=-(2**31)), IA, "IllegalArgumentException"),
    "ours, new: time to live": (made(ttlSeconds=-1), IA, "IllegalArgumentException"),
    "ours, new: compression": (made(compression="ZIP"), IA, "IllegalArgumentException"),
    "ours, new: splits alike": (made(splits=(b"m", b"m")), IA, "IllegalArgumentException"),
    "ours, new: an empty split": (made(splits=(b"",)), IA, "IllegalArgumentException"),
    "ours, new: a split too long": (made(splits=(LONG_KEY,)), IA, "IllegalArgumentException"),
}  # fmt: skip

READS: Calls = {
    "negative timestamp of a put": (
        lambda c: c.mutateRowTs(b"t", b"r0", put(), -1, {}), IA, "IllegalArgumentException"),
    "the least timestamp": (
        lambda c: c.mutateRowsTs(b"t", [hbase.BatchMutation(row=b"r", mutations=put())], -(2**63), {}),
        IA, "IllegalArgumentException"),
    "negative timestamp of a delete": (
        lambda c: c.deleteAllTs(b"t", b"r0", b"a:x", -1, {}), IO, "IllegalArgumentException"),
    "negative timestamp of a read": (
        lambda c: c.getRowsTs(b"t", [b"r0"], -1, {}), IO, "IllegalArgumentException"),
    "negative timestamp of a scan": (scan(timestamp=-5), IO, "IllegalArgumentException"),
    "ours, negative timestamp": (
        ours(columnar.RowOperation(kind=1, column=b"a:x", timestamp=-1)), IA, "IllegalArgumentException"),
    "ours, kind": (ours(columnar.RowOperation(kind=99, column=b"a:x")), IA, "IllegalArgumentException"),
    "ours, comparison": (
        ours(
            columnar.RowOperation(kind=1, column=b"a:x"),
            conditions=(columnar.Condition(column=b"a:x", op=77, value=b"v"),),
        ), IA, "IllegalArgumentException"),
    "no versions": (lambda c: c.getVer(b"t", b"r0", b"a:x", -1, {}), IO, "IOException"),
    "scanner that never was": (lambda c: c.scannerGet(2**31 - 1), IA, "IllegalArgumentException"),
    "negative scanner": (lambda c: c.scannerGetList(-1, 1), IA, "IllegalArgumentException"),
    "close of no scanner": (lambda c: c.scannerClose(-(2**31)), IA, "IllegalArgumentException"),
    "scan, start too long": (scan(startRow=LONG_KEY), IO, "IllegalArgumentException"),
    "scan, stop too long": (scan(stopRow=LONG_KEY), IO, "IllegalArgumentException"),
    "scan, prefix too long": (
        lambda c: c.scannerOpenWithPrefix(b"t", LONG_KEY, [], {}), IO, "IllegalArgumentException"),
    "scan, unknown family": (scan(columns=[b"a", b"zz"]), IO, "NoSuchColumnFamilyException"),
    "filter: empty": (filtered(b""), IO, "DoNotRetryIOException"),
    "filter: bytes": (filtered(b"\xff\x00\n'"), IO, "IllegalArgumentException"),
    "filter: open quote": (filtered(b"PrefixFilter('abc"), IO, "IllegalArgumentException"),
    "filter: no such": (filtered(b"DropAllTablesFilter()"), IO, "IllegalArgumentException"),
    "filter: a name of 60 KB": (filtered(b"F" * 60_000 + b"()"), IO, "IllegalArgumentException"),
    "filter: number": (filtered(b"PageFilter(99999999999999999999999)"), IO, "IllegalArgumentException"),
    "filter: nothing to join": (filtered(b"KeyOnlyFilter() AND OR KeyOnlyFilter()"), IO, "IllegalArgumentException"),
    "filter: deep": (filtered(b"(" * 30_000), IO, "IllegalArgumentException"),
    "filter: too long": (filtered(b"(" * (FILTER_BYTES + 1)), IO, "RequestTooBigException"),
    "filter: an expression that explodes": (
        filtered(b"ValueFilter(=,'regexstring:(a+')"), IO, "IllegalArgumentException"),
    "trigger of no module": (
        lambda c: c.columnarTriggerAdd(b'{"name": "x", "table": "t", "function": "os:system", "families": ["a"]}'),
        IO, "DoNotRetryIOException"),
    "trigger of an earlier client": (lambda c: c.columnarTriggerAdd(None), IA, "IllegalArgumentException"),
    "sync of an earlier client": (lambda c: c.columnarTriggerSync(["x"], None), IA, "IllegalArgumentException"),
    "list of an earlier client": (lambda c: c.columnarTriggerList(), IA, "IllegalArgumentException"),
    "trigger without sense": (lambda c: c.columnarTriggerAdd(b'{"name": "x"'), IA, "IllegalArgumentException"),
    "trigger of another type": (lambda c: c.columnarTriggerAdd(b'{"name": 5}'), IA, "IllegalArgumentException"),
    "trigger on no bytes": (
        lambda c: c.columnarTriggerAdd(
            b'{"name": "x", "table": "t", "function": "os:system", "families": ["\\u20ac"]}'
        ), IA, "IllegalArgumentException"),
    "trigger of half a character": (
        lambda c: c.columnarTriggerAdd(
            b'{"name": "x", "table": "\\ud800", "function": "os:system", "families": ["a"]}'
        ), IA, "IllegalArgumentException"),
}  # fmt: skip

ALL: Calls = {**ROWS, **CELLS, **NAMES, **READS}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    with StoreProcess(tmp_path_factory.mktemp("besieged") / "data", is_forked=False) as running:
        furnish(running)
        yield running


@pytest.fixture
def raw(store: StoreProcess) -> Iterator[Raw]:
    opened = Raw(store.port)
    yield opened
    opened.close()


def refused(raw: Raw, call: Callable[[Any], Any]) -> Any:
    """The exception; the connection must live."""
    try:
        answer = call(raw.client)
    except Exception as error:  # noqa: BLE001 - of whatever class: the caller looks
        assert raw.is_alive()
        return error
    return AssertionError(f"it was accepted: {str(answer)[:80]}")


@pytest.mark.parametrize("group", ["ROWS", "CELLS", "NAMES", "READS"])
def test_every_mistake_has_its_declared_exception(store: StoreProcess, raw: Raw, group: str) -> None:
    wrong = []
    with besieged(store, GROWTH_BYTES):
        for name, (call, expected, hbase_class) in globals()[group].items():
            error = refused(raw, call)
            message = getattr(error, "message", str(error))
            text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
            right = type(error).__name__ == expected and text.startswith(f"{hbase_class}: ")
            if not right or not ONE_LINE.fullmatch(text) or len(text) > MESSAGE_CHARS:
                wrong.append(f"{name}: {type(error).__name__} {text[:200]} ({len(text)} characters)")
        assert wrong == []


def test_a_method_that_does_not_exist(store: StoreProcess, raw: Raw) -> None:
    with besieged(store, GROWTH_BYTES):
        protocol = raw.client._iprot
        for name in ("dropEverything", "columnarNoSuch", "x" * 100):
            protocol.write_message_begin(name, 1, 0)
            protocol.write_struct(hbase.TCell(value=b"v", timestamp=5))
            protocol.write_message_end()
            protocol.trans.flush()
            protocol.read_message_begin()
            answer = TApplicationException()
            protocol.read_struct(answer)
            protocol.read_message_end()
            assert (answer.type, answer.message[:22]) == (1, b"Invalid method name: '"), name
            assert raw.is_alive()


def test_huge_counts_of_rows_are_cut(store: StoreProcess, raw: Raw) -> None:
    with besieged(store, GROWTH_BYTES):
        scanner = raw.client.scannerOpen(b"large", b"", [], {})
        first = raw.client.scannerGetList(scanner, 2**31 - 1)
        size = sum(len(row.columns[b"a:x"].value) for row in first)
        assert REPLY_BYTES <= size <= REPLY_BYTES + MIB
        rest = raw.client.scannerGetList(scanner, 2**31 - 1)
        assert len(first) + len(rest) == LARGE_ROWS
        assert raw.client.scannerGetList(scanner, 2**31 - 1) == []
        raw.client.scannerClose(scanner)


def test_the_same_large_row_asked_for_a_thousand_times(store: StoreProcess, raw: Raw) -> None:
    """A reply of 10 GB is refused, not built."""
    with besieged(store, GROWTH_BYTES):
        error = refused(raw, lambda c: c.getRows(b"large", [b"r001"] * 10_000, {}))
        assert type(error).__name__ == "IOError"
        assert error.message.startswith(b"RequestTooBigException: ")


def test_many_small_rows_at_once_let_others_through(store: StoreProcess, raw: Raw) -> None:
    with besieged(store, GROWTH_BYTES):
        assert len(raw.client.getRows(b"t", [b"r0", b"none"] * 20_000, {})) == 20_000


def test_many_long_lists_of_columns_are_not_kept(store: StoreProcess, raw: Raw) -> None:
    """Kept, they would be 192 MiB; one of them is worked on in some 40.  COLUMNAR_HOSTILE_CALLS: how many."""
    with besieged(store, 2 * MESSAGE_BYTES):
        for number in range(int(os.environ.get("COLUMNAR_HOSTILE_CALLS", "16"))):
            columns = [b"a:%d" % number + b"q" * MIB for _ in range(12)]
            assert raw.client.getRowWithColumns(b"t", b"r0", columns, {}) == []


def test_scanners_that_are_never_closed_do_not_fill_the_store(store: StoreProcess, raw: Raw) -> None:
    with besieged(store, GROWTH_BYTES):
        opened, error = [], None
        columns = [b"a:%d" % number + b"q" * MIB for number in range(12)]
        for _ in range(60):
            try:
                opened.append(raw.client.scannerOpenWithScan(b"t", hbase.TScan(columns=columns), {}))
            except hbase.IOError as refusal:
                error = refusal
                break
        assert error is not None
        assert error.message.startswith(b"CallQueueTooBigException: ")
        for scanner in opened:
            raw.client.scannerClose(scanner)
        assert raw.client.scannerOpen(b"t", b"", [], {}) >= 0
