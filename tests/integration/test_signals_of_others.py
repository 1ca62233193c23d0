"""What service managers, cleaners and hasty people do to a store of several servers, from outside."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from html import escape
from pathlib import Path
from urllib.request import urlopen

import pytest

from columnar.client import ClusterAdmin
from columnar.wire.idl import hbase
from tests.support.cluster_process import ClusterProcess, children, until
from tests.support.shell import Shell
from tests.support.standalone_store import WAIT_S


def fill(store: ClusterProcess) -> None:
    connection = store.connection()
    connection.create_table("t", {"f": {}}, splits=[b"d", b"h", b"m"])
    connection.close()
    with store.rows() as rows:
        for row in (b"a", b"e", b"i", b"n"):
            rows.put(b"t", row, row)


def check(store: ClusterProcess) -> None:
    with store.rows() as rows:
        assert [rows.get(b"t", row) for row in (b"a", b"e", b"i", b"n")] == [b"a", b"e", b"i", b"n"]


def test_signals_that_come_until_the_end_are_a_stop_in_order(tmp_path: Path) -> None:
    """A signal that comes when a server has stopped, and has not ended yet, does not end it as a crash would."""
    with ClusterProcess(tmp_path / "data", 2) as store:
        servers = set(store.servers())
        os.kill(store.pid, signal.SIGTERM)
        while servers:
            for server in list(servers):
                try:
                    os.kill(server, signal.SIGTERM)
                except ProcessLookupError:
                    servers.discard(server)
        assert store.has_ended(WAIT_S)
        assert store.stop() == 0
        log = store.log.read_text()
        assert log.count("columnar.server: stopped") == 2
        assert "by SIG" not in log, log


def test_sigterm_to_every_process_at_once_is_a_stop_in_order(tmp_path: Path) -> None:
    """Managers of services signal all processes of a store, and the supervisor signals its servers as well."""
    with ClusterProcess(tmp_path / "data", 2) as store:
        fill(store)
        family = store.family()
        for pid in [*family[1:], store.pid, *family[1:]]:  # a server gets it once more by its supervisor, too
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        assert store.has_ended(WAIT_S)
        assert store.stop() == 0
        log = store.log.read_text()
        assert log.count("columnar.server: stopped") == 2
        assert "by SIG" not in log, log  # every process ended by itself, in order
        assert "with status 1" not in log, log
        assert not list((tmp_path / "data" / "servers").glob("*/log/*.segment")), "synced and closed: no log is left"
        store.start()
        check(store)


@pytest.mark.parametrize("which", [0, 1])
def test_a_server_that_is_killed_while_the_store_starts_is_replaced(tmp_path: Path, which: int) -> None:
    store = ClusterProcess(tmp_path / "data", 2)
    store.begin()
    try:
        until(lambda: len(children(store.pid)) == 2)
        os.kill(children(store.pid)[which], signal.SIGKILL)
        store.await_ready()
        fill(store)
        check(store)
    finally:
        store.kill()


def test_a_server_that_cannot_start_ends_the_start_and_its_log_says_why(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path / "data", 2) as store:
        fill(store)
        assert store.stop() == 0
        servers = tmp_path / "data" / "servers"
        servers.rename(tmp_path / "aside")
        servers.write_text("no folder")
        store.begin()
        assert store.has_ended(WAIT_S)
        assert store.stop() == 2
        assert "servers" in store.log.read_text().splitlines()[-1]
        servers.unlink()
        (tmp_path / "aside").rename(servers)
        store.start()
        check(store)


def test_sockets_that_a_cleaner_removed_come_back_and_a_dead_server_is_replaced(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path / "data", 2) as store:
        fill(store)
        control = json.loads((tmp_path / "data" / "run.json").read_text())["socket"]
        shutil.rmtree(os.path.dirname(control))
        killed = store.kill_server(0)
        until(lambda: len(store.servers()) == 2 and killed not in store.servers())
        check(store)
        until(lambda: os.path.exists(control))
        until(lambda: len(os.listdir(os.path.dirname(control))) == 4)  # the other server's and the leader's, too
        assert os.stat(os.path.dirname(control)).st_mode & 0o777 == 0o700
        asked = [sys.executable, "-m", "columnar", "servers", "--data", str(tmp_path / "data"), "--json"]

        def states() -> list[str]:
            said = subprocess.run(asked, capture_output=True, text=True, timeout=WAIT_S, check=True).stdout
            return [one["state"] for one in json.loads(said)["servers"]]

        until(lambda: states() == ["up", "up"])  # the new server may find the leader's socket later than the operator


def test_a_supervisor_that_is_killed_amid_a_restart_of_a_server_leaves_no_drained_one(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path / "data", 2) as store:
        fill(store)
        connection = store.connection()
        owners = {one.server for one in ClusterAdmin(connection).locations(b"t")}
        connection.close()
        name = min(owners)
        # A scanner that is open keeps its server from stopping; connections that have just ended may still count.
        scanning = [rows for _ in range(3) for rows in store.rows_of_each()]
        for one in scanning:
            one.client.scannerOpenWithScan(b"t", hbase.TScan(), {})
        restart = [sys.executable, "-m", "columnar", "restart", name, "--data", str(tmp_path / "data")]
        asking = subprocess.Popen(restart, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def notes() -> tuple[str, ...]:
            asked = store.connection()
            try:
                (found,) = [one for one in ClusterAdmin(asked).servers().servers if one.name == name]
                return found.notes
            finally:
                asked.close()

        until(lambda: any("is being stopped or restarted" in note for note in notes()))
        store.kill()
        asking.kill()  # it would wait for the supervisor that starts next
        asking.wait()
        store.start()
        connection = store.connection()
        servers = ClusterAdmin(connection).servers().servers
        assert [one.drained for one in servers] == [False, False]
        connection.close()
        for one in scanning:
            one.close()
        check(store)


def test_operators_see_who_died_and_of_what_and_decisions_outlive_a_restart(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path / "data", 2, "--web-port", "0") as store:
        fill(store)
        store.kill_server(0)
        until(lambda: len(store.servers()) == 2)
        shell = Shell(f"127.0.0.1:{store.port}")

        def notes() -> str:
            return " ".join(note for one in shell.json("servers")["servers"] for note in one["notes"])

        until(lambda: "died" in notes())
        assert re.search(r"s[12]\.\d+ died \d+ s ago, by SIGKILL", notes())
        (died,) = [one for one in shell.json("servers")["servers"] if one["last_lines"]]
        assert [line for line in died["last_lines"] if " columnar.server: serves on port " in line]
        assert died["name"] in died["last_lines"][-1], "lines of that server, not of others"
        page = urlopen(f"{store.web}servers/{died['name']}", timeout=WAIT_S).read().decode()
        assert escape(died["last_lines"][-1]) in page
        decided = [one["text"] for one in shell.json("decisions")]
        assert any("is fenced: it ended by SIGKILL" in text for text in decided), decided
        assert store.stop() == 0
        store.start()
        again = shell.json("decisions")
        assert [one["text"] for one in again][-len(decided) :] == decided
        assert all(abs(one["at_ms"] / 1_000 - time.time()) < 300 for one in again)
