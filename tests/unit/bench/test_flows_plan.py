"""The workload of the ETH experiment: its numbers are those of the specification."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.flows_plan import (
    PROFILES,
    QUICK,
    TWEET_BYTES,
    Graph,
    Profile,
    Tweets,
    burst,
    degrees,
    drain_bound_s,
    tweet_id,
    tweet_text,
    user_key,
    user_of,
)


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
