"""The WikiBench format: every form that its tools write, round trips, errors by line."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wikibench.errors import TraceError
from wikibench.trace.lines import MISSING, SAVE, VIEW, Request, format_line, in_order, parse, parse_line

URL = "http://upload.wikimedia.org/wikipedia/en/thumb/e/e4/James_Johnson.jpg/200px-James_Johnson.jpg"
WORD = st.text(st.characters(blacklist_categories=("Cc", "Cs", "Zl", "Zp"), blacklist_characters=" \x85"), max_size=30)
MARKS = st.sampled_from([VIEW, SAVE, MISSING])
TIMES, COUNTERS = st.integers(0, 4_000_000_000_000_000), st.one_of(st.none(), st.integers(0, 2**63))
REQUESTS = st.one_of(
    st.builds(Request, TIMES, WORD, MARKS, COUNTERS, st.sampled_from(["", "s=200", "v=7f3a91c2;s=404;m=HEAD"])),
    st.builds(Request, TIMES, WORD, WORD.map(lambda text: "20080103|" + text), COUNTERS, st.just("")),
)


def test_the_line_of_the_public_trace() -> None:
    request = parse_line(f"929840853 1190146243.326 {URL} -\n")
    assert request == Request(1_190_146_243_326_000, URL, VIEW, 929840853)
    assert not request.is_save
    assert not request.is_missing


@pytest.mark.parametrize(
    ("text", "time_us"),
    [
        ("1190146243.326", 1_190_146_243_326_000),
        ("1190146243.3", 1_190_146_243_300_000),
        ("1190146243.3261234", 1_190_146_243_326_123),
        ("1190146243", 1_190_146_243_000_000),
        ("1190146243326", 1_190_146_243_326_000),  # TraceBench
        ("2010-05-27T09:31:55.63", 1_274_952_715_630_000),
        ("2010-05-27T09:31:55", 1_274_952_715_000_000),
        ("2010-05-27T09:31:55.63Z", 1_274_952_715_630_000),
        ("2010-05-27T11:31:55.63+02:00", 1_274_952_715_630_000),
    ],
)
def test_times(text: str, time_us: int) -> None:
    assert parse_line(f"1 {text} u -").time_us == time_us


def test_attributes() -> None:
    request = parse_line("1190146243.326 /wiki/A missing;v=7f3a91c2;s=404;m=HEAD")
    assert (request.flag, request.kind, request.is_missing) == (MISSING, "missing", True)
    assert [request.attribute(name) for name in "vsmx"] == ["7f3a91c2", "404", "HEAD", ""]
    assert parse_line("1190146243.326 /w 2008|a;s=1").flag == "2008|a;s=1", "a text is left whole"


def test_what_tracebench_writes() -> None:
    assert parse_line("1190146243326 wiki/Main_Page -") == Request(1_190_146_243_326_000, "wiki/Main_Page")
    assert parse_line("1190146243326  -").url == ""  # a request for the root has an empty path
    filled = parse_line("1190146243326 w/index.php?title=X&action=submit 20080103000000|The+text%21")
    assert filled.is_save
    assert parse_line("1190146243326 w/index.php?title=X save").is_save


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("1 1190146243.326 http://x", "the flag"),  # no flag, so the fields are read one place off
        ("1190146243.326 http://x", "2 fields"),
        ("1 2 3 4 5", "5 fields"),
        ("x 1190146243.326 u -", "counter"),
        ("1 119O146243.326 u -", "time"),
        ("1 1190146243. u -", "time"),
        ("1 -5.000 u -", "time"),
        ("1 2010-05-27 u -", "time"),
        ("1 2010-13-27T09:31:55.63 u -", "time"),
        ("1 1190146243.326 u saved", "flag"),
    ],
)
def test_a_bad_line_is_named_by_its_number(line: str, why: str) -> None:
    with pytest.raises(TraceError) as caught:
        list(parse(["1 1.000 good -", "", line]))
    assert caught.value.line_number == 3
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_lines_are_left_out_only_where_somebody_is_told() -> None:
    bad: list[TraceError] = []
    good = list(parse(["nonsense", "1 1.000 a -", "more nonsense", "2 2.000 b -"], bad.append))
    assert [request.url for request in good] == ["a", "b"]
    assert [error.line_number for error in bad] == [1, 3]


def test_an_endless_line_is_shown_short() -> None:
    with pytest.raises(TraceError) as caught:
        parse_line("x" * 100_000, 7)
    assert len(str(caught.value)) < 300


@given(REQUESTS)
@settings(max_examples=300)
def test_round_trip(request: Request) -> None:
    assert parse_line(format_line(request)) == request


def test_milliseconds_are_written_as_the_format_has_them() -> None:
    assert format_line(Request(1_190_146_243_326_000, "u", "-", 5)) == "5 1190146243.326 u -"
    assert format_line(Request(1_000_001, "u")) == "1.000001 u -"


@given(st.lists(st.integers(0, 50)), st.integers(1, 60))
@settings(max_examples=200)
def test_sorting_loses_nothing_and_a_wide_window_sorts_all(times: list[int], window: int) -> None:
    requests = [Request(time, str(index)) for index, time in enumerate(times)]
    whole = list(in_order(requests))
    assert whole == sorted(requests, key=lambda request: request.time_us)
    windowed = list(in_order(requests, window))
    assert sorted(windowed, key=lambda r: int(r.url)) == requests
    if window >= len(requests):
        assert windowed == whole


def test_a_window_mends_disorder_up_to_its_size() -> None:
    rng = random.Random(3)
    ordered = [Request(time, "u") for time in range(1000)]
    shuffled = [part for at in range(0, 1000, 10) for part in rng.sample(ordered[at : at + 10], 10)]
    assert list(in_order(iter(shuffled), window=20)) == ordered
