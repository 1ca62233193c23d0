"""(pure) The workload of the ETH experiment: the graph of followers, the authors, the tweets and the rates.

The workload follows "Building Data Flows Using Distributed Key-Value Stores" (ETH technical report 742).  The numbers
that the paper leaves out are chosen as follows:

    followers  P(k) ~ k ** -alpha for 1 <= k < users; user i has the quantile at (i + 1/2) / users.  Nothing is drawn.
    whom       the followers of all users are dealt out round and round over all users by a fixed stride, so that any
               two users follow equally many users, to one or two
    authors    uniform, by a hash of the seed and the tweet's number
    tweets     TWEET_BYTES of text that does not compress, which begins with the tweet's number

Users and tweets are numbers here.  A key spreads the users over the rows; ``user_of`` takes it back.

Knows nothing of sockets, clocks and variants.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import shake_128
from math import fsum
from typing import Final

from columnar.bench.address import Endpoint

TWEET_BYTES: Final = 200
KEY_BYTES: Final = 8
ID_BYTES: Final = 10
FOLLOWERS: Final = b"followers"
FOLLOWERS_FAMILY: Final = b"f"
TIMELINE: Final = b"timeline"
OWN: Final = b"own"  # family of the user's own tweets
IN: Final = b"in"  # family of the tweets of users whom the user follows
MARK: Final = b"1"  # value of a follower's column

_STRIDE: Final = 2_654_435_761  # prime, so it shares no divisor with any number of users
_KEYS: Final = 1 << 32
_INVERSE_STRIDE: Final = pow(_STRIDE, -1, _KEYS)
_64_BITS: Final = (1 << 64) - 1
_FILLINGS: Final = tuple(shake_128(bytes([number])).digest(TWEET_BYTES - ID_BYTES) for number in range(64))


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    alpha: float
    users: int


QUICK: Final = Profile("quick", 2.276, 300)
PROFILES: Final = {
    profile.name: profile
    for profile in (
        Profile("ci", 2.276, 10_000),
        Profile("kwak", 2.276, 100_000),  # Kwak and others, "What is Twitter" (2010)
        Profile("heavy", 2.0, 100_000),
        Profile("eth_matched", 2.14, 100_000),  # a fan-out of 4, which the paper's bytes for a message imply
        QUICK,
    )
}


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of load."""

    seconds: float
    rate: float | None  # tweets that arrive per second; None: closed loop


def burst(saturation: float, seconds: float) -> tuple[Phase, ...]:
    """Return three phases: about half of the rate, twice the rate for ``seconds``, half again (paper: 60, 30, 90 s)."""
    return (
        Phase(2 * seconds, CALM * saturation),
        Phase(seconds, BURST * saturation),
        Phase(3 * seconds, CALM * saturation),
    )


CALM: Final = 0.46
BURST: Final = 2.0


def drain_bound_s(seconds: float) -> float:
    """Return the time after the burst in which a store that works at its saturation has done all arrived tweets."""
    return seconds * (BURST - 1.0) / (1.0 - CALM)


def degrees(profile: Profile) -> array[int]:
    """Return the number of followers of each user; it rises with the user's number."""
    most = profile.users - 1
    whole = fsum(k**-profile.alpha for k in range(1, most + 1))
    found = array("q")
    below, k = 1.0 / whole, 1
    for user in range(profile.users):
        while below < (user + 0.5) / profile.users and k < most:
            k += 1
            below += k**-profile.alpha / whole
        found.append(k)
    return found


class Graph:
    """The followers of all users; constant.  It takes two numbers for each user, however many followers a user has."""

    def __init__(self, profile: Profile) -> None:
        """Compute the graph in O(users)."""
        self.users = profile.users
        self._degrees = degrees(profile)
        self._starts = array("q")  # the place on the round at which a user's followers begin
        at = 0
        for degree in self._degrees:
            self._starts.append(at % self.users)
            at += degree
        self.edges = at
        self._inverse_stride = pow(_STRIDE, -1, self.users)

    def degree(self, user: int) -> int:
        return self._degrees[user]

    def followers(self, user: int) -> list[int]:
        """Return the user's followers in the order of the round, without the user."""
        start, own = self._starts[user], self._place(user, user)
        places = range(self._degrees[user] + (own < self._degrees[user]))
        return [(start + place) * _STRIDE % self.users for place in places if place != own]

    def follows(self, follower: int, user: int) -> bool:
        place, own = self._place(user, follower), self._place(user, user)
        return place != own and place - (place > own) < self._degrees[user]

    def _place(self, user: int, other: int) -> int:
        """Return the place of ``other`` on the round, counted from the first follower of ``user``."""
        return (other * self._inverse_stride - self._starts[user]) % self.users


@lru_cache(maxsize=2)
def graph_of(profile: Profile) -> Graph:
    return Graph(profile)


@dataclass(frozen=True, slots=True)
class Tweets:
    """All possible tweets: author, text and key by number."""

    graph: Graph
    seed: int

    def author(self, number: int) -> int:
        return _mixed(self.seed << 40 ^ number) % self.graph.users


def _mixed(number: int) -> int:
    """Return a hash of 64 bits (splitmix64)."""
    z = (number + 0x9E3779B97F4A7C15) & _64_BITS
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _64_BITS
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _64_BITS
    return z ^ z >> 31


def user_key(user: int) -> bytes:
    return b"%08x" % (user * _STRIDE % _KEYS)


def user_of(key: bytes) -> int:
    """Return the user whose row key is ``key``.  Raises ValueError if no user has this key."""
    return int(key, 16) * _INVERSE_STRIDE % _KEYS


def tweet_id(number: int) -> bytes:
    return b"%010d" % number


def tweet_text(number: int) -> bytes:
    return tweet_id(number) + _FILLINGS[number % len(_FILLINGS)]


@dataclass(frozen=True, slots=True)
class Load:
    """A load that the application carries out."""

    variant: str
    endpoint: Endpoint
    queue: str  # path of the queue's socket; empty: none
    profile: Profile
    seed: int  # of the authors
    first: int  # number of the first tweet
    connections: int
    phases: tuple[Phase, ...]
    executions: str  # file whose length is the number of begun executions
    answer_timeout_s: float  # for answers after the last phase


@dataclass(frozen=True, slots=True)
class Sent:
    """The outcome of a load.  Times are nanoseconds of the monotonic clock, which all processes share."""

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
