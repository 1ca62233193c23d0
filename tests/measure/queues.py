"""The rates of queues, the time of a pop beside many waiting messages, and what consumed messages leave behind.

    python -m tests.measure.queues [--seconds 5] [--connections 64] [--waiting 1000000] [--queues 2000] [--turnover 0]
                                   [--tenant 1000000] [--servers 1]

    pushes       of one message each, durable; in closed loop
    commits      a pop of one message and its commit
    pop          one connection: the pop alone, beside 100 messages that wait, and beside ``--waiting``
    queues       resident memory with so many queues in use, each with MESSAGES_EACH messages
    tenants      CONSUMERS consumers that take MESSAGE_MS for a message; a tenant pushes one each 50 ms: from the push
                 to the pop, alone and beside another tenant with ``--tenant`` messages in the queue
    turnover     so many messages pushed, popped and committed, 1,000 a call, beside LEVEL that wait: the pop of one
                 message before and after it, the size of the store's folder, and the first pop after kill -9

With --servers the store has several, and calls are forwarded between them.
A message has 100 bytes.  Compile first (``make compile``).
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from columnar.bench import calls
from columnar.bench.address import Endpoint
from columnar.bench.calls import Keyed
from columnar.bench.generator import Outcome, drive
from columnar.bench.protocols import FRAME_HEAD, BadReply
from columnar.bench.workloads import MORE_CALLS, Session
from columnar.client import Connection
from columnar.wire.idl import columnar
from gauge.histogram import percentiles_us
from gauge.machine import machine, now
from gauge.processes import resident_mb
from tests.support.cluster_process import ClusterProcess
from tests.support.standalone_store import StoreProcess

BODY: Final = b"m" * 100
BATCH: Final = 1_000
LEVEL: Final = 10_000  # messages that wait during the turnover
MESSAGES_EACH: Final = 200
WARM_UP_S: Final = 0.5
ONE_POP_S: Final = 3.0
PUSHES, COMMITS = 12_000, 8_000  # a second, asked for
CONSUMERS, MESSAGE_MS, TENANT_EACH_S, TENANT_DELAY_MS = 4, 2.0, 0.05, 20.0
POP_RATIO, FOLDER_MB, QUEUES_MB, TURNOVER_RATIO = 1.5, 100, 200, 1.2
_RECEIPT: Final = b"\x0b\x00\x02\x00\x00\x00\x10"  # the head of the field; the value follows
_PLACE: Final = b"?" * 16


def push_frame(queue: bytes) -> bytes:
    return calls.call("columnarQueuePush", queue, [columnar.QueueMessage(body=BODY, name=b"", group=b"", headers={})])


class Pushing:
    """A session of pushes."""

    def __init__(self, queue: bytes) -> None:
        self._frame = push_frame(queue)

    def first(self) -> bytes:
        return self._frame

    def take_reply(self, reply: bytes) -> tuple[bytes, int]:
        _refuse_failure(reply, "columnarQueuePush")
        return self._frame, 1


class Consuming:
    """A session of pops, each with its commit; ``level``: the pop alone is counted, and a push follows the commit."""

    def __init__(self, queue: bytes, *, keeps_level: bool = False) -> None:
        self._pop = calls.call("columnarQueuePop", queue, 1, 20_000, 0)
        self._commit = Keyed(calls.call("columnarQueueSettle", queue, [_PLACE], "commit", 0, b""), _PLACE)
        self._push = push_frame(queue)
        self._keeps_level = keeps_level
        self._awaits = "columnarQueuePop"

    def first(self) -> bytes:
        return self._pop

    def take_reply(self, reply: bytes) -> tuple[bytes, int]:
        _refuse_failure(reply, self._awaits)
        if self._awaits == "columnarQueuePop":
            at = reply.find(_RECEIPT)
            if at < 0:
                raise BadReply(reply)  # the queue is empty
            self._awaits = "columnarQueueSettle"
            at += len(_RECEIPT)
            return self._commit.frame(reply[at : at + 16]), 1 if self._keeps_level else MORE_CALLS
        if self._keeps_level and self._awaits == "columnarQueueSettle":
            self._awaits = "columnarQueuePush"
            return self._push, 0
        self._awaits = "columnarQueuePop"
        return self._pop, 0 if self._keeps_level else 1


def _refuse_failure(reply: bytes, method: str) -> None:
    """Raise BadReply unless ``reply`` is a list, as all three methods answer."""
    at = FRAME_HEAD + 12 + len(method)
    if reply[FRAME_HEAD + 3] != 2 or reply[at] != 15:
        raise BadReply(reply)


@dataclass(frozen=True, slots=True)
class Measured:
    store: StoreProcess
    connection: Connection
    folder: Path

    def load(self, sessions: list[Session], seconds: float) -> Outcome:
        endpoint = Endpoint("127.0.0.1", self.store.port)
        return drive(endpoint, sessions, WARM_UP_S, seconds, self.pids)

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(self.store.servers()) if isinstance(self.store, ClusterProcess) else (self.store.pid,)

    def fill(self, queue: str, count: int) -> None:
        target = self.connection.queue(queue)
        for start in range(0, count, BATCH):
            target.push_many([BODY] * min(BATCH, count - start))

    def pop_us(self, queue: str) -> int:
        """Return the median time of a pop of one message, while the number of messages stays."""
        return percentiles_us(self.load([Consuming(queue.encode(), keeps_level=True)], ONE_POP_S).latencies_us)["p50"]

    def turn_over(self, queue: str, count: int) -> None:
        target = self.connection.queue(queue)
        for _ in range(0, count, BATCH):
            target.push_many([BODY] * BATCH)
            popped = target.pop(BATCH)
            assert len(popped) == BATCH
            assert all(target.settle(popped))

    @property
    def folder_mb(self) -> float:
        return sum(one.stat().st_size for one in self.folder.rglob("*") if one.is_file()) / (1 << 20)


def rate(name: str, outcome: Outcome, asked: int) -> None:
    times = percentiles_us(outcome.latencies_us)
    print(
        f"{name:9} {outcome.rate:9,.0f} /s  p50 {times['p50'] / 1e3:6.2f} ms  p99 {times['p99'] / 1e3:6.2f} ms, "
        f"{outcome.server_us:5.1f} us of the store's processor, {outcome.cpu_share:.0%} of the generator's; "
        f"{asked:,} asked: {verdict(outcome.rate >= asked)}",
        flush=True,
    )


def verdict(is_met: bool) -> str:
    return "met" if is_met else "missed"


def measure(of: Measured, given: Any) -> None:
    names = [b"rates"] * given.connections
    of.connection.queue("rates").stats()
    rate("pushes", of.load([Pushing(name) for name in names], given.seconds), PUSHES)
    of.fill("rates", int(given.seconds + 2) * 20_000)
    rate("commits", of.load([Consuming(name) for name in names], given.seconds), COMMITS)
    if given.waiting:
        of.fill("few", 100)
        of.fill("many", given.waiting)
        few_us, many_us = of.pop_us("few"), of.pop_us("many")
        print(
            f"pop       {few_us} us beside 100 messages, {many_us} us beside {given.waiting:,}; at most {POP_RATIO} "
            f"times: {verdict(many_us <= POP_RATIO * few_us)}",
            flush=True,
        )


def measure_turnover(of: Measured, count: int) -> None:
    of.fill("turned", LEVEL)
    before_us = of.pop_us("turned")
    of.turn_over("turned", count)
    after_us, size_mb = of.pop_us("turned"), of.folder_mb
    print(
        f"turnover  of {count:,}: pop {before_us} us before and {after_us} us after it, at most {TURNOVER_RATIO} "
        f"times: {verdict(after_us <= TURNOVER_RATIO * before_us)}; folder {size_mb:.0f} MB, less than {FOLDER_MB}: "
        f"{verdict(size_mb < FOLDER_MB)}",
        flush=True,
    )
    of.store.kill()
    of.store.start()
    with Connection("127.0.0.1", of.store.port, timeout=60_000) as connection:
        connection.tables()
        begun = time.perf_counter()
        assert connection.queue("turned").pop()
        print(f"reopening {1e3 * (time.perf_counter() - begun):.1f} ms for the first pop after kill -9", flush=True)


def measure_queues(of: Measured, count: int) -> None:
    of.connection.queue("first").stats()
    before_mb = resident_mb(of.pids)
    for number in range(count):
        queue = of.connection.queue(f"q{number}")
        queue.push_many([BODY] * MESSAGES_EACH)
        assert queue.pop()
    more_mb = resident_mb(of.pids) - before_mb
    print(
        f"queues    {count:,} with {MESSAGES_EACH} messages each: {more_mb:.0f} MB more, less than {QUEUES_MB}: "
        f"{verdict(more_mb < QUEUES_MB)}",
        flush=True,
    )


def measure_tenants(of: Measured, count: int, seconds: float) -> None:
    """Measure what a tenant with ``count`` messages costs another tenant of the queue."""
    queue = of.connection.queue("tenants")
    alone_ms = tenant_delay_ms(of, seconds)
    for start in range(0, count, BATCH):
        queue.push_many([BODY] * min(BATCH, count - start), group=b"large")
    beside_ms = tenant_delay_ms(of, seconds)
    left = queue.stats().messages
    more_ms = beside_ms - alone_ms
    print(
        f"tenants   {alone_ms:.1f} ms alone, {beside_ms:.1f} ms beside {left:,} messages of another one: "
        f"{more_ms:.1f} ms more, at most {TENANT_DELAY_MS:.0f}: {verdict(more_ms <= TENANT_DELAY_MS)}",
        flush=True,
    )


def tenant_delay_ms(of: Measured, seconds: float) -> float:
    """Return the median time from before a tenant's push until a consumer has its message."""
    stop, popped_s = threading.Event(), dict[bytes, float]()

    def consume() -> None:
        with Connection("127.0.0.1", of.store.port, timeout=60_000) as connection:
            queue = connection.queue("tenants")
            while not stop.is_set():
                for message in queue.pop(wait_ms=200):
                    popped_s[message.body] = time.perf_counter()
                    time.sleep(MESSAGE_MS / 1e3)  # its work
                    message.commit()

    consumers = [threading.Thread(target=consume) for _ in range(CONSUMERS)]
    for one in consumers:
        one.start()
    queue, pushed_s = of.connection.queue("tenants"), dict[bytes, float]()
    begun_s = time.perf_counter()
    for number in range(int(seconds / TENANT_EACH_S)):
        time.sleep(max(0.0, begun_s + number * TENANT_EACH_S - time.perf_counter()))
        body = b"small %d" % number
        pushed_s[body] = time.perf_counter()
        queue.push(body, group=b"small")
    time.sleep(TENANT_EACH_S)
    stop.set()
    for one in consumers:
        one.join()
    missing = set(pushed_s) - set(popped_s)
    assert len(missing) <= 1, f"{len(missing)} messages were not popped in time"
    return median(popped_s[body] - at_s for body, at_s in pushed_s.items() if body in popped_s) * 1e3


def on_new_store(run: Callable[[Measured], None], servers: int) -> None:
    with tempfile.TemporaryDirectory(prefix="columnar-queues-") as name:
        folder = Path(name) / "data"
        with (
            (
                ClusterProcess(folder, servers, "--log-level", "error")
                if servers > 1
                else StoreProcess(folder, "--log-level", "error", is_forked=False)
            ) as store,
            Connection("127.0.0.1", store.port, timeout=60_000) as connection,
        ):
            run(Measured(store, connection, folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each rate")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--waiting", type=int, default=1_000_000, help="messages beside a pop; 0: not measured")
    parser.add_argument("--queues", type=int, default=2_000, help="in use; 0: not measured")
    parser.add_argument("--turnover", type=int, default=0, help="messages pushed, popped and committed")
    parser.add_argument("--tenant", type=int, default=1_000_000, help="messages of a large tenant; 0: not measured")
    parser.add_argument("--servers", type=int, default=1)
    given = parser.parse_args()
    print(f"{now()}, {machine()}")
    on_new_store(lambda of: measure(of, given), given.servers)
    if given.tenant:
        on_new_store(lambda of: measure_tenants(of, given.tenant, given.seconds), given.servers)
    if given.turnover:
        on_new_store(lambda of: measure_turnover(of, given.turnover), given.servers)
    if given.queues:
        on_new_store(lambda of: measure_queues(of, given.queues), given.servers)


if __name__ == "__main__":
    main()
