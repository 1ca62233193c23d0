"""The guard of one role: starts its program, bounds it, and ends it when the experiment ends or is killed.

``python -m wikibench.experiments.guard JSON`` with ``{"start": [...], "stop": [...], "cpus": [0], "quota": 0.1,
"group": name, "log": path, "grace_s": 20}``.  The program has a session of its own; its output goes to the log.

    standard input ends       the stop command runs (or SIGTERM goes to the session), and after the grace SIGKILL
    the program ends          the guard ends with its status; a program that ends with 0 and has a stop command has
                              left its servers behind, so the guard goes on until its input ends

So whoever kills an experiment ends its systems, too: the pipe of the guard closes with the process.

A quota is a control group of the kernel with a period of 10 ms, in which the program and its children run.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

GROUPS: Final = Path("/sys/fs/cgroup")
PERIOD_US: Final = 10_000
LEAST_US: Final = 1_000  # of a period: the kernel takes no quota below it; a smaller share has a longer period
REMOVE_S: Final = 5.0  # in which the processes of a group are gone, once they were killed
_POLL_S: Final = 0.02


class QuotaGroup:
    """A control group whose processes together have a share of a core.  Its folder may not be writable: OSError."""

    def __init__(self, name: str, quota: float) -> None:
        self._name = name
        self._period_us = max(PERIOD_US, round(LEAST_US / quota))
        self._quota_us = max(round(quota * self._period_us), LEAST_US)

    @property
    def _is_old(self) -> bool:
        return (GROUPS / "cpu").is_dir()  # version 1 of control groups

    @property
    def _folder(self) -> Path:
        return (GROUPS / "cpu" if self._is_old else GROUPS) / self._name

    def make(self) -> None:
        """Make the group.  Raises OSError where this is not allowed."""
        self._folder.mkdir(exist_ok=True)
        try:
            if self._is_old:
                self._write("cpu.cfs_period_us", self._period_us)
                self._write("cpu.cfs_quota_us", self._quota_us)
            else:
                self._write("cpu.max", f"{self._quota_us} {self._period_us}")
        except OSError:
            self._folder.rmdir()
            raise

    def add(self, pid: int) -> None:
        """Take a process into the group, with all its threads and future children."""
        self._write("cgroup.procs", pid)

    def leave(self) -> None:
        """Take this process out, and remove the group."""
        (self._folder.parent / "cgroup.procs").write_text(str(os.getpid()))
        self.remove()

    def remove(self) -> None:
        """Remove the group once it is empty; after REMOVE_S leave it where it is."""
        until_s = time.monotonic() + REMOVE_S
        while time.monotonic() < until_s:
            try:
                self._folder.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(_POLL_S)
            else:
                return

    def _write(self, name: str, value: object) -> None:
        (self._folder / name).write_text(str(value))


def why_no_quota() -> str:
    """Return why no control group with a quota can be made here; an empty text if one can."""
    group = QuotaGroup(f"wikibench-{os.getpid()}-probe", 0.5)
    try:
        group.make()
    except OSError as error:
        return f"no control group can be made here ({error.strerror or error})"
    group.remove()
    return ""


def guarded(given: Mapping[str, Any]) -> int:
    """Run the program until it or standard input ends; return the status of the program."""
    if given.get("cpus"):
        os.sched_setaffinity(0, given["cpus"])
    group = QuotaGroup(given["group"], given["quota"]) if given.get("quota") else None
    if group is not None:
        group.make()
        group.add(os.getpid())
    with open(given["log"], "ab") as log:
        process = subprocess.Popen(
            given["start"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            has_ended = _wait_for_end(process)
            if has_ended and process.returncode == 0 and given.get("stop"):
                select.select([0], [], [])
        finally:
            _end(process, given.get("stop") or [], given["grace_s"], log)
            if group is not None:
                group.leave()
    return process.returncode


def _wait_for_end(process: subprocess.Popen[bytes]) -> bool:
    """Return True if the program has ended, False if standard input has."""
    watched = os.pidfd_open(process.pid)
    try:
        select.select([0, watched], [], [])
    finally:
        os.close(watched)
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.0)
    return process.returncode is not None


def _end(process: subprocess.Popen[bytes], stop: Sequence[str], grace_s: float, log: Any) -> None:
    until_s = time.monotonic() + grace_s
    if stop:
        with suppress(subprocess.TimeoutExpired, OSError):
            subprocess.run(stop, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=grace_s, check=False)
    elif process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(max(until_s - time.monotonic(), 0.0))
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # what is left of the session
    process.wait()


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # they are the experiment's, which closes the pipe
        signal.signal(number, lambda *_: None)  # not SIG_IGN, which the program would inherit
    sys.exit(guarded(json.loads(sys.argv[1])) & 0xFF)
