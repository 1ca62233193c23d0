"""A process that a test has stopped runs no more: a promise of ``tests.support.stopped_process``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.stopped_process import stop_process

COUNTS = """
import threading
threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="what threads do is told by Linux")
def test_no_thread_of_a_stopped_process_runs() -> None:
    with subprocess.Popen([sys.executable, "-c", COUNTS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        stop_process(process.pid)
        stats = list(Path(f"/proc/{process.pid}/task").glob("*/stat"))
        states = [stat.read_text().rpartition(")")[2].split() for stat in stats]
        process.kill()
    assert len(states) == 2
    assert {state[0] for state in states} == {"T"}
