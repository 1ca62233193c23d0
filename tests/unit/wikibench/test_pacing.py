"""Intended starts: never back, nothing dropped, rates kept."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gauge.rate_profile import RateProfile
from wikibench.errors import PlanError
from wikibench.pacing import Pace, Planned, plan, planned_seconds, shape_of
from wikibench.trace.lines import Request

TIMES = st.lists(st.integers(0, 100_000_000), min_size=1, max_size=60)
PACES = st.one_of(
    st.builds(Pace, rate=st.floats(0.5, 5000), even=st.booleans()),
    st.builds(Pace, speed=st.floats(0.1, 100), max_gap_us=st.one_of(st.none(), st.integers(1, 10**7))),
)


def planned(times_us: list[int], pace: Pace) -> list[Planned]:
    requests = [Request(time, str(index)) for index, time in enumerate(times_us)]
    return list(plan(lambda: requests, pace, shape_of(requests, pace.max_gap_us), Random(pace.poisson_seed)))


@given(TIMES, PACES)
@settings(max_examples=300)
def test_starts_never_go_back_and_nothing_is_dropped(times: list[int], pace: Pace) -> None:
    result = planned(times, pace)
    starts = [one.start_s for one in result]
    assert [one.request.url for one in result] == [str(index) for index in range(len(times))]
    assert starts[0] == 0
    assert starts == sorted(starts)


@given(TIMES, st.floats(1, 1000), st.booleans(), st.floats(0.01, 0.5))
@settings(max_examples=100)
def test_a_loop_goes_on_to_the_end_of_the_duration(times: list[int], rate: float, even: bool, part: float) -> None:
    pace = Pace(rate=rate, even=even, duration_s=part * 200 / rate + 1 / rate, loop=True)
    starts = [one.start_s for one in planned(times, pace)]
    assert starts == sorted(starts)
    assert starts[-1] < (pace.duration_s or 0)
    if even:
        assert len(starts) == pytest.approx((pace.duration_s or 0) * rate, abs=1.01)


def test_as_recorded_and_twice_as_fast() -> None:
    times = [5_000_000, 6_000_000, 9_000_000]
    assert [one.start_s for one in planned(times, Pace())] == [0, 1, 4]
    assert [one.start_s for one in planned(times, Pace(speed=2))] == [0, 0.5, 2]


def test_a_rate_is_the_mean_over_the_whole_trace_and_keeps_its_shape() -> None:
    starts = [one.start_s for one in planned([0, 1_000_000, 4_000_000], Pace(rate=10))]
    assert starts == pytest.approx([0, 0.05, 0.2])
    assert [one.start_s for one in planned([0, 1_000_000, 4_000_000], Pace(rate=10, even=True))] == pytest.approx(
        [0, 0.1, 0.2]
    )


def test_long_silences_are_cut_before_the_speed_is_applied() -> None:
    times = [0, 3_600_000_000, 3_601_000_000]
    assert [one.start_s for one in planned(times, Pace(speed=2, max_gap_us=10_000_000))] == [0, 5, 5.5]


def test_a_line_that_is_late_starts_at_once_and_shifts_nobody() -> None:
    assert [one.start_s for one in planned([0, 2_000_000, 1_000_000, 3_000_000], Pace())] == [0, 2, 2, 3]


def test_requests_of_one_moment_can_be_given_a_rate() -> None:
    assert len(planned([7, 7, 7], Pace(rate=3))) == 3
    assert planned([], Pace()) == []


def test_how_long_it_will_take() -> None:
    shape = shape_of([Request(0, "a"), Request(4_000_000, "b")])
    assert planned_seconds(Pace(speed=2), shape) == 2
    assert planned_seconds(Pace(speed=2, duration_s=1), shape) == 1
    assert planned_seconds(Pace(speed=2, duration_s=9), shape) == 2
    assert planned_seconds(Pace(speed=2, duration_s=9, loop=True), shape) == 9
    assert planned_seconds(Pace(rate=4, even=True), shape) == 0.25


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"rate": 1.0, "speed": 1.0}, "not both"),
        ({"even": True}, "--even needs --rate"),
        ({"loop": True}, "never end"),
        ({"rate": 1.0, "poisson_seed": 1}, "random starts need"),
        ({"rate": 0.0}, "more than 0"),
    ],
)
def test_contradictions_are_refused(bad: dict[str, float], why: str) -> None:
    with pytest.raises(PlanError, match=why):
        Pace(**bad)  # type: ignore[arg-type]


def test_random_starts_have_exactly_the_rate_whatever_the_shape_and_begin_where_they_should() -> None:
    pace = Pace(rate=50, duration_s=2.0, loop=True, skip=3, poisson_seed=7)
    found = planned([0, 1, 2, 90_000_000, 90_000_001], pace)
    assert len(found) == 100
    assert [one.request.url for one in found[:8]] == ["3", "4", "0", "1", "2", "3", "4", "0"]
    starts = [one.start_s for one in found]
    assert starts == sorted(starts)
    assert 0 <= starts[0] < starts[-1] < 2.0
    assert starts == [one.start_s for one in planned([0, 1, 2, 90_000_000, 90_000_001], pace)], "of one seed"


def test_equal_gaps_begin_where_they_should_too() -> None:
    found = planned([0, 1, 2], Pace(rate=10, even=True, duration_s=0.5, loop=True, skip=2))
    assert [one.request.url for one in found] == ["2", "0", "1", "2", "0"]
    assert [one.start_s for one in found] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])


def test_a_profile_takes_the_trace_in_order_and_again_from_its_beginning() -> None:
    even = Pace(profile=RateProfile.parsed("2/s 2s, 2..6/s 2s"), even=True)
    found = planned([0, 1_000_000, 5_000_000], even)
    assert [one.request.url for one in found] == [str(n % 3) for n in range(12)]
    assert [one.start_s for one in found[:5]] == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert planned_seconds(even, shape_of([Request(0, "a")])) == 4.0
    chance = planned([0, 1_000_000], Pace(profile=even.profile, poisson_seed=3))
    assert len(chance) == 12
    assert [one.start_s for one in chance] != [one.start_s for one in found]
    with pytest.raises(PlanError, match="leave --rate"):
        Pace(rate=5.0, profile=even.profile)
