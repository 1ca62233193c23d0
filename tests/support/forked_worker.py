"""Trigger workers of a store in the test's process, as forks of the process that stores are forked from.

The worker has the arguments, descriptors, environment and group of the command that ``WorkerProcess`` would start, and
its exit status.  If the environment of a test is for new interpreters, a new interpreter is started.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any, Final

from columnar.triggers.worker_process import WorkerProcess
from tests.support.forked_children import run_as_new, run_worker
from tests.support.forked_program import FORKS, suits

_USUAL: Final = dict(os.environ)
_NO_BYTECODE: Final = "PYTHONDONTWRITEBYTECODE"  # a fork heeds it as well


class ForkedWorkerProcess(WorkerProcess):
    """A fork."""

    def _spawn(self, command: list[str], descriptors: tuple[int, ...]) -> Any:
        without = {name: value for name, value in os.environ.items() if name != _NO_BYTECODE}
        return (_Fork if suits(without, _USUAL) else super()._spawn)(command, descriptors)


class _Descriptor:
    """A descriptor that is passed to the fork, where its number differs."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> Any:
        return _detached, (reduction.DupFd(self._number),)


def _detached(sent: Any) -> int:
    return int(sent.detach())


class _Fork:
    """A part of the interface of ``subprocess.Popen``."""

    def __init__(self, command: Sequence[str], descriptors: Sequence[int]) -> None:
        is_begun, its = FORKS.Pipe(duplex=False)
        given = {number: _Descriptor(number) for number in (*descriptors, 2)}
        arguments = (list(command[3:]), dict(os.environ), os.getcwd(), given, its)
        self._process = FORKS.Process(target=_run, args=arguments, daemon=True)
        self._process.start()
        its.close()
        is_begun.poll(None)  # it is closed once the fork has its group
        is_begun.close()
        assert self._process.pid is not None
        self.pid: int = self._process.pid
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        self.returncode = self._process.exitcode
        if self.returncode is None:
            raise subprocess.TimeoutExpired("a trigger worker", timeout or 0)
        return self.returncode


def _run(
    arguments: list[str], environment: Mapping[str, str], folder: str, given: Mapping[int, int], begun: Connection
) -> None:
    os.setpgid(0, 0)
    begun.close()
    take_descriptors(given)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = _NO_BYTECODE in environment
    os.chdir(folder)
    run_as_new(run_worker, arguments)


def take_descriptors(given: Mapping[int, int]) -> None:
    """Give the descriptors, which are the values, the numbers that are the keys, and close all others from 3 on."""
    above = max(*given, *given.values()) + 1  # no copy has a number that a descriptor is to have
    moved = {number: fcntl.fcntl(here, fcntl.F_DUPFD, above) for number, here in given.items()}
    os.closerange(3, above)
    for number, here in moved.items():
        os.dup2(here, number)
        os.close(here)
