"""Waits for deliveries last their time, also if a server that stops answers early."""

from __future__ import annotations

from columnar.client.delivery_waits import CALL_MS, wait_within
from columnar.thrift.wait_methods import LONGEST_WAIT_MS


class Store:
    """Answers after so many ms each; the last answer is ``answer``."""

    def __init__(self, *lasts_ms: int, answer: bool) -> None:
        self.now_ms = 1_000
        self.called: list[int] = []
        self._left = list(lasts_ms)
        self._answer = answer

    def now_s(self) -> float:
        return self.now_ms / 1_000

    def wait(self, timeout_ms: int) -> bool:
        self.called.append(timeout_ms)
        self.now_ms += self._left.pop(0)
        return self._answer and not self._left


def test_a_server_that_ends_is_followed_by_the_next_one() -> None:
    store = Store(1_200, 500, 10, answer=True)
    assert wait_within(5_000, store.wait, store.now_s)
    assert store.called == [5_000, 3_800, 3_300]


def test_false_means_that_the_time_is_over() -> None:
    store = Store(1_200, 3_800, answer=False)
    assert not wait_within(5_000, store.wait, store.now_s)
    assert store.called == [5_000, 3_800]
    at_once = Store(0, answer=False)
    assert not wait_within(0, at_once.wait, at_once.now_s)
    assert at_once.called == [0]


def test_a_wait_that_is_longer_than_a_server_takes_is_several_calls() -> None:
    store = Store(600_000, 600_000, 70, answer=True)
    assert wait_within(1_800_000, store.wait, store.now_s)
    assert store.called == [600_000, 600_000, 600_000]
    assert CALL_MS == LONGEST_WAIT_MS
