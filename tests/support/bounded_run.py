"""A command that ends with all of its processes: at its end, after a time, or when it has too many processes.

Processes that leave the command's session, or whose parent ends, count and end with it, because this process adopts
them (Linux).
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from gauge.processes import children_of

OVER: Final = "TIME OVER"
TOO_MANY: Final = "TOO MANY PROCESSES"
_LOOK_S: Final = 0.2  # between two counts
_PR_SET_CHILD_SUBREAPER: Final = 36  # linux/prctl.h


def bounded_run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], *, seconds: float, processes: int
) -> tuple[int | str, str]:
    """Run a command; return its exit status, OVER or TOO_MANY, and its output (with the commands after TOO_MANY).

    This process must have no other children.
    """
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError("orphans cannot be adopted here")
    with (folder / "output.txt").open("w+") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
        commands = ""
        try:
            status = _status(process, time.monotonic() + seconds, processes)
            if status == TOO_MANY:
                commands = _commands(_descendants())
        finally:
            _end_all()
            process.wait()
        output.seek(0)
        return status, output.read() + commands


def _status(process: subprocess.Popen[bytes], until_s: float, most: int) -> int | str:
    while time.monotonic() < until_s:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_LOOK_S)
        _reap(one for one in children_of(os.getpid()) if one != process.pid)
        if len(found := _descendants()) > most:
            _signal(found, signal.SIGSTOP)
            return TOO_MANY
    return OVER


def _descendants() -> list[int]:
    found, at = [os.getpid()], 0
    while at < len(found):
        found += children_of(found[at])
        at += 1
    return found[1:]


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _reap(pids: Iterable[int], options: int = os.WNOHANG) -> None:
    for pid in pids:
        with suppress(ChildProcessError):
            os.waitpid(pid, options)


def _end_all() -> None:
    """End all processes; stop them all first, because a process that starts others would be faster."""
    while found := _descendants():
        _signal(found, signal.SIGSTOP)
        _signal(found, signal.SIGKILL)
        _reap((one for one in children_of(os.getpid()) if one in found), 0)


def _commands(pids: Iterable[int]) -> str:
    """Return the most frequent commands, one a line."""
    found = Counter[str]()
    for pid in pids:
        with suppress(OSError):
            found[Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")[:200]] += 1
    return "".join(f"\n{count} of {text}" for text, count in found.most_common(10))
