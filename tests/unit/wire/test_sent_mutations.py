"""Mutations as they come in: the quick way of a usual put, and whatever else a client may send."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from columnar.limits import MUTATIONS_PER_CALL
from columnar.wire import codec_compact, idl
from columnar.wire.codec_binary import Budget, fields_reader, reader_of
from columnar.wire.codec_structs import binary_field, compact_field
from columnar.wire.definitions import Struct
from columnar.wire.faults import Malformed, Refused, Short
from columnar.wire.mutation_struct import Mutation

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
