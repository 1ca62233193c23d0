"""Record batches: bytes that Kafka's clients make and read, and bytes that no store may keep."""

from __future__ import annotations

import pytest
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from columnar.errors import DamagedData
from columnar.model.record_batch import (
    BatchFault,
    BatchHead,
    ProducerMark,
    Record,
    checked_heads,
    pack_batch,
    placed,
    read_head,
    records_of,
)

# Made by kafka-python 2.2.15 of RECORDS, with producer 7, epoch 0, sequence 3; docs/formats/topics.md explains it.
GOLDEN = bytes.fromhex(
    "00000000000000000000004c0000000002547d055000000000000100000000000003e800000000000003ed0000000000000007000000000003"
    "0000000226000000026b0a76616c75650402680278026e010c000a02010100"
)
RECORDS = [Record(0, 1000, b"k", b"value", (("h", b"x"), ("n", None))), Record(1, 1005, None, None)]


def head_of(data: bytes) -> BatchHead:
    heads = checked_heads(data)
    assert isinstance(heads, list), heads
    assert len(heads) == 1
    return heads[0]


def sealed(data: bytearray) -> bytes:
    """Return the batch with the checksum that it should have."""
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def test_a_batch_has_the_bytes_of_kafkas_clients() -> None:
    assert pack_batch(RECORDS, ProducerMark(7, 0, 3)) == GOLDEN
    head = head_of(GOLDEN)
    assert (head.records, head.base_timestamp_ms, head.max_timestamp_ms) == (2, 1000, 1005)
    assert (head.producer, head.epoch, head.base_sequence) == (7, 0, 3)
    assert list(records_of(GOLDEN, head)) == RECORDS


def test_a_placed_batch_has_other_offsets_and_the_same_checksum() -> None:
    data = placed(GOLDEN, head_of(GOLDEN), 41)
    head = head_of(data)
    assert (head.base_offset, head.next_offset) == (41, 43)
    assert [record.offset for record in records_of(data, head)] == [41, 42]
    assert data[12:] == GOLDEN[12:]


def test_each_changed_byte_behind_the_checksum_is_noticed() -> None:
    for at in range(21, len(GOLDEN)):
        broken = bytearray(GOLDEN)
        broken[at] ^= 1
        assert isinstance(checked_heads(bytes(broken)), BatchFault), at


def test_cut_bytes_are_no_batch() -> None:
    for size in range(len(GOLDEN)):
        assert isinstance(checked_heads(GOLDEN[:size]), BatchFault), size
        assert isinstance(checked_heads(GOLDEN + GOLDEN[:size]), list) == (size == 0), size


def test_what_no_producer_makes_is_refused() -> None:
    changes = {
        "older format": (16, b"\x01", BatchFault.OLD),
        "newer format": (16, b"\x03", BatchFault.WRONG),
        "transactional": (21, b"\x00\x10", BatchFault.WRONG),
        "control": (21, b"\x00\x20", BatchFault.WRONG),
        "time of the log": (21, b"\x00\x08", BatchFault.WRONG),
        "fewer offsets than records": (23, b"\x00\x00\x00\x00", BatchFault.WRONG),
        "no epoch": (51, b"\xff\xff", BatchFault.WRONG),
        "no sequence": (53, b"\xff\xff\xff\xff", BatchFault.WRONG),
        "negative length": (8, b"\xff\xff\xff\xff", BatchFault.WRONG),
        "length above what is there": (8, b"\x7f\xff\xff\xff", BatchFault.SHORT),
    }
    for name, (at, new, fault) in changes.items():
        broken = bytearray(GOLDEN)
        broken[at : at + len(new)] = new
        assert checked_heads(sealed(broken)) is fault, name


def test_records_that_reach_beyond_their_batch_are_damaged() -> None:
    broken = bytearray(GOLDEN)
    broken[61] = 0x7E  # the size of the first record
    data = sealed(broken)
    with pytest.raises(DamagedData, match="behind its batch"):
        list(records_of(data, head_of(data)))
    endless = bytearray(GOLDEN)
    endless[61:72] = b"\xff" * 11
    data = sealed(endless)
    with pytest.raises(DamagedData, match="ten bytes"):
        list(records_of(data, head_of(data)))


_BYTES = st.none() | st.binary(max_size=200)
_HEADERS = st.lists(st.tuples(st.text(max_size=5), _BYTES), max_size=3).map(tuple)
_TIMES = st.integers(min_value=0, max_value=1 << 45)


@given(st.lists(st.tuples(_TIMES, _BYTES, _BYTES, _HEADERS), min_size=1, max_size=20))
def test_records_come_back_as_they_were(given_records: list[tuple[int, bytes | None, bytes | None, object]]) -> None:
    records = [Record(n, *one) for n, one in enumerate(given_records)]  # type: ignore[arg-type]
    data = pack_batch(records)
    assert list(records_of(data, head_of(data))) == records


@given(st.binary(max_size=120))
def test_any_bytes_are_a_head_or_a_fault(data: bytes) -> None:
    for candidate in (data, GOLDEN[:12] + data, GOLDEN[:40] + data):
        found = read_head(candidate)
        if isinstance(found, BatchHead):
            try:
                list(records_of(candidate, found._replace(records=min(found.records, 100))))
            except DamagedData:
                continue
