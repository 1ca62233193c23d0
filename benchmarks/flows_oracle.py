"""(pure) The check of the timelines: every acknowledged tweet is in its author's timeline and in every follower's.

The expected cells follow from the tweets' numbers (``flows_plan``); the stored cells come in row by row.

    missing   cells of acknowledged tweets that are not stored: must be none
    strange   cells of tweets that were never sent, or at users who do not follow the author: must be none
    torn      tweets without acknowledgement that some followers have and others lack
    poison    acknowledged tweets that cannot be spread: in the author's own timeline, in none of the followers', and
              given up, which is said by a dead letter of the author's row or an entry of the dead list
    lost      poison tweets that were neither spread nor given up: must be none
    spoiled   tweets that were given up though they are no poison: must be none

Knows nothing of stores.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from benchmarks.flows_plan import IN, OWN, Tweets, tweet_id, user_key, user_of

MAX_EXAMPLES: Final = 10


@dataclass(frozen=True, slots=True)
class Verdict:
    tweets: int = 0  # acknowledged
    copies: int = 0  # cells of followers that these have
    missing: int = 0
    strange: int = 0
    torn: int = 0
    examples: tuple[str, ...] = ()  # in words, of the first that are wrong
    poison: int = 0  # acknowledged
    given_up: int = 0
    lost: int = 0
    spoiled: int = 0

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong; torn tweets are allowed, as they were not acknowledged."""
        return not (self.missing or self.strange or self.lost or self.spoiled)


def judged(
    tweets: Tweets,
    acknowledged: bytes,
    timelines: Iterable[tuple[bytes, Iterable[bytes]]],
    given_up: Counter[bytes] | None = None,
) -> Verdict:
    """Compare the timelines (rows with columns) with the tweets.

    ``acknowledged`` has 1 or 0 for each sent tweet; ``given_up`` counts the tweets that were given up by the author's
    row key.
    """
    own, copies = bytearray(len(acknowledged)), array("q", bytes(8 * len(acknowledged)))
    strange, examples = 0, list[str]()
    for row, columns in timelines:
        for column in columns:
            number, is_own = _named(column, len(acknowledged))
            if number >= 0 and _belongs(tweets, number, is_own, user_of(row)):
                if is_own:
                    own[number] = 1
                else:
                    copies[number] += 1
                continue
            strange += 1
            if len(examples) < MAX_EXAMPLES:
                examples.append(f"row {row!r} has {column!r}")
    missing = torn = 0
    for number, is_acknowledged in enumerate(acknowledged):
        degree = 0 if number in tweets.marked.poison else tweets.graph.degree(tweets.author(number))
        lacks = degree - copies[number]
        if not is_acknowledged:
            torn += bool(own[number] or copies[number]) and bool(lacks or not own[number])
        elif lacks or not own[number]:
            missing += lacks + (not own[number])
            if len(examples) < MAX_EXAMPLES:
                examples.append(f"tweet {number} lacks {lacks} of {degree} followers, own timeline: {own[number]}")
    sent = sum(acknowledged)
    copies_acknowledged = sum(
        count for count, is_acknowledged in zip(copies, acknowledged, strict=True) if is_acknowledged
    )
    of_poison = _judged_poison(tweets, acknowledged, given_up or Counter())
    return Verdict(sent, copies_acknowledged, missing, strange, torn, tuple(examples), *of_poison)


def _judged_poison(tweets: Tweets, acknowledged: bytes, given_up: Counter[bytes]) -> tuple[int, int, int, int]:
    """Return the number of poison tweets (acknowledged), given up tweets, lost and spoiled ones."""
    known = [(user_key(tweets.author(number)), acknowledged[number]) for number in tweets.marked.poison]
    must = Counter(author for author, is_acknowledged in known if is_acknowledged)
    may = Counter(author for author, _ in known)
    return must.total(), given_up.total(), (must - given_up).total(), (given_up - may).total()


def _named(column: bytes, count: int) -> tuple[int, bool]:
    """Return a column's tweet number (-1 if no such tweet was sent), and whether it is in the author's own family."""
    family, _, identity = column.partition(b":")
    if family not in (OWN, IN) or not identity.isdigit() or int(identity) >= count:
        return -1, False
    number = int(identity)
    return (number if tweet_id(number) == identity else -1), family == OWN


def _belongs(tweets: Tweets, number: int, is_own: bool, user: int) -> bool:
    author = tweets.author(number)
    if is_own:
        return user == author
    return number not in tweets.marked.poison and tweets.graph.follows(user, author)
