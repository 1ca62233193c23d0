"""A replay from a time shows what was written since then, and nothing else, whatever became of the regions."""

from __future__ import annotations

from pathlib import Path

import pytest

from columnar.client import RegionAdmin
from tests.support.audit import seen
from tests.support.serving import Serving
from tests.support.trigger_functions import MODULE

EARLY = [b"a%d" % n for n in range(5)] + [b"z%d" % n for n in range(5)]
LATE = [b"b%d" % n for n in range(5)] + [b"y%d" % n for n in range(5)]


def marked(serving: Serving) -> int:
    """Every log has a mark of now, as it has one now and then; the time after it."""
    keeper = serving.store.serving.trigger_manager
    regions = [region for region in keeper._server.all_open() if region.info.table == "src"]
    for region in regions:
        region.log.retention.forget_marks()  # marks come some seconds apart
        keeper.hub.upkeep.save(region)
    begun_ms = max(region.now_ms for region in regions)
    while min(region.now_ms for region in regions) <= begun_ms:
        pass  # a millisecond at most: what was written before is older
    return begun_ms + 1


@pytest.mark.parametrize("change", ["none", "split", "merge", "restart"])
def test_a_replay_from_a_time_shows_exactly_what_came_since(tmp_path: Path, change: str) -> None:
    serving = Serving(tmp_path / "data").start()
    try:
        connection = serving.connect()
        connection.admin.create_table("src", {b"f": {}}, {"CHANGE_LOG": "600"}, splits=[b"m"])
        connection.create_table(b"audit", {"a": {}})
        connection.triggers.add("t", b"src", f"{MODULE}:obey", [b"f"])
        for row in EARLY:
            connection.table("src").put(row, {b"f:v": b"1"})
        assert connection.triggers.wait("t")
        since_ms = serving.do(lambda: marked(serving))
        for row in LATE:
            connection.table("src").put(row, {b"f:v": b"1"})
        assert connection.triggers.wait("t")
        regions = connection.admin.regions("src")
        if change == "split":
            RegionAdmin(connection).split(b"src", b"b2")
        elif change == "merge":
            RegionAdmin(connection).merge(regions[0].name, regions[1].name)
        elif change == "restart":
            serving.stop()
            serving.start()
            connection = serving.connect()
        connection.triggers.replay("t", since_ms)
        assert connection.triggers.wait("t")
        assert {row: len(seen(connection, row)) for row in EARLY + LATE} == {
            **dict.fromkeys(EARLY, 1), **dict.fromkeys(LATE, 2),
        }  # fmt: skip
    finally:
        serving.stop()
