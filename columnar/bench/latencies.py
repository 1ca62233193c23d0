"""(pure) Percentiles of latencies, from HdrHistograms of 3 digits."""

from __future__ import annotations

from collections import Counter
from typing import Final

from hdrh.histogram import HdrHistogram

PERCENTILES: Final = (50.0, 95.0, 99.0, 99.9)
HIGHEST_US: Final = 60_000_000


def percentiles_us(latencies_us: Counter[int]) -> dict[str, int]:
    """By name (``p50`` ... ``max``); empty without calls."""
    if not latencies_us:
        return {}
    histogram = HdrHistogram(1, HIGHEST_US, 3)
    for value, count in latencies_us.items():
        histogram.record_value(min(max(value, 1), HIGHEST_US), count)
    found = {f"p{share:g}": int(histogram.get_value_at_percentile(share)) for share in PERCENTILES}
    return {**found, "max": max(latencies_us)}
