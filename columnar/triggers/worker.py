"""The worker process: runs trigger functions, a few at a time, and reports the outcome of each.

The store starts the process with one end of a socket pair.  When the socket closes, the process ends at once, also
with calls running: the store delivers them again.  The worker does not end a call that hangs (a thread cannot be
killed): the store kills the process.

The output of functions is caught per call, bounded by OUTPUT_BYTES.  The process runs at a lower priority than the
store, so that foreground requests go first (promise 9).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import queue
import signal
import socket
import sys
import threading
import traceback
from functools import partial
from typing import Any, Final, TextIO, cast

from columnar.client import Connection
from columnar.triggers.api import Change, ChangedCell, TriggerFunction
from columnar.triggers.frames import WORKER_THREADS, Frames, pack

OUTPUT_BYTES: Final = 8 * 1024
ERROR_BYTES: Final = 16 * 1024
NICENESS: Final = 5
_KINDS: Final = {1: "put", 2: "delete", 3: "delete family", 4: "delete version"}


class _CaughtOutput(io.TextIOBase):
    """Standard output that keeps the output of each thread apart."""

    def __init__(self) -> None:
        self._of_thread = threading.local()

    def begin(self) -> None:
        self._of_thread.text = ""

    def take(self) -> str:
        text: str = self._of_thread.text
        self._of_thread.text = ""
        return text

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        held = getattr(self._of_thread, "text", "")
        self._of_thread.text = (held + text)[:OUTPUT_BYTES]
        return len(text)


def change_from(parts: list[Any]) -> Change:
    table, row, stamp, sequence, changes, now, before, attempt, is_backfill, timestamp = parts
    cells = tuple(ChangedCell(cast(Any, _KINDS[kind]), column, at, value) for kind, column, at, value in changes)
    return Change(table, row, stamp, sequence, cells, now, before, attempt, is_backfill, timestamp)


class Worker:
    def __init__(
        self, link: socket.socket, host: str, port: int, modules: frozenset[str], unix_socket: str = ""
    ) -> None:
        """``unix_socket``: the private socket of a store whose port speaks TLS."""
        self._link = link
        self._connect = partial(Connection, host, port)
        if unix_socket:
            self._connect = partial(Connection, unix_socket=unix_socket)
        self._modules = modules
        self._functions: dict[str, TriggerFunction] = {}
        self._calls: queue.SimpleQueue[list[Any]] = queue.SimpleQueue()
        self._sending = threading.Lock()
        self._output = _CaughtOutput()

    def serve(self) -> None:
        """Read frames until the store closes the socket."""
        sys.stdout = sys.stderr = cast(TextIO, self._output)
        for number in range(WORKER_THREADS):
            threading.Thread(target=self._run_calls, name=f"trigger-{number}", daemon=True).start()
        frames = Frames()
        self._send("ready", 0)
        while data := self._link.recv(1 << 20):
            for frame in frames.feed(data):
                self._calls.put(frame)

    def _run_calls(self) -> None:
        connection: Connection | None = None
        while True:
            kind, call_id, *rest = self._calls.get()
            self._output.begin()
            if kind == "check":
                self._send("checked", call_id, self._problem_with(rest[0]))
                continue
            _trigger, function, change = rest
            error = None
            try:
                connection = connection or self._connect()
                if function not in self._functions:
                    self._function(function)
                    self._send("began", call_id)
                self._function(function)(change_from(change), connection)
            except BaseException:  # noqa: BLE001 - user code: any exception, sys.exit too, is its outcome
                error = traceback.format_exc()[-ERROR_BYTES:]
                _close(connection)  # it may be in the middle of a reply
                connection = None
            self._send("ran", call_id, error, self._output.take())

    def _function(self, name: str) -> TriggerFunction:
        found = self._functions.get(name)
        if found is None:
            module, _, attribute = name.partition(":")
            if module not in self._modules:
                raise PermissionError(f"module {module} is not among --trigger-modules")
            found = self._functions[name] = getattr(importlib.import_module(module), attribute)
        return found

    def _problem_with(self, name: str) -> str | None:
        """The reason, in one line, why ``name`` cannot be a trigger; None: it can."""
        try:
            function: object = self._function(name)
        except BaseException as error:  # noqa: BLE001 - importing runs user code
            return f"{type(error).__name__}: {error}"
        return None if callable(function) else f"{name} is no function"

    def _send(self, *parts: Any) -> None:
        # Text of user code may hold lone surrogates, as file names do; a frame cannot.
        parts = tuple(p.encode(errors="replace").decode() if isinstance(p, str) else p for p in parts)
        with self._sending:
            self._link.sendall(pack(*parts))


def _close(connection: Connection | None) -> None:
    if connection is not None:
        connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="runs triggers; started by the store, not by hand")
    parser.add_argument("--link", type=int, required=True, help="descriptor of the socket to the store")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--socket", default="", help="path of the store's private socket, where the port speaks TLS")
    parser.add_argument("--modules", required=True)
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at the terminal: the store stops us in its order
    os.nice(NICENESS)
    sys.path.insert(0, os.getcwd())
    link = socket.socket(fileno=given.link)
    link.set_inheritable(False)  # a program that a trigger starts must not keep the socket open
    with contextlib.suppress(OSError):  # the store is gone
        Worker(link, given.host, given.port, frozenset(given.modules.split(",")), given.socket).serve()
    os._exit(0)  # calls may be running; the store delivers them again


if __name__ == "__main__":
    main()
