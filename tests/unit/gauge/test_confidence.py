"""Comparisons of simulated systems: equal ones are seldom called different, and a difference that counts is found."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from random import Random

import pytest

from gauge.confidence import (
    CONFIRMED,
    LEAST_BLOCKS,
    Ratio,
    mean_figure,
    of_blocks,
    of_pairs,
    percentile_figure,
    t_quantile,
    verdict,
)
from gauge.histogram import Histogram, merged
from tests.support.deep import seeds

SEEDS = 200
NOISE = 0.03  # of the machine's speed, in each try and each second anew
MARGIN = 0.02


@pytest.mark.parametrize(
    ("share", "freedom", "value"),
    [
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.95, 4, 2.132),
        (0.975, 9, 2.262),
        (0.9, 30, 1.310),
        (0.975, 1000, 1.962),
    ],
)
def test_the_quantiles_of_students_t_are_those_of_the_tables(share: float, freedom: int, value: float) -> None:
    assert t_quantile(share, freedom) == pytest.approx(value, abs=6e-4)


def pairs(rng: Random, slower: float, noise: float, rounds: int = 5) -> tuple[list[float], list[float]]:
    """Measure two systems in rounds of A B B A, on a machine whose speed drifts beside the noise of each try."""
    drift = rng.uniform(-0.01, 0.01)  # of the speed, from one try to the next
    found: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds * 4):
        place = (0, 1, 1, 0)[number % 4]
        found[place].append(5.0 * (1 + slower * place) * exp(rng.gauss(0, noise) + drift * number))
    return found


def share_called(word: str, slower: float, noise: float = NOISE, count: int = SEEDS) -> float:
    called = []
    for seed in range(count):
        ratio = of_pairs(*pairs(Random(f"{seed} {slower} {noise}"), slower, noise))
        called.append(verdict(ratio, MARGIN) == word)
    print(f"{slower:+.0%}, noise {noise:.0%}: {word} in {sum(called) / count:.1%} of {count} seeds")
    return sum(called) / count


@pytest.mark.parametrize("noise", [0.01, NOISE])
def test_equal_systems_are_called_slower_in_at_most_5_percent(noise: float) -> None:
    assert share_called("worse", 0.0, noise) <= 0.05
    assert share_called("better", 0.0, noise) <= 0.05


def test_5_percent_slower_is_found_by_five_rounds() -> None:
    assert share_called("worse", 0.05) >= 0.9
    assert share_called("better", 0.05) == 0.0


def verdict_confirmed(rng: Random, slower: float, noise: float) -> str:
    """Return what five rounds say, and five more where they show a difference."""
    a, b = pairs(rng, slower, noise)
    found = verdict(of_pairs(a, b), MARGIN)
    if found in ("same", "cannot tell"):
        return found
    more = pairs(rng, slower, noise)
    return verdict(of_pairs([*a, *more[0]], [*b, *more[1]], CONFIRMED), MARGIN)


def test_a_difference_that_has_to_show_again_is_seldom_one_of_equal_systems() -> None:
    """Each of the two figures of ten comparisons of a wiki with itself is to find nothing."""
    equal = [verdict_confirmed(Random(seed), 0.0, NOISE) for seed in range(5 * SEEDS)]
    slower = [verdict_confirmed(Random(seed), 0.05, NOISE) for seed in range(SEEDS)]
    assert sum(one in ("worse", "better") for one in equal) <= 0.01 * len(equal)
    assert slower.count("worse") >= 0.9 * len(slower)


def test_with_more_noise_it_is_found_less_often_and_the_smallest_visible_difference_says_so() -> None:
    assert share_called("worse", 0.05, 0.06) < 0.7
    assert share_called("worse", 0.0, 0.06, count=4 * SEEDS) <= 0.055
    visible = [of_pairs(*pairs(Random(seed), 0.0, noise)).visible for noise in (0.03, 0.06) for seed in range(50)]
    assert 0.04 < sum(visible[:50]) / 50 < 0.06
    assert 0.08 < sum(visible[50:]) / 50 < 0.12


def test_a_system_that_is_the_same_is_called_so_on_a_quiet_machine() -> None:
    assert share_called("same", 0.0, 0.005) >= 0.95


def run_of(rng: Random, slower: float, blocks: int = 12) -> list[Histogram]:
    """Measure 60 s in blocks of 5 s: 40 requests a second, and each second has a speed of its own."""
    found = []
    for _ in range(blocks):
        block = Histogram(2)
        for _ in range(5):
            speed = exp(rng.gauss(0, NOISE))
            for _ in range(40):
                block.record(round(5_000 * (1 + slower) * speed * rng.lognormvariate(0, 0.3)))
        found.append(block)
    return found


def test_of_one_run_each_the_blocks_tell_equal_systems_from_slow_ones() -> None:
    count = seeds("seeds of two runs compared by blocks", deep=200, short=16)
    called = {0.0: 0, 0.1: 0}
    for slower in called:
        for seed in range(count):
            rng = Random(seed)
            a, b = run_of(rng, 0.0), run_of(rng, slower)
            ratio = of_blocks(percentile_figure(a, 50), len(a), percentile_figure(b, 50), len(b), rng)
            called[slower] += verdict(ratio, MARGIN) == "worse"
    print({slower: number / count for slower, number in called.items()})
    assert called[0.0] / count <= 0.05
    assert called[0.1] / count >= 0.9


def test_a_percentile_of_blocks_is_that_of_their_sum() -> None:
    rng = Random(7)
    blocks = run_of(rng, 0.0, 6)
    for percent in (50.0, 95.0, 99.9, 100.0):
        for drawn in (range(6), [0, 0, 3], [5]):
            whole = merged([blocks[number] for number in drawn], 2).percentile(percent)
            assert percentile_figure(blocks, percent)(drawn) == whole


@pytest.mark.parametrize(
    ("low", "high", "less", "more"),
    [
        (0.99, 1.02, "same", "same"),
        (1.001, 1.02, "same", "same"),
        (1.001, 1.03, "cannot tell", "cannot tell"),
        (0.9, 1.2, "cannot tell", "cannot tell"),
        (1.01, 1.2, "worse", "better"),
        (0.8, 0.99, "better", "worse"),
    ],
)
def test_the_words(low: float, high: float, less: str, more: str) -> None:
    ratio = Ratio((low + high) / 2, low, high, 0.1)
    assert (verdict(ratio, MARGIN), verdict(ratio, MARGIN, is_less_better=False)) == (less, more)


def test_too_little_is_no_answer() -> None:
    zero: Callable[[object], float] = mean_figure([0.0] * 9)
    some = mean_figure([1.0] * 9)
    assert of_pairs([1.0, 2.0], [1.0, 2.0]) is None
    assert of_pairs([1.0, 2.0, 0.0], [1.0, 2.0, 3.0]) is None
    assert of_blocks(some, LEAST_BLOCKS - 1, some, 9, Random(1)) is None
    assert of_blocks(zero, 9, some, 9, Random(1)) is None
    assert percentile_figure([Histogram(2)] * 4, 50)(range(4)) == 0.0
    assert verdict(None, MARGIN) == "cannot tell"
    with pytest.raises(ValueError, match="no pairs"):
        of_pairs([1.0], [])


def test_runs_without_any_spread_are_known_exactly() -> None:
    ratio = of_pairs([10.0] * 3, [11.0] * 3)
    assert ratio is not None
    assert (ratio.middle, ratio.low, ratio.high) == (pytest.approx(1.1),) * 3
    assert ratio.visible == pytest.approx(0.0)
