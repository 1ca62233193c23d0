"""``python -m tests.proofs.kafka_kills --kills 50 [--servers 3]``: kills under Kafka's clients lose no record.

Three idempotent producers, of confluent-kafka, kafka-python and aiokafka, send numbered records to one topic, and a
consumer of confluent-kafka reads them in a group and commits.  Meanwhile the store, or one of its servers, is killed
with -9 and started again.  After the last kill:

    1  each record whose send was acknowledged is in the topic
    2  no record is there twice, acknowledged or not
    3  the records of a producer in a partition are in the order of their sends
    4  no producer has ended, as it does after an answer by which an acknowledged record would be lost
    5  the group has read each record, and its committed offsets are the ends of the partitions

The exit status is 0 if all of this holds.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import click
from rich.console import Console

from tests.proofs.killed_doors import kill_and_start, store_of
from tests.proofs.killed_store import quiet_port
from tests.proofs.verdict import end_report
from tests.support.kafka_clients import confluent_consumer, confluent_producer, python_producer
from tests.support.standalone_store import StoreProcess

TOPIC: Final = "killed"
PARTITIONS: Final = 2
PAUSE_S: Final = 0.002  # between two sends of a producer
PATIENCE_MS: Final = 300_000  # a record is sent again for so long
SETTLE_S: Final = 300.0


@dataclass
class Found:
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Sender(threading.Thread):
    """Sends records ``NAME NUMBER`` until it is stopped, and notes which were acknowledged."""

    def __init__(self, name: str, port: int) -> None:
        super().__init__(name=name, daemon=True)
        self.port = port
        self.over = threading.Event()
        self.acknowledged: set[int] = set()
        self.failures: list[str] = []
        self.ended_by = ""

    def run(self) -> None:
        try:
            self.send_records()
        except Exception as error:  # noqa: BLE001 - of any client
            self.ended_by = repr(error)

    def send_records(self) -> None:
        raise NotImplementedError

    def value(self, number: int) -> bytes:
        return b"%s %d" % (self.name.encode(), number)

    def stop(self) -> None:
        self.over.set()
        self.join(SETTLE_S)
        assert not self.is_alive(), f"{self.name} did not end"


class ConfluentSender(Sender):
    def send_records(self) -> None:
        producer = confluent_producer(self.port, enable_idempotence=True, message_timeout_ms=PATIENCE_MS, linger_ms=5)
        number = 0

        def note(sent: int) -> Any:
            def delivered(error: Any, _message: Any) -> None:
                if error is None:
                    self.acknowledged.add(sent)
                else:
                    self.failures.append(str(error))

            return delivered

        while not self.over.wait(PAUSE_S):
            producer.produce(TOPIC, self.value(number), partition=number % PARTITIONS, on_delivery=note(number))
            producer.poll(0)
            number += 1
        producer.flush(SETTLE_S)


class PythonSender(Sender):
    def send_records(self) -> None:
        producer = python_producer(
            self.port, enable_idempotence=True, delivery_timeout_ms=PATIENCE_MS, max_block_ms=PATIENCE_MS, linger_ms=5
        )
        number = 0
        while not self.over.wait(PAUSE_S):
            sent = producer.send(TOPIC, self.value(number), partition=number % PARTITIONS)
            sent.add_callback(lambda _metadata, which=number: self.acknowledged.add(which))
            sent.add_errback(lambda error: self.failures.append(str(error)))
            number += 1
        producer.flush(SETTLE_S)
        producer.close(SETTLE_S)


class AsyncSender(Sender):
    def send_records(self) -> None:
        asyncio.run(self._send())

    async def _send(self) -> None:
        import aiokafka

        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=f"127.0.0.1:{self.port}", enable_idempotence=True, request_timeout_ms=PATIENCE_MS
        )
        await producer.start()
        number, waiting = 0, set()

        async def send(which: int) -> None:
            try:
                sent = await producer.send(TOPIC, self.value(which), partition=which % PARTITIONS)
                await sent
            except Exception as error:  # noqa: BLE001 - of aiokafka: the store is being killed
                self.failures.append(repr(error))
            else:
                self.acknowledged.add(which)

        while not self.over.is_set():
            await asyncio.sleep(PAUSE_S)
            if len(waiting) < 1_000:
                task = asyncio.create_task(send(number))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
                number += 1
        await asyncio.wait_for(asyncio.gather(*waiting), SETTLE_S)
        await producer.stop()


class Reader(threading.Thread):
    """Reads in a group and commits what it has read."""

    def __init__(self, port: int) -> None:
        super().__init__(name="reader", daemon=True)
        self._port = port
        self._over = threading.Event()
        self.values: set[bytes] = set()
        self.errors: Counter[str] = Counter()

    def run(self) -> None:
        consumer = confluent_consumer(self._port, "readers", TOPIC, session_timeout_ms=6_000)
        from confluent_kafka import KafkaException

        while not self._over.is_set():
            for message in consumer.consume(1_000, timeout=0.2):
                if message.error() is None:
                    self.values.add(message.value())
                else:
                    self.errors[message.error().name()] += 1
            try:
                consumer.commit(asynchronous=False)
            except KafkaException as error:
                self.errors[error.args[0].name()] += 1
        consumer.close()

    def stop(self) -> None:
        self._over.set()
        self.join(SETTLE_S)


def prove(folder: Path, kills: int, seed: int, tell: Any, servers: int = 1) -> Found:
    found, rng = Found(), Random(f"kafka {seed}")
    port = quiet_port(rng)
    with store_of(folder / "data", servers, "--kafka-port", str(port)) as store:
        connection = store.connection()
        connection.topics.create(TOPIC, PARTITIONS)
        connection.close()
        senders = [ConfluentSender("confluent", port), PythonSender("python", port), AsyncSender("aio", port)]
        reader = Reader(port)
        for thread in (*senders, reader):
            thread.start()
        for number in range(1, kills + 1):
            time.sleep(rng.uniform(0.5, 2.0))
            found.counts[kill_and_start(store, rng)] += 1
            tell(f"{number} kills, {sum(len(one.acknowledged) for one in senders):,} records acknowledged")
        time.sleep(2.0)
        for one in senders:
            one.stop()
        _judge(found, store, senders, reader)
    return found


def _judge(found: Found, store: StoreProcess, senders: list[Sender], reader: Reader) -> None:
    connection = store.connection()
    topic = connection.topic(TOPIC)
    logs = [_values_of(topic, partition) for partition in range(PARTITIONS)]
    values = Counter(value for log in logs for value in log)
    doubled = [value for value, count in values.items() if count > 1]
    if doubled:
        found.wrong.append(f"{len(doubled)} records are there twice, the first ones {doubled[:5]}")
    for sender in senders:
        found.counts[f"records of {sender.name} acknowledged"] = len(sender.acknowledged)
        found.counts[f"sends of {sender.name} that failed"] = len(sender.failures)
        if sender.ended_by:
            found.wrong.append(f"the producer of {sender.name} ended: {sender.ended_by}")
        lost = sorted(number for number in sender.acknowledged if sender.value(number) not in values)
        if lost:
            found.wrong.append(f"{len(lost)} records of {sender.name} were lost, the first ones {lost[:5]}")
        if len(sender.acknowledged) < 100:
            found.wrong.append(f"{sender.name} sent {len(sender.acknowledged)} records, which proves nothing")
        begin = sender.name.encode() + b" "
        for partition, log in enumerate(logs):
            numbers = [int(value[len(begin) :]) for value in log if value.startswith(begin)]
            if numbers != sorted(numbers):
                found.wrong.append(f"the records of {sender.name} in partition {partition} are not in their order")
    until_s = time.monotonic() + SETTLE_S
    while reader.values != set(values) and time.monotonic() < until_s:
        time.sleep(0.2)
    reader.stop()
    found.counts["records in the topic"] = sum(values.values())
    found.counts["errors that the reader got"] = reader.errors.total()
    if reader.values != set(values):
        found.wrong.append(f"the group has read {len(reader.values)} of {len(values)} records")
    consumer = confluent_consumer(reader._port, "readers")
    from confluent_kafka import TopicPartition

    committed = consumer.committed([TopicPartition(TOPIC, n) for n in range(PARTITIONS)], timeout=60)
    consumer.close()
    if [one.offset for one in committed] != [len(log) for log in logs]:
        found.wrong.append(f"committed are {committed}, and the partitions have {[len(log) for log in logs]} records")
    connection.close()


def _values_of(topic: Any, partition: int) -> list[bytes]:
    found: list[bytes] = []
    while records := list(topic.read(partition, len(found))):
        found += [one.value for one in records]
    return found


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--kills", default=50, show_default=True, type=click.IntRange(1))
@click.option("--servers", default=1, show_default=True, type=click.IntRange(1, 16), help="1: one process.")
@click.option("--seed", default=1, show_default=True)
def main(kills: int, servers: int, seed: int) -> None:
    """Kill a store under Kafka's clients, and look for records that were lost or are there twice."""
    console = Console(width=120)
    folder = Path(tempfile.mkdtemp(prefix="columnar-kafka-"))
    found = prove(folder, kills, seed, lambda text: console.print(text, highlight=False), servers)
    for name, count in found.counts.items():
        console.print(f"{count:>8,}  {name}", highlight=False)
    end_report(console, found.wrong, folder)


if __name__ == "__main__":
    sys.exit(main())
