"""The oracle of the ETH experiment sees each kind of fault."""

from __future__ import annotations

from collections import Counter

from benchmarks.flows_oracle import Verdict, judged
from benchmarks.flows_plan import QUICK, Graph, Marked, Tweets, tweet_id, user_key

TWEETS = Tweets(Graph(QUICK), 3)
COUNT = 60


def delivered(count: int = COUNT) -> dict[bytes, set[bytes]]:
    """Timelines in which every tweet is everywhere."""
    found: dict[bytes, set[bytes]] = {}
    for number in range(count):
        author = TWEETS.author(number)
        found.setdefault(user_key(author), set()).add(b"own:" + tweet_id(number))
        for follower in TWEETS.graph.followers(author):
            found.setdefault(user_key(follower), set()).add(b"in:" + tweet_id(number))
    return found


def verdict(timelines: dict[bytes, set[bytes]], acknowledged: bytes = b"\1" * COUNT) -> Verdict:
    return judged(TWEETS, acknowledged, timelines.items())


def a_follower(number: int) -> bytes:
    return user_key(TWEETS.graph.followers(TWEETS.author(number))[-1])


def test_all_delivered_is_good() -> None:
    found = verdict(delivered())
    copies = sum(TWEETS.graph.degree(TWEETS.author(number)) for number in range(COUNT))
    assert found == Verdict(COUNT, copies)
    assert found.is_good


def test_a_follower_without_the_tweet_is_missing() -> None:
    timelines = delivered()
    timelines[a_follower(9)].remove(b"in:" + tweet_id(9))
    found = verdict(timelines)
    assert (found.missing, found.is_good) == (1, False)
    assert "tweet 9 lacks 1 of" in found.examples[0]


def test_an_own_timeline_without_the_tweet_is_missing() -> None:
    timelines = delivered()
    timelines[user_key(TWEETS.author(9))].remove(b"own:" + tweet_id(9))
    assert verdict(timelines).missing == 1


def test_a_stranger_with_the_tweet_is_strange() -> None:
    author = TWEETS.author(9)
    stranger = next(user for user in range(QUICK.users) if user != author and not TWEETS.graph.follows(user, author))
    for row, column in (
        (user_key(stranger), b"in:" + tweet_id(9)),
        (user_key(stranger), b"own:" + tweet_id(9)),
        (user_key(author), b"in:" + tweet_id(9)),
        (user_key(QUICK.users + 5), b"in:" + tweet_id(9)),
        (a_follower(9), b"in:" + tweet_id(COUNT)),
        (a_follower(9), b"in:9"),
        (a_follower(9), b"in:what"),
        (a_follower(9), b"out:" + tweet_id(9)),
    ):
        timelines = delivered()
        timelines.setdefault(row, set()).add(column)
        found = verdict(timelines)
        assert (found.strange, found.missing, found.is_good) == (1, 0, False), column


def test_a_tweet_without_acknowledgement_may_be_nowhere_or_everywhere_but_not_torn() -> None:
    acknowledged = b"\1" * 9 + b"\0" + b"\1" * (COUNT - 10)
    everywhere = verdict(delivered(), acknowledged)
    assert (everywhere.torn, everywhere.tweets, everywhere.is_good) == (0, COUNT - 1, True)
    timelines = delivered()
    timelines[a_follower(9)].remove(b"in:" + tweet_id(9))
    torn = verdict(timelines, acknowledged)
    assert (torn.torn, torn.missing, torn.is_good) == (1, 0, True)
    for columns in timelines.values():
        columns -= {b"in:" + tweet_id(9), b"own:" + tweet_id(9)}
    assert verdict(timelines, acknowledged).torn == 0


MARKED = Tweets(Graph(QUICK), 3, Marked(frozenset({5}), frozenset({9, 20})))


def with_poison() -> dict[bytes, set[bytes]]:
    """Timelines in which tweet 5 is the celebrity's, and 9 and 20 are poison."""
    found: dict[bytes, set[bytes]] = {}
    for number in range(COUNT):
        author = MARKED.author(number)
        found.setdefault(user_key(author), set()).add(b"own:" + tweet_id(number))
        for follower in [] if number in MARKED.marked.poison else MARKED.graph.followers(author):
            found.setdefault(user_key(follower), set()).add(b"in:" + tweet_id(number))
    return found


def letters(*numbers: int) -> Counter[bytes]:
    return Counter(user_key(MARKED.author(number)) for number in numbers)


def test_poison_is_in_no_followers_timeline_and_given_up() -> None:
    found = judged(MARKED, b"\1" * COUNT, with_poison().items(), letters(9, 20))
    assert (found.poison, found.given_up, found.lost, found.spoiled, found.is_good) == (2, 2, 0, 0, True)
    assert found.copies > QUICK.fans, "the celebrity's followers have its tweet"


def test_poison_that_nobody_gave_up_is_lost_and_a_good_tweet_that_was_given_up_is_spoiled() -> None:
    found = judged(MARKED, b"\1" * COUNT, with_poison().items(), letters(9))
    assert (found.lost, found.spoiled, found.is_good) == (1, 0, False)
    found = judged(MARKED, b"\1" * COUNT, with_poison().items(), letters(9, 20, 30))
    assert (found.lost, found.spoiled, found.is_good) == (0, 1, False)
    unanswered = b"\1" * 9 + b"\0" + b"\1" * (COUNT - 10)
    assert judged(MARKED, unanswered, with_poison().items(), letters(20)).is_good
    assert judged(MARKED, unanswered, with_poison().items(), letters(9, 20)).is_good


def test_poison_at_a_follower_is_strange_and_a_fan_without_the_celebritys_tweet_is_missing() -> None:
    timelines = with_poison()
    timelines[user_key(MARKED.graph.followers(MARKED.author(9))[0])].add(b"in:" + tweet_id(9))
    timelines[user_key(QUICK.fans)].remove(b"in:" + tweet_id(5))
    found = judged(MARKED, b"\1" * COUNT, timelines.items(), letters(9, 20))
    assert (found.strange, found.missing) == (1, 1)
