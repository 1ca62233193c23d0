"""(pure) Pacing: the intended start of each request, computed from the times of the trace.

    gap      := time between two lines of the trace, at least 0, at most ``max_gap_us``
    start    := sum of the gaps so far, divided by ``speed``, in seconds from the start of the replay
    speed    := the given one, or the one that gives the whole trace the requested mean rate
    even     := start := n / rate, the gaps of the trace are not used
    poisson  := rate * duration starts anywhere in the duration, in order: the rate exactly, whatever the trace's shape
    profile  := starts by a rate that changes, random with ``poisson`` and else even; the trace is begun again as needed
    skip     := requests before the first, of the first round: another part of the trace

Invariants:
    I1. Starts never go back; the first is 0.
    I2. Every request before the end gets exactly one start: pacing drops nothing.
    I3. A trace that is begun again follows its last request after one mean gap.

Knows nothing of the clock: the injector compares the starts with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import cast

from gauge.arrivals import Uniform, in_order
from gauge.rate_profile import RateProfile

from .errors import PlanError
from .trace.lines import MICROS, VIEW, Request


@dataclass(frozen=True, slots=True)
class TraceShape:
    """The result of the first reading of the trace."""

    requests: int
    span_us: int  # from the first to the last start, gaps clamped

    @property
    def rate(self) -> float:
        """The mean requests per second; a trace whose requests have one time counts as one second long."""
        return (self.requests - 1) * MICROS / self.span_us if self.span_us else float(self.requests)


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of a replay.  It has at most one of rate and speed; neither means speed 1."""

    rate: float | None = None  # requests per second, mean over the whole trace
    speed: float | None = None  # 2 = twice as fast as recorded
    even: bool = False  # equal gaps at ``rate`` in place of the trace's own
    duration_s: float | None = None  # intended starts stop here
    max_gap_us: int | None = None  # longer silences of the trace are cut to this
    loop: bool = False  # begin the trace again until ``duration_s``
    skip: int = 0  # requests of the trace before the first one
    poisson_seed: int | None = None  # random starts at ``rate`` in place of the trace's own
    profile: RateProfile | None = None  # in place of a rate and a duration

    def __post_init__(self) -> None:
        if self.profile is not None:
            if self.rate is not None or self.speed is not None or self.duration_s is not None:
                raise PlanError("--profile has rates and times: leave --rate, --speed and --duration out")
            return
        if self.rate is not None and self.speed is not None:
            raise PlanError("give --rate or --speed, not both")
        for name, value in (("rate", self.rate), ("speed", self.speed), ("duration", self.duration_s)):
            if value is not None and not value > 0:
                raise PlanError(f"--{name} must be more than 0, not {value:g}")
        if self.even and self.rate is None:
            raise PlanError("--even needs --rate: equal gaps of what length?")
        if self.poisson_seed is not None and (self.rate is None or self.duration_s is None or not self.loop):
            raise PlanError("random starts need --rate, --duration and --loop")
        if self.loop and self.duration_s is None:
            raise PlanError("--loop needs --duration, or the replay would never end")


@dataclass(frozen=True, slots=True)
class Planned:
    """A request and its intended start, in seconds from the start of the replay."""

    start_s: float
    request: Request
    edit: int = 0  # its number among the edits of the plan, from 1 on
    dealt_s: float = 0.0  # when the worker got it, if that was after its start and the controller's doing


def shape_of(requests: Iterable[Request], max_gap_us: int | None = None) -> TraceShape:
    """Return count and span of a trace; takes one pass and constant memory."""
    count, span, previous = 0, 0, None
    for request in requests:
        if previous is not None:
            span += _gap(previous, request.time_us, max_gap_us)
        previous = request.time_us if previous is None else max(previous, request.time_us)
        count += 1
    return TraceShape(count, span)


def speed_of(pace: Pace, shape: TraceShape) -> float:
    """Return the factor by which the times of the trace are divided."""
    if pace.rate is not None:
        return pace.rate / shape.rate
    return pace.speed or 1.0


def planned_seconds(pace: Pace, shape: TraceShape) -> float:
    """Return the time over which the intended starts extend."""
    if pace.profile is not None:
        return pace.profile.seconds
    if pace.even and pace.rate is not None:
        once = (shape.requests - 1) / pace.rate
    else:
        once = shape.span_us / MICROS / speed_of(pace, shape)
    if pace.duration_s is None:
        return once
    return pace.duration_s if pace.loop else min(once, pace.duration_s)


def plan(
    read: Callable[[], Iterable[Request]], pace: Pace, shape: TraceShape, rng: Uniform | None = None
) -> Iterator[Planned]:
    """Yield the requests with their intended starts.

    ``read`` gives the trace from its beginning, in order, and is called again for each round of ``loop``.  The iterator
    is lazy: only as much of the trace is in memory as ``read`` keeps.  ``rng`` gives random starts, and has the
    ``poisson_seed`` of the pace.
    """
    if not shape.requests:
        return
    if pace.profile is not None:
        rows = _at_moments(read, pace, pace.profile.moments(None if pace.poisson_seed is None else rng))
    elif pace.poisson_seed is not None:
        assert rng is not None
        rate, duration_s = cast("float", pace.rate), cast("float", pace.duration_s)
        rows = _at_moments(read, pace, in_order(rng, max(1, round(rate * duration_s)), duration_s))
    else:
        rows = _by_times(read, pace, shape)
    edits = 0
    for start_s, request in rows:
        if request.flag != VIEW and request.is_save:
            edits += 1
            yield Planned(start_s, request, edits)
        else:
            yield Planned(start_s, request)


def _by_times(read: Callable[[], Iterable[Request]], pace: Pace, shape: TraceShape) -> Iterator[tuple[float, Request]]:
    speed = speed_of(pace, shape)
    mean_gap_us = MICROS / shape.rate
    at_us, number = 0.0, 0
    while True:
        previous: int | None = None
        for request in islice(read(), 0 if number else pace.skip, None):
            if previous is not None:
                at_us += _gap(previous, request.time_us, pace.max_gap_us)
            elif number:
                at_us += mean_gap_us
            previous = request.time_us if previous is None else max(previous, request.time_us)
            start = number / pace.rate if pace.even and pace.rate is not None else at_us / speed / MICROS
            if pace.duration_s is not None and start >= pace.duration_s:
                return
            yield start, request
            number += 1
        if not pace.loop:
            return


def _at_moments(
    read: Callable[[], Iterable[Request]], pace: Pace, moments: Iterable[float]
) -> Iterator[tuple[float, Request]]:
    requests = chain(islice(read(), pace.skip, None), chain.from_iterable(read() for _ in count()))
    for start_s in moments:
        yield start_s, next(requests)


def _gap(previous_us: int, now_us: int, max_gap_us: int | None) -> int:
    gap = max(0, now_us - previous_us)  # a line that is still out of order starts at once
    return gap if max_gap_us is None else min(gap, max_gap_us)
