"""The worker behind the queue of the ETH experiment: how often a tweet that raises is tried."""

from __future__ import annotations

from benchmarks.flows_worker import MAX_PAUSE_NS, Retries
from columnar.flows.delivery_state import pause_s

S = 1_000_000_000


def test_an_entry_is_tried_after_the_pauses_of_the_stores_own_triggers_until_its_last_attempt() -> None:
    retries, now, pauses = Retries(14), 7 * S, list[float]()
    while not retries.is_given_up(b"1-0", [b"a", b"x"], now):
        wait = retries.wait_ns(now)
        assert retries.due(now + wait - 1) == []
        assert retries.due(now + wait) == [(b"1-0", [b"a", b"x"])]
        now += wait
        pauses.append(wait / S)
    assert pauses == [pause_s(attempts) for attempts in range(1, 14)]
    assert retries.wait_ns(now) == MAX_PAUSE_NS, "nothing waits any more"
    assert not retries.is_given_up(b"1-0", [], now), "an entry that was given up begins anew"


def test_entries_are_counted_apart_and_come_in_the_order_of_their_times() -> None:
    retries = Retries(3)
    assert not retries.is_given_up(b"slow", [], 0)
    assert not retries.is_given_up(b"slow", [], 0)
    assert not retries.is_given_up(b"other", [], 10)
    assert [entry for entry, _ in retries.due(S)] == [b"slow", b"other", b"slow"]
    assert retries.is_given_up(b"slow", [], S)
    assert Retries(1).is_given_up(b"other", [], 0)
