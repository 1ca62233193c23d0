"""Kafka's clients for the port of a store in the test's process, and a raw one; their waits suit a busy machine."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from columnar.kafka.codec import read_answer, request_frame
from columnar.kafka.schemas import Api

WAIT_S = 60.0


def confluent_producer(port: int, **settings: Any) -> Any:
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed: make dev")
    return confluent.Producer({"bootstrap.servers": f"127.0.0.1:{port}", **_dotted(settings)})


def confluent_consumer(port: int, group: str, *topics: str, **settings: Any) -> Any:
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed: make dev")
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}", "group.id": group, "auto.offset.reset": "earliest",
            "enable.auto.commit": False, **_dotted(settings),
        }
    )  # fmt: skip
    if topics:
        consumer.subscribe(list(topics))
    return consumer


def python_consumer(port: int, *topics: str, **settings: Any) -> Any:
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed: make dev")
    fields = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "consumer_timeout_ms": 10_000, **settings}
    return kafka.KafkaConsumer(*topics, bootstrap_servers=f"127.0.0.1:{port}", **fields)


def python_producer(port: int, **settings: Any) -> Any:
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed: make dev")
    return kafka.KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", **settings)


def produce_all(producer: Any, topic: str, values: list[bytes], **fields: Any) -> list[tuple[int, int]]:
    """Produce with confluent's client; return partition and offset of each value.  Raises if one was not taken."""
    done: dict[int, tuple[int, int]] = {}
    errors = []

    def delivered(number: int) -> Callable[[Any, Any], None]:
        def note(error: Any, message: Any) -> None:
            if error is not None:
                errors.append(error)
            else:
                done[number] = message.partition(), message.offset()

        return note

    for number, value in enumerate(values):
        producer.produce(topic, value, on_delivery=delivered(number), **fields)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0, "not every record was acknowledged"
    assert not errors, errors
    return [done[number] for number in range(len(values))]


def consume(consumer: Any, count: int) -> list[Any]:
    """Return so many messages of confluent's consumer."""
    found: list[Any] = []
    end_s = time.monotonic() + WAIT_S
    while len(found) < count and time.monotonic() < end_s:
        for message in consumer.consume(count - len(found), timeout=1.0):
            assert message.error() is None, message.error()
            found.append(message)
    assert len(found) == count, f"{len(found)} of {count} records came"
    return found


def _dotted(settings: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in settings.items()}


class Raw:
    """A client that sends single requests."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)

    def send(self, api: Api, version: int, values: dict[str, Any], correlation: int = 1) -> None:
        self.socket.sendall(request_frame(api, version, correlation, "raw", values))

    def receive(self, api: Api, version: int) -> tuple[int, dict[str, Any]]:
        return read_answer(api, version, self.frame())

    def frame(self) -> bytes:
        size = int.from_bytes(self._exactly(4), "big")
        return self._exactly(size)

    def ask(self, api: Api, version: int, values: dict[str, Any]) -> dict[str, Any]:
        self.send(api, version, values)
        return self.receive(api, version)[1]

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise ConnectionResetError("the server has closed the connection")
            data += more
        return data

    def close(self) -> None:
        self.socket.close()
