"""(pure) The workload of the ETH experiment: the graph of followers, the authors, the tweets and the rates.

The workload follows "Building Data Flows Using Distributed Key-Value Stores" (ETH technical report 742).  The numbers
that the paper leaves out are chosen as follows:

    followers  P(k) ~ k ** -alpha for 1 <= k < users; user i has the quantile at (i + 1/2) / users.  Nothing is drawn.
    whom       the followers of all users are dealt out round and round over all users by a fixed stride, so that any
               two users follow equally many users, to one or two
    authors    uniform, by a hash of the seed and the tweet's number
    tweets     TWEET_BYTES of text that does not compress, which begins with the tweet's number, or with POISON
    celebrity  a user more, with ``Profile.fans`` followers: the first users by number, and beyond them users who tweet
               nothing and follow nobody else

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
POISON: Final = b"poison"  # a text that begins so makes whoever spreads the tweet raise
CELEBRITY_EVERY_S: Final = 10.0  # between two tweets of the celebrity; a shorter run has one
POISON_EVERY: Final = 1_000  # one tweet of so many is poison
LEAST_POISON: Final = 4  # poison tweets of a run: a short run has a larger share
CHANGE_EVERY_S: Final = 1.0  # between the beginnings of two splits or merges
LEAST_CHANGES: Final = 2  # of a run, if the store takes no longer for them: a short run has a shorter interval

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
    fans: int = 0  # followers of the celebrity; 0: there is none


QUICK: Final = Profile("quick", 2.276, 300, fans=2_000)
PROFILES: Final = {
    profile.name: profile
    for profile in (
        Profile("ci", 2.276, 10_000, fans=20_000),
        Profile("kwak", 2.276, 100_000, fans=100_000),  # Kwak and others, "What is Twitter" (2010)
        Profile("heavy", 2.0, 100_000, fans=100_000),
        Profile(
            "eth_matched", 2.14, 100_000, fans=100_000
        ),  # a fan-out of 4, which the paper's bytes for a message imply
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


def celebrity_times(seconds: float) -> tuple[float, ...]:
    """Return when the celebrity tweets in a run, in seconds from its start: soon after it, then at even intervals."""
    period = min(CELEBRITY_EVERY_S, seconds)
    return tuple(period * (0.1 + number) for number in range(int(seconds / period + 0.9)))


def poison_every(tweets: float) -> int:
    """Return how many tweets have one that is poison, in a run of about ``tweets``."""
    return max(2, min(POISON_EVERY, int(tweets / LEAST_POISON)))


def change_times(seconds: float) -> tuple[float, ...]:
    """Return when splits and merges begin in a run, in seconds from its start."""
    every = min(CHANGE_EVERY_S, seconds / (LEAST_CHANGES + 1))
    return tuple(every * number for number in range(1, int(seconds / every + 0.001)))


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
        self.celebrity = profile.users  # its number; no user if it has no fans
        self.fans = profile.fans
        self._degrees = degrees(profile)
        self._starts = array("q")  # the place on the round at which a user's followers begin
        at = 0
        for degree in self._degrees:
            self._starts.append(at % self.users)
            at += degree
        self.edges = at
        self._inverse_stride = pow(_STRIDE, -1, self.users)

    def authors(self) -> range:
        """Return all users who may tweet."""
        return range(self.users + (self.fans > 0))

    def degree(self, user: int) -> int:
        return self.fans if user == self.celebrity else self._degrees[user]

    def followers(self, user: int) -> list[int]:
        """Return the user's followers in the order of the round, without the user."""
        if user == self.celebrity:
            return [number for number in range(self.fans + 1) if self.follows(number, user)]
        start, own = self._starts[user], self._place(user, user)
        places = range(self._degrees[user] + (own < self._degrees[user]))
        return [(start + place) * _STRIDE % self.users for place in places if place != own]

    def follows(self, follower: int, user: int) -> bool:
        if user == self.celebrity:
            return follower != user and follower - (follower > user) < self.fans
        if follower >= self.users:
            return False
        place, own = self._place(user, follower), self._place(user, user)
        return place != own and place - (place > own) < self._degrees[user]

    def _place(self, user: int, other: int) -> int:
        """Return the place of ``other`` on the round, counted from the first follower of ``user``."""
        return (other * self._inverse_stride - self._starts[user]) % self.users


@lru_cache(maxsize=2)
def graph_of(profile: Profile) -> Graph:
    return Graph(profile)


@lru_cache(maxsize=2)
def last_fan(profile: Profile) -> bytes:
    """Return the last row key of the celebrity's followers, who get a tweet in the order of their keys."""
    graph = graph_of(profile)
    return max(map(user_key, graph.followers(graph.celebrity)))


@dataclass(frozen=True, slots=True)
class Marked:
    """The tweets that are not like the others, by number."""

    celebrity: frozenset[int] = frozenset()
    poison: frozenset[int] = frozenset()

    def __or__(self, other: Marked) -> Marked:
        return Marked(self.celebrity | other.celebrity, self.poison | other.poison)


@dataclass(frozen=True, slots=True)
class Tweets:
    """All possible tweets: author, text and key by number."""

    graph: Graph
    seed: int
    marked: Marked = Marked()

    def text(self, number: int) -> bytes:
        return poison_text(number) if number in self.marked.poison else tweet_text(number)

    def author(self, number: int) -> int:
        if number in self.marked.celebrity:
            return self.graph.celebrity
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


def poison_text(number: int) -> bytes:
    return (POISON + tweet_text(number))[:TWEET_BYTES]


class PoisonError(Exception):
    """Raised by whoever spreads a tweet that is poison, as a fault of an application's own code would be."""


def refuse_poison(text: bytes) -> None:
    """Raise PoisonError if the tweet is poison."""
    if text.startswith(POISON):
        raise PoisonError(f"cannot read {text[: len(POISON) + ID_BYTES].decode()}")


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
    celebrity_s: tuple[float, ...] = ()  # when the celebrity tweets, from the start
    poison_every: int = 0  # how many tweets have one that is poison; 0: none is

    def arrivals(self, offsets: array[int]) -> tuple[array[int], Marked]:
        """Return the times of all tweets, the celebrity's among ``offsets``, and the tweets that are marked."""
        celebrity = {int(at * 1e9) for at in self.celebrity_s} - set(offsets)
        merged = array("q", sorted([*offsets, *celebrity]))
        numbers = {self.first + job for job, offset in enumerate(merged) if offset in celebrity}
        every = self.poison_every or len(merged) + 1
        poison = {self.first + job for job in range(every // 2, len(merged), every)} if self.poison_every else set()
        return merged, Marked(frozenset(numbers), frozenset(poison - numbers))


@dataclass(frozen=True, slots=True)
class Probes:
    """The outcome of the reads after acknowledgements."""

    propagated: list[tuple[int, int]] = field(default_factory=list)  # (when acknowledged, until the last follower)
    completed: dict[int, int] = field(default_factory=dict)  # when the celebrity's last follower had it, by number
    not_arrived: int = 0  # probes that were given up before the last follower had the tweet
    session_reads: int = 0
    session_misses: int = 0  # own timelines without the acknowledged tweet


@dataclass(frozen=True, slots=True)
class Sent:
    """The outcome of a load.  Times are nanoseconds of the monotonic clock, which all processes share."""

    first: int
    start_ns: int
    due_ns: array[int]  # of each tweet that was begun; in closed loop when it was begun
    acknowledged_ns: array[int]  # 0: never
    end_ns: int  # when answers were waited for no longer
    samples: list[tuple[int, int]] = field(default_factory=list)  # (when, executions so far)
    probes: Probes = Probes()
    refusals: Counter[str] = field(default_factory=Counter)
    breaks: int = 0  # connections that broke
    late_us: Counter[int] = field(default_factory=Counter)  # the application's own lateness, in open loop
    bytes: int = 0  # that the application sent and received, without the probes
    cpu_s: float = 0.0
    marked: Marked = Marked()
