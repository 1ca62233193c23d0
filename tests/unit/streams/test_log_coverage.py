"""From which sequence on a log has every change of its rows: bytes, trims, and what survives a merge."""

from __future__ import annotations

import pytest

from columnar.errors import DamagedData
from columnar.regions.log.change_record import Sequence
from columnar.regions.log.log_coverage import (
    MOST_SEGMENTS,
    LogCoverage,
    Segment,
    clipped,
    pack_segments,
    unpack_segments,
)
from columnar.storage.memory import MemoryEngine
from tests.support.golden import hold_to

A, B = Sequence(3, 1, 7), Sequence(4, 2, 1 << 40)
SEGMENTS = (Segment(b"", A), Segment(b"m\x00", B), Segment(b"t", A))


def test_bytes() -> None:
    hold_to("log-coverage.txt", {"three": pack_segments(SEGMENTS), "one": pack_segments(SEGMENTS[:1])})
    assert unpack_segments(pack_segments(SEGMENTS)) == SEGMENTS


@pytest.mark.parametrize("data", [b"", b"\x00\x00", pack_segments(SEGMENTS)[:-1], pack_segments(SEGMENTS) + b"x"])
def test_other_bytes_are_an_error(data: bytes) -> None:
    with pytest.raises(DamagedData):
        unpack_segments(data)


def test_neighbours_after_the_same_sequence_are_one_segment() -> None:
    assert unpack_segments(pack_segments((Segment(b"", A), Segment(b"c", A), Segment(b"m", B)))) == (
        Segment(b"", A),
        Segment(b"m", B),
    )


def test_too_many_segments_become_fewer_that_promise_no_more() -> None:
    many = tuple(Segment(b"%06d" % n, Sequence(3, 1, n % 7)) for n in range(3 * MOST_SEGMENTS))
    found = unpack_segments(pack_segments(many))
    assert len(found) <= MOST_SEGMENTS
    for one in many:
        held = [segment for segment in found if segment.start <= one.start][-1]
        assert held.after >= one.after


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (b"", b"", SEGMENTS),
        (b"a", b"", (Segment(b"a", A), *SEGMENTS[1:])),
        (b"a", b"b", (Segment(b"a", A),)),
        (b"m\x00", b"t", SEGMENTS[1:2]),
        (b"z", b"", (Segment(b"z", A),)),
    ],
)
def test_a_region_has_the_segments_of_its_rows(start: bytes, end: bytes, expected: tuple[Segment, ...]) -> None:
    assert clipped(SEGMENTS, start, end) == expected


def test_coverage_begins_once_is_raised_by_trims_and_ends() -> None:
    store = MemoryEngine().open_store("s", frozenset({"default", "meta"}))
    coverage = LogCoverage(store)
    assert coverage.segments() == ()
    coverage.begin_coverage(b"a", A)
    coverage.begin_coverage(b"a", B)
    assert LogCoverage(store).segments() == (Segment(b"a", A),)
    batch = store.batch()
    coverage.raise_to(batch, B)
    store.write_batch(batch)
    assert coverage.segments() == LogCoverage(store).segments() == (Segment(b"a", B),)
    batch = store.batch()
    coverage.raise_to(batch, A)
    store.write_batch(batch)
    assert LogCoverage(store).segments() == (Segment(b"a", B),), "it is never lowered"
    assert coverage.end_coverage()
    assert not LogCoverage(store).end_coverage()
    assert LogCoverage(store).segments() == ()
