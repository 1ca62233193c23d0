"""python -m tests.proofs.leases: holders of leases that stall, while the store is killed and its regions are moved.

Each holder acquires leases in turn, some of them by waiting; it writes with the token, renews, releases, or stalls past
the end of its lease, and writes with tokens that it lost.  Regions of the leases' table split, merge and, with several
servers, move meanwhile.

    twice       a token of a lease that two acquisitions were answered with
    two hold    a holder that was answered while an earlier one still counted on the lease
    backwards   a token that is no higher than one that was answered before its call
    unfenced    a write with a token that was done after one with a later token

All holders have one clock.  The seed repeats the choices, not the moments of kills.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from columnar.client import Connection, Expect, Put
from columnar.model.lease import LEASES_TABLE, TOKEN_BYTES
from tests.proofs.asking import Lost, Refused, StoreClient, until_answered
from tests.proofs.cluster_asking import client_of
from tests.proofs.crew import work_together
from tests.proofs.kill_runs import LONGEST_S, judged, kill_command
from tests.proofs.killed_store import KilledStore
from tests.proofs.upheaval import Upheaval
from tests.proofs.verdict import Plan, Tell, Verdict

TABLE: Final = LEASES_TABLE.encode()
FENCED: Final = b"fenced"
LEASES: Final = tuple(b"job%d" % number for number in range(3))
TTL_MS: Final = 400
WAITS_MS: Final = (0, 0, 300, 1_000)
FENCE, VALUE = b"f:fence", b"f:v"
LATE_TOKENS: Final = 3  # of a lease, with which a holder that lost it still writes


@dataclass(slots=True)
class Holding:
    """An acquisition that was answered."""

    token: int
    sent_s: float
    answered_s: float
    ends_s: float  # until then its holder counts on the lease


@dataclass(frozen=True, slots=True)
class FencedWrite:
    """A write that was answered, and was done."""

    token: int
    sent_s: float
    answered_s: float


@dataclass(slots=True)
class LeaseHistory:
    """What holders saw of one lease; lists are appended to by all of them."""

    holdings: list[Holding] = field(default_factory=list)
    writes: list[FencedWrite] = field(default_factory=list)

    def problems(self, name: bytes) -> list[str]:
        by_token = sorted(self.holdings, key=lambda one: one.token)
        found = [f"twice: {name!r} {one}" for one, other in pairwise(by_token) if one.token == other.token]
        found += [
            f"two hold: {name!r} {earlier} {later}"
            for earlier, later in pairwise(by_token)
            if later.answered_s < earlier.ends_s
        ]
        found += _out_of_order("backwards", name, self.holdings)
        return found + _out_of_order("unfenced", name, self.writes)


def _out_of_order(kind: str, name: bytes, steps: Sequence[Holding | FencedWrite]) -> list[str]:
    """Return a problem for each step whose token is below that of a step that was answered before it was sent."""
    found, highest, ended = [], 0, sorted(steps, key=lambda one: one.answered_s)
    at = 0
    for step in sorted(steps, key=lambda one: one.sent_s):
        while at < len(ended) and ended[at].answered_s < step.sent_s:
            highest = max(highest, ended[at].token)
            at += 1
        if step.token < highest:
            found.append(f"{kind}: {name!r} {step} after token {highest}")
    return found


class Holder:
    def __init__(
        self, number: int, client: StoreClient, histories: dict[bytes, LeaseHistory], verdict: Verdict, seed: int
    ) -> None:
        self._holder, self._client, self._histories, self._verdict = b"h%d" % number, client, histories, verdict
        self._rng = random.Random(f"holder {number} {seed}")
        self._tokens: dict[bytes, list[int]] = {name: [] for name in LEASES}
        self._last: dict[bytes, Holding] = {}

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            name = self._rng.choice(LEASES)
            try:
                self._hold(name, stop)
                if self._tokens[name]:
                    self._write(name, self._rng.choice(self._tokens[name][-LATE_TOKENS:]))
            except (Lost, Refused):
                self._verdict.counts["calls without an answer"] += 1
                stop.wait(0.01)

    def _hold(self, name: bytes, stop: threading.Event) -> None:
        wait_ms, sent_s = self._rng.choice(WAITS_MS), time.monotonic()
        self._end(name, sent_s)  # a holder gets its own lease anew, and the earlier token is dead
        answer = self._lease(name, TTL_MS, 0, wait_ms)
        if not answer.held:
            stop.wait(0.005)
            return
        # Nobody knows when within a call that waits the lease was given: only a renewal's time counts.
        holding = Holding(answer.token, sent_s, time.monotonic(), 0.0 if wait_ms else sent_s + TTL_MS / 1_000)
        self._histories[name].holdings.append(holding)
        self._last[name] = holding
        self._tokens[name].append(answer.token)
        self._verdict.counts["acquired"] += 1
        self._verdict.done += 1
        self._write(name, answer.token)
        while self._rng.random() < 0.4 and self._renew(name, holding):
            stop.wait(TTL_MS / 1_000 * self._rng.uniform(0.1, 0.5))
        if self._rng.random() < 0.5:
            self._end(name, time.monotonic())
            self._lease(name, 0, answer.token, 0)
        else:
            stop.wait(TTL_MS / 1_000 * self._rng.uniform(0.3, 1.3))

    def _renew(self, name: bytes, holding: Holding) -> bool:
        sent_s = time.monotonic()
        answer = self._lease(name, TTL_MS, holding.token, 0)
        if answer.held:
            holding.ends_s = max(holding.ends_s, sent_s + TTL_MS / 1_000)
            self._verdict.counts["renewed"] += 1
        return bool(answer.held)

    def _end(self, name: bytes, now_s: float) -> None:
        last = self._last.pop(name, None)
        if last is not None:
            last.ends_s = min(last.ends_s, now_s)

    def _lease(self, name: bytes, ttl_ms: int, token: int, wait_ms: int) -> Any:
        return self._client.ask(
            lambda connection: connection.call("columnarLease", name, self._holder, ttl_ms, token, wait_ms)
        )

    def _write(self, name: bytes, token: int) -> None:
        data, sent_s = token.to_bytes(TOKEN_BYTES, "big"), time.monotonic()
        step = [Expect.fence(FENCE, data)], [Put(FENCE, data), Put(VALUE, data)]
        done = self._client.ask(lambda connection: connection.table(FENCED).check_and_mutate(name, *step))
        if done.applied:
            self._histories[name].writes.append(FencedWrite(token, sent_s, time.monotonic()))
        self._verdict.counts["written" if done.applied else "late writes refused"] += 1


def prove(store: KilledStore, plan: Plan, tell: Tell, is_over: Callable[[], bool]) -> Verdict:
    verdict = Verdict("leases", needed=("acquired", "renewed", "written", "late writes refused"))
    verdict.counts = Counter()
    histories = {name: LeaseHistory() for name in LEASES}
    clients = [client_of(store, TABLE) for _ in range(plan.writers + 1)]
    holders = [Holder(number, clients[number], histories, verdict, plan.seed) for number in range(plan.writers)]
    stop = threading.Event()

    def look() -> None:
        tell(f"{sum(store.shots.values())} shots, {verdict.counts['acquired']:,} acquired")
        if is_over() and verdict.has_some("acquired", "renewed", "written"):
            stop.set()

    begun = time.monotonic()
    with judged(store, verdict, clients):
        until_answered(lambda: clients[-1].ask(_prepare))
        split = (store, TABLE, lambda rng: rng.choice(LEASES[1:]), plan.seed, plan.upheaval_pause_s)
        with Upheaval(*split) as upheaval:
            work_together([one.run for one in holders], LONGEST_S, look, stop)
        verdict.against = upheaval.done
    verdict.seconds = time.monotonic() - begun
    for name, history in histories.items():
        for problem in history.problems(name):
            verdict.add(problem)
    return verdict


def _prepare(connection: Connection) -> None:
    if FENCED not in connection.tables():
        connection.create_table(FENCED, {"f": {}})
    connection.call("columnarLease", LEASES[0], b"", 0, 0, 0)


main = kill_command(
    "leases",
    prove,
    """Kill a store while clients hold leases: no two hold one, tokens rise, and late writes are refused.

\b
  python -m tests.proofs.leases --kills 1000
  python -m tests.proofs.leases --kills 200 --servers 3 --every 3
    """,
    clients=4,
    least_clients=2,
)


if __name__ == "__main__":
    main()
