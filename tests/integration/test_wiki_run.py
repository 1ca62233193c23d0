"""``wikka run`` as a process: starts both, stops both in order, says plainly what is in its way."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import requests

from columnar.client import Connection
from tests.support.cluster_process import children
from tests.support.ports import free_port
from wikka_port import schema
from wikka_port.commands.run import run
from wikka_port.commands.serve import serve


def launch(folder: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "wikka_port", "run", "--data", str(folder / "data"), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_it_starts_both_stops_both_and_finds_the_data_again(tmp_path: Path) -> None:
    port, store_port = free_port(), free_port()
    options = ["--port", str(port), "--store-port", str(store_port), "--web-port", "-1"]
    options += ["--workers", "1", "--site-name", "Our Notes", "--edits-per-minute", "0"]
    options += ["--allow-host", "notes.example"]
    said = []
    for _ in range(2):
        running = launch(tmp_path, *options)
        assert running.stdout is not None
        lines = []
        while not (lines and lines[-1].startswith("Ctrl-C")):
            lines.append(running.stdout.readline())
            assert lines[-1], f"it ended before it was ready: {running.communicate(timeout=30)[1]}"
        said.append("".join(lines))
        with urlopen(f"http://127.0.0.1:{port}/HomePage", timeout=60) as answer:
            shown = answer.read()
        assert b"Welcome" in shown
        assert b"Our Notes" in shown, "it takes what serve takes"
        for name, status in (("notes.example", 200), ("evil.example", 403)):
            asked = requests.get(f"http://127.0.0.1:{port}/HomePage", headers={"Host": name}, timeout=60)
            assert asked.status_code == status, name
        connection = Connection("127.0.0.1", store_port)
        writes = {one.name: one.registration.writes for one in connection.triggers.list() if one.registration}
        assert writes == {
            "wiki-comments": ("comment_lists", "docs", "terms"),
            "wiki-decisions": ("inbox", "outgoing", "users"),
            "wiki-indexes": ("backlinks", "changes", "comment_lists", "names", "wanted"),
            "wiki-moves": ("inbox", "outgoing", "users"),
            "wiki-notices": ("inbox", "outgoing", "users"),
            "wiki-pictures": ("thumbs",),
            "wiki-watchers": ("watchers",),
            "wiki-words": ("docs", "terms"),
        }
        assert set(connection.tables()) >= {table.name for table in schema.TABLES}
        connection.close()
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
        # a machine that was away for a moment makes a slow request, and that is told
        said_of_errors = [line for line in err.splitlines() if "slow request" not in line]
        assert (running.returncode, said_of_errors) == (0, [])
        assert "Stopping" in out
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", store_port)) != 0, "the store is gone"
    assert "A new wiki" in said[0]
    assert "A new wiki" not in said[1]
    assert f"http://127.0.0.1:{port}/-/register?administrator=" in said[0]
    assert f"http://127.0.0.1:{port}/" in said[0]


def test_a_signal_to_all_processes_at_once_is_a_stop_in_order(tmp_path: Path) -> None:
    """Managers of services signal every process of a unit, and the first of them signals its children as well."""
    options = ["--port", str(free_port()), "--store-port", str(free_port()), "--web-port", "-1", "--workers", "1"]
    running = launch(tmp_path, *options)
    assert running.stdout is not None
    while not running.stdout.readline().startswith("Ctrl-C"):
        assert running.poll() is None
    store, wiki = children(running.pid)
    family = [running.pid, store, wiki, *children(store), *children(wiki)]
    for pid in family:
        with suppress(ProcessLookupError):  # the first has ended it by now
            os.kill(pid, signal.SIGTERM)
    out, err = running.communicate(timeout=30)
    assert (running.returncode, [line for line in err.splitlines() if "slow request" not in line]) == (0, [])
    assert "Stopping" in out
    assert not list((tmp_path / "data" / "server-log").glob("*.segment")), "synced and closed in order"


def test_a_port_in_use_is_said_plainly(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        running = launch(tmp_path, "--port", str(port))
        out, err = running.communicate(timeout=30)
    assert (running.returncode, out) == (1, "")
    assert f"cannot use port {port}" in err
    assert "--port" in err
    assert not (tmp_path / "data").exists()


def test_it_takes_what_serve_takes() -> None:
    of_the_store = {"store", "indexes", "wanted"}  # the last is --tls
    taken = {parameter.name for parameter in run.params}
    wanted = {parameter.name for parameter in serve.params if not str(parameter.name).startswith("tls")}
    assert wanted - of_the_store <= taken
