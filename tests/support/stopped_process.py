"""SIGSTOP as a test means it: on return no thread of the process runs.

The signal alone promises nothing: until one thread is scheduled and takes it, all others run on.  On a busy machine
that takes long enough for a server to answer once more.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Final

WAIT_S: Final = 30.0  # generous: the machine may be busy
LOOK_S: Final = 0.001
_STILL: Final = frozenset("TtZX")  # states of a thread that runs no more


def stop_process(pid: int) -> None:
    """Stop the process; return when all of its threads stand still, or have ended."""
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + WAIT_S
    while any(_runs(thread) for thread in Path(f"/proc/{pid}/task").glob("*/stat")):
        assert time.monotonic() < deadline, f"process {pid} does not stop"
        threading.Event().wait(LOOK_S)


def _runs(stat: Path) -> bool:
    try:
        return stat.read_text().rpartition(")")[2].split()[0] not in _STILL
    except (FileNotFoundError, ProcessLookupError):
        return False
