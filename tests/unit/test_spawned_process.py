"""``SpawnedProcess``: what a child inherits, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

import pytest

from columnar.runtime.child_processes import SpawnedProcess

SHOW = """
import json, os, sys
fds = sorted(map(int, os.listdir("/proc/self/fd")))
print(json.dumps([sys.stdin.read(), fds, os.getpgid(0)]), flush=True)
"""


def start(code: str, *descriptors: int, stdout: int = 2) -> SpawnedProcess:
    return SpawnedProcess.start([sys.executable, "-c", code], descriptors, stdout, os.environ)


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are listed in /proc")
def test_a_child_inherits_the_given_descriptors_and_no_others() -> None:
    read, write = os.pipe()
    given, others = os.pipe()
    child = start(SHOW, given, stdout=write)
    os.close(write)
    child.stdin.write(b"settings")
    child.stdin.close()
    assert child.wait() == 0
    with os.fdopen(read) as shown:
        said, descriptors, group = json.loads(shown.read())
    assert (said, group) == ("settings", child.pid)
    assert given in descriptors
    assert not {others, read, write} & (set(descriptors) - {given})
    assert not os.get_inheritable(given), "as before"
    os.close(given)
    os.close(others)


def test_a_signal_ends_the_child_once_and_reaches_nobody_after_it_was_reaped() -> None:
    child = start("import sys; sys.stdin.read()")
    found: list[int] = []
    waiting = threading.Thread(target=lambda: found.append(child.wait()))
    waiting.start()
    child.send_signal(signal.SIGKILL)
    waiting.join()
    assert found == [-signal.SIGKILL]
    child.send_signal(signal.SIGKILL)
    with pytest.raises(ChildProcessError):
        os.waitpid(child.pid, 0)
    child.stdin.close()


def test_a_program_that_is_missing_is_an_error_of_the_start() -> None:
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    with pytest.raises(FileNotFoundError):
        SpawnedProcess.start(["/no/such/program"], (), 2, {})
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/fd")) == before
