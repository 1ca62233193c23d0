"""Mutations as they come in: the quick way of a usual put, and whatever else a client may send."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from columnar.limits import MUTATIONS_PER_CALL, ROW_OPERATIONS
from columnar.wire import codec_compact, idl
from columnar.wire.codec_binary import Budget, Reader, fields_reader, reader_of
from columnar.wire.codec_replies import varint
from columnar.wire.codec_structs import binary_field, compact_field
from columnar.wire.definitions import Struct
from columnar.wire.faults import Malformed, Refused, Short
from columnar.wire.mutation_struct import Mutation
from columnar.wire.sent_puts import SHAPE_BYTES, SHAPED_COLUMNS, SentPuts

LIST_OF_MUTATIONS = (15, (12, idl.hbase.Mutation))
mutations = st.builds(
    Mutation,
    isDelete=st.booleans() | st.none(),
    column=st.binary(max_size=300) | st.none(),
    value=st.binary(max_size=70_000) | st.none(),
    writeToWAL=st.booleans() | st.none(),
)


def sent(values: list[Any]) -> bytes:
    return binary_field(1, LIST_OF_MUTATIONS, values)[3:]


def read(data: bytes, budget: Budget | None = None) -> tuple[list[Any], int]:
    found: tuple[list[Any], int] = reader_of(LIST_OF_MUTATIONS, budget or Budget())(data, 0, len(data))
    return found


def one_by_one(data: bytes) -> list[Any]:
    """The same list, each struct by the reader of any struct."""
    fields = fields_reader(Mutation.thrift_spec, Mutation.default_spec, Budget())
    pos, found = 5, []
    for _ in range(int.from_bytes(data[1:5], "big")):
        values, pos = fields(data, pos, len(data))
        found.append(Mutation(*values))
    return found


def test_the_class_is_what_the_idl_says() -> None:
    assert idl.hbase.Mutation is Mutation
    assert {name for name in vars(Struct) if not name.startswith("__")} <= set(dir(Mutation))
    assert Mutation() == Mutation(False, None, None, True) != Mutation(True)
    assert repr(Mutation(False, b"f:q", b"v")) == "Mutation(False, b'f:q', b'v', True)"


@given(st.lists(mutations, max_size=4))
def test_what_was_sent_is_read(values: list[Mutation]) -> None:
    data = sent(values)
    defaults = dict(Mutation.default_spec)
    wanted = [
        Mutation(*(defaults[name] if (held := getattr(one, name)) is None else held for name in defaults))
        for one in values
    ]
    assert read(data) == (wanted, len(data))
    assert one_by_one(data) == wanted


@given(st.lists(mutations, min_size=1, max_size=2), st.data())
def test_bytes_that_changed_are_read_the_same_in_both_ways(values: list[Mutation], data: st.DataObject) -> None:
    raw = bytearray(sent(values))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(5, len(raw) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(raw)
    try:
        wanted = one_by_one(damaged)
    except (Malformed, Short, Refused) as refusal:
        with pytest.raises(type(refusal)):
            read(damaged)
    else:
        assert read(damaged)[0] == wanted


# --- rows of a bulk load: the same columns again and again ------------------------------------------

COLUMNS = [b"f:%d" % number for number in range(SHAPED_COLUMNS)]


def loaded(*values: bytes, columns: list[bytes] = COLUMNS) -> bytes:
    return sent([Mutation(False, column, value, True) for column, value in zip(columns, values, strict=True)])


def reader_of_loads() -> Reader:
    """One that has learned the columns."""
    reader = reader_of(LIST_OF_MUTATIONS, Budget())
    for _ in range(2):
        row = loaded(b"1", b"22", b"", b"4444")
        found, _ = reader(row, 0, len(row))
        assert isinstance(found, list)
    return reader


def test_the_third_row_of_the_same_columns_is_read_by_its_shape() -> None:
    reader = reader_of_loads()
    row = b"before" + loaded(b"a" * 300, b"", b"\x00", b"b" * 70_000) + b"after"
    found, pos = reader(row, 6, len(row) - 5)
    assert isinstance(found, SentPuts)
    assert pos == len(row) - 5
    assert found.columns == tuple(COLUMNS)
    assert found.values == [b"a" * 300, b"", b"\x00", b"b" * 70_000]
    assert found == one_by_one(row[6:])
    assert list(found) == one_by_one(row[6:])
    assert (len(found), repr(found)) == (4, repr(one_by_one(row[6:])))
    assert found != one_by_one(loaded(b"a", b"", b"", b""))


def test_other_columns_are_another_shape() -> None:
    reader, others = reader_of_loads(), [b"g:%d" % number for number in range(SHAPED_COLUMNS + 1)]
    for number, kind in enumerate((list, list, SentPuts, SentPuts)):
        row = loaded(*[b"%d" % number] * len(others), columns=others)
        found, _ = reader(row, 0, len(row))
        assert isinstance(found, kind)
        assert found == one_by_one(row)
    row = loaded(b"1", b"2", b"3", b"4")
    assert isinstance(reader(row, 0, len(row))[0], list)


@pytest.mark.parametrize("odd", [Mutation(True, b"f:1", None, True), Mutation(False, b"f:1", b"v", False)])
def test_a_row_with_anything_but_a_logged_put_has_no_shape(odd: Mutation) -> None:
    reader = reader_of(LIST_OF_MUTATIONS, Budget())
    wanted = [Mutation(False, column, b"v", True) for column in COLUMNS]
    wanted[1] = odd
    for _ in range(4):
        found, _ = reader(sent(wanted), 0, len(sent(wanted)))
        assert isinstance(found, list)
        assert found == wanted or (odd.isDelete and found == one_by_one(sent(wanted)))


def test_long_columns_are_not_remembered() -> None:
    for more, kind in ((0, SentPuts), (1, list)):
        each = SHAPE_BYTES // SHAPED_COLUMNS
        columns = [b"f:%d" % number + b"q" * (each - 3 + more) for number in range(SHAPED_COLUMNS)]
        reader, row = reader_of(LIST_OF_MUTATIONS, Budget()), loaded(b"1", b"2", b"3", b"4", columns=columns)
        for _ in range(3):
            found, _ = reader(row, 0, len(row))
        assert isinstance(found, kind)
        assert found == one_by_one(row)


def test_rows_of_few_columns_have_no_shape() -> None:
    reader = reader_of(LIST_OF_MUTATIONS, Budget())
    row = loaded(b"1", b"2", b"3", columns=COLUMNS[:-1])
    assert {type(reader(row, 0, len(row))[0]) for _ in range(4)} == {list}


rows_sent = st.lists(st.tuples(st.sampled_from(COLUMNS), st.binary(max_size=20)), min_size=3, max_size=5)


@given(st.lists(rows_sent, max_size=8), st.data())
def test_rows_after_one_another_are_read_as_if_each_came_alone(rows: list[Any], data: st.DataObject) -> None:
    reader = reader_of_loads()
    for row in rows:
        if data.draw(st.booleans()):
            row = [(column, value) for column, (_, value) in zip(COLUMNS, row, strict=False)]
        message = sent([Mutation(False, column, value, True) for column, value in row])
        found, pos = reader(message, 0, len(message))
        assert found == one_by_one(message)
        assert pos == len(message)


@given(st.data())
def test_a_damaged_row_of_a_load_is_read_the_same_in_both_ways(data: st.DataObject) -> None:
    reader = reader_of_loads()
    values = data.draw(st.lists(st.binary(max_size=9), min_size=SHAPED_COLUMNS, max_size=SHAPED_COLUMNS))
    raw = bytearray(loaded(*values))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(5, len(raw) - 1))] = data.draw(st.sampled_from([0, 1, 2, 255]))
    damaged = bytes(raw)
    try:
        wanted = one_by_one(damaged)
    except (Malformed, Short, Refused) as refusal:
        with pytest.raises(type(refusal)):
            reader(damaged, 0, len(damaged))
    else:
        assert reader(damaged, 0, len(damaged))[0] == wanted


def test_a_row_of_a_load_that_is_cut_off_anywhere_is_short() -> None:
    reader, row = reader_of_loads(), loaded(b"1", b"22", b"", b"4444")
    for length in range(5, len(row)):
        with pytest.raises(Short):
            reader(row[:length], 0, length)
        with pytest.raises(Short):
            reader(row + row, 0, length)  # more is there, but not of this message


def test_a_put_that_is_cut_off_anywhere_is_short() -> None:
    data = sent([Mutation(False, b"f:q", b"value", True), Mutation(True, b"f:q", None, True)])
    for length in range(5, len(data)):
        with pytest.raises(Short):
            read(data[:length])
    for length in range(5, len(data)):  # more is there, but not of this message
        with pytest.raises(Short):
            reader_of(LIST_OF_MUTATIONS, Budget())(data + data, 0, length)


def test_the_count_is_bounded_and_not_believed() -> None:
    with pytest.raises(Short):
        read(b"\x0c" + (1 << 30).to_bytes(4, "big") + bytes(10))
    budget = Budget()
    budget.left = 1
    with pytest.raises(Refused):
        read(sent([Mutation(False, b"f:q", b"", True)] * 2), budget)
    assert MUTATIONS_PER_CALL > 1


def test_both_protocols_give_the_same() -> None:
    values = [
        Mutation(*each)
        for each in itertools.product((True, False), (b"f:q", b"f:" + b"q" * 300), (b"v",), (True, False))
    ]
    compact = compact_field(1, LIST_OF_MUTATIONS, values)[1:]
    found, pos = codec_compact.reader_of(LIST_OF_MUTATIONS, Budget())(compact, 0, len(compact))
    assert pos == len(compact)
    assert found == read(sent(values))[0] == values


def test_more_than_one_row_may_have_are_refused_before_they_are_read() -> None:
    """A million empty ones are a megabyte here, and were a second of the loop."""
    over = ROW_OPERATIONS + 1
    binary = struct.pack(">BI", 12, over) + bytes(over)
    compact = b"\xfc" + varint(over) + bytes(over)
    for reader, data in (
        (reader_of(LIST_OF_MUTATIONS, Budget()), binary),
        (codec_compact.reader_of(LIST_OF_MUTATIONS, Budget()), compact),
    ):
        with pytest.raises(Refused) as told:
            reader(data, 0, len(data))
        assert f"{over} operations on one row as one step" in told.value.error.text
