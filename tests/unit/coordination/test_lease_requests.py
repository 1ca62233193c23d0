"""What a poll keeps: the synced lengths of servers, also of dead nodes, whose logs are sealed by them."""

from __future__ import annotations

import pytest

from columnar.coordination import lease_requests
from columnar.coordination.cas import Versioned
from columnar.coordination.lease_requests import SYNCED_KEPT, PolledRecords
from columnar.coordination.node_record import Logs, NodeRecord, encode_record
from columnar.coordination.server_page import ENDED_KEPT

LIVING = 2  # servers of a node


def logs_of(node: int, *, living: int = LIVING, ended: int = ENDED_KEPT) -> Logs:
    """Return the logs as a record names them: of the living servers, then of those that ended."""
    return {f"n{node}-s{server}.{server}": (("00000001", 1_000 + server),) for server in range(living + ended)}


class Service:
    """The records of nodes, each renewed before each poll."""

    def __init__(self, records: PolledRecords) -> None:
        self._records = records
        self._logs: dict[int, Logs] = {}
        self._version = 0

    def renew(self, node: int, logs: Logs) -> None:
        self._logs[node] = logs

    def kill(self, node: int) -> None:
        del self._logs[node]

    def poll(self) -> None:
        self._version += 1
        found = {}
        for node, logs in self._logs.items():
            record = NodeRecord("", f"n{node}", node, "", logs=logs, clock_ms=self._version)
            found[record.key] = Versioned(encode_record(record), self._version)
        self._records.take(found)


def test_the_synced_lengths_of_a_dead_node_outlive_the_renewals_of_many_others() -> None:
    records = PolledRecords()
    service = Service(records)
    for node in range(1, 18):
        service.renew(node, logs_of(node))
    service.poll()
    service.kill(17)
    for _ in range(100):
        service.poll()
    for server in range(LIVING):
        assert records.synced_lengths(f"n17-s{server}.{server}") == {1: 1_000 + server}


def test_the_lengths_of_all_named_servers_are_known_however_many_they_are() -> None:
    records = PolledRecords()
    service = Service(records)
    nodes = SYNCED_KEPT // (LIVING + ENDED_KEPT) + 10
    for node in range(nodes):
        service.renew(node, logs_of(node))
    for _ in range(2):
        service.poll()
        for node in range(nodes):
            assert all(records.synced_lengths(server) for server in logs_of(node))


def test_the_lengths_of_servers_that_no_record_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_requests, "SYNCED_KEPT", 40)
    records = PolledRecords()
    service = Service(records)
    service.renew(0, logs_of(0))
    for node in range(1, 40):
        service.renew(node, logs_of(node, ended=8))
        service.poll()
        service.kill(node)
        service.poll()
        assert len(records._synced) <= 40 + 2 * len(logs_of(0))
        assert records.synced_lengths(f"n{node}-s0.0"), "the last one that died"
    assert not records.synced_lengths("n1-s0.0")
    assert records.synced_lengths(f"n0-s{LIVING}.{LIVING}"), "a record names it"


def test_of_a_dead_node_the_servers_that_lived_are_kept_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_requests, "SYNCED_KEPT", 4)
    records = PolledRecords()
    service = Service(records)
    service.renew(1, logs_of(1, ended=8))
    service.renew(2, logs_of(2))
    service.poll()
    service.kill(1)
    service.renew(3, logs_of(3))
    service.poll()
    kept = [server for server in logs_of(1, ended=8) if records.synced_lengths(server)]
    assert kept == [f"n1-s{server}.{server}" for server in range(4)]
