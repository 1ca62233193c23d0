"""Memory and processor time of the processes behind an endpoint (Linux)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from .machine import Contention, busy_s, contention

SHORTEST_S: Final = 0.5  # of a stretch whose share says something: the kernel counts in ticks of 10 ms


@dataclass(frozen=True, slots=True)
class Role:
    """A part of a system, such as its store: processes that count with all their descendants."""

    name: str
    pids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RoleUse:
    """The processor time of a role in a stretch of load, and its resident memory at the end."""

    name: str
    cpu_s: float
    resident_mb: float
    busiest_share: float | None = None  # of a core, of the process that took most; None if the stretch was too short


class RoleWatch:
    """The processor time of roles, and of all other programs of the machine, since ``begin``."""

    def __init__(self, roles: Sequence[Role]) -> None:
        self._roles = roles
        self._before: list[float] = []
        self._ticks_before: list[dict[int, int]] = []  # of each process of a role
        self._began = 0.0, 0.0, 0.0  # moment, seconds of the cores, seconds of this process and the roles
        self._contended = Contention()

    def begin(self) -> None:
        self._before = self._cpu_s()
        self._ticks_before = self._ticks_of_each()
        self._contended = contention()
        self._began = time.monotonic(), busy_s(), self._known_s()

    def contention(self) -> dict[str, float | None]:
        """Return the shares of steal and of pressure; see ``machine.Contention``."""
        elapsed_s = time.monotonic() - self._began[0]
        return contention().shares_since(self._contended, elapsed_s, os.cpu_count() or 1)

    def others_share(self) -> float | None:
        """Return the share of the cores that other programs than this one and the roles took; None if unknown."""
        (moment_s, worked_s, known_s), cores = self._began, os.cpu_count() or 1
        elapsed_s = time.monotonic() - moment_s
        if not worked_s or elapsed_s < SHORTEST_S:
            return None
        others_s = busy_s() - worked_s - (self._known_s() - known_s)
        return min(max(others_s / (elapsed_s * cores), 0.0), 1.0)

    def _known_s(self) -> float:
        return sum(cpu_s_of([*(pid for role in self._roles for pid in role.pids), os.getpid()]))

    def uses(self) -> list[RoleUse]:
        shares = self._busiest_shares()
        return [
            RoleUse(role.name, after - before, resident_mb(role.pids), share)
            for role, before, after, share in zip(self._roles, self._before, self._cpu_s(), shares, strict=True)
        ]

    def _busiest_shares(self) -> list[float | None]:
        elapsed_s = time.monotonic() - self._began[0]
        if elapsed_s < SHORTEST_S:
            return [None] * len(self._roles)
        per_tick = 1 / (os.sysconf("SC_CLK_TCK") * elapsed_s)
        return [
            max((ticks - before.get(pid, 0) for pid, ticks in after.items()), default=0) * per_tick
            for before, after in zip(self._ticks_before, self._ticks_of_each(), strict=True)
        ]

    def _ticks_of_each(self) -> list[dict[int, int]]:
        """Return for each role its processes with their ticks, which those of ended children are part of."""
        families = iter(_families(pid for role in self._roles for pid in role.pids))
        return [{pid: _ticks(pid) for _ in role.pids for pid in next(families)} for role in self._roles]

    def _cpu_s(self) -> list[float]:
        used = iter(cpu_s_of(pid for role in self._roles for pid in role.pids))
        return [sum(next(used) for _ in role.pids) for role in self._roles]


def resident_mb(pids: Iterable[int]) -> float:
    """Return the resident memory of the processes and all their descendants; ended processes count nothing."""
    return sum(_resident_bytes(pid) for family in _families(pids) for pid in family) / (1 << 20)


def cpu_s_of(pids: Iterable[int]) -> tuple[float, ...]:
    """Return each process's seconds of processor time with all its descendants, to a clock tick (10 ms).

    A descendant of several of the processes counts with the first; an ended one counts with the parent that waited for
    it.
    """
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    return tuple(sum(_ticks(pid) for pid in family) * tick_s for family in _families(pids))


def children_of(pid: int) -> list[int]:
    """Return the running children of process ``pid``; an empty list if the process has ended."""
    found = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as children:
                found += [int(child) for child in children.read().split()]
    return found


def _families(pids: Iterable[int]) -> list[set[int]]:
    """Return each process with its descendants, without those that an earlier process in the list has."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            children.setdefault(_parent_of(int(name)), []).append(int(name))
    known: set[int] = set()
    found = []
    for first in pids:
        family: set[int] = set()
        left = [first]
        while left:
            pid = left.pop()
            if pid not in known:
                known.add(pid)
                family.add(pid)
                left += children.get(pid, [])
        found.append(family)
    return found


def _parent_of(pid: int) -> int:
    stat = _stat(pid)
    return int(stat[1]) if stat else 0


def _ticks(pid: int) -> int:
    """Return user and system time of the process and of the children it waited for; 0 if the process has ended."""
    return sum(int(field) for field in _stat(pid)[11:15])


def _stat(pid: int) -> list[bytes]:
    """Return the fields of the kernel's ``stat`` line from the state on; an empty list if the process has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()  # the name before it may hold blanks
    except OSError:
        return []


def _resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
