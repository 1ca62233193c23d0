"""Triggers over two servers: a module is synced and reloaded, rows of others come along, logs are shown again."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from columnar.client import Connection
from columnar.client.errors import IOError as Refused
from columnar.model.queue_place import QUEUES_TABLE
from columnar.model.trigger_registration import start_at
from tests.support import message_functions
from tests.support.cluster_process import ClusterProcess
from tests.support.deep import cases
from tests.support.hook_server import HookServer, Posted, Reply
from tests.support.many_nodes import CLUSTERS, NodesCluster, cluster_of
from tests.support.shell import Shell
from tests.support.standalone_store import WAIT_S

MODULE = "triggers_of_servers"
WAIT_MS = 60_000
KEEPS = {"CHANGE_LOG": "3600"}
TAGS = """
from columnar.triggers.api import Change, Delete, Put, on


@on("pages", columns=["m:tags"], before=True, look={"site": ("sites", "m:site")}, writes=["tags"])
def tags(change: Change):
    for tag in change.gone("m:tags", split=","):
        yield Delete("tags", tag, [b"p:" + change.row])
    for tag in change.came("m:tags", split=","):
        yield Put("tags", tag, {b"p:" + change.row: change.look("site").get(b"m:name", b"none")})
"""
SEEN = """
from columnar.triggers.api import Change, Put, on


@on("edits", columns=["m:text"])
def seen(change: Change):
    yield Put("seen", change.row, {b"p:again" if change.is_repeat else b"p:first": change.after[b"m:text"]})
"""
LATE = """

@on("edits", columns=["m:text"], start="START")
def late(change: Change):
    yield Put("seen", change.row, {b"p:late again" if change.is_repeat else b"p:late": change.after[b"m:text"]})
"""


class Place:
    """A cluster, its command line, and the module that its workers and this process import."""

    def __init__(self, cluster: ClusterProcess | NodesCluster, folder: Path) -> None:
        self.cluster, self._file = cluster, folder / f"{MODULE}.py"
        self.shell = Shell(f"127.0.0.1:{cluster.port}")

    def sync(self, text: str) -> str:
        self._file.write_text(text)
        sys.modules.pop(MODULE, None)
        return self.shell.out("trigger", "sync", MODULE, "--yes")

    def reload(self, text: str) -> None:
        self._file.write_text(text)
        self.shell.out("trigger", "reload")


@pytest.fixture(scope="module", params=cases("triggers, of servers and of nodes", deep=CLUSTERS, short=CLUSTERS[:1]))
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("triggers")
    (folder / f"{MODULE}.py").write_text("")
    cluster = cluster_of(request.param, folder / "data", 2, "--trigger-modules", f"{MODULE},{message_functions.MODULE}")
    cluster.environment["PYTHONPATH"] += f":{folder}"
    cluster.environment["PYTHONDONTWRITEBYTECODE"] = "1"
    with pytest.MonkeyPatch.context() as patch, cluster:
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.syspath_prepend(str(folder))
        with closing(cluster.connection()) as connection:
            for name, attributes in (
                ("pages", {}), ("sites", {}), ("tags", {"DELETE_MARKERS": "3600000"}), ("edits", KEEPS), ("seen", {}),
            ):  # fmt: skip
                connection.create_table(name, {"m": {}, "p": {}}, attributes=attributes, splits=[b"m"])
        yield Place(cluster, folder)
    sys.modules.pop(MODULE, None)


def delivered(connection: Connection, table: bytes, row: bytes) -> dict[bytes, bytes]:
    assert connection.triggers.wait(timeout_ms=WAIT_MS)
    found: dict[bytes, bytes] = connection.table(table).row(row)
    return found


def test_a_module_is_synced_and_reloaded_and_rows_of_the_other_server_come_along(place: Place) -> None:
    assert place.sync(TAGS).splitlines()[0] == f"add     pages-tags: {MODULE}:tags on pages, from now"
    with closing(place.cluster.connection()) as connection:
        sites, pages = connection.table(b"sites"), connection.table(b"pages")
        sites.put(b"a-site", {b"m:name": b"first"})
        sites.put(b"z-site", {b"m:name": b"last"})
        pages.put(b"a", {b"m:tags": b"x,y", b"m:site": b"z-site"})
        pages.put(b"z", {b"m:tags": b"x", b"m:site": b"a-site"})
        assert delivered(connection, b"tags", b"x") == {b"p:a": b"last", b"p:z": b"first"}
        pages.put(b"a", {b"m:tags": b"y"})
        assert delivered(connection, b"tags", b"x") == {b"p:z": b"first"}
        place.reload(TAGS.replace('b"none"', 'b"no site"').replace('Put("tags", tag,', 'Put("tags", tag.upper(),'))
        pages.put(b"b", {b"m:tags": b"x"})
        pages.put(b"y", {b"m:tags": b"x"})
        assert delivered(connection, b"tags", b"X") == {b"p:b": b"no site", b"p:y": b"no site"}, "on both servers"
        shown = place.sync(TAGS.replace("before=True", "before=True, share=20"))
        assert "share: 10 -> 20" in shown
        assert place.sync("").splitlines()[0] == "remove  pages-tags: what was not delivered to it is dropped"
        assert connection.triggers.list() == []


def since_marked(connection: Connection, name: str) -> int:
    """A time that the logs of all regions reach back to: a log marks how far it is when somebody asks."""
    ends_s = time.monotonic() + WAIT_S
    while True:
        since_ms = round(time.time() * 1_000)
        try:
            connection.triggers.replay(name, since_ms)
        except Refused as error:
            if "reaches back to" not in str(error) or time.monotonic() > ends_s:
                raise
        else:
            return since_ms


def test_changes_of_all_servers_are_shown_again_from_a_time_and_to_a_trigger_that_starts_then(place: Place) -> None:
    place.sync(SEEN)
    with closing(place.cluster.connection()) as connection:
        edits = connection.table(b"edits")
        assert "reaches back to" in place.shell.error("trigger", "replay", "edits-seen", "--from", "1971-01-01T00:00")
        since_ms = since_marked(connection, "edits-seen")
        edits.put(b"a", {b"m:text": b"one"})
        edits.put(b"z", {b"m:text": b"two"})
        assert delivered(connection, b"seen", b"a") == {b"p:first": b"one"}
        connection.triggers.replay("edits-seen", since_ms)
        assert delivered(connection, b"seen", b"a") == {b"p:first": b"one", b"p:again": b"one"}
        assert delivered(connection, b"seen", b"z") == {b"p:first": b"two", b"p:again": b"two"}
        with pytest.raises(AssertionError, match=r"reaches back to .* starts from the beginning"):
            place.sync(SEEN + LATE.replace("START", "1971-01-01T00:00Z"))
        assert [one.name for one in connection.triggers.list()] == ["edits-seen"]
        place.sync(SEEN + LATE.replace("START", start_at(since_ms)))
        assert delivered(connection, b"seen", b"a")[b"p:late"] == b"one"
        assert delivered(connection, b"seen", b"z").keys() == {b"p:first", b"p:again", b"p:late"}


def until_empty(connection: Connection, queue: str) -> None:
    ends_s = time.monotonic() + WAIT_S
    while connection.queue(queue).stats().messages:
        assert time.monotonic() < ends_s
        time.sleep(0.01)


def owner_of_queues(place: Place) -> str:
    (region,) = place.shell.json("regions", QUEUES_TABLE)
    return str(region["server"])


def move_queues(place: Place) -> None:
    """Move all queues to the other server."""
    (region,) = place.shell.json("regions", QUEUES_TABLE)
    other = next(one["name"] for one in place.shell.json("servers")["servers"] if one["name"] != region["server"])
    assert place.shell.json("move", region["encoded_name"], other)["done"]
    assert owner_of_queues(place) == other


def test_a_queue_is_delivered_by_its_owner_and_its_messages_outlive_a_move(place: Place) -> None:
    may_end = threading.Event()

    def answer(posted: Posted) -> Reply:
        if posted.body == b"out":
            assert may_end.wait(WAIT_S)
        return Reply()

    with HookServer(answer) as hooks, closing(place.cluster.connection()) as connection:
        connection.create_table("made", {"f": {}})
        connection.queues.serve("jobs", f"{message_functions.MODULE}:store")
        connection.queues.serve("hooks", url=hooks.url)
        for moved in range(3):
            connection.queue("jobs").push(b"%d" % moved)
            connection.queue("hooks").push(b"%d" % moved)
            until_empty(connection, "jobs")
            until_empty(connection, "hooks")
            assert connection.table(b"made").row(b"%d" % moved)[b"f:of"] == b"jobs"
            move_queues(place)
        connection.queue("hooks").push(b"out")
        hooks.until(4)
        move_queues(place)
        assert [(one.running, one.state) for one in connection.queues.served()] == [(1, "running"), (0, "running")]
        connection.queue("hooks").push(b"after")
        hooks.until(5)
        may_end.set()
        until_empty(connection, "hooks")
        assert [one.body for one in hooks.posted] == [b"0", b"1", b"2", b"out", b"after"], "each once"
        assert connection.queue("hooks").stats().committed == 5, "the new owner has committed what the earlier one had"
        for queue in ("jobs", "hooks"):
            connection.queues.unserve(queue)
