"""Chunks: rows that can be read back, and the bytes of any range from the right slices."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wikka_port.files import chunks
from wikka_port.files.chunks import CHUNK_BYTES, Chunker, ChunkSlice, slices

PLACE = b"0123456789abcdef"


def test_the_bytes_of_a_row() -> None:
    assert chunks.chunk_row(PLACE, 2) == b"0123456789abcdef000002"
    assert chunks.parse_chunk_row(b"0123456789abcdef000002") == (PLACE, 2)
    rows = [chunks.chunk_row(PLACE, number) for number in (0, 1, 9, 10, 99_999, chunks.CHUNKS_MAX - 1)]
    assert rows == sorted(rows)
    assert all(PLACE <= row < chunks.chunks_end(PLACE) for row in rows)


@pytest.mark.parametrize("row", [b"", PLACE, PLACE + b"00002", PLACE + b"00000x", b"X" + PLACE[1:] + b"000002"])
def test_other_rows_are_refused(row: bytes) -> None:
    with pytest.raises(ValueError, match="no row of a chunk"):
        chunks.parse_chunk_row(row)


def test_slices_of_ranges_at_the_borders_of_chunks() -> None:
    one = CHUNK_BYTES
    assert list(slices(0, 0)) == []
    assert list(slices(0, one)) == [ChunkSlice(0, 0, one)]
    assert list(slices(one - 1, one + 1)) == [ChunkSlice(0, one - 1, one), ChunkSlice(1, 0, 1)]
    assert list(slices(5, 2 * one + 3)) == [ChunkSlice(0, 5, one), ChunkSlice(1, 0, one), ChunkSlice(2, 0, 3)]
    assert [piece.is_whole for piece in slices(5, 2 * one + 3)] == [False, True, False]
    assert [chunks.chunk_count(size) for size in (0, 1, one, one + 1)] == [0, 1, 1, 2]


@settings(max_examples=50)
@given(st.integers(0, 5 * CHUNK_BYTES), st.integers(0, 5 * CHUNK_BYTES))
def test_slices_cover_a_range_once_and_in_order(start: int, stop: int) -> None:
    found = list(slices(start, stop))
    covered = [
        (one.number * CHUNK_BYTES + one.start, one.number * CHUNK_BYTES + one.stop) for one in slices(start, stop)
    ]
    assert sum(end - begin for begin, end in covered) == max(0, stop - start)
    assert all(before[1] == after[0] for before, after in pairwise(covered))
    assert all(0 <= one.start < one.stop <= CHUNK_BYTES for one in found)


def test_a_stream_of_any_pieces_is_cut_the_same() -> None:
    rng = random.Random(3911)
    content = rng.randbytes(2 * CHUNK_BYTES + 77)
    expected = [(number, content[number * CHUNK_BYTES :][:CHUNK_BYTES]) for number in range(3)]
    for most in (1_000_000, 3 * CHUNK_BYTES, 65_536):
        chunker, found, rest = Chunker(), [], content
        while rest:
            size = rng.randint(1, most)
            found += list(chunker.feed(rest[:size]))
            rest = rest[size:]
        assert found + list(chunker.finish()) == expected


def test_a_resumed_stream_goes_on_with_the_next_number_and_ends_without_an_empty_chunk() -> None:
    chunker = Chunker(next_number=4)
    assert [number for number, _ in chunker.feed(bytes(CHUNK_BYTES))] == [4]
    assert list(chunker.finish()) == []
    assert chunker.next_number == 5
