"""The memory that the machine or its control groups grant to this process.

    control groups, version 2   memory.max and memory.high of the process's group and of all groups above it
    control groups, version 1   memory.limit_in_bytes of the same
    the machine                 its physical memory

The smallest counts.  In a container the files of the group are those of the container.  A system that reports nothing
grants an unknown amount, 0.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

ROOT: Final = "/sys/fs/cgroup"
GROUPS: Final = "/proc/self/cgroup"
_FILES: Final = ("memory.max", "memory.high", "memory.limit_in_bytes")


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    size_bytes: int  # 0: unknown
    source: str  # "this machine", or the file that says so


def memory_limit(root: str = ROOT, groups: str = GROUPS) -> MemoryLimit:
    """Return the least limit.  Reads a few files of the system; takes some 50 us."""
    machine = _of_machine()
    found = [machine] if machine.size_bytes else []
    found += _of_groups(root, groups)
    return min(found, key=lambda one: one.size_bytes, default=MemoryLimit(0, "this machine"))


def _of_machine() -> MemoryLimit:
    try:
        return MemoryLimit(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), "this machine")
    except (ValueError, OSError, AttributeError):  # Windows has no sysconf
        return MemoryLimit(0, "this machine")


def _of_groups(root: str, groups: str) -> list[MemoryLimit]:
    """Return the limits of the process's groups; those without a limit report a number above the machine's."""
    try:
        with open(groups, encoding="ascii", errors="replace") as file:
            lines = [line.strip().split(":", 2) for line in file]
    except OSError:
        return []
    found = []
    for line in lines:
        if len(line) == 3 and line[1] in ("", "memory"):
            folder = os.path.join(root, line[1])
            path = line[2].strip("/")
            while True:  # in a container the path may be that outside of it; then only the root is there
                found += _limits_in(os.path.join(folder, path))
                if not path:
                    break
                path = os.path.dirname(path)
    return found


def _limits_in(folder: str) -> list[MemoryLimit]:
    found = []
    for name in _FILES:
        path = os.path.join(folder, name)
        try:
            with open(path, encoding="ascii") as file:
                found.append(MemoryLimit(int(file.read()), path))
        except (OSError, ValueError):  # not there, or "max": no limit
            continue
    return found
