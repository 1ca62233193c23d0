"""``columnar standalone`` or ``columnar node`` as a fork of a process that has imported the store, and no more.

A start costs a tenth of the processor time of a new interpreter, of which a run of the tests would have hundreds.  The
process is what ``python -m columnar standalone`` becomes, with the same options, environment, output and exit status;
it lacks the properties of a new interpreter (the settings of its allocator, ``-X`` and the like), so tests of these
start a new interpreter.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from threading import Lock
from typing import NoReturn

import columnar.cli
from columnar.roles import node, standalone, store_commands, store_process  # noqa: F401 - the process imports one role
from columnar.runtime import log_lines
from tests.support.forked_children import fork_children, run_program

FORKS = get_context("forkserver")
_PRELOADED = ("wikka_port.triggers", *(f"tests.support.{name}" for name in ("forked_program", "store_process")))
FORKS.set_forkserver_preload([*_PRELOADED, "tests.support.frozen_heap"])
# Of a new interpreter: one that has started takes no notice of them.
_OF_INTERPRETERS = ("COLUMNAR_COMPILED", "PYTHON", "LD_", "MALLOC_")


def suits(environment: Mapping[str, str], usual: Mapping[str, str]) -> bool:
    """Return whether a fork may have this environment; ``usual`` is that of the tests."""
    differs = {name for name, _ in environment.items() ^ usual.items()}
    return not any(name.startswith(_OF_INTERPRETERS) for name in differs)


class ForkedProgram:
    """A part of the interface of ``subprocess.Popen``, for a role of the store with its options."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        """Start the program with the words behind ``columnar``; ``log`` gets its standard error."""
        ours, its = FORKS.Pipe(duplex=False)
        arguments = (list(words), dict(environment), os.getcwd(), log, its)
        self._ending = Lock()  # only one thread may read the exit status from the server of forks
        self._process = FORKS.Process(target=_run, args=arguments, daemon=True)
        self._process.start()
        its.close()
        self.stdout = os.fdopen(os.dup(ours.fileno()), "r", encoding="utf-8")
        ours.close()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        with self._ending:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        wait_for([self._process.sentinel], timeout)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired("columnar", timeout or 0)
        return status

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


def _run(words: list[str], environment: dict[str, str], folder: str, log: Path, output: Connection) -> NoReturn:
    os.dup2(output.fileno(), 1)
    output.close()
    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(said, 2)
    os.close(said)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fork_children()
    store_commands._execute_store = lambda settings: sys.exit(store_process.main(settings))  # type: ignore[assignment]
    # multiprocessing ends its processes without what an interpreter does at its end: the last log lines would be lost
    atexit.register(logging.shutdown)
    atexit.register(log_lines.flush)
    run_program(partial(columnar.cli.main, prog_name="columnar"), words)
