"""Worker processes of this machine: forked before the load begins, each on one end of a pair of sockets."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final, Self

from wikibench.live import LiveLine
from wikibench.pacing import Planned
from wikibench.request_log import RequestLog, request_log
from wikibench.summary import Replay
from wikibench.visits import Load

from .controller import Controller, conducted
from .controller_state import ControllerState
from .worker import Check, work

END_S: Final = 5.0  # for a worker to end after its connection
LEAD_S: Final = 0.2  # from "go" to the first start

Serve = Callable[[socket.socket, str, bytes, Check, RequestLog | None], str]


def replay_shared(
    load: Load,
    plan: Iterable[Planned],
    workers: int,
    line: LiveLine,
    *,
    is_all_or_nothing: bool = False,
    requests: Path | None = None,
) -> Replay:
    """Replay the plan with worker processes of this machine; block until the last has ended.  Raises CrewError.

    Each worker logs its requests into the folder ``requests``, if there is one.  The first Ctrl-C ends the replay
    early, the second ends the processes at once.
    """
    state = ControllerState(load, plan, workers, lead_s=LEAD_S, is_all_or_nothing=is_all_or_nothing)
    state.prepare()
    with LocalWorkers(work, requests).start(workers) as processes:
        return conducted(Controller(state, line, processes.kill_worker), processes.connections)


class LocalWorkers:
    """Worker processes; at the end none is left."""

    def __init__(self, serve: Serve = work, requests: Path | None = None) -> None:
        """Take ``serve``, which a worker process runs with its connection, and a folder for the lines of requests."""
        self._serve = serve
        self._requests = requests
        self.connections: list[socket.socket] = []  # the controller's ends, by number
        self._processes: list[BaseProcess] = []

    def start(self, count: int) -> Self:
        context = get_context("fork")  # the interpreter and its modules are shared: a start takes milliseconds
        for number in range(count):
            ours, theirs = socket.socketpair()
            known = [*self.connections, ours]
            process = context.Process(
                target=_work, args=(self._serve, theirs, known, number, self._requests), daemon=True
            )
            process.start()
            theirs.close()
            self.connections.append(ours)
            self._processes.append(process)
        return self

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes if process.pid is not None]

    def kill_worker(self, number: int) -> None:
        """End a process that is lost, also a stopped one."""
        self._processes[number].kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.connections:
            connection.close()
        for process in self._processes:
            process.join(END_S)
            if process.is_alive():
                process.kill()
                process.join()


def _work(
    serve: Serve, connection: socket.socket, others: Sequence[socket.socket], number: int, requests: Path | None
) -> None:
    os.setpgrp()  # Ctrl-C comes from the controller, once
    for other in others:
        other.close()  # or the end of the controller, or of another worker, would not be seen
    with request_log(requests, number + 1) as log:
        why = serve(connection, f"worker {number}", b"", _take_any, log)
    if why != "done":
        sys.stderr.write(f"worker {number}: {why}\n")


def _take_any(_load: Load) -> None:
    """Take any load: the controller has checked the target on this machine."""
