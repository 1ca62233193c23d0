"""(pure) Histograms of latencies: counts by bucket, which add up without loss, whoever counted.

    bucket of v := v >> s << s      s: what v has more than BITS bits; so v and its bucket agree in ``digits`` digits

These are HdrHistogram's buckets, so a histogram goes to HdrHistogram's bytes (V2, compressed, base64) and comes back
as it was, and other tools read it.  A record is a lookup in a dictionary: 0.13 us, where HdrHistogram's takes 0.7.

Invariants:
    I1. The counts add up to the number of records; ``a.add(b)`` equals one histogram that recorded all.
    I2. A percentile is at least the recorded value and, up to ``HIGHEST_US``, at most 1 / 10 ** digits over it.
    I3. Memory does not depend on the number of records, because there are BUCKETS at most.

Knows nothing of clocks; values are microseconds by habit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import ceil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

DIGITS: Final = 3  # significant digits of a recorded latency
HIGHEST_US: Final = 3_600_000_000  # a longer latency is recorded as an hour: HdrHistogram needs a top
PERCENTILES: Final = (50.0, 95.0, 99.0, 99.9)
BITS: Final = {2: 8, 3: 11}  # by digits: the power of two from twice their power of ten on
BUCKETS: Final = {digits: (HIGHEST_US.bit_length() - bits + 2) << (bits - 1) for digits, bits in BITS.items()}


class Histogram:
    """Counts of values by bucket.  A value below 1 counts as 1, one over HIGHEST_US as that."""

    __slots__ = ("_bits", "_counts", "digits")

    def __init__(self, digits: int = DIGITS) -> None:
        self.digits = digits
        self._bits = BITS[digits]
        self._counts: dict[int, int] = {}

    def record(self, value: int, count: int = 1) -> None:
        if value < 1:
            value = 1
        elif value > HIGHEST_US:
            value = HIGHEST_US
        more = value.bit_length() - self._bits
        if more > 0:
            value = value >> more << more
        counts = self._counts
        counts[value] = counts.get(value, 0) + count

    def add(self, other: Histogram) -> None:
        """Count all of the other's records, which has as many digits or more."""
        if other.digits == self.digits:
            for value, count in other._counts.items():
                self._counts[value] = self._counts.get(value, 0) + count
        elif other.digits > self.digits:
            for value, count in other._counts.items():
                self.record(value, count)
        else:
            raise ValueError(f"{other.digits} digits cannot be added to {self.digits}")

    @property
    def count(self) -> int:
        return sum(self._counts.values())

    @property
    def counts(self) -> Mapping[int, int]:
        """The counts by bucket, each by its lowest value."""
        return self._counts

    def top_of(self, value: int) -> int:
        """Return the highest value that is in the bucket of ``value``."""
        more = max(value.bit_length() - self._bits, 0)
        return value | (1 << more) - 1

    def percentile(self, percent: float) -> int:
        """Return the highest value of the bucket below which ``percent`` of the records lie; 0 without records."""
        return self.percentiles((percent,))[0]

    def percentiles(self, percents: Iterable[float]) -> list[int]:
        """Return several percentiles in one pass; they are in ascending order, as the result is."""
        counts = sorted(self._counts.items())
        total = sum(count for _, count in counts)
        found, at, seen = [], -1, 0
        for percent in percents:
            wanted = max(1, ceil(round(min(percent, 100.0) / 100.0 * total, 6)))
            while seen < wanted and at + 1 < len(counts):
                at += 1
                seen += counts[at][1]
            found.append(self.top_of(counts[at][0]) if counts else 0)
        return found

    def mean(self) -> float:
        """Return the mean, with each value taken as the middle of its bucket; 0 without records."""
        total = sum(self._counts.values())
        return sum(n * (v + self.top_of(v)) / 2 for v, n in self._counts.items()) / total if total else 0.0

    def encode(self) -> str:
        """Return HdrHistogram's V2, compressed, in base64."""
        made = _hdr(self.digits)
        for value, count in self._counts.items():
            made.record_value(value, count)
        return bytes(made.encode()).decode("ascii")

    @classmethod
    def decode(cls, text: str) -> Histogram:
        """Return the histogram of such a text, of 2 or 3 digits.  Raises ValueError for all else."""
        from hdrh.histogram import HdrHistogram

        try:
            read = HdrHistogram.decode(text.encode("ascii"))
        except Exception as error:  # the library has no class for it: zlib's, struct's, its own
            raise ValueError(f"no histogram: {error}") from error
        if read.significant_figures not in BITS:
            raise ValueError(f"a histogram of {read.significant_figures} digits; 2 and 3 can be read")
        found = cls(read.significant_figures)
        for index, count in enumerate(read.counts):
            if count:
                found.record(read.get_value_from_index(index), count)
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and (self.digits, self._counts) == (other.digits, other._counts)

    __hash__ = None  # type: ignore[assignment]  # it changes


def _hdr(digits: int) -> HdrHistogram:
    from hdrh.histogram import HdrHistogram  # slow to import, and only reports want it

    return HdrHistogram(1, HIGHEST_US, digits)


def merged(histograms: Iterable[Histogram], digits: int = DIGITS) -> Histogram:
    """Return the sum of the histograms, without loss."""
    total = Histogram(digits)
    for histogram in histograms:
        total.add(histogram)
    return total


def percentiles_us(latencies_us: Counter[int]) -> dict[str, int]:
    """Return percentiles by name (``p50`` ... ``max``) of counted latencies; an empty dict without any."""
    if not latencies_us:
        return {}
    histogram = Histogram()
    for value, count in latencies_us.items():
        histogram.record(value, count)
    named = zip(PERCENTILES, histogram.percentiles(PERCENTILES), strict=True)
    return {**{f"p{percent:g}": value for percent, value in named}, "max": max(latencies_us)}
