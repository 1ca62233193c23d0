"""Samples of a trace are like it: S1 to S4 of ``wikibench.trace.sampling``."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gauge.popularity import VIEWS, weights
from wikibench.trace.sampling import PageCounts, choose_pages, page_hash

COUNTS = st.dictionaries(st.text(min_size=1, max_size=5), st.integers(1, 10_000), min_size=1, max_size=60)


@given(COUNTS, st.floats(0.01, 1.0), st.integers(0, 5))
@settings(max_examples=200)
def test_what_is_kept_is_the_share_after_every_rank(counts: dict[str, int], share: float, seed: int) -> None:
    sample = choose_pages(counts, share, seed)
    others = sorted(counts.keys() - sample.thinned, key=lambda page: (-counts[page], page_hash(seed, page)))
    most = max((counts[page] for page in others), default=0)
    seen = kept = 0
    for page in others:
        seen += counts[page]
        kept += counts[page] * (page in sample.kept)
        assert abs(share * seen - kept) <= most / 2 + 1e-6
    assert not sample.kept & sample.thinned
    assert choose_pages(dict(reversed(counts.items())), share, seed) == sample


@given(COUNTS, st.floats(0.01, 0.99), st.floats(0.001, 0.5), st.integers(0, 5))
@settings(max_examples=200)
def test_a_page_is_whole_thinned_or_gone_and_none_becomes_hotter(
    counts: dict[str, int], share: float, hot: float, seed: int
) -> None:
    sample = choose_pages(counts, share, seed, hot)
    wanted = share * sum(counts.values())
    assert sample.thinned == {page for page, count in counts.items() if count > hot * wanted}, "S3"
    for page, count in counts.items():
        kept = [sample.keeps(page, (n + 0.5) / 50) for n in range(50)]
        if page in sample.thinned:
            assert sum(kept) == pytest.approx(share * 50, abs=1), "S3: it keeps its share of the traffic"
        else:
            assert len(set(kept)) == 1, "S1: all of its requests, or none"
            assert not kept[0] or count <= hot * wanted, "S3: no whole page is hot"


@given(st.lists(st.sampled_from("abcdefgh"), max_size=200), st.integers(1, 6))
@settings(max_examples=200)
def test_a_page_without_a_counter_has_little(asked: list[str], most: int) -> None:
    counts, true = PageCounts(most), Counter(asked)
    for page in asked:
        counts.add(page)
    assert counts.total == len(asked)
    assert len(counts.counts) <= most
    for page, count in true.items():
        assert count - len(asked) / (most + 1) <= counts.counts.get(page, 0) <= count


def trace_of(pages: int, requests: int, seed: int) -> dict[str, int]:
    drawn = Random(seed).choices(range(pages), weights(VIEWS, pages), k=requests)
    return {f"p{page}": count for page, count in Counter(drawn).items()}


def test_a_tenth_of_the_pages_has_a_tenth_of_the_requests_where_a_hash_has_not() -> None:
    by_sample, by_hash = [], []
    for seed in range(10):
        counts = trace_of(5_000, 50_000, seed)
        total = sum(counts.values())
        sample = choose_pages(counts, 0.1, seed)
        rng = Random(seed)
        kept = sum(sample.keeps(page, rng.random()) for page, count in counts.items() for _ in range(count))
        by_sample.append(kept / total)
        by_hash.append(sum(n for page, n in counts.items() if page_hash(seed, page) < 0.1 * 2**64) / total)
        hottest = max(count for page, count in counts.items() if page in sample.kept)
        assert hottest <= 0.02 * 0.1 * total, "no page becomes hotter than it was"
        assert len(sample.kept) == pytest.approx(0.1 * len(counts), rel=0.3)
    assert all(share == pytest.approx(0.1, rel=0.03) for share in by_sample)
    assert max(abs(share - 0.1) for share in by_hash) > max(abs(share - 0.1) for share in by_sample) * 2


def test_all_requests_of_a_kept_page_are_kept_and_a_hot_page_keeps_its_share() -> None:
    counts = {"hot": 10_000, **{f"p{n}": 10 for n in range(1_000)}}
    sample = choose_pages(counts, 0.1, 1)
    assert sample.thinned == {"hot"}
    assert all(sample.keeps(page, 0.999) for page in sample.kept)
    assert not any(sample.keeps(page, 0.0) for page in counts.keys() - sample.kept - {"hot"})
    assert (sample.keeps("hot", 0.05), sample.keeps("hot", 0.5)) == (True, False)
    rare = [sample.keeps(f"uncounted {n}", 0.5) for n in range(2_000)]
    assert sum(rare) == pytest.approx(200, rel=0.3)
    assert choose_pages(counts, 1.0, 1).kept == counts.keys(), "all of it is all of it"


def test_counters_are_bounded_and_frequent_pages_have_one() -> None:
    counts = PageCounts(most=10)
    for n in range(1_000):
        counts.add(f"rare {n}")
        counts.add("often")
    assert len(counts.counts) <= 10
    assert "often" in counts.counts
    assert counts.total == 2_000
