"""Histograms have HdrHistogram's buckets and bytes, and add up without loss."""

from __future__ import annotations

from math import ceil

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from gauge.histogram import BITS, BUCKETS, HIGHEST_US, Histogram, merged

VALUES = st.lists(st.integers(-3, HIGHEST_US * 2) | st.integers(0, 5_000), max_size=60)
PERCENTS = (0.0, 50.0, 90.0, 99.0, 99.9, 100.0)
# Of 1, 2047, 2048, 2049 and an hour: what HdrHistogram 0.10.8 writes.
GOLDEN = "HISTFAAAACl4nJNpmSzMwMDAxQABzFCaEURcm7yEwf4DVIDppzwTy9NTTEwAjqMHZQ=="


def of(values: list[int], digits: int = 3) -> Histogram:
    made = Histogram(digits)
    for value in values:
        made.record(value)
    return made


def hdr(values: list[int], digits: int = 3) -> HdrHistogram:
    made = HdrHistogram(1, HIGHEST_US, digits)
    for value in values:
        made.record_value(min(max(value, 1), HIGHEST_US))
    return made


@given(VALUES, st.sampled_from(sorted(BITS)))
@settings(max_examples=60, deadline=None)
def test_buckets_are_those_of_hdr_histogram(values: list[int], digits: int) -> None:
    ours, theirs = of(values, digits), hdr(values, digits)
    kept = {theirs.get_value_from_index(at): count for at, count in enumerate(theirs.counts) if count}
    assert ours.counts == kept
    assert all(ours.top_of(value) == theirs.get_highest_equivalent_value(value) for value in kept)
    assert ours.count == len(values)
    assert Histogram.decode(ours.encode()) == ours
    assert HdrHistogram.decode(ours.encode().encode()).get_total_count() == len(values)


@given(VALUES)
def test_a_percentile_is_the_value_of_its_rank(values: list[int]) -> None:
    """As in the sorted list of the values, to three digits, and never below."""
    found = of(values).percentiles(PERCENTS)
    if not values:
        assert found == [0] * len(PERCENTS)
        return
    in_order = sorted(min(max(value, 1), HIGHEST_US) for value in values)
    for percent, got in zip(PERCENTS, found, strict=True):
        exact = in_order[max(1, ceil(round(percent / 100 * len(values), 6))) - 1]
        assert exact <= got <= exact * 1.001


@given(VALUES, VALUES)
def test_the_sum_is_one_that_recorded_all(first: list[int], second: list[int]) -> None:
    assert merged([of(first), of(second)]) == of(first + second)
    assert merged([of(first), of(second, 2)], 2) == of(first + second, 2)


def test_digits_that_are_gone_do_not_come_back() -> None:
    with pytest.raises(ValueError, match="2 digits cannot be added to 3"):
        Histogram(3).add(Histogram(2))


def test_the_mean_is_that_of_the_values() -> None:
    assert Histogram().mean() == 0
    assert of([1, 2, 900, 1_000_000, 1_000_000]).mean() == pytest.approx(400_180.6, rel=1e-3)


def test_the_number_of_buckets_is_bounded() -> None:
    for digits, bits in BITS.items():
        exact, above = 1 << bits, range(1, HIGHEST_US.bit_length() - bits + 1)
        assert exact + sum(1 << bits - 1 for _ in above) <= BUCKETS[digits] <= 24_000


def test_the_bytes_are_known() -> None:
    assert hdr([1, 2047, 2048, 2049, HIGHEST_US]).encode().decode() == GOLDEN
    assert of([1, 2047, 2048, 2049, HIGHEST_US]).encode() == GOLDEN


@pytest.mark.parametrize("text", ["", "x", "HISTFAAAACl4", GOLDEN[:-8]])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no histogram"):
        Histogram.decode(text)
