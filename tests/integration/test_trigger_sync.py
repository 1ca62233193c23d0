"""``columnar trigger sync`` with a module on disk, a real store and a real worker."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.client import Connection
from tests.support.serving import Serving
from tests.support.shell import Shell

MODULE = "synced_by_a_test"
FIRST = """
from columnar.triggers.api import Change, Delete, Put, on


@on("pages", columns=["m:tags"], before=True, writes=["tags"])
def tags(change: Change):
    for tag in change.gone("m:tags", split=","):
        yield Delete("tags", tag, [b"p:" + change.row])
    for tag in change.came("m:tags", split=","):
        yield Put("tags", tag, {b"p:" + change.row: b"1"})


@on("pages", where=["m:state=ready"], look={"site": ("sites", "m:site")})
def ready(change: Change):
    yield Put("tags", b"ready", {b"p:" + change.row: change.look("site").get(b"m:name", b"none")})
"""
SECOND = FIRST.replace("before=True,", "before=True, share=20,").replace("def ready", "def done")


class Place:
    """A store, its command line, and the module that it is given."""

    def __init__(self, serving: Serving, folder: Path) -> None:
        self.serving, self._file = serving, folder / f"{MODULE}.py"
        self.shell = Shell(f"127.0.0.1:{serving.store.port}")
        self.connection: Connection = serving.connect()

    def write(self, text: str) -> None:
        self._file.write_text(text)
        sys.modules.pop(MODULE, None)  # a command of its own process would import it anew

    def row(self, table: str, row: bytes, trigger: str = "") -> dict[bytes, bytes]:
        assert self.connection.triggers.wait(trigger)
        found: dict[bytes, bytes] = self.connection.table(table).row(row)
        return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    serving = Serving(tmp_path / "data", trigger_modules=(MODULE,)).start()
    try:
        found = Place(serving, tmp_path)
        for name, attributes in (("pages", {}), ("tags", {"DELETE_MARKERS": "3600000"}), ("sites", {})):
            found.connection.create_table(name, {"m": {}, "p": {}}, attributes=attributes)
        yield found
    finally:
        serving.stop()
        sys.modules.pop(MODULE, None)


def test_triggers_are_as_their_module_declares_them(place: Place) -> None:
    place.write(FIRST)
    shown = place.shell.out("trigger", "sync", MODULE, "--dry-run")
    assert shown.splitlines() == [
        f"add     pages-ready: {MODULE}:ready on pages, from now",
        f"add     pages-tags: {MODULE}:tags on pages, from now",
    ]
    assert place.connection.triggers.list() == []
    assert "say --yes" in place.shell("trigger", "sync", MODULE).output, "nobody is asked here"
    place.shell.out("trigger", "sync", MODULE, "--yes")
    pages = place.connection.table("pages")
    place.connection.table("sites").put(b"s1", {b"m:name": b"Home"})
    pages.put(b"a", {b"m:tags": b"x,y", b"m:site": b"s1", b"m:state": b"draft"})
    pages.put(b"a", {b"m:tags": b"y,z"})
    assert [place.row("tags", tag) for tag in (b"x", b"y", b"z", b"ready")] == [
        {}, {b"p:a": b"1"}, {b"p:a": b"1"}, {},
    ]  # fmt: skip
    pages.put(b"a", {b"m:state": b"ready"})
    assert place.row("tags", b"ready") == {b"p:a": b"Home"}


def test_a_second_sync_changes_what_is_declared_otherwise(place: Place) -> None:
    place.write(FIRST)
    place.shell.out("trigger", "sync", MODULE, "--yes")
    place.connection.triggers.add("by-hand", b"pages", f"{MODULE}:ready", [b"m"])
    assert place.shell.out("trigger", "sync", MODULE, "--yes") == "nothing changes\n"
    place.connection.triggers.pause("pages-tags")
    place.connection.table("pages").put(b"a", {b"m:tags": b"x"})
    place.write(SECOND)
    assert place.shell.out("trigger", "sync", MODULE, "--yes").splitlines() == [
        f"add     pages-done: {MODULE}:done on pages, from now",
        "change  pages-tags, which keeps its place",
        "          share: 10 -> 20",
        "remove  pages-ready: what was not delivered to it is dropped",
        "done",
    ]
    place.connection.triggers.resume("pages-tags")
    assert place.row("tags", b"x", "pages-tags") == {b"p:a": b"1"}, "what waited is delivered"
    assert not place.connection.triggers.wait("by-hand", timeout_ms=1_000)
    (by_hand,) = [one for one in place.connection.triggers.list() if one.name == "by-hand"]
    assert (by_hand.state, by_hand.dead_letters) == ("blocked", 0), "its function is called otherwise now"
    assert "has no attribute 'ready'" in by_hand.last_error
    found = {one.name: one.registration for one in place.connection.triggers.list()}
    assert sorted(found) == ["by-hand", "pages-done", "pages-tags"]
    assert found["pages-tags"] is not None
    assert found["pages-tags"].share == 20
    assert place.shell.json("trigger", "sync", MODULE, "--dry-run") == {
        "added": [], "changed": {}, "removed": [], "done": False,
    }  # fmt: skip


def test_columns_conditions_and_looks_are_options_of_add(place: Place) -> None:
    place.write(FIRST)
    add = ("trigger", "add", "pages", f"{MODULE}:ready", "--name", "by-hand", "--columns", "m:state,m:site")
    place.shell.out(*add, "--where", "m:state=ready", "--look", "site=sites,m:site", "--no-row")
    place.connection.table("sites").put(b"s1", {b"m:name": b"Home"})
    pages = place.connection.table("pages")
    pages.put(b"a", {b"m:site": b"s1", b"m:state": b"draft"})
    pages.put(b"b", {b"m:tags": b"x"})
    assert place.row("tags", b"ready") == {}
    pages.put(b"a", {b"m:state": b"ready"})
    assert place.row("tags", b"ready") == {b"p:a": b"Home"}
    (found,) = [one.registration for one in place.connection.triggers.list()]
    assert found is not None
    assert (found.families, found.columns, found.where) == (("m",), ("m:site", "m:state"), ("m:state=ready",))
    assert (found.look, found.images) == ((("site", "sites", "m:site"),), True)
    for wrong, why in (
        (("--look", "site=sites"), "write NAME=TABLE,KEY, for example fans="),
        (("--look", "site=none,row"), "there is no table none"),
        (("--where", "m:state"), "condition 'm:state'"),
        (("--from", "yesterday"), "'yesterday' is no time"),
        (("--from", "1h"), "keeps no changes that are delivered"),
    ):
        assert why in place.shell(*add[:4], "--name", "other", *wrong).output


def test_changed_source_is_taken_up_without_a_restart(place: Place) -> None:
    place.write(FIRST)
    place.shell.out("trigger", "sync", MODULE, "--yes")
    pages = place.connection.table("pages")
    pages.put(b"a", {b"m:tags": b"x"})
    assert place.row("tags", b"x") == {b"p:a": b"1"}
    worker = place.serving.store.serving.trigger_manager.dispatcher.workers()[0].link.process_id
    adjustments = [int(Path(f"/proc/{process}/oom_score_adj").read_text()) for process in (worker, "self")]
    assert adjustments[0] > adjustments[1], "without memory the machine ends it first"
    place.write(FIRST.replace('b"1"', 'b"other"'))
    pages.put(b"b", {b"m:tags": b"x"})
    assert place.row("tags", b"x")[b"p:b"] == b"1"
    place.shell.out("trigger", "reload")
    pages.put(b"c", {b"m:tags": b"x"})
    assert place.row("tags", b"x")[b"p:c"] == b"other"
    assert place.serving.store.serving.trigger_manager.dispatcher.workers()[0].link.process_id == worker
    place.write(FIRST.replace("def tags", "def labels"))
    assert "has no attribute 'tags'" in place.shell.error("trigger", "reload")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("raise RuntimeError('as told')", "cannot be imported here: RuntimeError: as told"),
        (FIRST.replace("m:state=ready", "m:state"), "condition 'm:state'"),
        (FIRST.replace('writes=["tags"]', 'writes=["none"]'), "there is no table none"),
        (FIRST.replace('writes=["tags"]', 'writes=["pages"]'), "would follow its own changes"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_done(place: Place, text: str, message: str) -> None:
    place.write(text)
    result = place.shell("trigger", "sync", MODULE, "--yes")
    assert result.exit_code != 0
    assert message in result.output
    assert place.connection.triggers.list() == []
