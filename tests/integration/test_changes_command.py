"""``columnar changes``: its lines for people, scripts and programs, positions kept in a file, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from columnar.client import Connection, Put
from columnar.shell.change_lines import text_of_position
from tests.support.serving import Serving
from tests.support.shell import Shell

ROOT = Path(__file__).parents[2]
KEPT = {"CHANGE_LOG": "3600", "CHANGE_LOG_IMAGES": "true"}


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    serving = Serving(tmp_path_factory.mktemp("changes")).start()
    yield serving
    serving.stop()


@pytest.fixture
def shell(serving: Serving) -> Shell:
    return Shell(f"127.0.0.1:{serving.store.port}")


@pytest.fixture
def connection(serving: Serving) -> Connection:
    return serving.connect()


def make(connection: Connection, name: str) -> Any:
    connection.create_table(name, {"f": {}, "g": {}}, attributes=KEPT)
    return connection.table(name)


def lines(shell: Shell, *words: str) -> list[list[str]]:
    return [line.split("\t") for line in shell.out("changes", *words, "--no-follow").splitlines()]


def objects(shell: Shell, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell.out("changes", *words, "--no-follow", "--json").splitlines()]


def saved_position(shell: Shell, path: Path, table: str) -> None:
    """Begin a position file at the log's present end."""
    assert shell.out("changes", table, "--no-follow", "--position-file", str(path)) == ""


def test_a_line_has_each_entry_as_it_is_typed(shell: Shell, connection: Connection, tmp_path: Path) -> None:
    table, kept = make(connection, "entries"), tmp_path / "kept"
    saved_position(shell, kept, "entries")
    table.put(b"r\t\xff", {b"f:a=b": b"1\n2", b"g:x": b"\x00"})
    table.delete(b"r\t\xff", [b"g:x"])
    table.delete(b"none")
    (put, delete, whole) = lines(shell, "entries", "--position-file", str(kept), "--before", "--after")
    assert put[:1] + put[2:] == [
        "change", r"r\x09\xFF", r"put f:a\x3Db=1\x0A2", r"put g:x=\x00",
        "before nothing", r"after f:a\x3Db=1\x0A2", r"after g:x=\x00",
    ]  # fmt: skip
    assert abs(int(put[1]) - time.time() * 1_000) < 600_000
    assert delete[3] == "delete g:x"
    assert sorted(delete[4:]) == [r"after f:a\x3Db=1\x0A2", r"before f:a\x3Db=1\x0A2", r"before g:x=\x00"]
    assert whole[2:5] == ["none", "delete family f", "delete family g"]


def test_images_that_the_log_lacks_are_said_to_be_unknown(shell: Shell, connection: Connection) -> None:
    connection.create_table("later", {"f": {}}, attributes={"CHANGE_LOG": "3600"})
    assert objects(shell, "later", "--from", "beginning") == []
    start = connection.changes("later", follow=False)
    list(start)
    connection.table("later").put(b"r", {b"f:x": b"1"})
    connection.admin.alter_table("later", attributes=KEPT)
    connection.table("later").put(b"r", {b"f:x": b"2"})
    found = objects(shell, "later", "--from", text_of_position(start.position), "--after")
    assert [one["after"] for one in found] == [None, {"f:x": "2"}]
    assert "before" not in found[0]
    plain = lines(shell, "later", "--from", text_of_position(start.position), "--after")
    assert plain[0][3:] == ["put f:x=1", "after unknown"]


def test_json_has_what_a_program_needs_to_go_on(shell: Shell, connection: Connection) -> None:
    table = make(connection, "json")
    table.put(b"a\xff", {b"f:x": b"1"}, timestamp=5)
    (row,) = objects(shell, "json", "--from", "beginning")
    sequence, position = row.pop("sequence"), row.pop("position")
    assert row == {"event": "row", "row": r"a\xFF", "cells": [{"column": "f:x", "value": "1", "timestamp": 5}]}
    assert objects(shell, "json", "--from", position) == []
    table.put(b"b", {b"f:x": b"2"}, timestamp=6)
    table.delete(b"b", [b"f:x"], timestamp=6)
    put, delete = objects(shell, "json", "--from", position)
    assert put["entries"] == [{"kind": "put", "column": "f:x", "value": "2", "timestamp": 6}]
    assert delete["entries"] == [{"kind": "delete", "column": "f:x", "timestamp": 6}]
    assert (put["event"], put["row"], put["more"]) == ("change", "b", False)
    assert put["position"] == position, "before the reply, whose last event it is not"
    assert put["stamp"] < delete["stamp"]
    assert [int(n) for n in sequence.split("-")] < [int(n) for n in put["sequence"].split("-")]
    assert objects(shell, "json", "--from", delete["position"]) == []


def test_filters(shell: Shell, connection: Connection) -> None:
    table = make(connection, "filters")
    for n in range(20):
        table.put(b"%02d" % n, {b"f:x": b"%d" % (n % 2), b"g:y": b"1"})
    begin = ("filters", "--from", "beginning")
    assert [one["row"] for one in objects(shell, *begin, "--rows", "05:08")] == ["05", "06", "07"]
    assert len(objects(shell, *begin, "--rows", ":10")) == len(objects(shell, *begin, "--rows", "10:")) == 10
    parts = [one["row"] for n in range(3) for one in objects(shell, *begin, "--part", f"{n}/3")]
    assert sorted(parts) == [f"{n:02}" for n in range(20)]
    assert len(objects(shell, *begin, "--where", "f:x = 1", "--columns", "g")) == 10
    columns = {cell["column"] for one in objects(shell, *begin, "--columns", "f:x,g:none") for cell in one["cells"]}
    assert columns == {"f:x"}


def test_changes_of_a_row_that_come_together_are_one(shell: Shell, connection: Connection, tmp_path: Path) -> None:
    table, kept = make(connection, "together"), tmp_path / "kept"
    saved_position(shell, kept, "together")
    for n in range(5):
        table.put(b"r", {b"f:x": b"%d" % n})
    words = ("together", "--from", kept.read_text().strip())
    assert len(objects(shell, *words)) == 5
    (one,) = objects(shell, *words, "--consolidate")
    assert [entry["value"] for entry in one["entries"]] == ["4"]


def test_wrong_words_are_refused_with_the_remedy(shell: Shell, connection: Connection, tmp_path: Path) -> None:
    make(connection, "wrong")
    for words, says in (
        (("--from", "tomorrow"), "beginning"),
        (("--from", "9" * 18), "calendar"),
        (("--from", "kwGl"), "position"),
        (("--rows", "a"), "one colon"),
        (("--rows", "a:b:c"), "one colon"),
        (("--part", "1"), "0/4"),
        (("--position-file", str(tmp_path / "none" / "kept")), "No such file"),
    ):
        result = shell("changes", "wrong", "--no-follow", *words)
        assert result.exit_code in (1, 2), result.output
        assert says in result.stderr
        assert len(result.stderr.splitlines()) == 1
    (tmp_path / "kept").write_text("something else\n")
    assert "remove it" in shell.error("changes", "wrong", "--position-file", str(tmp_path / "kept"), status=2)
    assert (tmp_path / "kept").read_text() == "something else\n"


def test_a_position_that_the_log_left_behind_is_told_or_forgotten(
    shell: Shell, connection: Connection, tmp_path: Path
) -> None:
    table, kept = make(connection, "gone"), tmp_path / "kept"
    saved_position(shell, kept, "gone")
    connection.admin.alter_table("gone", attributes={"CHANGE_LOG": "", "CHANGE_LOG_IMAGES": ""})
    table.put(b"r", {b"f:x": b"1"})
    connection.admin.alter_table("gone", attributes=KEPT)
    words = ("changes", "gone", "--no-follow", "--position-file", str(kept))
    assert "--snapshot" in shell.error(*words)
    forget, row = shell.out(*words, "--snapshot").splitlines()
    assert forget.split("\t") == ["forget", "-", "from the first row", "to the last row"]
    assert row.split("\t")[2] == "r"
    assert shell.out(*words) == ""


class Following:
    """The command as a process of its own."""

    def __init__(self, serving: Serving, *words: str, out: Any = subprocess.PIPE) -> None:
        store = f"127.0.0.1:{serving.store.port}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "columnar", "changes", *words, "--store", store],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def end(self) -> tuple[int, str]:
        """Return the status and what was said on stderr."""
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


def test_a_script_goes_on_where_it_was_and_ctrl_c_ends_it(
    serving: Serving, connection: Connection, tmp_path: Path
) -> None:
    table, kept = make(connection, "script"), tmp_path / "kept"
    table.put(b"0", {b"f:x": b"1"})
    rows = []
    for n in range(1, 4):
        following = Following(serving, "script", "--position-file", str(kept), "--from", "beginning", "--json")
        if n == 1:
            rows.append(json.loads(following.line())["row"])
        table.put(b"%d" % n, {b"f:x": b"1"})
        line = json.loads(following.line())
        rows.append(line["row"])
        deadline = time.monotonic() + 30
        while kept.read_text().strip() != line["position"]:  # it is written behind the line
            assert time.monotonic() < deadline
            time.sleep(0.01)
        following.process.send_signal(signal.SIGINT)
        assert following.end() == (0, "")
    assert rows == ["0", "1", "2", "3"]


def test_a_reader_of_the_output_that_leaves_ends_it_quietly(serving: Serving, connection: Connection) -> None:
    table = make(connection, "pipe")
    table.put(b"0", {b"f:x": b"1"})
    following = Following(serving, "pipe", "--from", "beginning")
    assert following.line().startswith("row\t")
    assert following.process.stdout is not None
    following.process.stdout.close()  # no change comes that a write could fail for
    assert following.process.stderr is not None
    with following.process.stderr as said:
        assert said.read() == ""
    assert following.process.wait(60) == 1


def test_debezium_s_form(shell: Shell, connection: Connection, tmp_path: Path) -> None:
    attributes = {**KEPT, "ROW_GROUP": "until:/"}
    connection.create_table("dbz", {"f": {}}, attributes=attributes)
    table = connection.table("dbz")
    table.put(b"a", {b"f:tags": b"[1, 2]"})

    def messages(*words: str) -> list[dict[str, Any]]:
        text = shell.out("changes", "dbz", "--no-follow", "--format", "debezium", *words)
        return [json.loads(line) for line in text.splitlines()]

    (snapshot,) = messages("--from", "beginning", "--value", "f:tags=json")
    assert (snapshot["key"], snapshot["value"]["op"]) == ({"row": "a"}, "r")
    assert snapshot["value"]["after"] == {"row": "a", "f:tags": [1, 2]}
    begin = ("--from", snapshot["position"])
    table.put(b"a", {b"f:tags": b"[]"})
    table.delete(b"a")
    table.mutate_group({b"g/%d" % n: ([], [Put(b"f:x", b"%d" % n)]) for n in (1, 2)})
    found = messages(*begin)
    assert [one["value"] and one["value"]["op"] for one in found] == ["u", "d", None, "c", "c"]
    assert found[0]["value"]["before"] == {"row": "a", "f:tags": "[1, 2]"}
    first, second = (one["value"]["transaction"] for one in found[3:])
    assert (first["id"], first["total_order"]) == (second["id"], 1)
    assert second["total_order"] == 2
    table.put(b"b", {b"f:x": b"\xff"})
    result = shell("changes", "dbz", "--no-follow", *begin, "--format", "debezium")
    assert result.exit_code == 2
    assert "--value f:x=base64" in result.stderr
    assert [one["value"]["after"]["f:x"] for one in messages(*begin, "--value", "base64", "--rows", "b:c")] == ["/w=="]
    assert "--format debezium" in shell.error("changes", "dbz", "--value", "json", status=2)
    assert "forget" in shell.error("changes", "dbz", "--format", "debezium", "--snapshot", status=2)


def test_debezium_s_form_says_what_it_needs(shell: Shell, connection: Connection) -> None:
    connection.create_table("dbzless", {"f": {}}, attributes={"CHANGE_LOG": "3600"})
    said = shell.error("changes", "dbzless", "--no-follow", "--format", "debezium")
    assert "columnar alter dbzless --set CHANGE_LOG_IMAGES=true" in said


def test_the_position_stays_where_it_was_if_its_lines_could_not_be_written(
    serving: Serving, connection: Connection, tmp_path: Path
) -> None:
    table, kept = make(connection, "unwritten"), tmp_path / "kept"
    table.put(b"0", {b"f:x": b"1"})
    out, into = os.pipe()
    os.close(out)  # nobody reads
    following = Following(
        serving, "unwritten", "--from", "beginning", "--no-follow", "--position-file", str(kept), out=into
    )
    os.close(into)
    assert following.end() == (1, "")
    assert not kept.exists()


def members_of(connection: Connection, table: str) -> list[str]:
    (group,) = connection.admin.reader_groups(table)
    return [one.name for one in group.members]


def test_readers_of_a_group_print_each_change_once(shell: Shell, connection: Connection) -> None:
    table = make(connection, "shared")
    table.put(b"a", {b"f:x": b"1"})
    words = ("shared", "--group", "search")
    assert [one["row"] for one in objects(shell, *words, "--from", "beginning")] == ["a"]
    assert members_of(connection, "shared") == [], "it left"
    table.put(b"b", {b"f:x": b"1"})
    other: Any = connection.changes("shared", group="search", follow=False)
    assert [one.row for one in other] == [b"b"]
    assert lines(shell, *words) == [], "the other has the rows"
    other.leave_group()
    assert [one["row"] for one in objects(shell, *words, "--from", "beginning")] == ["b"], "it was not committed"
    assert lines(shell, *words) == []


def test_lines_that_could_not_be_written_are_not_committed(serving: Serving, connection: Connection) -> None:
    table = make(connection, "uncommitted")
    table.put(b"0", {b"f:x": b"1"})
    out, into = os.pipe()
    os.close(out)  # nobody reads
    words = ("uncommitted", "--group", "g", "--from", "beginning", "--no-follow")
    following = Following(serving, *words, out=into)
    os.close(into)
    assert following.end() == (1, "")
    assert members_of(connection, "uncommitted") == []
    again = Following(serving, *words)
    assert again.line().split("\t")[2] == "0"
    assert again.end() == (0, "")


def test_ctrl_c_leaves_the_group_and_what_was_printed_is_committed(serving: Serving, connection: Connection) -> None:
    table = make(connection, "interrupted")
    table.put(b"0", {b"f:x": b"1"})
    following = Following(serving, "interrupted", "--group", "g", "--from", "beginning", "--json")
    rows = [json.loads(following.line())["row"]]
    table.put(b"1", {b"f:x": b"1"})
    rows.append(json.loads(following.line())["row"])  # so the first one's commit is done
    following.process.send_signal(signal.SIGINT)
    assert following.end() == (0, "")
    assert members_of(connection, "interrupted") == []
    with connection.changes("interrupted", group="g", follow=False) as rest:  # type: ignore[attr-defined]
        rows += [one.row.decode() for one in rest if one.row != b"1"]
    assert rows == ["0", "1"]


def test_a_member_of_a_group_has_no_place_of_its_own(shell: Shell, connection: Connection, tmp_path: Path) -> None:
    make(connection, "placed")
    for words, says in (
        (("--position-file", str(tmp_path / "kept")), "--position-file goes without --group"),
        (("--part", "0/2"), "--part goes without --group"),
        (("--from", text_of_position(b"\x93\x01")), "--from POSITION goes without --group"),
    ):
        assert says in shell.error("changes", "placed", "--group", "g", *words, status=2)
    assert "name the group" in shell.error("changes", "placed", "--group", "", status=2)
    assert "name of a group" in shell.error("changes", "placed", "--group", "a b", "--no-follow")
    assert connection.admin.reader_groups("placed") == []
