"""A store that shares fsyncs between tables is killed: tools and the next start find all acknowledged writes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner, Result

from columnar.cli import main
from columnar.client import Connection
from tests.support.store_process import StoreProcess

TABLES = [b"t%d" % number for number in range(6)]
PUTS = 150  # of each writer
PATIENCE_S = 20.0
LOOK_S = 0.02


def filled(folder: Path) -> StoreProcess:
    """Run two writers a table until all have ended."""
    store = StoreProcess(folder)
    store.start()
    connection = Connection("127.0.0.1", store.port)
    for table in TABLES:
        connection.create_table(table, {"f": {}})
    connection.close()

    def write(table: bytes, writer: int) -> None:
        mine = Connection("127.0.0.1", store.port)
        for number in range(PUTS):
            mine.table(table).put(b"%d-%d" % (writer, number), {b"f:x": b"%d" % number})
        mine.close()

    threads = [threading.Thread(target=write, args=(table, writer)) for table in TABLES for writer in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return store


def columnar(*words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--json"])


def is_all_there(folder: Path) -> bool:
    store = StoreProcess(folder)
    store.start()
    wait_until(lambda: not segments(folder))  # it brings in what nobody asks for, too
    connection = Connection("127.0.0.1", store.port)
    found = [dict(connection.table(table).scan()) for table in TABLES]
    connection.close()
    assert store.stop() == 0
    wanted = {b"%d-%d" % (writer, number): {b"f:x": b"%d" % number} for writer in range(2) for number in range(PUTS)}
    return found == [wanted] * len(TABLES)


def wait_until(is_so: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(PATIENCE_S / LOOK_S)):
        if is_so():
            return
        pause.wait(LOOK_S)
    raise AssertionError("it did not come to be")


def segments(folder: Path) -> list[Path]:
    return list((folder / "server-log").glob("*.segment"))


def test_after_a_kill_the_next_start_empties_the_log(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    store = filled(folder)
    assert segments(folder), "writes of many tables at once shared no fsync"
    store.kill()
    found = columnar("check", "--data", str(folder))
    assert found.exit_code == 0, found.output
    notes = [one["text"] for one in json.loads(found.stdout)["findings"] if "server's log" in one["text"]]
    assert len(notes) >= len(TABLES)
    assert all("the next start brings them in" in note for note in notes)
    assert segments(folder), "a check changes nothing"
    assert is_all_there(folder)
    assert not segments(folder)
    assert (folder / "FORMAT").read_text() == "columnar-data 6\n"
    assert json.loads(columnar("check", "--data", str(folder)).stdout)["findings"] == []


def test_a_repair_brings_the_log_in_first(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    filled(folder).kill()
    assert segments(folder)
    mended = columnar("repair", "--data", str(folder))
    assert mended.exit_code == 0, mended.output
    assert not segments(folder)
    assert is_all_there(folder)


def test_a_log_that_says_nonsense_stops_the_start_and_is_told_by_the_check(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    filled(folder).kill()
    (folder / "server-log" / "run").write_text("nonsense\n")
    found = columnar("check", "--data", str(folder))
    assert found.exit_code == 1
    assert "move the folder aside" in found.output
    store = StoreProcess(folder)
    try:
        store.start()
    except AssertionError:
        assert "move the folder aside" in store.log
    else:
        raise AssertionError("it started, and acknowledged writes may be missing")
    (folder / "server-log").rename(tmp_path / "aside")
    assert is_all_there(folder), "after a kill the regions' own logs have it all"
