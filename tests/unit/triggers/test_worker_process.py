"""The store's end of a worker's socket: how its process is started, awaited and ended."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from columnar.triggers import worker_process
from columnar.triggers.frames import pack
from columnar.triggers.worker_process import WorkerProcess


class Heard:
    """``Listener`` that keeps what it hears."""

    def __init__(self) -> None:
        self.ready = self.gone = 0
        self.how = ""
        self.changed = asyncio.Event()

    def take_frame(self, frame: list[Any]) -> None:
        raise ValueError(f"not expected: {frame}")

    def worker_ready(self) -> None:
        self.ready += 1
        self.changed.set()

    def worker_gone(self, how: str) -> None:
        self.gone += 1
        self.how = how
        self.changed.set()

    async def until(self, what: str, times: int) -> None:
        while getattr(self, what) < times:
            self.changed.clear()
            async with asyncio.timeout(20):
                await self.changed.wait()


def link_to(code: str, monkeypatch: pytest.MonkeyPatch) -> tuple[WorkerProcess, Heard]:
    """A link whose process runs ``code``, with the socket as ``link``."""
    heard = Heard()
    link = WorkerProcess(heard, "127.0.0.1", 1, ())
    program = f"import os, socket, sys\nlink = socket.socket(fileno=int(sys.argv[-1]))\n{code}"
    monkeypatch.setattr(link, "_command", [sys.executable, "-S", "-c", program])
    return link, heard


def test_a_process_that_ends_at_once_is_started_with_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        link, heard = link_to("os._exit(3)", monkeypatch)
        pauses = []
        for n in range(1, 4):
            link.want()
            link.want()
            await heard.until("gone", n)
            pauses.append(link._pause_s)
        assert heard.how == "ended with status 3"
        assert heard.ready == 0
        assert not link.is_up
        assert pauses == [0.05, 0.1, 0.2]
        await link.close()

    asyncio.run(run())


def test_a_worker_that_is_ready_outlives_the_deadline_of_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        monkeypatch.setattr(worker_process, "START_S", 3.0)  # a Python begins within, on a busy machine, too
        link, heard = link_to(f"link.sendall({pack('ready', 0)!r})\nlink.recv(1)", monkeypatch)
        link.want()
        await heard.until("ready", 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(heard.until("gone", 1), 3.5)
        assert link.is_up
        await link.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "data", [b"\xff" * 8, pack("what", 1), pack(5, 5), b"\x00\x00\x00\x01\x05"], ids=["length", "kind", "type", "array"]
)
def test_garbage_ends_the_process_even_if_a_child_of_it_holds_the_socket(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        ready = pack("ready", 0)
        code = f"link.sendall({ready!r})\nlink.recv(99)\nif os.fork(): link.sendall({data!r})\nlink.recv(99)"
        link, heard = link_to(code, monkeypatch)
        link.want()
        await heard.until("ready", 1)
        assert link.is_up
        link.send("go", 0)
        await heard.until("gone", 1)
        assert heard.how == "ended by SIGKILL"
        link.want()
        await heard.until("ready", 2)
        await link.close()

    asyncio.run(run())


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_closed_while_it_connects_it_leaves_no_socket(
    run: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket left behind would close its descriptor's number a second time, when a file may have it."""
    pairs: list[tuple[socket.socket, socket.socket]] = []

    async def close_at_once() -> None:
        made = asyncio.Event()

        def make_and_keep() -> tuple[socket.socket, socket.socket]:
            made.set()
            pairs.append(socket.socketpair())
            return pairs[-1]

        link, _ = link_to("link.recv(1)", monkeypatch)
        monkeypatch.setattr(worker_process, "socket", types.SimpleNamespace(socketpair=make_and_keep))
        link.want()
        await made.wait()  # it goes on to connect in the turn of the loop that made it
        await link.close()

    run(close_at_once())
    assert [end.fileno() for end in pairs[0]] == [-1, -1]


def test_a_machine_that_starts_no_process_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        link, heard = link_to(f"link.sendall({pack('ready', 0)!r})\nlink.recv(1)", monkeypatch)
        start, tries = worker_process.subprocess.Popen, []

        def fails_once(*given: Any, **more: Any) -> Any:
            tries.append(given)
            if len(tries) == 1:
                raise OSError(11, os.strerror(11))
            return start(*given, **more)

        monkeypatch.setattr(worker_process.subprocess, "Popen", fails_once)
        link.want()
        await heard.until("ready", 1)
        assert len(tries) == 2
        await link.close()
        assert not link.is_up

    asyncio.run(run())
