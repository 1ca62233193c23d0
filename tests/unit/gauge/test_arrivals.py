"""Open loop: when calls are due, and that each latency counts from then."""

from __future__ import annotations

import itertools
from array import array
from random import Random
from statistics import fmean, pstdev

import pytest

from gauge.arrivals import Arrivals, in_order, poisson

MS = 1_000_000


def due_at(*milliseconds: int) -> array[int]:
    return array("q", (each * MS for each in milliseconds))


def served_in_order(due_ns: array[int], connections: int, service_ns: int) -> Arrivals[str]:
    """An endpoint that takes ``service_ns`` for each call, on a clock of the test."""
    arrivals = Arrivals(due_ns, [f"c{number}" for number in range(connections)], 0)
    ends: list[tuple[int, str]] = []
    now = 0
    while not arrivals.done():
        while (connection := arrivals.begin(now)) is not None:
            ends.append((now + service_ns, connection))
        wait = arrivals.wait_ns(now)
        ends.sort()
        if ends and (wait is None or ends[0][0] <= now + wait):
            now, connection = ends.pop(0)
            if arrivals.answered(connection, now):
                ends.append((now + service_ns, connection))
        else:
            assert wait is not None
            now += wait
    return arrivals


def test_a_schedule_is_the_same_for_a_seed_and_has_the_rate() -> None:
    due = poisson(Random(7), 1_000.0, 20.0)
    assert due == poisson(Random(7), 1_000.0, 20.0) != poisson(Random(8), 1_000.0, 20.0)
    assert list(due) == sorted(due)
    assert due[-1] < 20e9
    assert len(due) == pytest.approx(20_000, rel=0.03)


def test_without_a_rate_nothing_arrives() -> None:
    assert not poisson(Random(7), 0.0, 20.0)
    assert Arrivals(due_at(), ["c"], 0).done()


def test_gaps_are_those_of_independent_clients() -> None:
    """Exponential: the deviation of the gaps is their mean; an even beat would have none."""
    due = poisson(Random(3), 1_000.0, 20.0)
    gaps = [after - before for before, after in itertools.pairwise(due)]
    assert pstdev(gaps) == pytest.approx(fmean(gaps), rel=0.05)


def test_a_call_that_waits_for_a_connection_counts_its_wait() -> None:
    """10 ms of service, a call each 5 ms: in closed loop all would look like 10 ms."""
    arrivals = served_in_order(due_at(0, 5, 10, 15), 1, 10 * MS)
    assert [taken // MS for taken in arrivals.latencies_ns] == [10, 15, 20, 25]
    assert list(arrivals.late_ns) == [0]  # only the first one found a connection free


def test_one_long_pause_is_seen_by_all_that_were_due_in_it() -> None:
    arrivals = Arrivals(due_at(*range(100)), ["c"], 0)
    assert arrivals.begin(0) == "c"
    assert arrivals.waiting(50 * MS) == 50
    now = 100 * MS  # the endpoint was silent until here, then answers at once
    while arrivals.answered("c", now):
        pass
    assert [taken // MS for taken in arrivals.latencies_ns] == list(range(100, 0, -1))


def test_with_connections_enough_nobody_waits() -> None:
    arrivals = served_in_order(due_at(0, 5, 10, 15), 2, 10 * MS)
    assert [taken // MS for taken in arrivals.latencies_ns] == [10] * 4


def test_a_connection_has_one_call_at_a_time() -> None:
    arrivals = Arrivals(due_at(0, 0, 0), ["a", "b"], 0)
    assert {arrivals.begin(0), arrivals.begin(0)} == {"a", "b"}
    assert arrivals.begin(0) is None
    assert arrivals.wait_ns(0) is None
    assert (arrivals.in_flight_count(), arrivals.waiting(0)) == (2, 1)


def test_nothing_begins_before_it_is_due() -> None:
    arrivals = Arrivals(due_at(5), ["c"], 0)
    assert arrivals.begin(5 * MS - 1) is None
    assert arrivals.wait_ns(2 * MS) == 3 * MS
    assert arrivals.begin(5 * MS + 7) == "c"
    assert list(arrivals.late_ns) == [7]


def test_the_warm_up_is_not_counted() -> None:
    arrivals = Arrivals(due_at(0, 10), ["c"], 10 * MS)
    for now in (0, 10):
        assert arrivals.begin(now * MS) == "c"
        assert not arrivals.answered("c", (now + 3) * MS)
    assert list(arrivals.latencies_ns) == [3 * MS]


def test_what_is_never_answered_is_counted_as_it_stands() -> None:
    arrivals = Arrivals(due_at(0, 10, 20), ["c"], 0)
    arrivals.begin(0)
    assert arrivals.give_up(1_000 * MS) == 3
    assert [taken // MS for taken in arrivals.latencies_ns] == [1_000, 990, 980]
    assert arrivals.done()


def test_so_many_arrivals_anywhere_in_a_time_are_those_of_a_poisson_process() -> None:
    moments = list(in_order(Random(3), 20_000, 20.0))
    assert len(moments) == 20_000
    assert moments == sorted(moments)
    assert moments[0] >= 0
    assert moments[-1] < 20.0
    gaps = [after - before for before, after in itertools.pairwise(moments)]
    assert pstdev(gaps) == pytest.approx(fmean(gaps), rel=0.05)
    halves = [len([at for at in moments if at < 10.0]), 10_000]
    assert halves[0] == pytest.approx(halves[1], rel=0.03)
    assert list(in_order(Random(3), 0, 20.0)) == []
