"""A drain by a command whose first answer is lost, because the node leads and resigns at once."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from columnar.client.cluster import ClusterChange
from columnar.client.errors import IOError, StoreIOError
from columnar.shell.connecting import Refused
from columnar.shell.node_drains import NodeDrain

LOST = StoreIOError(b"CallTimeoutException: the master ended before it answered")
UNKNOWN = StoreIOError(b"DoNotRetryIOException: there is no node n9")
EMPTY = ClusterChange("n1.1 has no servers", done=True, moves=(), remarks=(), regions_left=0)


class Answers(NodeDrain):
    """A drain whose calls have these outcomes; the last one repeats."""

    def __init__(self, *outcomes: ClusterChange | IOError) -> None:
        server = SimpleNamespace(patient=lambda _s: SimpleNamespace(close=lambda: None))
        super().__init__(server, "n1", until_restart=True)  # type: ignore[arg-type]
        self.outcomes = list(outcomes)
        self.calls = 0

    def request_drain(self, wait_s: float = 0.0) -> ClusterChange:
        self.calls += 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, IOError):
            raise outcome
        return outcome


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("columnar.shell.node_drains.POLL_S", 0.001)


def test_a_lost_answer_is_asked_for_again() -> None:
    drain = Answers(LOST, LOST, UNKNOWN, EMPTY)
    assert drain.begin_drain(time.monotonic() + 60) == EMPTY
    assert drain.calls == 4


def test_a_refusal_is_not_repeated() -> None:
    drain = Answers(UNKNOWN)
    with pytest.raises(StoreIOError, match="there is no node n9"):
        drain.begin_drain(time.monotonic() + 60)
    assert drain.calls == 1


def test_a_lost_answer_that_nobody_gives_again_is_said_at_the_end() -> None:
    with pytest.raises(Refused, match="no leader says whether the drain has begun"):
        Answers(LOST).begin_drain(time.monotonic())
