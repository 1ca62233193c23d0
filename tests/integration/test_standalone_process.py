"""``columnar standalone`` as a real process: its start, its stop, its refusals."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from thriftpy2.transport import TTransportException

from columnar.client import Connection
from columnar.client.errors import IOError

ROOT = Path(__file__).parents[2]
START_S = 30  # generous: the machine may be busy
ANY_PORTS = ("--port", "0", "--web-port", "-1")
READY = re.compile(r"columnar ready store=127\.0\.0\.1:(\d+) web=(\S+) pid=(\d+) data=(.+)\n")


@dataclass(frozen=True, slots=True)
class Running:
    process: subprocess.Popen[str]
    port: int
    web: str
    data: str

    def connection(self) -> Connection:
        return Connection("127.0.0.1", self.port)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(START_S)


def command(data: Path, *flags: str) -> list[str]:
    return [sys.executable, "-m", "columnar", "standalone", "--data", str(data), *flags]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_a_folder_in_which_it_is_started_is_no_place_for_modules(tmp_path: Path) -> None:
    """The command as it is installed: what lies about where somebody types it is not imported."""
    (tmp_path / "json.py").write_text("raise SystemExit('imported from the current folder')")
    installed = Path(sys.executable).parent / "columnar"
    words = [str(installed), "standalone", "--data", "data", "--port", "0", "--web-port", "-1"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("columnar ready ")
    finally:
        process.kill()
        process.communicate(timeout=START_S)


@contextmanager
def standalone(data: Path, *flags: str) -> Iterator[Running]:
    log = data.with_suffix(".log")
    with log.open("a", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command(data, "--port", "0", "--web-port", "0", *flags),
            stdout=subprocess.PIPE, stderr=errors, text=True, env=environment(),
        )  # fmt: skip
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        found = READY.fullmatch(line)
        assert found, f"not the ready line: {line!r}; {log.read_text()}"
        assert int(found[3]) == process.pid
        yield Running(process, int(found[1]), found[2], found[4])
    finally:
        process.kill()
        process.wait(START_S)
        process.stdout.close()


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="what a process was given is told by Linux")
def test_the_allocator_keeps_what_it_frees_and_an_operator_has_the_last_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALLOC_TOP_PAD_", "4096")
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    with standalone(tmp_path / "data") as running:
        given = Path(f"/proc/{running.process.pid}/environ").read_bytes().split(b"\0")
        assert b"MALLOC_TOP_PAD_=4096" in given
        assert b"MALLOC_TRIM_THRESHOLD_=%d" % (64 << 20) in given


@contextmanager
def started(words: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that does not outlive the test, however that ends."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    with process:
        try:
            yield process
        finally:
            process.kill()


def refused(data: Path, *flags: str) -> str:
    """Its one line on stderr; it must not start."""
    ended = subprocess.run(
        command(data, "--log-level", "warning", *flags),
        capture_output=True,
        text=True,
        timeout=START_S,
        env=environment(),
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    (line,) = ended.stderr.splitlines()
    assert line.startswith("columnar: ")
    return line


def free_port_taken() -> socket.socket:
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    return taken


def test_data_outlives_an_orderly_stop_and_a_kill(tmp_path: Path) -> None:
    data = tmp_path / "with blanks" / "data"
    data.parent.mkdir()
    with standalone(data) as store:
        assert store.data == str(data)
        connection = store.connection()
        connection.create_table("t", {"f": {}})
        connection.table("t").put(b"r1", {b"f:a": b"1"})
        connection.close()
        assert store.stop() == 0
    with standalone(data) as store:
        connection = store.connection()
        assert connection.table("t").row(b"r1") == {b"f:a": b"1"}
        connection.table("t").put(b"r2", {b"f:a": b"2"})
        store.process.kill()
        store.process.wait(START_S)
    with standalone(data) as store:
        connection = store.connection()
        assert dict(connection.table("t").scan()) == {b"r1": {b"f:a": b"1"}, b"r2": {b"f:a": b"2"}}
        connection.close()
        assert store.stop(signal.SIGINT) == 0


def test_what_was_acknowledged_before_sigterm_is_there(tmp_path: Path) -> None:
    """A client writes as fast as it can while the server is told to stop."""
    data = tmp_path / "data"
    acknowledged: list[bytes] = []
    begun = threading.Event()
    with standalone(data) as store:
        connection = store.connection()
        connection.create_table("t", {"f": {}})

        def write() -> None:
            table = connection.table("t")
            try:
                for number in range(1_000_000):
                    row = b"%07d" % number
                    table.put(row, {b"f:a": row})
                    acknowledged.append(row)
                    if number == 20:
                        begun.set()
            except (IOError, OSError, EOFError, TTransportException):
                return

        writer = threading.Thread(target=write)
        writer.start()
        assert begun.wait(START_S)
        assert store.stop() == 0
        writer.join(START_S)
    with standalone(data) as store:
        found = [row for row, _ in store.connection().table("t").scan()]
    assert set(acknowledged) <= set(found)
    assert len(found) <= len(acknowledged) + 1  # the one whose answer was on its way


def test_the_page_and_the_health_are_there(tmp_path: Path) -> None:
    with standalone(tmp_path / "data", "--slow-ms", "7") as store:
        assert requests.get(store.web + "health", timeout=START_S).text == "ok\n"
        assert "text/html" in requests.get(store.web, timeout=START_S).headers["Content-Type"]


def test_a_second_one_on_the_folder_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with standalone(data) as store:
        line = refused(data, "--port", "0", "--web-port", "0")
        assert f"{data} is in use by process {store.process.pid}; stop that one first" in line
        assert store.connection().tables() == []


def test_ports_in_use(tmp_path: Path) -> None:
    with free_port_taken() as taken:
        port = str(taken.getsockname()[1])
        line = refused(tmp_path / "a", "--port", port, "--web-port", "-1")
        assert f"cannot listen on 127.0.0.1:{port}" in line
        assert "--port" in line
        line = refused(tmp_path / "a", "--port", "0", "--web-port", port)
        assert "--web-port" in line


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    assert f"cannot use the data folder {file}" in refused(file)
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "FORMAT").write_text("columnar-data 10\n")
    assert "has format 10; this version knows up to 9: upgrade" in refused(newer)
    other = tmp_path / "other"
    other.mkdir()
    (other / "FORMAT").write_text("something else\n")
    assert "is no data folder of ours" in refused(other)


def test_wider_than_loopback_warns(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with standalone(data, "--log-level", "warning") as store:
        store.stop()
    assert data.with_suffix(".log").read_text() == ""
    with started(command(data, "--host", "0.0.0.0", *ANY_PORTS, "--log-level", "warning")) as process:
        assert process.stdout is not None
        assert " web=- " in process.stdout.readline()
        process.terminate()
        _, errors = process.communicate(timeout=START_S)
    assert "there is no password" in errors
    assert errors.count("\n") == 1


HANGING_STOP = """
import asyncio
from columnar.roles import standalone
standalone.Standalone.stop = lambda self: asyncio.Event().wait()
from columnar.cli import main
main()
"""


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    """Whatever the orderly stop hangs on."""
    with started([sys.executable, "-c", HANGING_STOP, *command(tmp_path / "data", *ANY_PORTS)[3:]]) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert READY.fullmatch(process.stdout.readline())
        process.terminate()
        assert any("stopping; a second signal stops at once" in line for line in process.stderr)
        process.terminate()
        assert process.wait(START_S) == 128 + signal.SIGTERM


@pytest.mark.parametrize("flags", [("--port", "70000"), ("--log-level", "loud"), ("--slow-ms", "0")])
def test_flags_that_make_no_sense(tmp_path: Path, flags: tuple[str, ...]) -> None:
    ended = subprocess.run(
        command(tmp_path / "data", *flags),
        capture_output=True, text=True, timeout=START_S, env=environment(), check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "data").exists()
