"""(pure) The figures of a worker since its last tick, as parts of frames, and their sum in the controller.

Invariant:
    F1. ``add_to(total, ticks_of(figures))`` leaves what one recorder of all samples would have, bucket by bucket.

Knows nothing of sockets and clocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from gauge.histogram import Histogram
from wikibench.latency import Figures, Interval, Pair, Sample

from .frames import FrameError, Part, Standing, Tick

TICK_COUNTS: Final = 24_000  # of buckets in a frame: one histogram at most, or 240 KB
MOST_INTERVALS: Final = 1 << 16  # a frame cannot make the controller keep more
FAILURE_CHARS: Final = 2_000  # of the address of a failure, in a tick


def ticks_of(figures: Figures, standing: Standing) -> Iterator[Tick]:
    """Yield the frames of a tick, each far below the bound of a frame."""
    batch: list[Part] = []
    counts = 0
    for part in parts_of(figures):
        if batch and counts + len(part.counts) > TICK_COUNTS:
            yield Tick(standing, batch, [], (0, 0), False)
            batch, counts = [], 0
        batch.append(part)
        counts += len(part.counts) + 8
    received = figures.recorder.received_bytes, figures.warm_up.received_bytes
    yield Tick(standing, batch, [_clean(one) for one in figures.recorder.failures], received, True)


def parts_of(figures: Figures) -> Iterator[Part]:
    for name, histogram in figures.named():
        if histogram.counts:
            yield Part(name, False, dict(histogram.counts))
    for is_warm_up, recorder in ((False, figures.recorder), (True, figures.warm_up)):
        for (kind, outcome), pair in recorder.pairs.items():
            yield Part("response", is_warm_up, dict(pair.response.counts), kind, outcome)
            yield Part("service", is_warm_up, dict(pair.service.counts), kind, outcome)
        for index, one in enumerate(recorder.intervals):
            if one.requested or one.answered:
                yield Part(
                    "interval",
                    is_warm_up,
                    dict(one.response.counts),
                    index=index,
                    requested=one.requested,
                    answered=one.answered,
                    outcomes=dict(one.outcomes),
                )


def add_to(total: Figures, ticks: Sequence[Tick]) -> None:
    """Count the whole tick.  Raises FrameError."""
    for tick in ticks:
        _add_parts(total, tick.parts)
    last = ticks[-1]
    total.recorder.merge_ends(last.failures, last.received_bytes[0])
    total.warm_up.merge_ends((), last.received_bytes[1])


def _add_parts(total: Figures, parts: Iterable[Part]) -> None:
    named = dict(total.named())
    for part in parts:
        recorder = total.warm_up if part.is_warm_up else total.recorder
        if part.what in named:
            _record(named[part.what], part)
        elif part.what in ("response", "service"):
            pair = recorder.pairs.setdefault((part.kind, part.outcome), Pair())
            _record(pair.response if part.what == "response" else pair.service, part)
        elif part.what == "interval" and 0 <= part.index < MOST_INTERVALS:
            interval = Interval(part.requested, part.answered)
            interval.outcomes.update(part.outcomes)
            _record(interval.response, part)
            recorder.interval_at(part.index).merge(interval)
        else:
            raise FrameError(f"a part of a tick called {part.what!r}, at {part.index}")


def _record(histogram: Histogram, part: Part) -> None:
    for value, count in part.counts.items():
        histogram.record(value, count)


def _clean(sample: Sample) -> Sample:
    """Return the sample with texts that can be sent: an address of a trace may be no UTF-8."""
    url = sample.url[:FAILURE_CHARS].encode("utf-8", "replace").decode("utf-8")
    return replace(sample, url=url, why=sample.why[:FAILURE_CHARS].encode("utf-8", "replace").decode("utf-8"))
