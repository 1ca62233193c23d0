"""A control group of the kernel with a bound on memory, as ``MemoryMax`` of a systemd unit makes one."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from tests.support.cluster_process import until

ROOT: Final = Path("/sys/fs/cgroup")
OLD: Final = ROOT / "memory"  # version 1
_ENTERS: Final = 'echo $$ > "$0" && exec "$@"'


class ControlGroup:
    """A group that exists within a ``with`` block, at whose end its processes must have ended."""

    def __init__(self, limit_bytes: int) -> None:
        self._is_old = OLD.is_dir()
        self._folder = (OLD if self._is_old else ROOT) / f"columnar-{uuid.uuid4().hex[:12]}"
        self._limit_bytes = limit_bytes

    def __enter__(self) -> ControlGroup:
        """Make the group.  Raises OSError where this is not allowed."""
        self._folder.mkdir()
        try:
            self._write("memory.limit_in_bytes" if self._is_old else "memory.max", self._limit_bytes)
        except OSError:
            self._folder.rmdir()
            raise
        return self

    def __exit__(self, _type: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        until(self._is_removed)  # children of an ended process may not be reaped yet, and count until then

    def _is_removed(self) -> bool:
        try:
            self._folder.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return False
        return True

    def _write(self, name: str, value: int) -> None:
        (self._folder / name).write_text(str(value))

    def command(self, command: Sequence[str]) -> list[str]:
        """Return the command that runs ``command`` in the group, with its children."""
        return ["sh", "-c", _ENTERS, str(self._folder / "cgroup.procs"), *command]

    @property
    def peak_bytes(self) -> int:
        """The most memory that the group ever had; files in the kernel's cache count too."""
        return int((self._folder / ("memory.max_usage_in_bytes" if self._is_old else "memory.peak")).read_text())

    @property
    def kills(self) -> int:
        """The number of processes that the kernel has killed because the group was full."""
        text = (self._folder / ("memory.oom_control" if self._is_old else "memory.events")).read_text()
        return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")), 0)

    @property
    def resident_bytes(self) -> int:
        """The memory of the group's processes, without the kernel's cache."""
        pids = (self._folder / "cgroup.procs").read_text().split()
        return sum(_resident(pid) for pid in pids)

    @property
    def read_bytes(self) -> int:
        """What the group's processes have read from disks since their start, without what the kernel had in memory."""
        pids = (self._folder / "cgroup.procs").read_text().split()
        return sum(_read(pid) for pid in pids)


def _read(pid: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("read_bytes:")), 0)


def _resident(pid: str) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # it has ended
        return 0


def why_no_groups() -> str:
    """Return why no group can be made here; an empty text if one can."""
    try:
        with ControlGroup(1 << 30):
            return ""
    except OSError as error:
        return f"no control group can be made here: {error}"
