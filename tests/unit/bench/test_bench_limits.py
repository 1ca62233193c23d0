"""What the machine gives: how long a call waits that is due in a stop, and the probes themselves."""

from __future__ import annotations

import os
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from columnar.bench import limits as limit_probes
from columnar.bench.limits import Limit, remarks_of_limits, stopped_share, table_of_limits, waits_us

MS = 1_000_000
SECOND = 1_000 * MS


def test_who_is_never_stopped_never_waits() -> None:
    assert waits_us([], SECOND) == {"p50": 0, "p95": 0, "p99": 0, "p99.9": 0, "max": 0}
    assert stopped_share([], SECOND) == 0


def test_one_stop_is_waited_for_by_those_who_are_due_in_it() -> None:
    # 10 ms of 1 s: a call in 100 is due in it, and one in 1,000 in its first 1 ms.
    found = waits_us([10 * MS], SECOND)
    assert found == pytest.approx({"p50": 0, "p95": 0, "p99": 0, "p99.9": 9_000, "max": 10_000})
    assert stopped_share([10 * MS], SECOND) == pytest.approx(0.01)


def test_short_stops_count_only_where_the_long_ones_do_not_fill_the_share() -> None:
    found = waits_us([2 * MS] * 10 + [4 * MS], 2 * SECOND)
    assert found["p99.9"] == pytest.approx(2_000), "2 ms of 2 s: the first half of the long one"
    assert found["p99"] == pytest.approx(4_000 / 11), "20 ms: of all of them what is over this"


@given(st.lists(st.integers(100_000, 50 * MS), max_size=30))
def test_just_that_share_of_all_moments_waits_longer(stops: list[int]) -> None:
    measured = sum(stops) + SECOND
    found = waits_us(stops, measured)
    for name, share in (("p50", 0.5), ("p95", 0.05), ("p99", 0.01), ("p99.9", 0.001)):
        longer = sum(max(0.0, stop - 1_000 * found[name]) for stop in stops)
        assert longer == pytest.approx(min(sum(stops), share * measured))
    assert found["max"] * 1_000 == pytest.approx(max(stops, default=0))


def test_the_table_and_what_it_means() -> None:
    limits = [
        Limit("core 0", {"p50": 0, "p99": 0, "p99.9": 2_500, "max": 8_300}, "core", "stopped 7 times"),
        Limit("core 1", {"p50": 0, "p99": 0, "p99.9": 5_970, "max": 8_300}, "core"),
        Limit("an fsync", {"p50": 190, "p99": 780, "p99.9": 9_520, "max": 9_950}, "fsync"),
    ]
    out = StringIO()
    Console(file=out, width=100).print(table_of_limits(limits))
    assert "2.50" in out.getvalue()
    assert "9.95" in out.getvalue()
    first, last = remarks_of_limits(limits)
    assert first == "core 0: stopped 7 times"
    assert "one in 1,000 waits 6.0 ms" in last


def test_a_process_that_is_stopped_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0, 10, 5 * MS, 5 * MS + 10, 5 * MS + 20, 9 * MS, 10 * MS, 10 * MS + 1])
    monkeypatch.setattr(limit_probes, "perf_counter_ns", lambda: next(ticks))
    held = os.sched_getaffinity(0)
    try:
        stops, measured = limit_probes.stops_of(limit_probes.watched_cores()[0], 0.010)
    finally:
        os.sched_setaffinity(0, held)
    assert stops == [5 * MS - 10, 4 * MS - 20, MS]
    assert measured == 10 * MS


def test_fsyncs_are_timed_in_that_folder_and_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    synced: list[int] = []
    monkeypatch.setattr(limit_probes, "FSYNCS", {100: 3})
    monkeypatch.setattr(os, "fdatasync", lambda file: synced.append(os.fstat(file).st_size))
    limit = limit_probes.fsync_limit(str(tmp_path), 100, lambda _: seen.append(os.listdir(tmp_path)))
    assert limit.figures_us["max"] >= limit.figures_us["p50"] > 0
    assert synced == [100, 200, 300], "each append, after it was written"
    assert [len(files) for files in seen] == [1, 1, 1]
    assert os.listdir(tmp_path) == []
