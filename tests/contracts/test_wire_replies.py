"""Hand-packed replies are what thriftpy2 writes from structs: both decode to the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.protocol.cybin import TCyBinaryProtocol
from thriftpy2.transport import TMemoryBuffer
from thriftpy2.transport.memory import TCyMemoryBuffer

from columnar.storage.layout import pack_cell
from columnar.storage.stored_cells import PackedRows, StoredCells, StoredRows
from columnar.wire import idl
from columnar.wire.codec import ServiceCodec, application_error
from columnar.wire.codec_replies import RowList, compact_packed_row, map_rows, packed_row
from columnar.wire.detect import Protocol

CODEC = ServiceCodec(idl.SERVICE)
H = idl.hbase
C = idl.columnar

BYTES = st.binary(max_size=40)
STAMPS = st.integers(-(2**63), 2**63 - 1)
COLUMNS = st.lists(st.tuples(BYTES, BYTES, STAMPS), max_size=5, unique_by=lambda column: column[0])
ROWS = st.lists(st.tuples(BYTES, COLUMNS), max_size=5)


def received(name: str, protocol: Protocol, data: bytes) -> tuple[str, int, int, Any]:
    """(name, kind, seqid, result struct) as a client of thriftpy2 reads it."""
    binary = protocol is Protocol.BINARY
    buffer = TCyMemoryBuffer(data) if binary else TMemoryBuffer(data)
    reader = TCyBinaryProtocol(buffer) if binary else TCompactProtocol(buffer)
    head = reader.read_message_begin()
    result = getattr(idl.SERVICE, name + "_result")()
    result.read(reader)
    assert not buffer.read(1)
    return (*head, result)


def as_structs(result: RowList) -> list[Any]:
    rows = []
    for row, columns in result.rows:
        if result.sorted:
            rows.append(H.TRowResult(row, None, [H.TColumn(name, H.TCell(*cell)) for name, *cell in columns]))
        else:
            rows.append(H.TRowResult(row, {name: H.TCell(*cell) for name, *cell in columns}, None))
    return rows


@pytest.mark.parametrize("protocol", list(Protocol))
@settings(max_examples=80)
@given(ROWS, st.booleans(), st.integers(0, 2**31 - 1))
def test_rows(protocol: Protocol, rows: Any, in_order: bool, seqid: int) -> None:
    result = RowList(rows, in_order)
    data = CODEC.methods["scannerGetList"].reply(protocol, seqid, result)
    name, kind, answered, struct = received("scannerGetList", protocol, data)
    assert (name, kind, answered) == ("scannerGetList", 2, seqid)
    assert struct.success == as_structs(result)


STORED_ROWS = st.lists(
    st.tuples(
        BYTES,
        st.lists(
            st.tuples(
                st.binary(max_size=9),
                st.lists(st.tuples(BYTES, st.binary(max_size=1200), st.integers(0, 2**63 - 1)), max_size=4),
            ),
            max_size=3,
        ),
    ),
    max_size=4,
)


def stored(groups: Any) -> StoredCells:
    packed = [
        (prefix, [(name, pack_cell(stamp, 9, value)) for name, value, stamp in cells]) for prefix, cells in groups
    ]
    return StoredCells(packed, sum(len(cells) for _, cells in packed), 0)


@pytest.mark.parametrize("protocol", list(Protocol))
@settings(max_examples=80)
@given(STORED_ROWS, st.booleans())
def test_cells_as_they_are_stored_make_the_same_bytes(protocol: Protocol, rows: Any, in_order: bool) -> None:
    reply = CODEC.methods["scannerGetList"].reply
    as_stored = [(row, stored(groups)) for row, groups in rows]
    as_lists = [(row, list(cells)) for row, cells in as_stored]
    assert reply(protocol, 1, RowList(as_stored, in_order)) == reply(protocol, 1, RowList(as_lists, in_order))


LONG_BYTES = st.one_of(BYTES, st.sampled_from([b"n" * 255, b"n" * 256, b"n" * 1023, b"n" * 1024, b"n" * 5000]))
BLOCK_CELLS = st.lists(st.tuples(LONG_BYTES, LONG_BYTES, st.integers(0, 2**63 - 1)), min_size=1, max_size=4)
BLOCK_ROWS = st.lists(st.tuples(LONG_BYTES, BLOCK_CELLS), min_size=1, max_size=4)
BLOCKS = st.lists(st.tuples(st.sampled_from([b"f:", b"long:" * 60]), BLOCK_ROWS), max_size=4)


def block_of(prefix: bytes, rows: Any) -> StoredRows:
    block = StoredRows(prefix)
    for row, cells in rows:
        block.keys.append(row)
        for name, value, stamp in cells:
            block.cells += (name, pack_cell(stamp, 9, value))
        block.ends.append(len(block.cells))
    return block


@pytest.mark.parametrize("protocol", list(Protocol))
@settings(max_examples=80)
@given(BLOCKS, STORED_ROWS, st.booleans())
def test_blocks_of_rows_make_the_same_bytes(protocol: Protocol, blocks: Any, rows: Any, in_order: bool) -> None:
    reply = CODEC.methods["scannerGetList"].reply
    between = [(row, stored(groups)) for row, groups in rows]
    mixed: list[Any] = []
    for at, (prefix, block_rows) in enumerate(blocks):
        mixed += [block_of(prefix, block_rows), *between[at : at + 1]]
    each = [row for one in mixed for row in (one.rows() if isinstance(one, StoredRows) else [one])]
    as_lists = [(row, list(cells)) for row, cells in each]
    assert reply(protocol, 1, RowList(mixed, in_order)) == reply(protocol, 1, RowList(as_lists, in_order))
    if protocol is Protocol.BINARY and not in_order:
        packed = RowList([packed_of(one) if isinstance(one, StoredRows) else one for one in mixed])
        assert reply(protocol, 1, packed) == reply(protocol, 1, RowList(as_lists))
        assert packed.size() == RowList(mixed).size() == RowList(as_lists).size()
    pack = packed_row if protocol is Protocol.BINARY else compact_packed_row
    one_by_one = [PackedRows(pack(row, cells, in_order=in_order), 1, 0, row) for row, cells in each]
    assert reply(protocol, 1, RowList(one_by_one, in_order)) == reply(protocol, 1, RowList(as_lists, in_order))


def packed_of(block: StoredRows) -> PackedRows:
    return PackedRows(map_rows(block), len(block.keys), block.cell_count, block.keys[-1])


def test_a_row_of_many_cells_in_a_block() -> None:
    cells = [(b"%05d" % n, b"", n) for n in range(300)]
    block = block_of(b"f:", [(b"r", cells)])
    as_list = [(b"r", [(b"f:" + name, value, stamp) for name, value, stamp in cells])]
    reply = CODEC.methods["scannerGetList"].reply
    for protocol in Protocol:
        assert reply(protocol, 1, RowList([block])) == reply(protocol, 1, RowList(as_list))
    assert reply(Protocol.BINARY, 1, RowList([packed_of(block)])) == reply(Protocol.BINARY, 1, RowList(as_list))


@pytest.mark.parametrize("protocol", list(Protocol))
@settings(max_examples=40)
@given(st.lists(st.tuples(BYTES, STAMPS), max_size=6))
def test_cells(protocol: Protocol, cells: Any) -> None:
    data = CODEC.methods["get"].reply(protocol, 3, cells)
    assert received("get", protocol, data)[3].success == [H.TCell(*cell) for cell in cells]


RESULTS: list[tuple[str, Any]] = [
    ("enableTable", None),
    ("isTableEnabled", True),
    ("isTableEnabled", False),
    ("scannerOpenWithScan", 2**31 - 1),
    ("atomicIncrement", -(2**63)),
    ("getTableNames", [b"a", b"\xff"]),
    ("getTableNamesWithIsTableEnabled", {b"a": True, b"b": False}),
    ("getColumnDescriptors", {b"f:": H.ColumnDescriptor(b"f:", 1, "GZ", True, "ROW", 0, 0, True, 5)}),
    ("getTableRegions", [H.TRegionInfo(b"", b"m", 2**40, b"t,,1", 1, b"host", 9090)]),
    ("getThriftServerType", 1),
    ("getClusterId", "é"),
    ("columnarCheckAndMutate", C.CheckAndMutateResult(True, 5, "a-1-2", [H.TCell(b"12345678", 5)], -1)),
    (
        "columnarStatus",
        C.StatusReport("1", "d", 0.5, [C.TableStatus(b"t", True, 1, 2, {"A": "b"})], 1, 0, 2, {"get": 2**40}),
    ),
]


@pytest.mark.parametrize("protocol", list(Protocol))
@pytest.mark.parametrize(("name", "result"), RESULTS, ids=lambda value: value if isinstance(value, str) else "")
def test_the_other_results(protocol: Protocol, name: str, result: Any) -> None:
    data = CODEC.methods[name].reply(protocol, 1, result)
    struct = received(name, protocol, data)[3]
    assert getattr(struct, "success", None) == result


@pytest.mark.parametrize("protocol", list(Protocol))
def test_declared_errors(protocol: Protocol) -> None:
    method = CODEC.methods["createTable"]
    for name, error in (("io", H.IOError("x", True)), ("ia", H.IllegalArgument("y")), ("exist", H.AlreadyExists("z"))):
        assert method.declares(error)
        struct = received("createTable", protocol, method.declared_error(protocol, 1, error))[3]
        assert getattr(struct, name).message == error.message
    assert not CODEC.methods["getClusterId"].declares(H.IOError("x"))


@pytest.mark.parametrize("protocol", list(Protocol))
def test_application_errors_echo_any_sequence_id(protocol: Protocol) -> None:
    data = application_error(b"frob", protocol, -2, 1, "no")
    binary = protocol is Protocol.BINARY
    reader = TCyBinaryProtocol(TCyMemoryBuffer(data)) if binary else TCompactProtocol(TMemoryBuffer(data))
    name, kind, seqid = reader.read_message_begin()
    assert (name, kind, seqid % 2**32) == ("frob", 3, 2**32 - 2)


@pytest.mark.parametrize(
    ("name", "wrong"), [("get", None), ("getClusterId", None), ("enableTable", 1), ("atomicIncrement", 2**63)]
)
def test_a_handler_that_returns_nonsense_is_found_out(name: str, wrong: Any) -> None:
    with pytest.raises(Exception, match=r".+"):
        CODEC.methods[name].reply(Protocol.BINARY, 1, wrong)


def test_our_interface_file_agrees_with_that_of_happybase() -> None:
    import happybase
    from happybase.connection import Hbase

    assert happybase.__version__
    assert len(idl.hbase.Hbase.thrift_services) == 48
    for name in Hbase.thrift_services:
        for part in ("_args", "_result"):
            assert shape(getattr(Hbase, name + part)) == shape(getattr(idl.SERVICE, name + part)), name


def shape(value: Any) -> Any:
    """A struct as field ids, names and types, whatever its classes are called."""
    if isinstance(value, type):
        fields = value.thrift_spec.items() if hasattr(value, "thrift_spec") else ()
        newer = {"TScan": {10}, "IOError": {2}}.get(value.__name__, set())
        return value.__name__, {fid: shape(field) for fid, field in fields if fid not in newer}
    return tuple(shape(each) for each in value) if isinstance(value, tuple) else value
