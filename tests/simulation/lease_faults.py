"""Deliberate faults of leases, each a switch of the simulated world of leases: the law must find every one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from columnar.coordination.election import Candidate
from columnar.coordination.lease import Answer, Done, LeaseHolder, LeaseTimes, LeaseWatcher

if TYPE_CHECKING:
    from tests.simulation.lease_world import LeaseWorld

FAULTS = {
    "margin": "a record is fenced as soon as it stood for the length of a lease, by the watcher's clock",
    "reply": "a lease is counted from the answer to its renewal, not from its sending",
    "before": "a server checks the lease before it does the work that it acknowledges, not after",
    "blind": "a record is deleted at whatever version it has",
    "leader": "a fence is not conditioned on the leader's own record",
    "counts": "a poll that failed, or came late, does not begin the counts anew",
    "observer": "an observer that leads counts on from its last poll of all records, seconds ago",
    "vacated-acts": "a leader that resigned acts on until its lease is over",
    "lift-unwritten": "a leader acts under a lifted epoch before its record has it",
    "withdrawn-early": "a node's record says that it withdrew before its server has ended",
    "unlisted": "a new leader does not wait for the leases of nodes without a record",
    "linked-logs": "the next owner's folder has the log of the former one itself, not a copy",
    "short-read": "the next owner takes a short read of a sealed log for its end",
}
# A seed that found the fault, where the first few do not; after a change of the world another one may.
FOUND_BY = {"margin": 42, "reply": 117, "before": 110, "leader": 24, "counts": 22, "observer": 35, "lift-unwritten": 14}


class _CountsFromReply(LeaseHolder):
    def on_answer(self, answer: Answer, now_ms: int) -> None:
        super().on_answer(answer, now_ms)
        if isinstance(answer, Done):
            self.until_ms = now_ms + self._times.lease_ms


class _GoesOnCounting(LeaseWatcher):
    def on_polled(self, versions: dict[str, int], now_ms: int) -> frozenset[str]:  # type: ignore[override]
        if self._polled_ms is not None:
            self._polled_ms = now_ms
        return super().on_polled(versions, now_ms)

    def on_poll_failed(self) -> None:
        """Forget nothing."""


class _NeverVacates(Candidate):
    """A candidate whose leadership goes on after it has resigned, by its own clock."""

    def __init__(self, world: LeaseWorld, key: str) -> None:
        super().__init__(world.times, world.nonce, key=key)
        self._past_ms = 0

    def resign(self, now_ms: int) -> None:
        self._past_ms = self.until_ms
        super().resign(now_ms)

    def leads(self, now_ms: int) -> bool:
        return super().leads(now_ms) or now_ms < self._past_ms


def times_of(fault: str | None) -> LeaseTimes:
    times = LeaseTimes.of_lease()
    return replace(times, fence_ms=times.lease_ms) if fault == "margin" else times


def holder_of(world: LeaseWorld, key: str, nonce: str) -> LeaseHolder:
    made = _CountsFromReply if world.fault == "reply" else LeaseHolder
    return made(key, nonce, world.times)


def candidate_of(world: LeaseWorld, *, is_observer: bool) -> Candidate:
    key = "nodes/observer.0" if is_observer else ""
    if world.fault == "vacated-acts":
        return _NeverVacates(world, key)
    candidate = Candidate(world.times, world.nonce, key=key)
    if world.fault == "counts" or (world.fault == "observer" and is_observer):
        candidate.members._watcher = _GoesOnCounting(world.times)
    return candidate
