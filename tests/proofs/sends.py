"""python -m tests.proofs.sends: changes of rows that send messages, while the store is killed again and again.

Each changer changes rows of its own, one after the other, and each change puts a cell with its number and sends
that number to queues and to a topic.  Some changes have a condition that fails, and some are of two rows of a group.
Consumers pop and commit what comes, and a reader follows the topic.  Regions of the rows, the queues and the topic
split, merge and, with several servers, move meanwhile.  At the end the store has peace; rows and messages are compared.

    lost        a change whose cell is there, and one of whose messages never came
    doubled     a message that came under two numbers of its queue, or at two offsets of the topic
    strange     a message of a change whose cell is not there, or that was refused by its condition
    order       messages of a row in a queue, or in the topic, that are numbered against the order of its changes
    gone        an acknowledged change whose cell is not there

The seed repeats the choices, not the moments of kills.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from columnar.client import Connection, Expect, Put, Send
from columnar.model.queue_place import QUEUES_TABLE
from columnar.model.topic import TOPICS_TABLE
from tests.proofs.asking import Lost, Refused, StoreClient, until_answered
from tests.proofs.cluster_asking import client_of
from tests.proofs.crew import work_together
from tests.proofs.kill_runs import LONGEST_S, judged, kill_command
from tests.proofs.killed_store import KilledStore
from tests.proofs.upheaval import Upheaval
from tests.proofs.verdict import Plan, Tell, Verdict

TABLE: Final = b"sent"
QUEUES: Final = tuple(b"q%d" % number for number in range(3))
TOPIC: Final = "records"
RECORDS: Final = b"topic:records"
TARGETS: Final = (*(b"queue:" + queue for queue in QUEUES), RECORDS)
PARTITIONS: Final = 3
GROUPS: Final = 8  # of rows, of each changer
PAUSE_S: Final = 0.003  # of a changer after each change
BEHIND: Final = 3_000  # changes whose messages have not come, at which changers wait
LEASE_MS: Final = 3_000  # then a message whose pop or commit was lost comes again, under its number
DRAIN_S: Final = 120.0


@dataclass(slots=True)
class Known:
    """All that clients know of one change."""

    row: bytes
    targets: tuple[bytes, ...]
    outcome: str = "unknown"  # or acknowledged, refused
    numbers: dict[bytes, int] = field(default_factory=dict)  # of its messages, by target


@dataclass
class Ledger:
    """The changes, and what is wrong with them.  Guarded by its lock."""

    verdict: Verdict
    changes: dict[bytes, Known] = field(default_factory=dict)
    came: set[tuple[bytes, bytes]] = field(default_factory=set)  # target and body of each message that came
    open_count: int = 0  # messages of acknowledged changes, less those that came
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin_change(self, body: bytes, row: bytes, targets: tuple[bytes, ...]) -> None:
        with self.lock:
            self.changes[body] = Known(row, targets)

    def end_change(self, body: bytes, outcome: str) -> None:
        with self.lock:
            known = self.changes[body]
            known.outcome = outcome
            self.verdict.counts[f"changes {outcome}"] += 1
            if outcome == "acknowledged":
                self.open_count += len(known.targets)
                self.verdict.done += 1

    def note_message(self, target: bytes, body: bytes, number: int) -> None:
        with self.lock:
            known = self.changes.get(body)
            if known is None or target not in known.targets:
                self.verdict.add(f"strange: {body!r} in {target!r}, which nobody sent to it")
                return
            before = known.numbers.setdefault(target, number)
            if before != number:
                self.verdict.add(f"doubled: {body!r} in {target!r} is {before} and {number}")
            elif (target, body) not in self.came:
                self.came.add((target, body))
                self.verdict.counts["messages"] += 1
                self.open_count -= 1

    def judge(self, cells: set[bytes]) -> None:
        """Compare the messages with the cells that are in the rows at the end."""
        for body, known in self.changes.items():
            if known.outcome == "acknowledged" and body not in cells:
                self.verdict.add(f"gone: {body!r} of {known.row!r}")
            if known.numbers and (body not in cells or known.outcome == "refused"):
                self.verdict.add(f"strange: {body!r} came, {known.outcome}, its cell is {body in cells}")
            for target in known.targets:
                if body in cells and target not in known.numbers:
                    self.verdict.add(f"lost: {body!r} of {known.row!r} for {target!r}, {known.outcome}")
        self._judge_order()

    def _judge_order(self) -> None:
        last: dict[tuple[bytes, bytes], tuple[int, bytes]] = {}
        for body, known in self.changes.items():  # those of a row in their order: one changer makes them
            for target, number in known.numbers.items():
                before = last.get((known.row, target))
                if before is not None and before[0] > number:
                    self.verdict.add(f"order: {body!r} is before {before[1]!r} of {known.row!r} in {target!r}")
                last[known.row, target] = number, body

    def missing(self, cells: set[bytes]) -> int:
        """Return how many messages of changes whose cells are there have not come."""
        with self.lock:
            wanted = [known for body, known in self.changes.items() if body in cells]
            return sum(len(known.targets) - len(known.numbers) for known in wanted)


class Changer:
    def __init__(self, number: int, client: StoreClient, ledger: Ledger, seed: int) -> None:
        self._name, self._client, self._ledger = b"c%d" % number, client, ledger
        self._rng = random.Random(f"changer {number} {seed}")
        self._number = 0

    def run(self, stop: threading.Event) -> None:
        while not stop.wait(PAUSE_S if self._ledger.open_count < BEHIND else 10 * PAUSE_S):
            if self._ledger.open_count < BEHIND:
                self._change()

    def _change(self) -> None:
        group = b"%s-%02d" % (self._name, self._rng.randrange(GROUPS))
        bodies = [self._begin(group + b"/%d" % part) for part in range(1 if self._rng.random() < 0.8 else 2)]
        is_met = self._rng.random() < 0.8
        wanted = [Expect.absent(b"f:never")] if is_met else [Expect.exists(b"f:never")]
        rows = {}
        for body in bodies:
            known = self._ledger.changes[body]
            sends = [Send(one, body, key=known.row if one == RECORDS else b"") for one in known.targets]
            rows[known.row] = (wanted if body is bodies[-1] else [], [Put(b"f:" + body, b""), *sends])

        def change(connection: Connection) -> bool:
            table = connection.table(TABLE)
            if len(rows) > 1:
                return table.mutate_group(rows).applied
            ((row, given),) = rows.items()
            return table.check_and_mutate(row, *given).applied

        try:
            is_applied = self._client.ask(change)
        except Lost:
            outcome = "unknown"
        except Refused:
            outcome = "refused"
        else:
            outcome = "acknowledged" if is_applied else "refused"
            if is_applied != is_met:
                self._ledger.verdict.add(f"strange: {bodies} is applied: {is_applied}, its condition holds: {is_met}")
        for body in bodies:
            self._ledger.end_change(body, outcome)

    def _begin(self, row: bytes) -> bytes:
        body = b"%s.%d" % (self._name, self._number)
        self._number += 1
        self._ledger.begin_change(body, row, tuple(self._rng.sample(TARGETS, self._rng.randrange(1, 3))))
        return body


class Consumer:
    def __init__(self, number: int, client: StoreClient, ledger: Ledger, seed: int) -> None:
        self._client, self._ledger = client, ledger
        self._rng = random.Random(f"consumer {number} {seed}")

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self.take(self._rng.choice(QUEUES), self._rng.choice((0, 100)))

    def take(self, queue: bytes, wait_ms: int) -> int:
        """Pop and commit messages; return how many there were, or -1 without an answer."""
        try:
            found = self._client.ask(
                lambda connection: connection.queue(queue).pop(100, wait_ms=wait_ms, lease_ms=LEASE_MS)
            )
        except (Lost, Refused):
            return -1
        for message in found:
            self._ledger.note_message(b"queue:" + queue, message.body, int(message.id))
        if found:
            try:
                self._client.ask(lambda connection: connection.queue(queue).settle(found))
            except (Lost, Refused):
                self._ledger.verdict.counts["commits without an answer"] += 1
        return len(found)


class Reader:
    """Follows the topic; the number of a record is its partition and its offset."""

    def __init__(self, client: StoreClient, ledger: Ledger) -> None:
        self._client, self._ledger = client, ledger
        self._offsets = dict.fromkeys(range(PARTITIONS), 0)

    def run(self, stop: threading.Event) -> None:
        while not stop.wait(0.05):
            self.take()

    def take(self) -> int:
        """Read records; return how many there were, or -1 without an answer."""
        count = 0
        for partition in self._offsets:
            try:
                found = self._client.ask(
                    lambda connection, partition=partition: connection.topic(TOPIC).read(
                        partition, self._offsets[partition]
                    )
                )
            except (Lost, Refused):
                return -1
            for record in found:
                if record.offset != self._offsets[partition]:
                    self._ledger.verdict.add(f"strange: offset {record.offset} of partition {partition} after a gap")
                self._ledger.note_message(RECORDS, record.value or b"", partition << 40 | record.offset)
                self._offsets[partition] = record.offset + 1
            count += len(found)
        return count


def prove(store: KilledStore, plan: Plan, tell: Tell, is_over: Callable[[], bool]) -> Verdict:
    verdict = Verdict("sends", needed=("changes acknowledged", "messages"))
    verdict.counts = Counter()
    ledger = Ledger(verdict)
    clients = [client_of(store, TABLE) for _ in range(plan.writers + 4)]
    changers = [Changer(number, clients[number], ledger, plan.seed) for number in range(plan.writers)]
    consumers = [Consumer(number, clients[plan.writers + number], ledger, plan.seed) for number in range(2)]
    reader = Reader(clients[plan.writers + 2], ledger)
    stop = threading.Event()

    def look() -> None:
        shots = sum(store.shots.values())
        changed, came = verdict.counts["changes acknowledged"], verdict.counts["messages"]
        tell(f"{shots} shots, {changed:,} changes, {came:,} messages")
        if (is_over() and verdict.has_some("changes acknowledged")) or verdict.problems:
            stop.set()

    begun = time.monotonic()
    with judged(store, verdict, clients):
        until_answered(lambda: clients[-1].ask(_prepare))
        topic = until_answered(lambda: clients[-1].ask(lambda connection: connection.topics.describe(TOPIC)))
        tables: tuple[tuple[bytes, Callable[[random.Random], bytes]], ...] = (
            (TABLE, lambda rng: b"c%d-%02d/" % (rng.randrange(plan.writers), rng.randrange(GROUPS))),
            (QUEUES_TABLE.encode(), lambda rng: rng.choice(QUEUES[1:])),
            (TOPICS_TABLE.encode(), lambda rng: topic.key(rng.randrange(1, PARTITIONS))),
        )
        with ExitStack() as stack:
            upheavals = [
                stack.enter_context(
                    Upheaval(store, table, row, plan.seed + number, (1 + number) * plan.upheaval_pause_s)
                )
                for number, (table, row) in enumerate(tables)
            ]
            work_together([one.run for one in (*changers, *consumers, reader)], LONGEST_S, look, stop)
        verdict.seconds = time.monotonic() - begun
        verdict.against = sum([one.done for one in upheavals], Counter[str]())
        store.peace()
        tell("taking what is left")
        cells = until_answered(lambda: clients[-1].ask(_cells))
        _drain(consumers[0], reader, ledger, cells)
        ledger.judge(cells)
    return verdict


def _prepare(connection: Connection) -> Any:
    if TABLE not in connection.admin.tables():
        connection.admin.create_table(TABLE, {"f": {}}, attributes={"SENDS": "true", "ROW_GROUP": "until:/"})
    connection.topics.create(TOPIC, PARTITIONS)
    for queue in QUEUES:
        connection.queue(queue).stats()


def _cells(connection: Connection) -> set[bytes]:
    """Return the bodies of all changes whose cells are there."""
    return {column[2:] for _, cells in connection.table(TABLE).scan() for column in cells}


def _drain(consumer: Consumer, reader: Reader, ledger: Ledger, cells: set[bytes]) -> None:
    """Take messages until all that should be there have come, and show that there are no more."""
    ends_s = time.monotonic() + DRAIN_S
    while ledger.missing(cells) and time.monotonic() < ends_s:
        reader.take()
        for queue in QUEUES:
            consumer.take(queue, 100)
    while reader.take():
        pass
    for queue in QUEUES:
        while consumer.take(queue, 500):
            pass


main = kill_command(
    "sends",
    prove,
    """Kill a store while changes of rows send messages; each is sent once if, and only if, its row changed.

\b
  python -m tests.proofs.sends --kills 1000
  python -m tests.proofs.sends --kills 200 --servers 3 --every 3
    """,
    of_clients="That change rows.",
)


if __name__ == "__main__":
    main()
