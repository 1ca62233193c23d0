"""A stop that a stuck thread, a blocked loop or a held interpreter would hold for ever ends with the process."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from columnar.runtime.stop_limit import LEFT

WAIT_S = 60.0  # generous: the machine may be busy
PROGRAM = """
import asyncio, ctypes, threading, time
from pathlib import Path
from columnar.runtime import stop_limit
from columnar.runtime.log_lines import log_to_stderr
from columnar.runtime.process_tuning import loop_factory

def stuck_in_a_dead_mount():
    threading.Event().wait()

async def stop_stuck():
    loop = asyncio.get_running_loop()
    loop.run_in_executor(None, stuck_in_a_dead_mount)
    with stop_limit.StopLimit({limit_s}, lambda: print("released", flush=True)):
        await loop.shutdown_default_executor()

async def stop_blocked():
    with stop_limit.StopLimit({limit_s}):
        stuck_in_a_dead_mount()

async def stop_held():
    with stop_limit.StopLimit({limit_s}):
        ctypes.PyDLL(None).sleep(1_000)  # it does not release the interpreter

async def stop_in_time():
    with stop_limit.StopLimit({limit_s}):
        await asyncio.get_running_loop().shutdown_default_executor()

log_to_stderr("INFO")
stop_limit.GRACE_S = 0.5
with asyncio.Runner(loop_factory=loop_factory()) as runner:
    runner.run({name}())
"""


def stopped(name: str, limit_s: float = 0.5) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", PROGRAM.format(name=name, limit_s=limit_s)]
    return subprocess.run(program, capture_output=True, text=True, timeout=WAIT_S, check=False)


@pytest.mark.parametrize("name", ["stop_stuck", "stop_blocked"])
def test_a_stop_that_a_thread_holds_ends_and_names_the_place(name: str) -> None:
    done = stopped(name)
    assert done.returncode == LEFT, done
    (line,) = done.stderr.splitlines()
    assert "the stop is not over after 0.5 s, as if the data folder stood still; this process ends" in line
    assert line.index("MainThread: ") < line.index("threading.py"), "the last frame, which is Python's own here"
    assert done.stdout == ("released\n" if name == "stop_stuck" else "")


def test_a_call_that_holds_the_interpreter_ends_too_with_a_traceback() -> None:
    done = stopped("stop_held")
    assert done.returncode == 1, done
    assert "in stop_held" in done.stderr


def test_a_stop_in_time_is_left_alone() -> None:
    begun_s = time.monotonic()
    done = stopped("stop_in_time", limit_s=2 * WAIT_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.monotonic() - begun_s < WAIT_S, "no thread of the limit is waited for"
