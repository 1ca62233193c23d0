"""The workload of the ETH experiment: its numbers are those of the specification."""

from __future__ import annotations

from array import array
from collections import Counter

import pytest

from benchmarks.flows_plan import (
    PROFILES,
    QUICK,
    TWEET_BYTES,
    Graph,
    Load,
    Marked,
    Phase,
    PoisonError,
    Profile,
    Tweets,
    burst,
    celebrity_times,
    change_times,
    degrees,
    drain_bound_s,
    last_fan,
    poison_every,
    poison_text,
    refuse_poison,
    tweet_id,
    tweet_text,
    user_key,
    user_of,
)
from columnar.bench.address import Endpoint


@pytest.mark.parametrize(
    ("profile", "edges", "most", "p99", "p999"),
    [
        ("ci", 26_596, 1_363, 23, 144),
        ("kwak", 276_505, 8_531, 23, 139),
        ("heavy", 729_812, 54_871, 61, 607),
        ("eth_matched", 404_328, 22_880, 35, 264),
    ],
)
def test_followers_follow_the_power_law(profile: str, edges: int, most: int, p99: int, p999: int) -> None:
    found = degrees(PROFILES[profile])
    users = len(found)
    assert (sum(found), max(found), found[users * 99 // 100], found[users * 999 // 1_000]) == (edges, most, p99, p999)
    assert list(found) == sorted(found)


def test_followers_are_others_each_once_and_everybody_follows_somebody() -> None:
    graph = Graph(PROFILES["ci"])
    followed: Counter[int] = Counter()
    for user in range(graph.users):
        followers = graph.followers(user)
        assert len(set(followers)) == len(followers) == graph.degree(user)
        assert user not in followers
        followed.update(followers)
    assert followed.total() == graph.edges
    assert 1 <= min(followed.values()) <= max(followed.values()) <= 4


@pytest.mark.parametrize("profile", [QUICK, Profile("all follow", 0.01, 12)])
def test_follows_says_what_followers_lists(profile: Profile) -> None:
    graph = Graph(profile)
    for user in range(graph.users):
        listed = set(graph.followers(user))
        assert {other for other in range(graph.users) if graph.follows(other, user)} == listed


def test_keys_are_distinct_and_lead_back_to_their_users() -> None:
    keys = {user_key(user) for user in range(100_000)}
    assert len(keys) == 100_000
    assert {len(key) for key in keys} == {8}
    assert [user_of(user_key(user)) for user in (0, 1, 99_999)] == [0, 1, 99_999]


def test_authors_are_uniform_and_of_the_seed() -> None:
    graph = Graph(QUICK)
    one, other = Tweets(graph, 1), Tweets(graph, 2)
    authors = Counter(one.author(number) for number in range(30_000))
    assert len(authors) == graph.users
    assert max(authors.values()) < 2 * 30_000 / graph.users
    assert [one.author(number) for number in range(9)] != [other.author(number) for number in range(9)]


def test_a_tweet_begins_with_its_number_and_has_its_size() -> None:
    assert tweet_id(7) == b"0000000007"
    assert tweet_text(7).startswith(tweet_id(7))
    assert len(tweet_text(7)) == TWEET_BYTES


def test_the_burst_has_the_proportions_of_the_paper() -> None:
    assert [(phase.seconds, phase.rate) for phase in burst(1_000, 30)] == [(60, 460), (30, 2_000), (90, 460)]
    assert round(drain_bound_s(30), 1) == 55.6


def load(**more: object) -> Load:
    return Load("integrated", Endpoint("h", 1), "", QUICK, 1, 1_000, 8, (Phase(2.0, 5.0),), "", 1.0, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("users", "fans"), [(300, 2_000), (300, 300), (300, 7)])
def test_the_celebrity_is_a_user_more_whose_followers_may_be_no_other_users(users: int, fans: int) -> None:
    profile = Profile("p", 2.276, users, fans)
    graph, alone = Graph(profile), Graph(Profile("p", 2.276, users))
    assert (list(graph.authors())[-1], list(alone.authors())[-1]) == (graph.celebrity, users - 1)
    followers = graph.followers(graph.celebrity)
    assert len(set(followers)) == len(followers) == graph.degree(graph.celebrity) == fans
    assert {user for user in range(users + fans + 9) if graph.follows(user, graph.celebrity)} == set(followers)
    assert not any(graph.follows(user, 299) for user in range(users, users + fans + 9))
    assert graph.followers(5) == alone.followers(5)
    assert last_fan(profile) == max(map(user_key, followers))


def test_the_celebrity_tweets_every_ten_seconds_and_at_least_once() -> None:
    assert celebrity_times(60) == (1, 11, 21, 31, 41, 51)
    assert celebrity_times(15) == (1, 11)
    assert celebrity_times(0.5) == (0.05,)


def test_splits_and_merges_begin_every_second_and_twice_at_least() -> None:
    assert change_times(10) == tuple(range(1, 10))
    assert change_times(3) == (1, 2)
    assert [round(at_s, 3) for at_s in change_times(0.3)] == [0.1, 0.2]


def test_one_tweet_of_a_thousand_is_poison_and_four_of_a_short_run() -> None:
    assert [poison_every(tweets) for tweets in (60_000, 4_000, 400, 3)] == [1_000, 1_000, 100, 2]
    offsets, marked = load(poison_every=4).arrivals(array("q", range(10)))
    assert (list(offsets), marked) == (list(range(10)), Marked(poison=frozenset({1_002, 1_006})))


def test_the_tweets_of_the_celebrity_stand_among_the_others_at_their_time() -> None:
    offsets, marked = load(celebrity_s=(0.5, 1.5)).arrivals(array("q", [1, 500_000_001, 1_500_000_000]))
    assert list(offsets) == [1, 500_000_000, 500_000_001, 1_500_000_000]
    assert marked == Marked(celebrity=frozenset({1_001})), "no two tweets are due at once"
    _, both = load(celebrity_s=(0.5,), poison_every=2).arrivals(array("q", [1, 600_000_000, 700_000_000]))
    assert both == Marked(frozenset({1_001}), frozenset({1_003})), "the celebrity's are no poison"
    tweets = Tweets(Graph(QUICK), 1, marked)
    assert tweets.author(1_001) == QUICK.users
    assert tweets.author(1_000) == Tweets(Graph(QUICK), 1).author(1_000)


def test_poison_is_a_tweet_of_the_same_size_that_is_refused() -> None:
    tweets = Tweets(Graph(QUICK), 1, Marked(poison=frozenset({7})))
    assert len(tweets.text(7)) == TWEET_BYTES
    assert tweets.text(7) == poison_text(7)
    refuse_poison(tweets.text(8))
    with pytest.raises(PoisonError, match="0000000007"):
        refuse_poison(tweets.text(7))
