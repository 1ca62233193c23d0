"""Mutations as they come in: the quick way of a usual put, and whatever else a client may send."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from columnar.limits import MUTATIONS_PER_CALL, ROW_OPERATIONS
from columnar.wire import codec_binary, codec_compact, idl
from columnar.wire.codec_binary import Budget, Reader
from columnar.wire.codec_replies import varint
from columnar.wire.codec_structs import binary_field, compact_field
from columnar.wire.definitions import Struct
from columnar.wire.faults import Malformed, Refused, Short
from columnar.wire.sent_puts import SHAPE_BYTES, SHAPED_COLUMNS, Mutation, SentPuts

LIST_OF_MUTATIONS = (15, (12, idl.hbase.Mutation))
COLUMNS = [b"f:%d" % number for number in range(SHAPED_COLUMNS)]
mutations = st.builds(
    Mutation,
    isDelete=st.booleans() | st.none(),
    column=st.binary(max_size=300) | st.none(),
    value=st.binary(max_size=70_000) | st.none(),
    writeToWAL=st.booleans() | st.none(),
)


class Binary:
    """How one protocol sends the list and reads it; damage is done behind the list's head."""

    head = 5

    def sent(self, values: list[Any]) -> bytes:
        return binary_field(1, LIST_OF_MUTATIONS, values)[3:]

    def reader(self, budget: Budget | None = None) -> Reader:
        return codec_binary.reader_of(LIST_OF_MUTATIONS, budget or Budget())

    def read(self, data: bytes, budget: Budget | None = None) -> tuple[list[Any], int]:
        found: tuple[list[Any], int] = self.reader(budget)(data, 0, len(data))
        return found

    def one_by_one(self, data: bytes) -> list[Any]:
        """The same list, each struct by the reader of any struct."""
        count, pos = int.from_bytes(data[1:5], "big"), 5
        return self._structs(codec_binary.fields_reader, data, count, pos)

    def _structs(self, reader_of_fields: Callable[..., Reader], data: bytes, count: int, pos: int) -> list[Any]:
        fields = reader_of_fields(Mutation.thrift_spec, Mutation.default_spec, Budget())
        found = []
        for _ in range(count):
            values, pos = fields(data, pos, len(data))
            found.append(Mutation(*values))
        return found

    def row(self, *values: bytes, columns: Sequence[bytes] = COLUMNS) -> bytes:
        return self.sent([Mutation(False, column, value, True) for column, value in zip(columns, values, strict=True)])

    def reader_of_loads(self) -> Reader:
        """One that has learned the columns."""
        reader = self.reader()
        for _ in range(2):
            row = self.row(b"1", b"22", b"", b"4444")
            found, _ = reader(row, 0, len(row))
            assert isinstance(found, list)
        return reader


class Compact(Binary):
    head = 1

    def sent(self, values: list[Any]) -> bytes:
        return compact_field(1, LIST_OF_MUTATIONS, values)[1:]

    def reader(self, budget: Budget | None = None) -> Reader:
        return codec_compact.reader_of(LIST_OF_MUTATIONS, budget or Budget())

    def one_by_one(self, data: bytes) -> list[Any]:
        _, count, pos = codec_compact.list_head(data, 0, len(data))
        return self._structs(codec_compact.fields_reader, data, count, pos)


both = pytest.mark.parametrize("wire", [Binary(), Compact()], ids=["binary", "compact"])


def test_the_class_is_what_the_idl_says() -> None:
    assert idl.hbase.Mutation is Mutation
    assert {name for name in vars(Struct) if not name.startswith("__")} <= set(dir(Mutation))
    assert Mutation() == Mutation(False, None, None, True) != Mutation(True)
    assert repr(Mutation(False, b"f:q", b"v")) == "Mutation(False, b'f:q', b'v', True)"


@both
@given(st.lists(mutations, max_size=4))
def test_what_was_sent_is_read(wire: Binary, values: list[Mutation]) -> None:
    data = wire.sent(values)
    defaults = dict(Mutation.default_spec)
    wanted = [
        Mutation(*(defaults[name] if (held := getattr(one, name)) is None else held for name in defaults))
        for one in values
    ]
    assert wire.read(data) == (wanted, len(data))
    assert wire.one_by_one(data) == wanted


@both
@given(st.lists(mutations, min_size=1, max_size=2), st.data())
def test_bytes_that_changed_are_read_the_same_in_both_ways(
    wire: Binary, values: list[Mutation], data: st.DataObject
) -> None:
    raw = bytearray(wire.sent(values))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(wire.head, len(raw) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(raw)
    try:
        wanted = wire.one_by_one(damaged)
    except (Malformed, Short, Refused) as refusal:
        with pytest.raises(type(refusal)):
            wire.read(damaged)
    else:
        assert wire.read(damaged)[0] == wanted


# --- rows of a bulk load: the same columns again and again ------------------------------------------


@both
def test_the_third_row_of_the_same_columns_is_read_by_its_shape(wire: Binary) -> None:
    reader = wire.reader_of_loads()
    row = b"before" + wire.row(b"a" * 300, b"", b"\x00", b"b" * 70_000) + b"after"
    found, pos = reader(row, 6, len(row) - 5)
    assert isinstance(found, SentPuts)
    assert pos == len(row) - 5
    assert found.columns == tuple(COLUMNS)
    assert found.values == [b"a" * 300, b"", b"\x00", b"b" * 70_000]
    assert found == wire.one_by_one(row[6:])
    assert list(found) == wire.one_by_one(row[6:])
    assert (len(found), repr(found)) == (4, repr(wire.one_by_one(row[6:])))
    assert found != wire.one_by_one(wire.row(b"a", b"", b"", b""))


@both
def test_other_columns_are_another_shape(wire: Binary) -> None:
    reader, others = wire.reader_of_loads(), [b"g:%d" % number for number in range(SHAPED_COLUMNS + 1)]
    for number, kind in enumerate((list, list, SentPuts, SentPuts)):
        row = wire.row(*[b"%d" % number] * len(others), columns=others)
        found, _ = reader(row, 0, len(row))
        assert isinstance(found, kind)
        assert found == wire.one_by_one(row)
    row = wire.row(b"1", b"2", b"3", b"4")
    assert isinstance(reader(row, 0, len(row))[0], list)


@both
@pytest.mark.parametrize("odd", [Mutation(True, b"f:1", None, True), Mutation(False, b"f:1", b"v", False)])
def test_a_row_with_anything_but_a_logged_put_has_no_shape(wire: Binary, odd: Mutation) -> None:
    reader = wire.reader()
    wanted = [Mutation(False, column, b"v", True) for column in COLUMNS]
    wanted[1] = odd
    for _ in range(4):
        found, _ = reader(wire.sent(wanted), 0, len(wire.sent(wanted)))
        assert isinstance(found, list)
        assert found == wanted or (odd.isDelete and found == wire.one_by_one(wire.sent(wanted)))


@both
def test_long_columns_are_not_remembered(wire: Binary) -> None:
    for more, kind in ((0, SentPuts), (1, list)):
        each = SHAPE_BYTES // SHAPED_COLUMNS
        columns = [b"f:%d" % number + b"q" * (each - 3 + more) for number in range(SHAPED_COLUMNS)]
        reader, row = wire.reader(), wire.row(b"1", b"2", b"3", b"4", columns=columns)
        for _ in range(3):
            found, _ = reader(row, 0, len(row))
        assert isinstance(found, kind)
        assert found == wire.one_by_one(row)


@both
def test_rows_of_few_columns_have_no_shape(wire: Binary) -> None:
    reader = wire.reader()
    row = wire.row(b"1", b"2", b"3", columns=COLUMNS[:-1])
    assert {type(reader(row, 0, len(row))[0]) for _ in range(4)} == {list}


rows_sent = st.lists(st.tuples(st.sampled_from(COLUMNS), st.binary(max_size=20)), min_size=3, max_size=5)


@both
@given(st.lists(rows_sent, max_size=8), st.data())
def test_rows_after_one_another_are_read_as_if_each_came_alone(
    wire: Binary, rows: list[Any], data: st.DataObject
) -> None:
    reader = wire.reader_of_loads()
    for row in rows:
        if data.draw(st.booleans()):
            row = [(column, value) for column, (_, value) in zip(COLUMNS, row, strict=False)]
        message = wire.sent([Mutation(False, column, value, True) for column, value in row])
        found, pos = reader(message, 0, len(message))
        assert found == wire.one_by_one(message)
        assert pos == len(message)


@both
@given(st.data())
def test_a_damaged_row_of_a_load_is_read_the_same_in_both_ways(wire: Binary, data: st.DataObject) -> None:
    reader = wire.reader_of_loads()
    values = data.draw(st.lists(st.binary(max_size=9), min_size=SHAPED_COLUMNS, max_size=SHAPED_COLUMNS))
    raw = bytearray(wire.row(*values))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(wire.head, len(raw) - 1))] = data.draw(st.sampled_from([0, 1, 2, 255]))
    damaged = bytes(raw)
    try:
        wanted = wire.one_by_one(damaged)
    except (Malformed, Short, Refused) as refusal:
        with pytest.raises(type(refusal)):
            reader(damaged, 0, len(damaged))
    else:
        assert reader(damaged, 0, len(damaged))[0] == wanted


@both
def test_a_row_of_a_load_that_is_cut_off_anywhere_is_short(wire: Binary) -> None:
    reader, row = wire.reader_of_loads(), wire.row(b"1", b"22", b"", b"4444")
    for length in range(wire.head, len(row)):
        with pytest.raises(Short):
            reader(row[:length], 0, length)
        with pytest.raises(Short):
            reader(row + row, 0, length)  # more is there, but not of this message


@both
def test_a_put_that_is_cut_off_anywhere_is_short(wire: Binary) -> None:
    data = wire.sent([Mutation(False, b"f:q", b"value", True), Mutation(True, b"f:q", None, True)])
    for length in range(wire.head, len(data)):
        with pytest.raises(Short):
            wire.read(data[:length])
    for length in range(wire.head, len(data)):  # more is there, but not of this message
        with pytest.raises(Short):
            wire.reader()(data + data, 0, length)


@both
def test_the_count_is_bounded_and_not_believed(wire: Binary) -> None:
    many = b"\x0c" + (1 << 30).to_bytes(4, "big") if type(wire) is Binary else b"\xfc" + varint(1 << 30)
    with pytest.raises(Short):
        wire.read(many + bytes(10))
    budget = Budget()
    budget.left = 1
    with pytest.raises(Refused):
        wire.read(wire.sent([Mutation(False, b"f:q", b"", True)] * 2), budget)
    assert MUTATIONS_PER_CALL > 1


def test_both_protocols_give_the_same() -> None:
    values = [
        Mutation(*each)
        for each in itertools.product((True, False), (b"f:q", b"f:" + b"q" * 300), (b"v",), (True, False))
    ]
    compact = compact_field(1, LIST_OF_MUTATIONS, values)[1:]
    found, pos = codec_compact.reader_of(LIST_OF_MUTATIONS, Budget())(compact, 0, len(compact))
    assert pos == len(compact)
    assert found == Binary().read(Binary().sent(values))[0] == values


def test_more_than_one_row_may_have_are_refused_before_they_are_read() -> None:
    """A million empty ones are a megabyte here, and were a second of the loop."""
    over = ROW_OPERATIONS + 1
    binary = struct.pack(">BI", 12, over) + bytes(over)
    compact = b"\xfc" + varint(over) + bytes(over)
    for reader, data in (
        (codec_binary.reader_of(LIST_OF_MUTATIONS, Budget()), binary),
        (codec_compact.reader_of(LIST_OF_MUTATIONS, Budget()), compact),
    ):
        with pytest.raises(Refused) as told:
            reader(data, 0, len(data))
        assert f"{over} operations on one row as one step" in told.value.error.text
