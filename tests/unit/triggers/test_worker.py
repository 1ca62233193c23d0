"""The worker's side of its socket: what functions print, raise and are; and the store's end of it."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvloop

from columnar.triggers import worker_link
from columnar.triggers.frames import Frames, pack
from columnar.triggers.worker import OUTPUT_BYTES, Worker
from columnar.triggers.worker_link import WorkerLink

STEPS = [[1, b"f:a", 5, b"v"], [3, b"f", 5, b""]]
CHANGE: list[Any] = [b"t", b"r", 7, "1-1-1", STEPS, {b"f:a": b"v"}, {}, 2, False, 5]


class Store:
    """The other end of a worker that runs in threads of the test."""

    def __init__(self) -> None:
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(10)
        self._frames = Frames()
        self._held: list[list[Any]] = []
        worker = Worker(theirs, "127.0.0.1", 1, frozenset({"allowed_triggers"}))
        self._thread = threading.Thread(target=worker.serve)
        self._theirs = theirs
        self._thread.start()

    def ask(self, *parts: Any) -> list[Any]:
        self.ours.sendall(pack(*parts))
        return self.heard()

    def heard(self) -> list[Any]:
        while not self._held:
            self._held += self._frames.feed(self.ours.recv(1 << 16))
        return self._held.pop(0)

    def close(self) -> None:
        self.ours.close()
        self._thread.join(10)
        self._theirs.close()  # a process would close it by ending


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Store]]:
    """Call it within the test: pytest gives each phase a standard output of its own."""
    module = types.ModuleType("allowed_triggers")

    def prints(change: Any, _client: Any) -> None:
        print("first", change.row, change.changes[1].kind, change.attempt)
        print("to stderr", file=sys.stderr)

    def prints_much(_change: Any, _client: Any) -> None:
        for _ in range(1_000):
            print("x" * 100)

    def raises(_change: Any, _client: Any) -> None:
        raise ValueError("lone \udcff surrogate")

    def exits(_change: Any, _client: Any) -> None:
        raise SystemExit(3)

    vars(module).update(prints=prints, prints_much=prints_much, raises=raises, exits=exits, number=5)
    monkeypatch.setitem(sys.modules, "allowed_triggers", module)
    monkeypatch.setattr("columnar.triggers.worker.Connection", lambda *_: types.SimpleNamespace(close=lambda: None))
    started: list[Store] = []

    def start_worker() -> Store:
        monkeypatch.setattr(sys, "stdout", sys.stdout)  # the worker takes both
        monkeypatch.setattr(sys, "stderr", sys.stderr)
        started.append(Store())
        assert started[0].heard() == ["ready", 0]
        return started[0]

    yield start_worker
    started[0].close()


def test_what_is_printed_comes_with_the_answer(start: Callable[[], Store]) -> None:
    store = start()
    assert store.ask("run", 1, "t", "allowed_triggers:prints", CHANGE) == ["began", 1]
    assert store.heard() == ["ran", 1, None, "first b'r' delete family 2\nto stderr\n"]
    assert store.ask("run", 2, "t", "allowed_triggers:prints", CHANGE)[:3] == ["ran", 2, None]


def test_output_is_bounded(start: Callable[[], Store]) -> None:
    store = start()
    store.ask("run", 1, "t", "allowed_triggers:prints_much", CHANGE)
    assert len(store.heard()[3]) == OUTPUT_BYTES


@pytest.mark.parametrize(
    ("function", "error"), [("raises", "ValueError: lone ? surrogate"), ("exits", "SystemExit: 3")]
)
def test_whatever_is_raised_is_told_and_the_thread_lives(start: Callable[[], Store], function: str, error: str) -> None:
    store = start()
    for call_id in range(20):  # more than there are threads
        answer = store.ask("run", call_id, "t", f"allowed_triggers:{function}", CHANGE)
        if answer[0] == "began":
            answer = store.heard()
        assert answer[:2] == ["ran", call_id]
        assert error in answer[2]


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("allowed_triggers:prints", None),
        ("allowed_triggers:number", "is no function"),
        ("allowed_triggers:absent", "AttributeError"),
        ("os:getcwd", "module os is not among --trigger-modules"),
    ],
)
def test_functions_are_checked(start: Callable[[], Store], function: str, problem: str | None) -> None:
    store = start()
    kind, call_id, found = store.ask("check", 7, function)
    assert (kind, call_id) == ("checked", 7)
    assert found is None if problem is None else problem in found


class Heard:
    """``Listener`` that keeps what it hears."""

    def __init__(self) -> None:
        self.ready = self.gone = 0
        self.how = ""
        self.changed = asyncio.Event()

    def answered(self, frame: list[Any]) -> None:
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


def link_to(code: str, monkeypatch: pytest.MonkeyPatch) -> tuple[WorkerLink, Heard]:
    """A link whose process runs ``code``, with the socket as ``link``."""
    heard = Heard()
    link = WorkerLink(heard, "127.0.0.1", 1, ())
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
        monkeypatch.setattr(worker_link, "socket", types.SimpleNamespace(socketpair=make_and_keep))
        link.want()
        await made.wait()  # it goes on to connect in the turn of the loop that made it
        await link.close()

    run(close_at_once())
    assert [end.fileno() for end in pairs[0]] == [-1, -1]


def test_a_machine_that_starts_no_process_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        link, heard = link_to(f"link.sendall({pack('ready', 0)!r})\nlink.recv(1)", monkeypatch)
        start, tries = worker_link.subprocess.Popen, []

        def fails_once(*given: Any, **more: Any) -> Any:
            tries.append(given)
            if len(tries) == 1:
                raise OSError(11, os.strerror(11))
            return start(*given, **more)

        monkeypatch.setattr(worker_link.subprocess, "Popen", fails_once)
        link.want()
        await heard.until("ready", 1)
        assert len(tries) == 2
        await link.close()
        assert not link.is_up

    asyncio.run(run())
