"""How far groups are: produced against consumed counts of windows, lags in topics and in changes of tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from columnar.client import Connection, IllegalArgument
from columnar.flows import refreshed_statuses
from columnar.model.topic import CommittedOffset
from columnar.runtime.loop_budget import LoopBudget
from columnar.topics import topic_audit
from columnar.topics.topic_audit import AUDIT_LOOKUPS, PartitionCount, WindowCount, counts_of
from columnar.topics.topic_calls import TopicClient
from columnar.topics.topic_service import TopicService
from columnar.wire.local_calls import LocalService
from tests.support.cluster_process import until
from tests.support.store_thread import StoreThread

CLIENT = TopicClient("test", "", lambda: False)
MINUTE_MS = 60_000
NOW_MS = 1_000 * MINUTE_MS + 7_000


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("audit")) as made:
        yield made


@pytest.fixture
def connection(store: StoreThread) -> Iterator[Connection]:
    with store.connection() as made:
        yield made


def commit(store: StoreThread, group: str, *offsets: CommittedOffset) -> None:
    async def inside() -> None:
        await _service(store).groups.commit_offsets(CLIENT, group, offsets)

    store.run(inside())


def _service(store: StoreThread) -> TopicService:
    return TopicService(LocalService(store.inside.ports.wire, 10**9))


def counts(store: StoreThread, topic: str, group: str, windows: int) -> list[tuple[int, int]]:
    async def inside() -> Sequence[WindowCount]:
        audit = topic_audit.TopicAudit(_service(store), LoopBudget())
        return [one async for one in audit.count(CLIENT, topic, group, MINUTE_MS, windows, NOW_MS)]

    return [(one.produced, one.consumed) for one in store.run(inside())]


def test_each_window_has_what_was_produced_and_what_the_commits_passed(
    store: StoreThread, connection: Connection
) -> None:
    connection.topics.create("audited", 2)
    topic = connection.topic("audited")
    for back, count in ((2, 3), (1, 5), (0, 4)):
        stamp_ms = NOW_MS - back * MINUTE_MS
        topic.produce([b"x"] * count, partition=0, timestamp_ms=stamp_ms)
    topic.produce([b"x"] * 2, partition=1, timestamp_ms=NOW_MS - MINUTE_MS)
    assert counts(store, "audited", "", 4) == [(0, 0), (3, 0), (7, 0), (4, 0)]
    commit(store, "reader", CommittedOffset("audited", 0, 6), CommittedOffset("audited", 1, 1))
    assert counts(store, "audited", "reader", 4) == [(0, 0), (3, 3), (7, 4), (4, 0)]
    assert counts(store, "audited", "reader", 2) == [(7, 4), (4, 0)]
    commit(store, "reader", CommittedOffset("audited", 0, 12), CommittedOffset("audited", 1, 2))
    assert counts(store, "audited", "reader", 3) == [(3, 3), (7, 7), (4, 4)]
    assert counts(store, "audited", "nobody", 1) == [(4, 0)]


def test_wrong_audits_are_refused(connection: Connection) -> None:
    connection.topics.create("small", 10)
    assert [one.produced for one in connection.topics.audit("small", windows=3)] == [0, 0, 0]
    for wrong in (
        lambda: connection.topics.audit("none"),
        lambda: connection.topics.audit("small", window_s=0.5),
        lambda: connection.topics.audit("small", windows=AUDIT_LOOKUPS // 10),
        lambda: connection.topics.audit("small", windows=0),
        lambda: connection.topics.audit("small", "g" * 250),
    ):
        with pytest.raises(IllegalArgument):
            wrong()


def test_counts_are_differences_of_offsets() -> None:
    (first, second) = counts_of([0, 10, 20], [[5, 7, 9], [0, 0, 4]], {0: 8, 1: 9})
    assert first == WindowCount(0, 10, (PartitionCount(0, 2, 2), PartitionCount(1, 0, 0)))
    assert second == WindowCount(10, 20, (PartitionCount(0, 2, 1), PartitionCount(1, 4, 4)))


def flows(connection: Connection, kind: str) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in json.loads(connection.flows())["flows"] if one["kind"] == kind}


def test_the_lag_of_a_group_is_between_its_commits_and_the_ends(
    store: StoreThread, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refreshed_statuses, "REFRESH_S", 0.0)
    connection.topics.create("lagging", 3)
    topic = connection.topic("lagging")
    for partition, count in ((0, 5), (1, 3)):
        topic.produce([b"x"] * count, partition=partition)
    commit(store, "slow", CommittedOffset("lagging", 0, 1), CommittedOffset("gone", 0, 1))
    commit(store, "quick", *(CommittedOffset("lagging", n, end) for n, end in enumerate((5, 3, 0))))
    found = {one.group: one for one in connection.topics.groups("lagging")}
    assert {name: one.lag for name, one in found.items()} == {"slow": 7, "quick": 0}
    assert [(one.committed, one.end, one.lag) for one in found["slow"].partitions] == [
        (1, 5, 4),
        (-1, 3, 3),
        (-1, 0, 0),
    ]
    assert {one.topic for one in connection.topics.groups()} >= {"lagging"}
    until(lambda: flows(connection, "group").get("slow@lagging", {}).get("lag_changes") == 7)
    shown = flows(connection, "group")["slow@lagging"]
    assert shown["reads"] == ["topic:lagging"]
    commit(store, "slow", *(CommittedOffset("lagging", n, end) for n, end in enumerate((5, 3, 0))))
    until(lambda: flows(connection, "group")["slow@lagging"]["lag_changes"] == 0)


def test_the_lag_of_readers_of_changes_is_behind_their_commits(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refreshed_statuses, "REFRESH_S", 0.0)
    connection.admin.create_table("followed", {"m": {}}, {"CHANGE_LOG": "3600"})
    table = connection.table("followed")
    with connection.changes("followed", start="now", group="search") as stream:
        stream.poll(1)
        for number in range(6):
            table.put(b"row-%d" % number, {b"m:a": b"1"})
        until(lambda: flows(connection, "readers").get("search@followed", {}).get("lag_changes") == 6)
        assert flows(connection, "readers")["search@followed"]["reads"] == ["followed"]
        assert len(stream.poll(1_000)) == 6
        stream.commit()
        until(lambda: flows(connection, "readers")["search@followed"]["lag_changes"] == 0)
