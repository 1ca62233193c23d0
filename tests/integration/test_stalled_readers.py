"""Processes whose standard error or output is a pipe that nobody reads, or is closed: they serve, and they stop."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from columnar.client import Connection
from tests.support.ports import free_port

WAIT_S = 60.0
STOP_S = 20.0
ROOT = Path(__file__).parents[2]


@contextmanager
def full_pipe() -> Iterator[tuple[int, int]]:
    """A pipe that takes no byte more: (reading end, writing end)."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for size in (4_096, 1):
        try:
            while True:
                os.write(writing, b"x" * size)
        except BlockingIOError:
            pass
    os.set_blocking(writing, True)
    try:
        yield reading, writing
    finally:
        os.close(reading)
        os.close(writing)


def start(*words: str, **streams: Any) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-m", *words], env=environment, **streams)


def answered(url: str, process: subprocess.Popen[bytes]) -> requests.Response:
    """Once it serves."""
    session = requests.Session()
    for _ in range(int(WAIT_S / 0.05)):
        assert process.poll() is None, "it ended"
        try:
            return session.get(url, timeout=WAIT_S)
        except requests.ConnectionError:
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
    raise AssertionError("it does not serve")


def stop(process: subprocess.Popen[bytes]) -> int:
    process.send_signal(signal.SIGTERM)
    try:
        return process.wait(STOP_S)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("servers", [1, 2])
def test_a_store_serves_and_stops_whose_streams_nobody_reads(tmp_path: Path, servers: int) -> None:
    port, web = free_port(), free_port()
    words = ["--data", str(tmp_path / "data"), "--port", str(port), "--web-port", str(web), "--servers", str(servers)]
    with full_pipe() as (_, errors), full_pipe() as (_, output):
        store = start("columnar", "standalone", *words, "--slow-ms", "1", stdout=output, stderr=errors)
        try:
            assert answered(f"http://127.0.0.1:{web}/health", store).text == "ok\n"
            with Connection("127.0.0.1", port, timeout=30_000) as connection:
                connection.create_table("t", {"f": {}})
                table = connection.table("t")
                for number in range(300):
                    table.put(b"%d" % number, {b"f:q": b"v"})
                assert len(list(table.scan())) == 300
            metrics = requests.get(f"http://127.0.0.1:{web}/metrics", timeout=30).text
            assert re.search(r"^columnar_log_lines_dropped_total(\{.*\})? 0\.0$", metrics, flags=re.M)
            assert stop(store) == 0
        finally:
            store.kill()
            store.wait()


def test_a_wiki_serves_and_stops_whose_streams_nobody_reads(tmp_path: Path) -> None:
    port, store_port = free_port(), free_port()
    words = ["--data", str(tmp_path / "data"), "--port", str(port), "--store-port", str(store_port)]
    with full_pipe() as (_, errors), full_pipe() as (_, output):
        wiki = start("wikka_port", "run", *words, "--web-port", "-1", "--workers", "1", stdout=output, stderr=errors)
        try:
            assert answered(f"http://127.0.0.1:{port}/HomePage", wiki).status_code == 200
            assert stop(wiki) == 0
        finally:
            wiki.kill()
            wiki.wait()
        with pytest.raises(requests.ConnectionError):
            requests.get(f"http://127.0.0.1:{port}/HomePage", timeout=WAIT_S)


@pytest.mark.parametrize("closed", ["0", "1", "2", "0 1 2"])
def test_a_store_starts_and_stops_with_standard_streams_closed(tmp_path: Path, closed: str) -> None:
    web = free_port()
    words = f"standalone --data {tmp_path / 'data'} --port 0 --web-port {web}"
    redirected = " ".join(f"{number}{'<' if number == '0' else '>'}&-" for number in closed.split())
    command = f"exec {sys.executable} -m columnar {words} {redirected}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    store = subprocess.Popen(["/bin/sh", "-c", command], env=environment)
    assert answered(f"http://127.0.0.1:{web}/health", store).text == "ok\n"
    assert stop(store) == 0


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
@pytest.mark.parametrize("words", ["columnar tables --store 127.0.0.1:1", "columnar --help", "wikka_port --help"])
def test_a_command_ends_with_standard_streams_closed(closed: str, words: str) -> None:
    command = f"exec {sys.executable} -m {words} {closed}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(["/bin/sh", "-c", command], env=environment, capture_output=True, timeout=WAIT_S)
    assert ended.returncode == (2 if "tables" in words else 0)
    assert b"Traceback" not in ended.stdout + ended.stderr


def test_the_children_of_a_wiki_end_with_it(tmp_path: Path) -> None:
    """``kill -9`` of the command: the store stops in order, and the wiki."""
    port, store_port = free_port(), free_port()
    words = ["--data", str(tmp_path / "data"), "--port", str(port), "--store-port", str(store_port)]
    wiki = start(
        "wikka_port", "run", *words, "--web-port", "-1", "--workers", "2", stdout=subprocess.DEVNULL, process_group=0
    )
    try:
        answered(f"http://127.0.0.1:{port}/HomePage", wiki)
        family = descendants(wiki.pid)
        assert len(family) >= 4, "the store, its trigger worker, the wiki, its workers"
    finally:
        wiki.kill()
        wiki.wait()
    for _ in range(int(STOP_S / 0.05)):
        left = [one for one in family if is_alive(one)]
        if not left:
            break
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run(["sleep", "9"], timeout=0.05, check=False)
    assert not left, f"processes {left} are left"


def descendants(process: int) -> list[int]:
    found = []
    for child in map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()):
        found += [child, *descendants(child)]
    return found


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
