"""Profiles of a rate: the number of arrivals, and where they lie."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gauge.rate_profile import RateProfile


def test_steps_and_ramps_have_their_arrivals() -> None:
    profile = RateProfile.parsed("10/s 2s, 10..30/s 1m,0..5/s 4")
    assert (profile.seconds, profile.arrivals) == (66.0, 20 + 1200 + 10)
    moments = list(profile.moments())
    assert len(moments) == 1230
    assert all(one < other for one, other in pairwise(moments)), "none is put off to the end of its stretch"
    assert [sum(begin <= at < end for at in moments) for begin, end in ((0, 2), (2, 62), (62, 66))] == [20, 1200, 10]
    assert sum(2 <= at < 32 for at in moments) == pytest.approx(450, abs=1), "the first half of the ramp, of 10 to 20/s"
    assert moments[:3] == pytest.approx([0.0, 0.1, 0.2])


def test_random_arrivals_have_the_same_number_and_follow_the_rate() -> None:
    profile = RateProfile.parsed("100/s 10s, 100..300/s 10s")
    moments = list(profile.moments(random.Random(38)))
    assert (len(moments), moments) == (3000, sorted(moments))
    assert sum(at < 10 for at in moments) == pytest.approx(1000, abs=100)
    assert list(profile.moments(random.Random(38))) == moments != list(profile.moments(random.Random(39)))


RATES = st.integers(0, 50)
STRETCHES = st.tuples(RATES, RATES, st.integers(1, 5)).filter(lambda one: one[0] or one[1])


@given(st.lists(STRETCHES, min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_every_profile_has_its_arrivals_within_its_time(parts: list[tuple[int, int, int]]) -> None:
    profile = RateProfile.parsed(", ".join(f"{first}..{last}/s {seconds}s" for first, last, seconds in parts))
    for rng in (None, random.Random(1)):
        moments = list(profile.moments(rng))
        assert len(moments) == profile.arrivals
        assert moments == sorted(moments)
        assert 0 <= moments[0] <= moments[-1] <= profile.seconds


@pytest.mark.parametrize("text", ["", "100", "100/s", "0/s 5s", "5/s 0s", "5..x/s 1s", "5/s 1s,,5/s 1s", "-5/s 1s"])
def test_what_is_no_profile_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not of the form|no time, or no rate"):
        RateProfile.parsed(text)
