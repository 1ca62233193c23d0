"""kill -9 of the store while programs hold leases: tokens rise, no two programs hold one, and late writes are refused.

Holders are programs that stall: they keep the tokens of leases that they lost, and write with them.  All have one
clock, so what each believes can be compared.  COLUMNAR_SEED chooses the moments (it is printed).
"""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from thriftpy2.thrift import TException

from columnar.client import Connection, Expect, Put
from columnar.client.errors import DECLARED
from tests.support.deep import seeds
from tests.support.standalone_store import StoreProcess

KILLS = seeds("kills beside leases", deep=12, short=2)
SEED = int(os.environ.get("COLUMNAR_SEED", "20261128"))
HOLDERS, TTL_MS, ACQUISITIONS = 4, 150, 6
FAILURES = (*DECLARED, TException, OSError)
FENCE, VALUE = b"f:fence", b"f:v"


@dataclass
class Holding:
    token: int
    answered_s: float
    ends_s: float  # until then its holder counts on the lease


@dataclass
class Write:
    token: int
    sent_s: float
    answered_s: float
    applied: bool


@dataclass
class History:
    holdings: list[Holding] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    given: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


class Holder(threading.Thread):
    def __init__(self, store: StoreProcess, history: History, stop: threading.Event, seed: int, name: bytes) -> None:
        super().__init__()
        self._store, self._history, self._stopping = store, history, stop
        self._rng = random.Random(seed)
        self._holder = name
        self._tokens: list[int] = []
        self._last: Holding | None = None

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                with closing(Connection("127.0.0.1", self._store.port, timeout=20_000)) as connection:
                    while not self._stopping.is_set():
                        self._hold(connection)
            except FAILURES:
                self._stopping.wait(0.01)  # until the store serves again

    def _hold(self, connection: Connection) -> None:
        sent_s = time.monotonic()
        if self._last is not None:  # its own lease it gets anew, and the earlier token is dead
            self._last.ends_s = min(self._last.ends_s, sent_s)
        answer = connection.call("columnarLease", b"job", self._holder, TTL_MS, 0, 0)
        answered_s = time.monotonic()
        if not answer.held:
            self._stopping.wait(0.005)  # a holder that stalls, too: the lease is not its own then
        else:
            self._last = holding = Holding(answer.token, answered_s, sent_s + TTL_MS / 1_000)
            self._history.holdings.append(holding)
            self._history.given.release()
            self._tokens.append(answer.token)
            self._write(connection, answer.token)
            if self._rng.random() < 0.6:
                holding.ends_s = min(holding.ends_s, time.monotonic())
                connection.call("columnarLease", b"job", self._holder, 0, answer.token, 0)
            else:
                self._stopping.wait(TTL_MS / 1_000 * self._rng.uniform(0.5, 1.5))
        if self._tokens:
            self._write(connection, self._rng.choice(self._tokens[-3:]))

    def _write(self, connection: Connection, token: int) -> None:
        data = token.to_bytes(8, "big")
        sent_s = time.monotonic()
        result = connection.table("fenced").check_and_mutate(
            b"r", [Expect.fence(FENCE, data)], [Put(FENCE, data), Put(VALUE, data)]
        )
        self._history.writes.append(Write(token, sent_s, time.monotonic(), result.applied))


def test_leases_outlive_kills(tmp_path: Path) -> None:
    print(f"COLUMNAR_SEED={SEED}")
    rng, history, stop = random.Random(SEED), History(), threading.Event()
    with StoreProcess(tmp_path / "data") as store:
        with closing(Connection("127.0.0.1", store.port)) as connection:
            connection.create_table("fenced", {"f": {}})
        holders = [Holder(store, history, stop, rng.getrandbits(32), b"%d" % n) for n in range(HOLDERS)]
        for holder in holders:
            holder.start()
        try:
            for _ in range(KILLS):
                _await_given(history, rng.randrange(1, ACQUISITIONS))
                store.kill()
                store.start()
            _await_given(history, ACQUISITIONS)
        finally:
            stop.set()
            for holder in holders:
                holder.join(60)
        with closing(Connection("127.0.0.1", store.port)) as connection:
            last = connection.table("fenced").row(b"r")
    _judge(history, last)


def _await_given(history: History, count: int) -> None:
    for _ in range(count):
        assert history.given.acquire(timeout=60), "nobody gets the lease"


def _judge(history: History, last: dict[bytes, bytes]) -> None:
    holdings = sorted(history.holdings, key=lambda one: one.token)
    assert len({one.token for one in holdings}) == len(holdings), "a token was given twice"
    for earlier, later in pairwise(holdings):
        assert later.answered_s >= earlier.ends_s, f"two hold the lease: {earlier} {later}"
    applied = [one for one in history.writes if one.applied]
    assert len(applied) < len(history.writes), "no late write met its refusal"
    for late in applied:
        newer = [one for one in applied if one.token > late.token and one.answered_s < late.sent_s]
        assert not newer, f"{late} came after {newer[0]}"
    assert last[FENCE] == last[VALUE]
    assert int.from_bytes(last[FENCE], "big") >= max(one.token for one in applied)
