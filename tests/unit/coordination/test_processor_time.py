"""Processor time as a sign of life: a process that burns it works; one that waits, or is stopped, does not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from columnar.coordination.processes import POLL_S, ProcessorWatch, ThreadTime, threads_of, works
from tests.support.stopped_process import stop_process

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="the kernel does not tell")

LOCKED = "import ctypes, sys, threading, time; sys.setswitchinterval(0.0001)\n"
WAIT = "def wait():\n    while True: time.sleep(0.001)\n"
WAITERS = WAIT + "for _ in range(3): threading.Thread(target=wait, daemon=True).start()\n"
READY = "print('ready', flush=True)\n"
BURNS = LOCKED + WAITERS + READY + "sum(range(10**12))\n"  # one call: the lock is never given up
HANGS = LOCKED + WAITERS + READY + "ctypes.PyDLL(None).sleep(600)\n"  # holds the lock, and others wait for it


def started(program: str) -> subprocess.Popen[str]:
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


@pytest.fixture
def child(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    found = started(request.param)
    yield found
    found.kill()
    found.communicate()


def looks(pid: int, until_s: float) -> bool:
    """As the master looks: every 0.25 s; whether it was ever seen to work."""
    watch, ends = ProcessorWatch(pid), time.monotonic() + until_s
    watch.has_worked(time.monotonic())
    while time.monotonic() < ends:
        time.sleep(0.25)  # the clock of another process is what is looked at
        if watch.has_worked(time.monotonic()):
            return True
    return False


@pytest.mark.parametrize("child", [BURNS], indirect=True)
def test_a_step_that_keeps_the_interpreter_is_work_until_it_is_stopped(child: subprocess.Popen[str]) -> None:
    assert looks(child.pid, 10.0)
    stop_process(child.pid)
    assert not looks(child.pid, 0.5)


@pytest.mark.parametrize("child", [HANGS], indirect=True)
def test_waiting_for_the_interpreter_is_no_work(child: subprocess.Popen[str]) -> None:
    assert not looks(child.pid, 1.0)


def test_a_process_that_has_ended_does_not_work() -> None:
    child = started(READY)
    child.communicate()
    assert threads_of(child.pid) is None
    assert not looks(child.pid, 0.0)


def test_what_counts() -> None:
    before = {1: ThreadTime(1_000.0, 500), 2: ThreadTime(0.0, 0)}
    assert not works(before, before)
    assert not works(None, before), "there is nothing to compare with"
    assert not works(before, None)
    assert works(before, {1: ThreadTime(1_020.0, 510)})
    assert not works(before, {1: ThreadTime(1_010.0, 500)}), "one tick may be a moment"
    assert not works(before, {1: ThreadTime(1_020.0, 1_500)}), "it waits for the lock"
    assert works(before, {3: ThreadTime(30.0, 0)}), "a thread of its own"
    assert works(before, {1: ThreadTime(1_000.0, 500, is_in_disk_wait=True)}), "the kernel works for it"


def test_a_look_of_long_ago_says_nothing_of_now() -> None:
    times = iter([{1: ThreadTime(0.0, 0)}, {1: ThreadTime(9_000.0, 9)}, {1: ThreadTime(9_000.0, 9)}])
    watch = ProcessorWatch(1, lambda _: next(times))
    assert not watch.has_worked(0.0)
    assert not watch.has_worked(POLL_S + 5.0), "what it did in between is not what it does"
    assert not watch.has_worked(POLL_S + 5.2)
