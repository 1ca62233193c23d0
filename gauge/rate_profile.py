"""(pure) A rate that changes: stretches of one rate each, or from one rate evenly to another.

    profile := stretch ("," stretch)*          100/s 1m, 100..400/s 2m, 400/s 90s
    stretch := rate [".." rate] "/s" seconds   seconds: 90, 90s, 1.5m, 2h

With N(t) the arrivals that are due until t, the n-th one is due at the t at which N is n; random arrivals are random
places on N's axis, in order.  So every profile has exactly its number of arrivals, whatever the chance.

Knows nothing of clocks and requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Final

from .arrivals import Uniform, in_order

_STRETCH: Final = re.compile(r"(\d+(?:\.\d+)?)(?:\.\.(\d+(?:\.\d+)?))?/s\s+(\d+(?:\.\d+)?)(ms|s|m|h)?")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}


@dataclass(frozen=True, slots=True)
class Stretch:
    """``seconds`` in which the rate goes from ``first`` to ``last``, in arrivals per second."""

    first: float
    last: float
    seconds: float

    @property
    def arrivals(self) -> float:
        return (self.first + self.last) / 2 * self.seconds

    def moment_of(self, number: float) -> float:
        """Return the second of the stretch until which ``number`` arrivals are due."""
        slope = (self.last - self.first) / self.seconds
        # the root of first * t + slope / 2 * t ** 2 = number, in the form that is exact without a slope
        root = sqrt(max(self.first**2 + 2 * slope * number, 0.0))
        return min(2 * number / (self.first + root), self.seconds) if number else 0.0


@dataclass(frozen=True, slots=True)
class RateProfile:
    """Stretches, one after the other."""

    text: str
    stretches: tuple[Stretch, ...]

    @classmethod
    def parsed(cls, text: str) -> RateProfile:
        """Return the profile of a text.  Raises ValueError, which says what is wrong."""
        stretches = []
        for part in (one.strip() for one in text.split(",")):
            match = _STRETCH.fullmatch(part)
            if match is None:
                raise ValueError(f"{part!r} is not of the form '100/s 1m' or '100..400/s 2m'")
            first, seconds = float(match[1]), float(match[3]) * _SECONDS[match[4]]
            last = float(match[2]) if match[2] else first
            if not seconds or not (first or last):
                raise ValueError(f"{part!r} has no time, or no rate")
            stretches.append(Stretch(first, last, seconds))
        return cls(text, tuple(stretches))

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.stretches)

    @property
    def arrivals(self) -> int:
        """The whole number of arrivals; at least 1."""
        return max(1, round(sum(one.arrivals for one in self.stretches)))

    def moments(self, rng: Uniform | None = None) -> Iterator[float]:
        """Yield the moments of all arrivals in order, in seconds; at random with ``rng``, else as even as the rate."""
        count = self.arrivals
        places = iter(range(count)) if rng is None else in_order(rng, count, float(count))
        began_s = before = 0.0
        rest = list(self.stretches)
        for place in places:
            while len(rest) > 1 and place - before >= rest[0].arrivals:
                began_s, before = began_s + rest[0].seconds, before + rest[0].arrivals
                rest.pop(0)
            yield began_s + rest[0].moment_of(place - before)
