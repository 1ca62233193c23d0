"""Conditional and partial requests: the examples of RFC 9110 and what clients send beside them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wikka_port.files import conditional
from wikka_port.files.conditional import RANGES_MAX, NotSatisfiable, ranges_in

TAG = conditional.etag_of("ab" * 32)


def bounds(header: str, size: int = 10_000) -> list[tuple[int, int]]:
    return [(one.start, one.stop) for one in ranges_in(header, size)]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-499", [(0, 500)]),  # the examples of section 14.1.2
        ("bytes=500-999", [(500, 1000)]),
        ("bytes=-500", [(9500, 10_000)]),
        ("bytes=9500-", [(9500, 10_000)]),
        ("bytes=0-0,-1", [(0, 1), (9999, 10_000)]),
        ("bytes= 0-999, 4500-5499, -1000", [(0, 1000), (4500, 5500), (9000, 10_000)]),
        ("bytes=500-600,601-999", [(500, 1000)]),
        ("bytes=500-700,601-999", [(500, 1000)]),
        ("BYTES=0-9", [(0, 10)]),  # units have no case
        ("bytes=,0-9,,", [(0, 10)]),
        ("bytes=9000-20000", [(9000, 10_000)]),
        ("bytes=-20000", [(0, 10_000)]),
        ("bytes=5-6,20000-", [(5, 7)]),  # of several, those that lie in the file
        ("bytes=10-,0-3", [(0, 4), (10, 10_000)]),
    ],
)
def test_ranges(header: str, expected: list[tuple[int, int]]) -> None:
    assert bounds(header) == expected


@pytest.mark.parametrize(
    "header",
    ["", "bytes", "bytes=", "bytes=,", "bytes=-", "bytes=a-b", "bytes=5-3", "bytes=1--2", "bytes=+1-2", "bytes=0x1-2",
     "lines=0-3", "bytes 0-3", "bytes=0-3;5-7", "bytes=1-2 3", "bytes=0-9,x", "bytes=٣-٥", "bytes=" + "9" * 19 + "-",
     "bytes=" + "0-1," * (RANGES_MAX + 1), "bytes=0-" + " " * 5000],
)  # fmt: skip
def test_a_malformed_header_means_the_whole_file(header: str) -> None:
    assert bounds(header) == []


@pytest.mark.parametrize("header", ["bytes=10000-", "bytes=10000-10001", "bytes=-0", "bytes=20000-,-0"])
def test_ranges_beyond_the_file(header: str) -> None:
    with pytest.raises(NotSatisfiable) as refused:
        ranges_in(header, 10_000)
    assert refused.value.content_range == "bytes */10000"


def test_no_range_lies_in_an_empty_file() -> None:
    for header in ("bytes=0-", "bytes=-5", "bytes=0-0"):
        with pytest.raises(NotSatisfiable):
            ranges_in(header, 0)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=RANGES_MAX))
def test_the_ranges_have_exactly_the_requested_bytes(asked: list[tuple[int, int]]) -> None:
    pairs = [(min(pair), max(pair)) for pair in asked]
    expected = {byte for first, last in pairs for byte in range(first, last + 1) if byte < 50}
    header = "bytes=" + ",".join(f"{first}-{last}" for first, last in pairs)
    if not expected:
        with pytest.raises(NotSatisfiable):
            ranges_in(header, 50)
        return
    found = bounds(header, 50)
    assert [byte for start, stop in found for byte in range(start, stop)] == sorted(expected)
    assert all(before[1] < after[0] for before, after in pairwise(found))


def test_the_header_of_a_part() -> None:
    assert ranges_in("bytes=42-1233", 1234)[0].content_range(1234) == "bytes 42-1233/1234"


def test_if_none_match_compares_weakly() -> None:
    assert TAG == '"' + "ab" * 16 + '"'
    for header in (TAG, f"W/{TAG}", f'"x", {TAG}', f'"a,b",W/"c" , {TAG}', "*", " * "):
        assert conditional.is_unmodified(header, TAG), header
    for header in ("", '"x"', TAG.strip('"'), TAG[:-1], f"w/{TAG}", f'"x" {TAG}', f"bad, {TAG}", f"{TAG} " * 200):
        assert not conditional.is_unmodified(header, TAG), header


def test_if_match_and_if_range_compare_strongly() -> None:
    assert all(conditional.is_matched(header, TAG) for header in ("", "*", f'"x", {TAG}'))
    assert not conditional.is_matched(f"W/{TAG}", TAG)
    assert all(conditional.is_range_current(header, TAG) for header in ("", TAG))
    assert not conditional.is_range_current(f"W/{TAG}", TAG)
    assert not conditional.is_range_current("Sat, 29 Oct 1994 19:43:31 GMT", TAG)


def test_a_smaller_picture_has_a_tag_of_its_own() -> None:
    assert conditional.etag_of("ab" * 32, "640") == '"' + "ab" * 16 + '-640"'
