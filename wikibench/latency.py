"""Latencies of a replay, in histograms by kind and outcome, and over time (pure).

Each request has two latencies, both in microseconds:

    response  from the intended start to the last byte: the wait of a visitor who came at that moment
    service   from the actual send to the last byte: the time that the wiki needed once it had the request

When a wiki stalls, requests pile up behind the stall; only the response time of each
shows it.  Histograms of responses have every request with its own latency, so no
correction after the fact is needed, nor made.

Invariants:
    I1. Every record is in exactly one (kind, outcome) and one interval; the totals agree (``check``).
    I2. Memory does not depend on the number of requests.

Knows nothing of clocks: moments are arguments, in seconds from the start of the replay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from gauge.histogram import Histogram, merged

from .limits import FAILURES_KEPT, INTERVALS
from .outcome import FAILED, Kind, Outcome

PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0, 99.9)
INTERVAL_DIGITS: Final = 2  # of the plot over time: an eighth of the memory


@dataclass(frozen=True, slots=True)
class Sample:
    """A request that has ended; its moments are seconds from the start of the replay."""

    kind: Kind
    outcome: Outcome
    intended_s: float
    sent_s: float
    ended_s: float
    received_bytes: int = 0
    url: str = ""
    why: str = ""  # for a person, of failures

    @property
    def response_us(self) -> int:
        return round((self.ended_s - self.intended_s) * 1e6)

    @property
    def service_us(self) -> int:
        return round((self.ended_s - self.sent_s) * 1e6)


@dataclass(slots=True)
class Pair:
    """The two histograms of one kind and outcome."""

    response: Histogram = field(default_factory=Histogram)
    service: Histogram = field(default_factory=Histogram)


@dataclass(slots=True)
class Interval:
    """The requests that began and that ended in one interval of the replay."""

    requested: int = 0  # requests intended to start here
    answered: int = 0  # requests that ended here
    outcomes: Counter[Outcome] = field(default_factory=Counter)  # of those intended to start here
    response: Histogram = field(default_factory=lambda: Histogram(INTERVAL_DIGITS))

    def merge(self, other: Interval) -> None:
        self.requested += other.requested
        self.answered += other.answered
        self.outcomes.update(other.outcomes)
        self.response.add(other.response)


class Recorder:
    """A recorder of the samples of one replay."""

    def __init__(self, planned_s: float) -> None:
        """Take ``planned_s``, the planned length of the replay, which sets the length of the intervals."""
        self.interval_s = max(1.0, float(-(-planned_s // INTERVALS)))
        self.pairs: dict[tuple[Kind, Outcome], Pair] = {}
        self.intervals: list[Interval] = []
        self.failures: list[Sample] = []  # the first FAILURES_KEPT
        self.received_bytes = 0

    def add(self, sample: Sample) -> None:
        pair = self.pairs.get((sample.kind, sample.outcome))
        if pair is None:
            pair = self.pairs[sample.kind, sample.outcome] = Pair()
        pair.response.record(sample.response_us)
        pair.service.record(sample.service_us)
        began = self.interval_at(self._index(sample.intended_s))
        began.requested += 1
        began.outcomes[sample.outcome] += 1
        began.response.record(sample.response_us)
        self.interval_at(self._index(sample.ended_s)).answered += 1
        self.received_bytes += sample.received_bytes
        if sample.outcome in FAILED and len(self.failures) < FAILURES_KEPT:
            self.failures.append(sample)

    def _index(self, at_s: float) -> int:
        return int(max(at_s, 0.0) / self.interval_s)

    def interval_at(self, index: int) -> Interval:
        while len(self.intervals) <= index:
            self.intervals.append(Interval())
        return self.intervals[index]

    def merge_ends(self, failures: Iterable[Sample], received_bytes: int) -> None:
        """Add failures and bytes of another recorder, whose histograms are added one by one."""
        self.received_bytes += received_bytes
        self.failures = sorted([*self.failures, *failures], key=lambda one: one.intended_s)[:FAILURES_KEPT]

    def count(self, kind: Kind | None = None, outcomes: Iterable[Outcome] | None = None) -> int:
        """Return the number of requests of a kind (None means all) with one of ``outcomes`` (None means any)."""
        wanted = None if outcomes is None else frozenset(outcomes)
        return sum(
            pair.response.count
            for (of_kind, outcome), pair in self.pairs.items()
            if (kind is None or of_kind is kind) and (wanted is None or outcome in wanted)
        )

    def failed(self, kind: Kind | None = None) -> int:
        return self.count(kind, FAILED)

    def response(self, kind: Kind | None = None) -> Histogram:
        """Return response times of all requests of a kind, failed ones too, without those that the user cut off."""
        return merged(pair.response for pair in self._finished(kind))

    def service(self, kind: Kind | None = None) -> Histogram:
        """Return service times of the same requests."""
        return merged(pair.service for pair in self._finished(kind))

    def _finished(self, kind: Kind | None) -> Iterable[Pair]:
        for (of_kind, outcome), pair in self.pairs.items():
            if kind in (None, of_kind) and outcome is not Outcome.INTERRUPTED:
                yield pair

    def check(self) -> None:
        """Raise AssertionError if I1 is broken."""
        total = self.count()
        assert total == sum(pair.service.count for pair in self.pairs.values())
        assert total == sum(interval.requested for interval in self.intervals)
        assert total == sum(interval.answered for interval in self.intervals)
        assert total == sum(sum(interval.outcomes.values()) for interval in self.intervals)
        assert total == sum(interval.response.count for interval in self.intervals)


@dataclass(slots=True)
class Figures:
    """The histograms of a stretch of load.

    A response time has four parts: dealt late (the controller's doing), waited for a slot (the target's), sent late
    (the generator's own) and service.  The sum of a request's parts is its response time.
    """

    recorder: Recorder
    warm_up: Recorder
    own_lateness: Histogram = field(default_factory=Histogram)
    slot_wait: Histogram = field(default_factory=Histogram)
    dealt_late: Histogram = field(default_factory=Histogram)

    @classmethod
    def empty(cls, planned_s: float) -> Figures:
        return cls(Recorder(planned_s), Recorder(planned_s))

    def named(self) -> tuple[tuple[str, Histogram], ...]:
        """Return the histograms of the generator with their names in frames."""
        return ("own", self.own_lateness), ("slot", self.slot_wait), ("dealt", self.dealt_late)
