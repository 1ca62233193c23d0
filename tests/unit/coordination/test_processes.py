"""Children: settings come late, beats and deaths are heard, a connection travels, fencing works on stopped ones."""

from __future__ import annotations

import asyncio
import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import IO, Any

from columnar.coordination.connection_channel import DispatchedConnection
from columnar.coordination.processes import Beat, Child, started

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "tests.support.plain_child"]


def on_a_loop(scenario: Callable[[Path], Coroutine[Any, Any, None]]) -> Callable[[Path], None]:
    def test(tmp_path: Path) -> None:
        asyncio.run(scenario(tmp_path))

    test.__doc__ = scenario.__doc__
    return test


def lock_in(folder: Path) -> IO[str]:
    return open(folder / "LOCK", "w")


def child_of(lock: int, heard: list[Beat]) -> Child:
    return started(COMMAND, (lock,), heard.append, {**os.environ, "PYTHONPATH": str(ROOT)})


async def said(child: Child, count: int) -> bytes:
    return await asyncio.get_running_loop().sock_recv(child.control, count)


def state_of(pid: int) -> str:
    """The letter of the process' state; empty: it was reaped."""
    path = Path(f"/proc/{pid}/stat")
    return path.read_text().rpartition(")")[2].split()[0] if path.exists() else ""


async def in_state(pid: int, letter: str) -> None:
    while state_of(pid) != letter:  # noqa: ASYNC110 - of another process
        await asyncio.sleep(0.001)


@on_a_loop
async def test_a_child_has_settings_late_and_its_status_is_told(tmp_path: Path) -> None:
    with lock_in(tmp_path) as lock:
        child = child_of(lock.fileno(), [])
        assert not child.is_over
        child.settings(b"leave 7")
        assert await child.ended == 7
        assert await child.fence() == 7, "a fence of the dead does nothing"
        assert not child.send_connection(DispatchedConnection(b"1", child.control))
        child.control.close()


@on_a_loop
async def test_a_stopped_child_is_fenced(tmp_path: Path) -> None:
    with lock_in(tmp_path) as lock:
        child = child_of(lock.fileno(), [])
        child.settings(b"echo")
        child.control.sendall(b"x")
        assert await said(child, 1) == b"x"
        child.signal(signal.SIGSTOP)
        await in_state(child.pid, "T")
        assert await child.fence() == -signal.SIGKILL
        assert not state_of(child.pid), "reaped"
        assert await said(child, 1) == b""
        child.control.close()


@on_a_loop
async def test_beats_are_heard(tmp_path: Path) -> None:
    heard: list[Beat] = []
    with lock_in(tmp_path) as lock:
        child = child_of(lock.fileno(), heard)
        child.settings(b"beat")
        while not heard or heard[-1] != Beat(3, open=4):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.001)
        numbers = [beat.iterations for beat in heard]
        assert numbers == sorted(numbers)
        await child.fence()
        child.control.close()


@on_a_loop
async def test_a_connection_travels_before_a_byte_is_read(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    ours.sendall(b"hello")
    with lock_in(tmp_path) as lock:
        child = child_of(lock.fileno(), [])
        child.settings(b"take")
        assert child.send_connection(DispatchedConnection(b"2", theirs, b"and before, "))
        theirs.close()
        assert await said(child, 18) == b"2and before, hello"
        await child.fence()
        child.control.close()
    assert ours.recv(1) == b"", "the child had the last descriptor"
    ours.close()


@on_a_loop
async def test_the_lock_is_held_as_long_as_a_child_lives(tmp_path: Path) -> None:
    with lock_in(tmp_path) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        child = child_of(lock.fileno(), [])
        child.settings(b"echo")
    with lock_in(tmp_path) as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            raise AssertionError("the child holds it")
        except BlockingIOError:
            pass
        await child.fence()
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    child.control.close()


def test_a_supervisor_that_is_killed_leaves_no_child(tmp_path: Path) -> None:
    """The end of the control socket is what this child goes by; servers ask the kernel, too."""
    script = (
        "import asyncio, os, sys\n"
        "from tests.unit.coordination.test_processes import child_of\n"
        "async def main():\n"
        f"    lock = os.open({str(tmp_path / 'LOCK')!r}, os.O_CREAT | os.O_RDWR)\n"
        "    child = child_of(lock, [])\n"
        "    child.settings(b'echo')\n"
        "    print(child.pid, flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        watch = os.pidfd_open(pid)
        parent.kill()
    os.set_blocking(watch, False)
    with open(watch) as _:
        assert select.select([watch], [], [], 5.0)[0], "the child has ended"
