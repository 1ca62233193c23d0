"""``python -m tests.measure.kafka``: records a second that confluent-kafka writes and reads over the Kafka port.

A store of its own process on loopback; librdkafka in this process produces RECORD_BYTES each, with acks=all and
idempotence, so a record counts when it is on disk.  Then one consumer reads all of them.

    --records 500000  --partitions 2  --servers 1
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from tests.support.cluster_process import ClusterProcess
from tests.support.kafka_clients import confluent_consumer, confluent_producer

RECORD_BYTES: Final = 100
WAIT_S: Final = 600.0
TOPIC: Final = "measured"


def produce(port: int, count: int) -> float:
    """Return records a second."""
    producer = confluent_producer(
        port, enable_idempotence=True, acks="all", linger_ms=20, batch_size=900_000, batch_num_messages=10_000,
        queue_buffering_max_messages=1_000_000,
    )  # fmt: skip
    value, failed = bytes(RECORD_BYTES), []

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            failed.append(error)

    producer.list_topics(TOPIC, timeout=WAIT_S)
    began = time.perf_counter()
    for number in range(count):
        while True:
            try:
                producer.produce(TOPIC, value, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1_000 == 0:
            producer.poll(0)
    left = producer.flush(WAIT_S)
    assert not left, f"{left} records were not acknowledged"
    assert not failed, failed[0]
    return count / (time.perf_counter() - began)


def consume(port: int, count: int) -> float:
    """Return records a second, from the first one on."""
    consumer = confluent_consumer(port, "readers", TOPIC, fetch_max_bytes=8_000_000, queued_min_messages=1_000_000)
    found, began = 0, 0.0
    while found < count:
        messages = consumer.consume(10_000, timeout=10.0)
        assert messages, f"{found} of {count} records came"
        assert all(one.error() is None for one in messages)
        if not found:
            began = time.perf_counter()
        found += len(messages)
    rate = found / (time.perf_counter() - began)
    consumer.close()
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--servers", type=int, default=1)
    asked = parser.parse_args()
    options = ("--kafka-port", "0", "--kafka-partitions", str(asked.partitions))
    folder = Path(tempfile.mkdtemp(prefix="columnar-kafka-"))
    try:
        with ClusterProcess(folder / "data", asked.servers, *options) as store:
            print(f"produced  {produce(store.kafka_port, asked.records):>10,.0f} records/s of {RECORD_BYTES} B")
            print(f"consumed  {consume(store.kafka_port, asked.records):>10,.0f} records/s")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
