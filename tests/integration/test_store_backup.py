"""Backup of a store that serves, with writers and a trigger running, and what comes back from it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from columnar.cli import main
from columnar.client import Connection
from tests.support import trigger_functions
from tests.support.standalone_store import StoreProcess

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
