"""(pure) Loads for the application of the ETH experiment, and their outcomes."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field

from columnar.bench.address import Endpoint
from columnar.bench.flows_plan import Phase, Profile


@dataclass(frozen=True, slots=True)
class Load:
    """A task of the application."""

    variant: str
    endpoint: Endpoint
    queue: str  # path of the queue's socket; empty: none
    profile: Profile
    seed: int  # of the authors
    first: int  # number of the first tweet
    connections: int
    phases: tuple[Phase, ...]
    executions: str  # file whose length says how many tweets somebody began to spread
    answer_timeout_s: float  # for answers after the last phase


@dataclass(frozen=True, slots=True)
class Sent:
    """The outcome of a load.  Times in nanoseconds of the monotonic clock, which all processes share."""

    first: int
    start_ns: int
    due_ns: array[int]  # of each tweet that was begun; in closed loop when it was begun
    acknowledged_ns: array[int]  # 0: never
    end_ns: int  # when answers were waited for no longer
    samples: list[tuple[int, int]] = field(default_factory=list)  # (when, executions so far)
    propagated: list[tuple[int, int]] = field(default_factory=list)  # (when acknowledged, until the last follower)
    not_arrived: int = 0  # probes that were given up before the last follower had the tweet
    session_reads: int = 0
    session_misses: int = 0  # own timelines without the acknowledged tweet
    refusals: Counter[str] = field(default_factory=Counter)
    breaks: int = 0  # connections that broke
    late_us: Counter[int] = field(default_factory=Counter)  # the application's own lateness, in open loop
    bytes: int = 0  # that the application sent and received, without the probes
    cpu_s: float = 0.0
