"""Damaged requests at the Kafka port: the store ends their connections, serves the others, and grows by no more."""

from __future__ import annotations

import random
import socket
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from columnar.kafka.codec import request_frame
from columnar.kafka.schemas import APIS, Array, Field
from tests.support.deep import seeds
from tests.support.kafka_clients import confluent_producer, produce_all
from tests.support.ports import free_port
from tests.support.seeds import seed
from tests.support.standalone_store import StoreProcess

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed: make dev")

SECONDS = seeds("seconds of hostile Kafka requests", deep=1_800, short=2)
GROWTH_BYTES = 96 * 1024 * 1024


def drawn(kind: Any, rng: random.Random, version: int, field: Field) -> Any:
    """Return a value that is sometimes one that no client sends."""
    if version >= field.nullable and rng.random() < 0.2:
        return None
    if isinstance(kind, Array):
        return [drawn(kind.of, rng, version, field.element()) for _ in range(rng.choice((0, 1, 2, 50)))]
    if isinstance(kind, tuple):
        return {one.name: drawn(one.kind, rng, version, one) for one in kind if one.is_in(version)}
    if kind == "string":
        return rng.choice(("", "t", "made.by.force", "a b", "x" * 5_000, "ß\0"))
    if kind == "bytes":
        return rng.randbytes(rng.choice((0, 1, 61, 20_000)))
    if kind == "bool":
        return rng.random() < 0.5
    bits = int(kind.removeprefix("int"))
    return rng.choice((-(1 << bits - 1), -2, -1, 0, 1, 100, (1 << bits - 1) - 1))


def damaged(frame: bytearray, rng: random.Random) -> bytearray:
    for _ in range(rng.choice((0, 0, 1, 3))):
        at = rng.randrange(len(frame))
        if rng.random() < 0.7:
            frame[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        else:
            del frame[at : at + rng.randint(1, 8)]
        if not frame:
            break
    return frame


@pytest.mark.timeout(SECONDS + 120)
@pytest.mark.lasts(SECONDS)
def test_hostile_requests_end_their_connections_alone(tmp_path: Path) -> None:
    rng, port = random.Random(f"hostile kafka {seed(1)}"), free_port()
    sent = answered = 0
    with StoreProcess(tmp_path / "data", "--kafka-port", str(port)) as store:
        produce_all(confluent_producer(port), "t", [b"a"])
        before = store.resident_bytes()
        end_s = time.monotonic() + SECONDS
        while time.monotonic() < end_s:
            with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port), timeout=0.05)) as client:
                for _ in range(rng.randint(1, 5)):
                    api = rng.choice(list(APIS.values()))
                    version = rng.randint(api.first, api.last)
                    values = drawn(api.request, rng, version, Field("", api.request))
                    client.sendall(damaged(request_frame(api, version, sent, "c", values), rng))
                    sent += 1
                answered += bool(client.recv(4))
        assert not store.has_ended(), store.log.read_text()[-5_000:]
        assert produce_all(confluent_producer(port), "t", [b"b"])
        assert store.resident_bytes() - before < GROWTH_BYTES
        faults = [
            line for line in store.log.read_text().splitlines() if "Traceback" in line or "a request failed" in line
        ]
        assert not faults, store.log.read_text()[-5_000:]
    assert min(sent, answered) > 5
