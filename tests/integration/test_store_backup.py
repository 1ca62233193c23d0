"""Backup of a store that serves, with writers and a trigger running, and what comes back from it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from columnar.cli import main
from columnar.client import Connection, Expect, Put, RegionAdmin
from columnar.client.changes import Change, Changes, ChangesGone, Forget, Row, StreamEvent
from columnar.client.errors import StoreIllegalArgument
from columnar.regions.log.log_retention import LogRetention
from columnar.storage.rocks import RocksEngine
from tests.support import trigger_functions
from tests.support.s3_service import ENVIRONMENT, bucket_client, s3_service
from tests.support.standalone_store import StoreProcess
from wikka_port.backup_report import NoReport, last_backup
from wikka_port.cli import main as wikka

FLAGS = ("--trigger-modules", trigger_functions.MODULE)


def run(*words: str, port: int = 0, status: int = 0) -> Any:
    result = CliRunner().invoke(main, [*words, "--json"], env={"COLUMNAR_STORE": f"127.0.0.1:{port}"})
    assert result.exit_code == status, (result.output, result.exception)
    return json.loads(result.stdout) if status == 0 else result.stderr


def recomputed(connection: Connection) -> dict[bytes, set[bytes]]:
    found: dict[bytes, set[bytes]] = {}
    for row, cells in connection.table(b"t").scan():
        found.setdefault(cells[b"f:v"], set()).add(b"i:" + row)
    return found


def index(connection: Connection) -> dict[bytes, set[bytes]]:
    return {row: set(cells) for row, cells in connection.table(b"index").scan()}


class Writer(threading.Thread):
    def __init__(self, store: StoreProcess, number: int) -> None:
        super().__init__()
        self._connection = store.connection()
        self._number = number
        self.stopped = threading.Event()
        self.acknowledged: dict[bytes, int] = {}

    def run(self) -> None:
        table = self._connection.table(b"t")
        n = 0
        while not self.stopped.is_set():
            n += 1
            row = b"%c%d-%d" % (b"az"[n % 2], self._number, n % 50)
            table.put(row, {b"f:v": b"%d" % n})
            self.acknowledged[row] = n
        self._connection.close()


def test_a_backup_under_load_comes_back_whole(tmp_path: Path) -> None:
    folder = str(tmp_path / "backups")
    with StoreProcess(tmp_path / "data", *FLAGS) as store:
        connection = store.connection()
        connection.create_table(b"t", {"f": {"max_versions": 2}}, splits=[b"m"])
        connection.create_table(b"index", {"i": {"max_versions": 1}}, attributes={"DELETE_MARKERS": "3600000"})
        trigger = f"{trigger_functions.MODULE}:index"
        connection.triggers.add("indexer", b"t", trigger, [b"f"], before=True)
        writers = [Writer(store, n) for n in range(2)]
        for writer in writers:
            writer.start()
        try:
            for _ in range(3):
                before = [dict(writer.acknowledged) for writer in writers]
                saved = run("backup", folder, port=store.port)
                attempted = [dict(writer.acknowledged) for writer in writers]
        finally:
            for writer in writers:
                writer.stopped.set()
                writer.join()
        assert saved["tables"] == 2
        connection.close()
    data = tmp_path / "restored"
    assert run("restore-backup", folder, "--data", str(data))["backup"] == saved["backup"]
    with StoreProcess(data, *FLAGS) as store:
        connection = store.connection()
        assert connection.triggers.wait(timeout_ms=20_000)
        held = {row: int(cells[b"f:v"]) for row, cells in connection.table(b"t").scan()}
        for sure, most in zip(before, attempted, strict=True):
            for row, n in sure.items():
                assert n <= held[row] <= most[row] + 100, f"{row!r}: acknowledged before the backup began"
        assert recomputed(connection) == {row: cells for row, cells in index(connection).items() if cells}
        (status,) = connection.triggers.list()
        assert (status.name, status.dead_letters) == ("indexer", 0)
        connection.table(b"t").put(b"new", {b"f:v": b"after"})
        assert connection.triggers.wait()
        assert index(connection)[b"after"] == {b"i:new"}
        connection.close()


def rows(events: list[StreamEvent]) -> list[bytes]:
    return [one.row for one in events if isinstance(one, Change | Row)]


def read(member: Changes, count: int) -> list[bytes]:
    found: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(found) < count:
        assert time.monotonic() < deadline, found
        found += rows(member.poll(1_000))
    return sorted(found)


def test_a_restored_store_knows_what_only_the_lost_history_had(tmp_path: Path) -> None:
    folder, data = str(tmp_path / "backups"), tmp_path / "restored"
    later = [b"%c%d" % (b"az"[n % 2], n) for n in range(10)]
    with StoreProcess(tmp_path / "data", *FLAGS) as store:
        connection = store.connection()
        connection.create_table(b"t", {"f": {}}, attributes={"CHANGE_LOG": "86400"}, splits=[b"m"])
        connection.create_table(b"index", {"i": {"max_versions": 1}}, attributes={"DELETE_MARKERS": "3600000"})
        connection.triggers.add("indexer", b"t", f"{trigger_functions.MODULE}:index", [b"f"], before=True)
        table = connection.table(b"t")
        table.put(b"z", {b"f:v": b"before"})
        put = [Put(b"f:v", b"before")]
        refused = ([Expect(b"f:v", b"else")], put)  # takes a sequence without a record, which readers may stand at
        table.check_and_mutate_rows({b"a": ([], put), b"b": refused, b"c": refused})
        early = connection.changes("t", start="beginning", follow=False)
        assert sorted(rows(list(early))) == [b"a", b"z"]
        kept, gone = (connection.changes("t", group=name, start="beginning", poll_ms=100) for name in ("kept", "gone"))
        for member in (kept, gone):
            assert read(member, 2) == [b"a", b"z"]
            member.commit()
        kept.leave_group()
        assert connection.triggers.wait(timeout_ms=20_000)
        run("backup", folder, port=store.port)
        session = connection.session()
        for row in later:
            session.table("t").put(row, {b"f:v": b"lost"})
        late = connection.changes("t", start=early.position, follow=False)
        assert len(rows(list(late))) == 10
        assert read(gone, 10) == sorted(later)
        connection.close()
    run("restore-backup", folder, "--data", str(data))
    with StoreProcess(data, *FLAGS, port=store.port) as restored:
        connection.open()
        table = restored.connection().table(b"t")
        for row in later * 2:
            table.put(row, {b"f:v": b"new"})
        known = connection.changes("t", start=early.position, follow=False)
        assert sorted(rows(list(known))) == sorted(later * 2)
        with pytest.raises(ChangesGone, match="restored from a copy"):
            list(connection.changes("t", start=late.position, follow=False))
        anew = list(connection.changes("t", start=late.position, follow=False, snapshot=True))
        assert {one.start for one in anew if isinstance(one, Forget)} == {b"", b"m"}
        assert set(rows(anew)) == {b"a", b"z", *later}
        with pytest.raises(ChangesGone, match="restored from a copy"):
            gone.poll(1_000)
        gone.leave_group()
        for name in ("kept", "gone"):
            member = connection.changes("t", group=name, poll_ms=100)
            assert read(member, 20) == sorted(later * 2), name
        with pytest.raises(StoreIllegalArgument, match="begin a new session"):
            session.wait("indexer")
        assert connection.triggers.wait(timeout_ms=20_000)
        assert recomputed(connection) == {row: cells for row, cells in index(connection).items() if cells}
        RegionAdmin(connection).split(b"t", b"d")  # the daughters know it, too
        table.put(b"b", {b"f:v": b"new"})
        with pytest.raises(ChangesGone, match="restored from a copy"):
            list(connection.changes("t", start=late.position, follow=False))
        RegionAdmin(connection).merge(*[region.name for region in connection.admin.regions("t")][1:])
        anew = list(connection.changes("t", start=late.position, follow=False, snapshot=True))
        assert {one.start for one in anew if isinstance(one, Forget)} == {b"", b"d", b"m"}, "of both merged regions"
        connection.close()


def test_a_backup_can_be_tried_without_a_delivery(tmp_path: Path) -> None:
    folder, tried = str(tmp_path / "backups"), tmp_path / "tried"
    with StoreProcess(tmp_path / "data", *FLAGS) as store:
        connection = store.connection()
        for table, family in (("t", "f"), ("index", "i")):
            connection.create_table(table, {family: {}})
        for name in ("indexer", "rests"):
            connection.triggers.add(name, b"t", f"{trigger_functions.MODULE}:index", [b"f"], before=True)
        connection.triggers.pause("rests")
        connection.queues.serve("hooks", url="http://127.0.0.1:9/hook")
        run("backup", folder, port=store.port)
        connection.close()
    paused = [{"kind": "trigger", "name": "indexer"}, {"kind": "queue", "name": "hooks"}]
    assert run("restore-backup", folder, "--data", str(tried), "--paused")["paused"] == paused
    with StoreProcess(tried, *FLAGS) as store:
        connection = store.connection()
        assert {one.name: one.state for one in connection.triggers.list()} == {"indexer": "paused", "rests": "paused"}
        assert [(one.queue, one.state) for one in connection.queues.served()] == [(b"hooks", "paused")]
        connection.table("t").put(b"r", {b"f:v": b"1"})
        connection.triggers.resume("indexer")
        assert connection.triggers.wait("indexer", timeout_ms=20_000)
        assert index(connection) == {b"1": {b"i:r"}}
        connection.close()
    said = CliRunner().invoke(main, ["restore-backup", folder, "--data", str(tmp_path / "again")])
    assert "trigger indexer, queue hooks; to only try the backup restore it with --paused" in said.stderr
    said = CliRunner().invoke(main, ["restore-backup", folder, "--data", str(tmp_path / "third"), "--paused"])
    assert "columnar trigger resume indexer" in said.stdout
    assert "columnar queue resume hooks" in said.stdout
    assert not said.stderr


def test_a_second_backup_copies_only_what_is_new(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    with StoreProcess(tmp_path / "data") as store:
        connection = store.connection()
        connection.create_table(b"t", {"f": {}})
        connection.table(b"t").put(b"r", {b"f:v": b"x" * 200_000})
        first = run("backup", str(folder), port=store.port)
        connection.table(b"t").put(b"r2", {b"f:v": b"y"})
        second = run("backup", str(folder), port=store.port)
        connection.close()
        assert second["files"] > second["copied_files"]
        in_use = run("restore-backup", str(folder), "--data", str(tmp_path / "data"), status=2)
        assert "is not empty" in in_use
    assert [one["backup"] for one in run("restore-backup", str(folder), "--list")] == [
        first["backup"],
        second["backup"],
    ]
    run("restore-backup", str(folder), "--data", str(tmp_path / "one"), "--backup", first["backup"])
    with StoreProcess(tmp_path / "one") as store:
        connection = store.connection()
        assert [row for row, _ in connection.table(b"t").scan()] == [b"r"]
        run("backup", str(folder), "--keep", "1", port=store.port)
        connection.close()
    (last,) = run("restore-backup", str(folder), "--list")
    run("restore-backup", str(folder), "--data", str(tmp_path / "two"))
    files = sorted((folder / "files").iterdir(), key=lambda path: path.stat().st_size)
    data = bytearray(files[-1].read_bytes())
    data[len(data) // 2] ^= 1
    files[-1].write_bytes(data)
    assert "is damaged" in run("restore-backup", str(folder), "--data", str(tmp_path / "three"), status=1)
    assert not (tmp_path / "three").exists()
    assert last["tables"] == ["t"]


def test_an_encrypted_backup_in_s3_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    key, place = str(tmp_path / "key"), "s3://bucket/store"
    assert CliRunner().invoke(main, ["backup", "new-key", key]).exit_code == 0
    with s3_service() as url, StoreProcess(tmp_path / "data") as store:
        client = bucket_client(url, "bucket")
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        options = ("--key-file", key)
        connection = store.connection()
        connection.create_table(b"t", {"f": {}})
        connection.table(b"t").put(b"r", {b"f:v": b"x" * 200_000})
        first = run("backup", place, *options, port=store.port)
        connection.table(b"t").put(b"r2", {b"f:v": b"y"})
        connection.close()
        second = run("backup", place, *options, port=store.port)
        assert second["copied_files"] < second["files"]
        assert [one["backup"] for one in run("backup", "list", place, *options)] == [first["backup"], second["backup"]]
        assert run("backup", "check", place, "--all", *options)["errors"] == 0
        words = ("backup", "restore-table", place, "t", "t_before", "--backup", first["backup"])
        assert run(*words, *options, port=store.port)["table"] == "t_before"
        connection = store.connection()
        assert [row for row, _ in connection.table(b"t_before").scan()] == [b"r"]
        assert [row for row, _ in connection.table(b"t").scan()] == [b"r", b"r2"]
        connection.table(b"t_before").put(b"r3", {b"f:v": b"z"})
        connection.close()
        assert "is encrypted: give its key" in run("backup", "list", place, status=2)
        run("restore-backup", place, *options, "--data", str(tmp_path / "restored"))
        assert run("backup", "remove", place, first["backup"], "--yes", *options)["removed_bytes"] > 0
        assert run("backup", "check", place, *options)["errors"] == 0
        (largest,) = sorted(client.list_objects_v2(Bucket="bucket")["Contents"], key=lambda one: one["Size"])[-1:]
        client.delete_object(Bucket="bucket", Key=largest["Key"])
        result = CliRunner().invoke(main, ["backup", "check", place, *options])
        assert result.exit_code == 1
        assert f"s3://bucket/{largest['Key']} is missing" in result.stdout
    with StoreProcess(tmp_path / "restored") as store:
        connection = store.connection()
        assert [row for row, _ in connection.table(b"t").scan()] == [b"r", b"r2"]
        connection.close()


def test_backups_at_intervals_until_a_signal(tmp_path: Path) -> None:
    place, metrics = tmp_path / "backups", tmp_path / "metrics.prom"
    with StoreProcess(tmp_path / "data") as store:
        words = ["backup", str(place), "--every", "6h", "--metrics-file", str(metrics), "--json"]
        process = subprocess.Popen(
            [sys.executable, "-m", "columnar", *words, "--store", f"127.0.0.1:{store.port}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            first = json.loads(process.stdout.readline())
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 0, said
    assert [one["backup"] for one in run("backup", "list", str(place))] == [first["backup"]]
    assert "columnar_backup_last_run_failed 0" in metrics.read_text()


def all_logs_are_marked(connection: Connection, table: bytes) -> bool:
    """Tell whether each region's log has its first mark of time, half a second after its first record."""
    with connection.snapshots.staged("copy", table) as copy:
        stores = [RocksEngine().open_reading(str(path.parent)) for path in Path(copy.path).glob("*/CURRENT")]
        marked = [bool(LogRetention(store).marks()) for store in stores]
        for store in stores:
            store.close()
        return all(marked)


def test_a_table_comes_back_as_it_was_at_a_moment(tmp_path: Path) -> None:
    place = str(tmp_path / "backups")
    with StoreProcess(tmp_path / "data") as store:
        connection = store.connection()
        families = {"f": {"max_versions": 2}, "g": {}}
        connection.create_table(b"t", families, attributes={"CHANGE_LOG": "86400"}, splits=[b"m"])
        connection.create_table(b"unlogged", {"f": {}})
        table = connection.table(b"t")

        def contents(name: bytes) -> dict[bytes, dict[bytes, list[tuple[bytes, int]]]]:
            held = connection.table(name)
            return {
                row: {column: held.cells(row, column, versions=5, include_timestamp=True) for column in cells}
                for row, cells in held.scan()
            }

        def change(n: int) -> None:
            table.put(b"a%d" % (n % 7), {b"f:v": b"%d" % n, b"g:v": b"%d" % n})
            table.put(b"z%d" % (n % 5), {b"f:w%d" % (n % 3): b"%d" % n})
            if n % 4 == 0:
                table.delete(b"a%d" % ((n + 3) % 7), columns=[b"f:v"])
            if n % 9 == 0:
                table.delete(b"z%d" % (n % 5))
            table.counter_inc(b"z", b"g:count", n)

        for n in range(30):
            change(n)
        while not all_logs_are_marked(connection, b"t"):
            pass
        run("backup", place, port=store.port)
        moments = {}
        for n in range(30, 90):
            change(n)
            if n % 20 == 0:
                found = contents(b"t")
                moment_ms = 1 + max(  # counters that change twice in a millisecond are ahead of the clock
                    time.time_ns() // 1_000_000,
                    *(at for cells in found.values() for held in cells.values() for _, at in held),
                )
                moments[moment_ms] = found
                while time.time_ns() // 1_000_000 <= moment_ms:  # the next change has a later timestamp
                    pass
            if n == 50:
                RegionAdmin(connection).split(b"t", b"a3")
        too_late = run("backup", "restore-table", place, "t", "x", "--at", str(time.time_ns() // 1_000_000 + 1),
                       port=store.port, status=2)  # fmt: skip
        assert "has no backup of t from after that moment: make one now" in too_late
        run("backup", place, port=store.port)
        for number, (moment_ms, expected) in enumerate(moments.items()):
            done = run("backup", "restore-table", place, "t", f"t{number}", "--at", str(moment_ms), port=store.port)
            assert done["changes"] > 0
            assert contents(b"t%d" % number) == expected
        words = ("backup", "restore-table", place, "unlogged", "x", "--at", str(next(iter(moments))))
        assert "had no CHANGE_LOG" in run(*words, port=store.port, status=2)
        connection.close()


def test_the_report_says_what_was_made_and_what_a_check_found(tmp_path: Path) -> None:
    """The wiki reads the file that the commands write, in every state, and makes up nothing."""
    place, report = tmp_path / "backups", tmp_path / "report.json"
    words = ("--report", str(report))
    with pytest.raises(NoReport, match="no backup has reported yet"):
        last_backup(report)
    with StoreProcess(tmp_path / "data") as store:
        connection = store.connection()
        connection.create_table(b"t", {"f": {}})
        connection.table(b"t").put(b"r", {b"f:v": b"1" * 10_000})
        connection.close()
        first = run("backup", "take", str(place), *words, port=store.port)
        found = last_backup(report)
        assert (found.backup, found.bytes, found.files) == (first["backup"], first["bytes"], first["files"])
        assert (found.tables, found.place, found.checked, found.checked_ms) == (1, str(place), "", 0)
        run("backup", "check", str(place), "--quick", *words)
        assert (last_backup(report).checked, last_backup(report).errors) == ("quick", 0)
        run("backup", "check", str(place), *words)
        assert last_backup(report).checked == "whole"
        assert last_backup(report).checked_ms >= found.taken_ms
        run("backup", "check", str(place), "--quick", *words)
        assert last_backup(report).checked == "whole", "less was looked at than before"
        second = run("backup", "take", str(place), *words, port=store.port)
        assert (last_backup(report).backup, last_backup(report).checked) == (second["backup"], "")
        run("backup", "check", str(place), "--backup", first["backup"], *words)
        assert last_backup(report).checked == "", "that was an older one"
    largest = max((one for one in (place / "files").rglob("*") if one.is_file()), key=lambda one: one.stat().st_size)
    largest.unlink()
    assert CliRunner().invoke(main, ["backup", "check", str(place), *words]).exit_code == 1
    assert (last_backup(report).checked, last_backup(report).errors) == ("whole", 1)
    shown = CliRunner().invoke(wikka, ["last-backup", "--backup-report", str(report), "--json"])
    assert (shown.exit_code, json.loads(shown.stdout)["errors"]) == (0, 1)
    for data in (b"", b"[]", b"{}", report.read_bytes().replace(b"report 1", b"report 2"), b"x" * 200_000):
        report.write_bytes(data)
        with pytest.raises(NoReport, match="is no report"):
            last_backup(report)
    refused = CliRunner().invoke(wikka, ["last-backup", "--backup-report", str(report), "--json"])
    assert (refused.exit_code, json.loads(refused.stdout)["known"]) == (1, False)
    missing = run("backup", "check", str(place), "--report", str(tmp_path / "no" / "folder"), status=1)
    assert "no/folder" in missing
