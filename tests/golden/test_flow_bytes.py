"""Bytes of followers: positions that readers keep, and the record of numbers."""

from __future__ import annotations

import pytest

from columnar.errors import DamagedData
from columnar.flows import position
from columnar.flows.position import Position, Range
from columnar.model.derivations import Numbers, numbers_from_json, numbers_to_json
from columnar.regions.log.change_log import begin_log
from columnar.regions.log.change_record import Sequence
from columnar.storage.memory import MemoryEngine

HELD = Position(
    (Range(b"", Sequence(7, 2, 300), None), Range(b"m", None, b"m"), Range(b"t", Sequence(9, 1, 5), b"u\xff"))
)
PACKED = bytes.fromhex(
    "93" "01" "a57061676573"  # 1, "pages"
    "93"
    "93" "c400" "93" "07" "02" "cd012c" "c0"  # b"", [7, 2, 300], nil
    "93" "c4016d" "c0" "c4016d"  # b"m", nil, b"m"
    "93" "c40174" "93" "09" "01" "05" "c40275ff"  # b"t", [9, 1, 5], b"u\xff"
)  # fmt: skip


def test_position() -> None:
    assert position.pack(HELD, "pages") == PACKED
    assert position.unpack(PACKED) == (HELD, "pages")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93\x02\xa1t\x91\x93\xc4\x00\xc0\xc0",  # version 2
        b"\x93\x01\xa1t\x90",  # no range
        b"\x93\x01\xa1t\x91\x93\xc4\x01m\xc0\xc0",  # a hole at the beginning
        b"\x93\x01\xa1t\x92\x93\xc4\x00\xc0\xc0\x93\xc4\x00\xc0\xc0",  # two ranges of one start
        b"\x93\x01\x05\x91\x93\xc4\x00\xc0\xc0",  # the table is a number
        b"\x93\x01\xa1t\x91\x93\xc4\x00\x91\x01\xc0",  # a sequence of one number
        b"\x93\x01\xa1t\x91\x93\xc4\x00\x93\x01\xff\x01\xc0",  # a negative number
        PACKED[:-1],
        b"\xff" * 9,
    ],
)
def test_damaged_positions_are_reported(data: bytes) -> None:
    with pytest.raises(DamagedData, match="position"):
        position.unpack(data)


def test_numbers() -> None:
    data = b'{"given": 9, "removed": [[1, 3], [5, 5]]}'
    assert numbers_to_json(Numbers(9, ((1, 3), (5, 5)))) == data
    assert numbers_from_json(data) == Numbers(9, ((1, 3), (5, 5)))


def test_the_number_beside_a_cursor() -> None:
    store = MemoryEngine().open_store("r", frozenset({"meta", "log"}))
    begin_log(store, 7).cursors.begin_cursor("stream:audit", b"state", 258)
    held = dict(store.scan("meta", b"", None))
    assert held[b"cursor/stream:audit"] == b"state"
    assert held[b"number/stream:audit"] == bytes.fromhex("0000000000000102")
