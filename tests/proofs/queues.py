"""python -m tests.proofs.queues: pushes, pops and commits of several clients while the store is killed again and again.

Each pusher pushes to queues in turn; half of its messages have names, and are pushed until the push is acknowledged.
Each consumer pops under a short lease, and commits, rolls back, extends or forgets what it got.  One queue is FIFO,
with a group for each pusher; from another one dead messages are moved, and consumed from there.  Regions of the table
split, merge and, with several servers, move meanwhile.  At the end the store has peace, and consumers take what is
left.

    lost        an acknowledged message that was never given out, and whose commit nobody asked for
    after end   a message that was given out by a pop that began after its commit was acknowledged
    two hands   a message that was given out to two consumers within a lease
    doubled     a message that was given out with two numbers, though it was pushed once or with a name; or from the
                queue of which it was moved
    order       a message of a FIFO group that was given out before an earlier one was committed
    strange     a message that nobody pushed, a count of a queue that is not what is there

Times are the clients': a lease lasts at least from the answer of its pop to the pop's call and ``LEASE_MS``, a margin
less.  The seed repeats the choices, not the moments of kills.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from columnar.client import Connection
from columnar.client.queues import QueueMessage, QueueStats
from columnar.model.queue_place import QUEUES_TABLE
from tests.proofs.asking import Lost, Refused, StoreClient, until_answered
from tests.proofs.cluster_asking import client_of
from tests.proofs.crew import work_together
from tests.proofs.kill_runs import LONGEST_S, judged, kill_command
from tests.proofs.killed_store import KilledStore
from tests.proofs.upheaval import Upheaval
from tests.proofs.verdict import Plan, Tell, Verdict

TABLE: Final = QUEUES_TABLE.encode()
QUEUES: Final = tuple(b"q%d" % number for number in range(5))
FIFO: Final = QUEUES[-1]
MORTAL, DEAD = QUEUES[2], b"q2-dead"  # messages of the first go to the second after ATTEMPTS
ATTEMPTS: Final = 2
LEASE_MS: Final = 1_500
MARGIN_S: Final = 0.05  # between the clocks of a client and of a region
WAITS_MS: Final = (0, 0, 50, 400)
PAUSE_S: Final = 0.004  # of a pusher after each push
BEHIND: Final = 2_000  # messages at which pushers wait for consumers
DRAIN_S: Final = 120.0


@dataclass(slots=True)
class Known:
    """All that clients know of one message."""

    queue: bytes
    pushed: bool = False  # acknowledged
    place: bytes = b""  # the queue that gave it out last
    number: str = ""  # there
    seen: bool = False  # it was given out
    commit_asked: bool = False
    committed_s: float | None = None  # when its commit was acknowledged
    held_s: tuple[float, float] | None = None  # somebody certainly has it from, until
    holder: int = 0
    attempts: int = 0


@dataclass
class Ledger:
    """The messages, and what is wrong with them.  Guarded by its lock."""

    verdict: Verdict
    messages: dict[bytes, Known] = field(default_factory=dict)
    open_count: int = 0  # acknowledged, with no commit that was asked for
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin_push(self, queue: bytes, body: bytes) -> None:
        with self.lock:
            self.messages[body] = Known(queue)

    def note_pushed(self, body: bytes) -> None:
        with self.lock:
            self.messages[body].pushed = True
            self.open_count += 1
            self.verdict.counts["pushed"] += 1
            self.verdict.done += 1

    def note_popped(self, consumer: int, queue: bytes, found: Sequence[QueueMessage], call_s: float) -> None:
        """Judge what a pop gave out; ``call_s`` is the time at which it was called."""
        now_s = time.monotonic()
        with self.lock:
            for message in found:
                self._judge(consumer, queue, message, call_s, now_s)

    def _judge(self, consumer: int, queue: bytes, message: QueueMessage, call_s: float, now_s: float) -> None:
        known = self.messages.get(message.body)
        if known is None or (known.queue != queue and (known.queue, queue) != (MORTAL, DEAD)):
            self.verdict.add(f"strange: {message!r} with {message.body!r} was never pushed to it")
            return
        self.verdict.counts["given out"] += 1
        if queue != known.place:
            if known.place == DEAD:
                self.verdict.add(f"doubled: {message!r} with {message.body!r} was moved away before")
            self.verdict.counts["moved"] += queue == DEAD
            known.place, known.number = queue, ""
        if known.committed_s is not None and known.committed_s < call_s:
            self.verdict.add(f"after end: {message!r} with {message.body!r}, committed before the pop")
        if known.held_s is not None and known.held_s[0] < call_s and now_s < known.held_s[1]:
            since = f"{known.holder} since attempt {known.attempts}, {call_s - known.held_s[0]:.3f} s before"
            self.verdict.add(f"two hands: {message!r} with {message.body!r} for {consumer}, held by {since}")
        if known.number not in ("", message.id):
            self.verdict.add(f"doubled: {message.body!r} is {message.id} and {known.number} in {queue!r}")
        if queue == FIFO:
            self._judge_order(message)
        known.number, known.seen, known.holder, known.attempts = message.id, True, consumer, message.attempts
        known.held_s = (now_s, call_s + LEASE_MS / 1_000 - MARGIN_S)

    def _judge_order(self, message: QueueMessage) -> None:
        pusher, _, number = message.body.partition(b"/")
        earlier = self.messages.get(b"%s/%d" % (pusher, _number_before(int(number))))
        if earlier is not None and earlier.pushed and not earlier.commit_asked:
            self.verdict.add(f"order: {message!r} with {message.body!r} before the message before it")

    def release(self, body: bytes) -> None:
        """Note that the message may be given out again: its lease is about to be ended."""
        with self.lock:
            self.messages[body].held_s = None

    def begin_commit(self, body: bytes) -> None:
        with self.lock:
            known = self.messages[body]
            self.open_count -= known.pushed and not known.commit_asked
            known.commit_asked, known.held_s = True, None

    def note_committed(self, body: bytes) -> None:
        with self.lock:
            known = self.messages[body]
            if known.committed_s is not None:
                self.verdict.add(f"after end: {body!r} was committed twice")
            known.committed_s = time.monotonic()
            self.verdict.counts["committed"] += 1

    def look_for_lost(self) -> None:
        for body, known in self.messages.items():
            if known.pushed and not known.commit_asked:
                self.verdict.add(f"lost: {body!r} of {known.queue!r}, {'given out' if known.seen else 'never seen'}")


def _number_before(number: int) -> int:
    """Return the number of the pusher's message before ``number`` that went to the same queue."""
    return number - len(QUEUES)


class Pusher:
    def __init__(self, number: int, client: StoreClient, ledger: Ledger, seed: int) -> None:
        self._name, self._client, self._ledger = b"p%d" % number, client, ledger
        self._rng = random.Random(f"pusher {number} {seed}")

    def run(self, stop: threading.Event) -> None:
        number = 0
        while not stop.wait(PAUSE_S if self._ledger.open_count < BEHIND else 10 * PAUSE_S):
            if self._ledger.open_count >= BEHIND:
                continue
            queue, body = QUEUES[number % len(QUEUES)], b"%s/%d" % (self._name, number)
            number += 1
            self._ledger.begin_push(queue, body)
            try:
                if queue == FIFO or self._rng.random() < 0.5:
                    until_answered(lambda queue=queue, body=body: self._push(queue, body, name=body))
                else:
                    self._push(queue, body)
            except (Lost, Refused):
                continue
            self._ledger.note_pushed(body)

    def _push(self, queue: bytes, body: bytes, name: bytes = b"") -> None:
        group = self._name if queue == FIFO else b""
        self._client.ask(lambda connection: connection.queue(queue).push(body, name=name, group=group))


class Consumer:
    def __init__(self, number: int, client: StoreClient, ledger: Ledger, seed: int) -> None:
        self._number, self._client, self._ledger = number, client, ledger
        self._rng = random.Random(f"consumer {number} {seed}")

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self.take(self._rng.choice((*QUEUES, DEAD)), self._rng.randrange(1, 12), self._rng.choice(WAITS_MS))

    def take(self, queue: bytes, count: int, wait_ms: int, *, commits: bool = False) -> int:
        """Pop messages and treat each; return how many there were, or -1 without an answer."""
        call_s = time.monotonic()
        try:
            found = self._client.ask(
                lambda connection: connection.queue(queue).pop(count, wait_ms=wait_ms, lease_ms=LEASE_MS)
            )
        except (Lost, Refused):
            self._ledger.verdict.counts["pops without an answer"] += 1
            return -1
        self._ledger.note_popped(self._number, queue, found, call_s)
        for message in found:
            self._treat(queue, message, 0.0 if commits else self._rng.random())
        return len(found)

    def _treat(self, queue: bytes, message: QueueMessage, chance: float) -> None:
        if message.body not in self._ledger.messages or chance > 0.92:
            return  # forgotten: its lease ends
        try:
            if chance > 0.80:
                self._ledger.release(message.body)
                self._settle(queue, message, "rollback", self._rng.choice((0, 0, 100)))
                return
            if chance > 0.75:
                self._settle(queue, message, "extend", LEASE_MS)
            self._ledger.begin_commit(message.body)
            if self._settle(queue, message, "commit", 0):
                self._ledger.note_committed(message.body)
        except (Lost, Refused):
            self._ledger.verdict.counts["settlements without an answer"] += 1

    def _settle(self, queue: bytes, message: QueueMessage, what: str, ms: int) -> bool:
        return self._client.ask(lambda connection: connection.queue(queue).settle([message], what, ms)[0])


def prove(store: KilledStore, plan: Plan, tell: Tell, is_over: Callable[[], bool]) -> Verdict:
    verdict = Verdict("queues", needed=("pushed", "committed"))
    verdict.counts = Counter()
    ledger = Ledger(verdict)
    clients = [client_of(store, TABLE) for _ in range(2 * plan.writers + 1)]
    pushers = [Pusher(number, clients[number], ledger, plan.seed) for number in range(plan.writers)]
    consumers = [Consumer(number, clients[plan.writers + number], ledger, plan.seed) for number in range(plan.writers)]
    stop = threading.Event()

    def look() -> None:
        shots = sum(store.shots.values())
        tell(f"{shots} shots, {verdict.counts['pushed']:,} pushed, {verdict.counts['committed']:,} committed")
        if (is_over() and verdict.has_some("pushed", "committed")) or verdict.problems:
            stop.set()

    begun = time.monotonic()
    with judged(store, verdict, clients):
        until_answered(lambda: clients[-1].ask(_prepare))
        split = (store, TABLE, lambda rng: rng.choice(QUEUES[1:]), plan.seed, plan.upheaval_pause_s)
        with Upheaval(*split) as upheaval:
            work_together([one.run for one in (*pushers, *consumers)], LONGEST_S, look, stop)
        verdict.seconds = time.monotonic() - begun
        verdict.against = upheaval.done
        store.peace()
        tell("taking what is left")
        _drain(consumers[0], clients[-1], ledger)
        ledger.look_for_lost()
    return verdict


def _prepare(connection: Connection) -> Any:
    for queue in QUEUES:
        is_mortal = queue == MORTAL
        connection.queue(queue).configure(
            lease_ms=LEASE_MS,
            fifo=queue == FIFO,
            attempts=ATTEMPTS if is_mortal else 0,
            dead_to=DEAD if is_mortal else b"",
        )


def _drain(consumer: Consumer, client: StoreClient, ledger: Ledger) -> None:
    """Take and commit all messages, until the counts of the queues say that there are none."""
    ends_s = time.monotonic() + DRAIN_S

    def stats(queue: bytes) -> QueueStats:
        return until_answered(lambda: client.ask(lambda connection: connection.queue(queue).stats()))

    for queue in (*QUEUES, DEAD):
        while (found := stats(queue)).messages or found.dead:
            consumer.take(queue, 200, LEASE_MS, commits=True)
            if time.monotonic() > ends_s:
                ledger.verdict.add(f"strange: {queue!r} should be empty {DRAIN_S:.0f} s after the last kill: {found}")
                break
        if found.ready or found.in_flight or consumer.take(queue, 200, 0, commits=True):
            ledger.verdict.add(f"strange: {queue!r} should be empty: {found}")


main = kill_command(
    "queues",
    prove,
    """Kill a store while clients push, pop and commit; no message is lost, none comes again, none is in two hands.

\b
  python -m tests.proofs.queues --kills 1000
  python -m tests.proofs.queues --kills 200 --servers 3 --every 3
    """,
    of_clients="Of each kind.",
)


if __name__ == "__main__":
    main()
