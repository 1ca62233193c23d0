"""The response times that are reckoned from a server's stops, against which WikiBench's are checked."""

from __future__ import annotations

import pytest

from tests.support.stop_schedule import (
    Stop,
    begin_of,
    even_starts,
    figures_of,
    noted_times,
    off_percent,
    percentile,
    response_times,
    starts_by_connection,
)

STOPS = [Stop(5.0, 6.0), Stop(15.0, 16.0)]


def test_a_start_within_a_stop_waits_for_its_end_and_others_do_not() -> None:
    starts = [4.999, 5.0, 5.25, 5.999, 6.0, 15.5]
    assert response_times(starts, STOPS, 0.002) == pytest.approx([0.002, 1.002, 0.752, 0.003, 0.002, 0.502])
    assert response_times(starts, [], 0.002) == [0.002] * 6


def test_a_tenth_of_the_time_stopped_is_half_a_second_at_p95() -> None:
    found = figures_of(response_times(even_starts(0.0, 200, 20), STOPS, 0.001))
    assert found["p50"] == found["p90"] == pytest.approx(1.0)
    assert found["p95"] == pytest.approx(501, abs=5), "1/200 s lies between two starts"
    assert found["p99"] == pytest.approx(901, abs=5)
    assert found["max"] == pytest.approx(1001)
    assert found["mean"] == pytest.approx(1 + 0.1 * 502.5, abs=0.1)


def test_connections_that_share_a_rate_have_a_plan_each() -> None:
    assert starts_by_connection([0.0, 0.1], 4, 1.0, 2.0) == pytest.approx([1.0, 1.5, 1.1, 1.6])
    assert starts_by_connection([0.0], 2, 0.4, 1.1) == pytest.approx([0.5, 1.0])


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(n) for n in range(200, 0, -1)]
    assert [percentile(values, percent) for percent in (0, 0.5, 50, 95, 99.5, 100)] == [1, 1, 100, 190, 199, 200]
    assert percentile([7.0], 99) == 7.0


def test_the_begin_is_that_of_the_request_that_came_the_quickest_way() -> None:
    planned = {"/a": 0.0, "/b": 1.0, "/c": 2.0}
    read = {"/": 99.0, "/a": 100.9, "/b": 101.001, "/c": 102.3}  # the first look of a generator is no part of its plan
    assert begin_of(planned, read) == pytest.approx(100.001)
    with pytest.raises(ValueError):
        begin_of(planned, {"/": 99.0})


def test_noted_times_run_from_the_start_to_the_reading() -> None:
    assert noted_times({"/a": 0.0, "/b": 1.0}, 100.0, {"/a": 100.5, "/b": 101.0, "/": 99.0}) == [0.5, 0.0]
    with pytest.raises(KeyError):
        noted_times({"/a": 0.0}, 100.0, {})


def test_off_is_relative_to_the_reckoned_figure() -> None:
    reckoned = figures_of([0.1] * 10)
    assert off_percent(figures_of([0.102] * 10), reckoned) == pytest.approx(dict.fromkeys(reckoned, 2.0))
