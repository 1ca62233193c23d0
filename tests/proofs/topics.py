"""python -m tests.proofs.topics: records appended and read by several clients while the store is killed.

Each producer appends batches to the partitions in turn, and sends a batch whose outcome it does not know again, with
the same number, until it is acknowledged.  Each reader follows the partitions from their beginning.  Regions of the
table split, merge and, with several servers, move meanwhile.  At the end the store has peace, and everything is read.

    lost        an acknowledged record that is not at the offset of its acknowledgement
    doubled     a record that is in a partition twice
    order       records of a producer that are not in the order in which it sent them
    gap         an offset of a partition that no record has
    changed     a record that a reader saw at an offset, and that is not there at the end
    strange     a record that nobody sent

The count of records that are in the log is compared with the count of those that were acknowledged or under way.  The
seed repeats the choices, not the moments of kills.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from columnar.client import Connection
from columnar.client.topics import ReadRecord, TopicFailed
from columnar.model.record_batch import ProducerMark, Record, pack_batch
from columnar.model.topic import TOPICS_TABLE, TopicDescription, TopicError
from tests.proofs.asking import Lost, Refused, StoreClient, until_answered
from tests.proofs.cluster_asking import client_of
from tests.proofs.crew import work_together
from tests.proofs.kill_runs import LONGEST_S, judged, kill_command
from tests.proofs.killed_store import KilledStore
from tests.proofs.topic_logs import read_log
from tests.proofs.upheaval import Upheaval
from tests.proofs.verdict import Plan, Tell, Verdict

TABLE: Final = TOPICS_TABLE.encode()
TOPIC: Final = "proof"
PARTITIONS: Final = 4
BATCH: Final = 5  # records of a batch, at most
PAUSE_S: Final = 0.003  # of a producer after each batch
READ_BYTES: Final = 64 * 1024


@dataclass
class Ledger:
    """What was sent, acknowledged and seen.  Guarded by its lock."""

    verdict: Verdict
    sent: Counter[tuple[int, int]] = field(default_factory=Counter)  # producer, partition -> records
    acknowledged: dict[tuple[int, int], bytes] = field(default_factory=dict)  # partition, offset -> record
    seen: dict[tuple[int, int], bytes | None] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note_sent(self, producer: int, partition: int, count: int) -> None:
        with self.lock:
            self.sent[producer, partition] += count

    def note_acknowledged(self, partition: int, offset: int, values: list[bytes]) -> None:
        with self.lock:
            for number, value in enumerate(values):
                place = (partition, offset + number)
                if self.acknowledged.setdefault(place, value) != value:
                    self.verdict.add(f"doubled: {place} was answered to {value!r} and {self.acknowledged[place]!r}")
            self.verdict.counts["acknowledged"] += len(values)
            self.verdict.done += len(values)

    def note_seen(self, records: list[ReadRecord]) -> None:
        with self.lock:
            for record in records:
                place = (record.partition, record.offset)
                if self.seen.setdefault(place, record.value) != record.value:
                    self.verdict.add(f"changed: {place} was {self.seen[place]!r}, and is {record.value!r} to a reader")
            self.verdict.counts["read"] += len(records)

    def judge_log(self, partition: int, records: list[ReadRecord]) -> None:
        """Judge all records of a partition, as they are at the end."""
        values = [record.value for record in records]
        if [record.offset for record in records] != list(range(len(records))):
            self.verdict.add(f"gap: the offsets of partition {partition} are not 0 to {len(records) - 1}")
        self.verdict.counts["in the log"] += len(values)
        for (place, offset), value in self.acknowledged.items():
            if place == partition and (offset >= len(values) or values[offset] != value):
                self.verdict.add(f"lost: {value!r}, acknowledged at offset {offset} of partition {partition}")
        for (place, offset), seen in self.seen.items():
            if place == partition and (offset >= len(values) or values[offset] != seen):
                self.verdict.add(f"changed: {seen!r}, read at offset {offset} of partition {partition}")
        for value, count in Counter(values).items():
            if count > 1:
                self.verdict.add(f"doubled: {value!r} is {count} times in partition {partition}")
        numbers: dict[int, list[int]] = {}
        for value in values:
            producer, place, number = (value or b"-1/-1/-1").split(b"/")
            if int(place) != partition or int(number) >= self.sent[int(producer), partition]:
                self.verdict.add(f"strange: {value!r} in partition {partition}")
            numbers.setdefault(int(producer), []).append(int(number))
        for producer, found in numbers.items():
            if found != sorted(found):
                self.verdict.add(f"order: records of producer {producer} in partition {partition}")
            elif found != list(range(len(found))):
                self.verdict.add(f"lost: partition {partition} has a later record of producer {producer}, not each")


class Producer:
    def __init__(self, number: int, client: StoreClient, ledger: Ledger, seed: int) -> None:
        self._number, self._client, self._ledger = number, client, ledger
        self._rng = random.Random(f"producer {number} {seed}")
        self._id = 0

    def run(self, stop: threading.Event, topic: TopicDescription) -> None:
        self._id = until_answered(lambda: self._client.ask(lambda link: link.call("columnarTopicProducer")))
        next_numbers = [0] * PARTITIONS
        while not stop.wait(PAUSE_S):
            partition, count = self._rng.randrange(PARTITIONS), self._rng.randrange(1, BATCH + 1)
            first = next_numbers[partition]
            next_numbers[partition] += count
            values = [b"%d/%d/%d" % (self._number, partition, first + n) for n in range(count)]
            records = [Record(n, 1_000 * first, None, value) for n, value in enumerate(values)]
            batch = pack_batch(records, ProducerMark(self._id, 0, first))
            self._ledger.note_sent(self._number, partition, count)
            key = topic.key(partition)
            found = until_answered(lambda key=key, batch=batch: self._produce(key, batch))
            if found.error:
                problem = TopicError(found.error).name
                self._ledger.verdict.add(f"lost: producer {self._number} is refused {values[0]!r}: {problem}")
                return
            self._ledger.note_acknowledged(partition, found.baseOffset, values)

    def _produce(self, key: bytes, batch: bytes) -> Any:
        try:
            return self._client.ask(lambda connection: connection.call("columnarPartitionProduce", key, batch))
        except (Lost, Refused):
            self._ledger.verdict.counts["sent again"] += 1
            raise


class Reader:
    def __init__(self, number: int, client: StoreClient, ledger: Ledger, seed: int) -> None:
        self._client, self._ledger = client, ledger
        self._rng = random.Random(f"reader {number} {seed}")
        self._offsets = dict.fromkeys(range(PARTITIONS), 0)

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            partition = self._rng.randrange(PARTITIONS)
            if self._rng.random() < 0.02:
                self._offsets[partition] = self._rng.randrange(self._offsets[partition] + 1)
            try:
                records = self._client.ask(lambda connection, partition=partition: self._read(connection, partition))
            except (Lost, Refused):
                self._ledger.verdict.counts["reads without an answer"] += 1
                continue
            except TopicFailed as failed:
                self._ledger.verdict.add(f"lost: a reader that was at offset {self._offsets[partition]}: {failed}")
                return
            self._ledger.note_seen(records)
            if records:
                self._offsets[partition] = records[-1].offset + 1

    def _read(self, connection: Connection, partition: int) -> list[ReadRecord]:
        topic = connection.topic(TOPIC)
        if self._rng.random() < 0.3:
            connection.call("columnarTopicWait", TOPIC.encode(), self._offsets, 1, 200)
        return topic.read(partition, self._offsets[partition], max_bytes=READ_BYTES)


def prove(store: KilledStore, plan: Plan, tell: Tell, is_over: Callable[[], bool]) -> Verdict:
    verdict = Verdict("topics", needed=("acknowledged", "read"))
    verdict.counts = Counter()
    ledger = Ledger(verdict)
    clients = [client_of(store, TABLE) for _ in range(2 * plan.writers + 1)]
    producers = [Producer(number, clients[number], ledger, plan.seed) for number in range(plan.writers)]
    readers = [Reader(number, clients[plan.writers + number], ledger, plan.seed) for number in range(plan.writers)]
    stop = threading.Event()

    def look() -> None:
        shots = sum(store.shots.values())
        tell(f"{shots} shots, {verdict.counts['acknowledged']:,} acknowledged, {verdict.counts['read']:,} read")
        if (is_over() and verdict.has_some("acknowledged", "read")) or verdict.problems:
            stop.set()

    begun = time.monotonic()
    with judged(store, verdict, clients):
        topic = until_answered(lambda: clients[-1].ask(_prepare))
        work = [lambda stop, one=one: one.run(stop, topic) for one in producers]
        split = (store, TABLE, lambda rng: topic.key(rng.randrange(PARTITIONS)), plan.seed, plan.upheaval_pause_s)
        with Upheaval(*split) as upheaval:
            work_together([*work, *(one.run for one in readers)], LONGEST_S, look, stop)
        verdict.seconds = time.monotonic() - begun
        verdict.against = upheaval.done
        store.peace()
        tell("reading everything")
        for partition in range(PARTITIONS):
            ledger.judge_log(partition, read_log(clients[-1], TOPIC, partition))
    return verdict


def _prepare(connection: Connection) -> TopicDescription:
    connection.topics.create(TOPIC, PARTITIONS)
    return connection.topics.describe(TOPIC)


main = kill_command(
    "topics",
    prove,
    """Kill a store while clients append and read; no acknowledged record is lost, none is doubled, order is kept.

\b
  python -m tests.proofs.topics --kills 50
  python -m tests.proofs.topics --kills 50 --servers 3 --every 3
    """,
    of_clients="Of each kind.",
)


if __name__ == "__main__":
    main()
