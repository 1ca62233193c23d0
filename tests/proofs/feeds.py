"""python -m tests.proofs.feeds: the changes of a table in a topic while the store is killed.

Each writer puts rising numbers into rows of its own, and puts a number whose outcome it does not know again.  A feed
writes the changes into a topic.  Regions of the table and of the topic split, merge and, with several servers, move
meanwhile.  At the end the store has peace, the feed catches up, and the topic is read.

    lost        an acknowledged number that the topic does not have
    doubled     a change, named by its sequence, that the topic has twice
    order       numbers of a row that are not in their order, or a row in two partitions
    torn        a message whose row before the change is not the row after the message before it
    strange     a number that nobody put
    stuck       a feed that does not catch up

The seed repeats the choices, not the moments of kills.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from columnar.client import Connection
from columnar.client.topics import ReadRecord
from columnar.model.topic import TOPICS_TABLE
from tests.proofs.asking import Lost, Refused, StoreClient, until_answered
from tests.proofs.cluster_asking import client_of
from tests.proofs.crew import work_together
from tests.proofs.kill_runs import LONGEST_S, judged, kill_command
from tests.proofs.killed_store import KilledStore
from tests.proofs.topic_logs import read_log
from tests.proofs.upheaval import Upheaval
from tests.proofs.verdict import Plan, Tell, Verdict

TABLE: Final = b"fed"
TOPIC: Final = "fed.changes"
PARTITIONS: Final = 4
ROWS: Final = 8  # of a writer
COLUMN: Final = b"m:n"
PAUSE_S: Final = 0.002  # of a writer after each put
CATCH_UP_S: Final = 120.0


@dataclass
class Ledger:
    """What was put, and what was acknowledged.  Guarded by its lock."""

    verdict: Verdict
    put: dict[bytes, int] = field(default_factory=dict)  # row -> the last number
    acknowledged: dict[bytes, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note_put(self, row: bytes, number: int) -> None:
        with self.lock:
            self.put[row] = number

    def note_acknowledged(self, row: bytes, number: int) -> None:
        with self.lock:
            self.acknowledged[row] = number
            self.verdict.counts["acknowledged"] += 1
            self.verdict.done += 1

    def is_written(self, records: Iterable[ReadRecord]) -> bool:
        """Tell whether the topic has the last acknowledged number of each row."""
        last = {record.key: int(json.loads(record.value or b"{}")["after"][COLUMN.decode()]) for record in records}
        return all(last.get(row, -1) >= number for row, number in self.acknowledged.items())

    def judge_topic(self, records: Iterable[ReadRecord]) -> None:
        """Judge all records of the topic, those of a partition in their order."""
        by_row: dict[bytes, list[ReadRecord]] = {}
        sequences: Counter[bytes | None] = Counter()
        for record in records:
            by_row.setdefault(record.key or b"", []).append(record)
            sequences[dict(record.headers)["sequence"]] += 1
        self.verdict.counts["in the topic"] = sequences.total()
        for sequence, count in sequences.items():
            if count > 1:
                self.verdict.add(f"doubled: change {sequence!r} is {count} times in the topic")
        for row in self.acknowledged.keys() - by_row.keys():
            self.verdict.add(f"lost: each of the changes of row {row!r}")
        for row, found in by_row.items():
            self._judge_row(row, found)

    def _judge_row(self, row: bytes, records: list[ReadRecord]) -> None:
        numbers: list[int] = []
        last: object = None
        if len({record.partition for record in records}) > 1:
            self.verdict.add(f"order: row {row!r} is in several partitions")
        for record in records:
            message = json.loads(record.value or b"{}")
            if message["before"] != last:
                self.verdict.add(f"torn: {record.headers} of row {row!r} comes after {last}")
            last = message["after"]
            numbers.append(int(message["after"][COLUMN.decode()]))
        if numbers != sorted(numbers):
            self.verdict.add(f"order: the numbers of row {row!r} are {numbers}")
        missing = sorted(set(range(self.acknowledged.get(row, -1) + 1)) - set(numbers))
        if missing:
            self.verdict.add(f"lost: {missing} of row {row!r}")
        if max(numbers) > self.put.get(row, -1):
            self.verdict.add(f"strange: {max(numbers)} of row {row!r}")


class Writer:
    def __init__(self, number: int, client: StoreClient, ledger: Ledger, seed: int) -> None:
        self._client, self._ledger = client, ledger
        self._rng = random.Random(f"writer {number} {seed}")
        self._rows = [b"%02x-%d" % (self._rng.randrange(256), number * ROWS + row) for row in range(ROWS)]

    def run(self, stop: threading.Event) -> None:
        numbers = dict.fromkeys(self._rows, 0)
        while not stop.wait(PAUSE_S):
            row = self._rng.choice(self._rows)
            number = numbers[row]
            numbers[row] += 1
            self._ledger.note_put(row, number)
            until_answered(lambda row=row, number=number: self._put(row, number))
            self._ledger.note_acknowledged(row, number)

    def _put(self, row: bytes, number: int) -> None:
        try:
            self._client.ask(lambda connection: connection.table(TABLE).put(row, {COLUMN: b"%d" % number}))
        except (Lost, Refused):
            self._ledger.verdict.counts["put again"] += 1
            raise


def prove(store: KilledStore, plan: Plan, tell: Tell, is_over: Callable[[], bool]) -> Verdict:
    verdict = Verdict("feeds", needed=("acknowledged", "in the topic"))
    verdict.counts = Counter()
    ledger = Ledger(verdict)
    clients = [client_of(store, TABLE) for _ in range(plan.writers + 1)]
    writers = [Writer(number, clients[number], ledger, plan.seed) for number in range(plan.writers)]
    stop = threading.Event()

    def look() -> None:
        tell(f"{sum(store.shots.values())} shots, {verdict.counts['acknowledged']:,} acknowledged")
        if (is_over() and verdict.has_some("acknowledged")) or verdict.problems:
            stop.set()

    begun = time.monotonic()
    with judged(store, verdict, clients):
        keys = until_answered(lambda: clients[-1].ask(_prepare))
        of_table = (store, TABLE, lambda rng: b"%02x" % rng.randrange(256), plan.seed, plan.upheaval_pause_s)
        topics = TOPICS_TABLE.encode()
        of_topic = (store, topics, lambda rng: rng.choice(keys), plan.seed + 1, plan.upheaval_pause_s)
        with Upheaval(*of_table) as upheaval, Upheaval(*of_topic) as other:
            work_together([one.run for one in writers], LONGEST_S, look, stop)
        verdict.seconds = time.monotonic() - begun
        verdict.against = upheaval.done + other.done
        store.peace()
        tell("waiting for the feed")
        ledger.judge_topic(_caught_up(clients[-1], ledger))
    return verdict


def _prepare(connection: Connection) -> list[bytes]:
    if TABLE not in connection.admin.tables():
        connection.admin.create_table(TABLE, {"m": {}})
    connection.feeds.add(TABLE.decode(), TOPIC, partitions=PARTITIONS)
    topic = connection.topics.describe(TOPIC)
    return [topic.key(number) for number in range(PARTITIONS)]


def _caught_up(client: StoreClient, ledger: Ledger) -> list[ReadRecord]:
    """Return the topic's records when the feed has written each change, or after CATCH_UP_S."""
    deadline_s = time.monotonic() + CATCH_UP_S
    while True:
        (feed,) = until_answered(lambda: client.ask(lambda connection: connection.feeds.list()))
        records = [one for number in range(PARTITIONS) for one in read_log(client, TOPIC, number)]
        is_through = feed.state == "running" and not feed.lag_changes and not feed.silent_servers
        if is_through and ledger.is_written(records):
            return records
        if time.monotonic() > deadline_s:
            ledger.verdict.add(f"stuck: {feed}")
            return records
        threading.Event().wait(0.2)


main = kill_command(
    "feeds",
    prove,
    """Kill a store while a feed writes a table's changes into a topic; none is lost or doubled, order is kept.

\b
  python -m tests.proofs.feeds --kills 50
  python -m tests.proofs.feeds --kills 20 --servers 3 --every 3
    """,
    of_clients="Writers.",
)


if __name__ == "__main__":
    main()
