"""Figures common to all benchmarks: histograms of latencies, and the machine on which they were taken.

Latencies are microseconds in HdrHistograms, which can be added without loss.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hdrh.histogram import HdrHistogram

PERCENTILES: Final = (50.0, 95.0, 99.0, 99.9)
DIGITS: Final = 3  # significant digits of a recorded latency
HIGHEST_US: Final = 3_600_000_000  # a longer latency is recorded as an hour: a histogram needs a top


def new_histogram(digits: int = DIGITS) -> HdrHistogram:
    return HdrHistogram(1, HIGHEST_US, digits)


def record_us(histogram: HdrHistogram, value_us: int, count: int = 1) -> None:
    histogram.record_value(min(max(value_us, 1), HIGHEST_US), count)


def merged(histograms: Iterable[HdrHistogram], digits: int = DIGITS) -> HdrHistogram:
    """Return the sum of the histograms, without loss."""
    total = new_histogram(digits)
    for histogram in histograms:
        total.add(histogram)
    return total


def mean_us(histogram: HdrHistogram) -> float:
    """Return the mean, with each value taken as the middle of its bucket; 0 without values.

    The library's own mean goes through all buckets in Python, which takes a second.
    """
    total, count = 0.0, 0
    for index, counted in enumerate(histogram.counts):
        if counted:
            low = histogram.get_value_from_index(index)
            total += counted * (low + histogram.get_highest_equivalent_value(low)) / 2
            count += counted
    return total / count if count else 0.0


def percentiles_us(latencies_us: Counter[int]) -> dict[str, int]:
    """Return percentiles by name (``p50`` ... ``max``); an empty dict without calls."""
    if not latencies_us:
        return {}
    histogram = new_histogram()
    for value, count in latencies_us.items():
        record_us(histogram, value, count)
    found = {f"p{share:g}": int(histogram.get_value_at_percentile(share)) for share in PERCENTILES}
    return {**found, "max": max(latencies_us)}


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def processor() -> str:
    """Return the processor's name, as the kernel has it (Linux) or as Python knows it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""  # not Linux
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine() or "unknown"


def machine() -> str:
    """Return cores, processor and Python, for the head of a table."""
    return f"{os.cpu_count()} cores, {processor()}, Python {platform.python_version()}"
