"""Synthetic traces: reproducible, with the shares asked for and the shape of a day."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from wikibench.addresses.paths import Layout, page_name
from wikibench.errors import PlanError
from wikibench.trace.lines import Request, format_line, parse_line
from wikibench.trace.synth import HOURLY, Recipe, day_factor, size_of, synthesize

TITLES = [f"Page {n}" for n in range(300)] + ["Ēdole?", "a/b#c", "100%", "edit"]


def made(recipe: Recipe, seed: int = 1) -> list[Request]:
    return list(synthesize(TITLES, recipe, random.Random(seed)))


def test_the_same_seed_gives_the_same_bytes() -> None:
    recipe = Recipe(500, 50.0, edits=0.1, missing=0.1, day=True)
    first = [format_line(request) for request in made(recipe)]
    assert first == [format_line(request) for request in made(recipe)]
    assert first != [format_line(request) for request in made(recipe, seed=2)]
    assert [format_line(parse_line(line)) for line in first] == first


def test_shares_names_and_flags() -> None:
    requests = made(Recipe(20_000, 100.0, edits=0.05, missing=0.02))
    flags = Counter(request.flag for request in requests)
    assert flags["save"] / 20_000 == pytest.approx(0.05, abs=0.006)
    assert flags["missing"] / 20_000 == pytest.approx(0.02, abs=0.004)
    layout = Layout()
    for request in requests:
        name = page_name(layout.path(request.url))
        assert (name in TITLES) is (request.flag != "missing")
    span_s = (requests[-1].time_us - requests[0].time_us) / 1e6
    assert span_s == pytest.approx(200, rel=0.05)
    assert [request.time_us for request in requests] == sorted(request.time_us for request in requests)


def test_what_is_read_most_is_not_what_is_edited_most() -> None:
    requests = made(Recipe(20_000, 100.0, edits=0.5))
    read = Counter(request.url for request in requests if not request.is_save).most_common(1)[0]
    edited = Counter(request.url for request in requests if request.is_save).most_common(1)[0]
    assert read[0] != edited[0]
    assert read[1] > edited[1]  # views are more concentrated than edits


def test_a_page_becomes_hot_at_half_time() -> None:
    requests = made(Recipe(20_000, 100.0, hot=0.3))
    halves = [Counter(request.url for request in half) for half in (requests[:10_000], requests[10_000:])]
    (url, count) = halves[1].most_common(1)[0]
    assert count == pytest.approx(3_000, rel=0.06)
    assert halves[0][url] < 100, "of middling popularity before"
    assert made(Recipe(500, 50.0, hot=0.3))[:250] == made(Recipe(500, 50.0))[:250]
    with pytest.raises(PlanError, match="--hot"):
        Recipe(10, 1.0, hot=1.5)


def test_a_day_is_squeezed_into_the_trace() -> None:
    requests = made(Recipe(48_000, 100.0, day=True, even=True))
    first_us = requests[0].time_us
    counts = Counter(int((request.time_us - first_us) / 20_000_000) for request in requests)  # 24 hours of 20 s
    assert len(requests) == 48_000
    assert (requests[-1].time_us - first_us) / 1e6 == pytest.approx(480, abs=1)
    for hour in (7, 16):
        expected = sum(day_factor(hour * 3600 + s) for s in range(0, 3600, 60)) / 60
        assert counts[hour] / 2000 == pytest.approx(expected, rel=0.02)
    assert max(counts.values()) / min(counts[hour] for hour in range(24)) == pytest.approx(2.18, abs=0.15)


def test_the_shape_of_a_day_is_whole() -> None:
    assert len(HOURLY) == 24
    assert sum(HOURLY) / 24 == pytest.approx(1.0, abs=0.001)
    assert day_factor(0.75 * 3600) == HOURLY[0]
    assert day_factor(0) == pytest.approx(day_factor(86_400))  # the day closes
    assert all(min(HOURLY) <= day_factor(second) <= max(HOURLY) for second in range(0, 86_400, 600))


def test_two_of_three_sizes() -> None:
    assert size_of(100, 10.0, None) == (100, 10.0)
    assert size_of(100, None, 20.0) == (100, 5.0)
    assert size_of(None, 10.0, 3.0) == (30, 10.0)
    for wrong in ((100, 10.0, 5.0), (100, None, None), (None, None, None)):
        with pytest.raises(PlanError, match="exactly two"):
            size_of(*wrong)


def test_impossible_recipes_are_refused() -> None:
    with pytest.raises(PlanError, match="at most 100%"):
        Recipe(10, 1.0, edits=0.7, missing=0.7)
    with pytest.raises(PlanError, match="no titles"):
        list(synthesize([], Recipe(1, 1.0), random.Random(1)))
