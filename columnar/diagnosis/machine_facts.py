"""The facts of the machine and of this program."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from columnar.diagnosis.facts import Clock, Memory, Program, RunningStore
from columnar.runtime import compiled
from columnar.runtime.memory_limit import ROOT, memory_limit
from columnar.version import PYTHON, VERSION, build

_KIB: Final = 1024
_UNSYNCHRONISED: Final = 0x0040  # STA_UNSYNC of <sys/timex.h>
_ERROR: Final = 5  # TIME_ERROR
_STRICT: Final = "2"  # vm.overcommit_memory


class _Timex(ctypes.Structure):
    """The head of ``struct timex``, and room for the rest."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 256),
    )


def clock_facts() -> Clock:
    """Return whether a time server sets the clock; the kernel is asked and nothing is set (``modes`` 0)."""
    now_ms = time.time_ns() // 1_000_000
    if sys.platform != "linux":
        return Clock(now_ms)
    try:
        asked = _Timex()
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(asked))
    except (OSError, AttributeError):  # another C library
        return Clock(now_ms)
    if state < 0:  # a sandbox forbids the call
        return Clock(now_ms)
    is_synchronised = state != _ERROR and not asked.status & _UNSYNCHRONISED
    return Clock(now_ms, is_synchronised, asked.esterror / 1_000 if is_synchronised else None)


def program_facts() -> Program:
    return Program(
        VERSION,
        build().text,
        PYTHON,
        compiled.state,
        importlib.util.find_spec("uvloop") is not None,
        f"{platform.system()} {platform.release()}",
        sys.platform == "linux",
        hasattr(os, "geteuid") and os.geteuid() == 0,
    )


def memory_facts(running: RunningStore | None, ordered_bytes: int = 0) -> Memory:
    """Return the memory of the machine, and of the control group of the running store or of this process."""
    machine = table_of("/proc/meminfo")
    pid = str(running.process.pid) if running is not None else "self"
    group = group_folder(_text_of(f"/proc/{pid}/cgroup"))
    limit = memory_limit(groups=f"/proc/{pid}/cgroup")
    events = dict(line.split() for line in _text_of(f"{group}/memory.events").splitlines() if line.count(" ") == 1)
    kills = events.get("oom_kill", "0")
    headroom = None
    if _text_of("/proc/sys/vm/overcommit_memory").strip() == _STRICT:
        headroom = machine.get("CommitLimit", 0) - machine.get("Committed_AS", 0)
    swapped, adjustment = 0, None
    if running is not None:
        swapped = sum(table_of(f"/proc/{one}/status").get("VmSwap", 0) for one in running.pids)
        adjustment = _integer(_text_of(f"/proc/{pid}/oom_score_adj"))
    pages = _text_of("/sys/kernel/mm/transparent_hugepage/enabled")
    return Memory(
        machine.get("MemTotal"),
        machine.get("MemAvailable"),
        limit.size_bytes if limit.source.startswith(ROOT) else None,
        int(kills) if kills.isdigit() else 0,
        swapped,
        headroom,
        pages.partition("[")[2].partition("]")[0],
        adjustment,
        ordered_bytes,
    )


def table_of(path: str) -> Mapping[str, int]:
    """Return the lines ``Name: NUMBER kB`` of a file of ``/proc``, in bytes."""
    found = {}
    for line in _text_of(path).splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB" and words[0].isdigit():
            found[name] = int(words[0]) * _KIB
    return found


def group_folder(text: str) -> str:
    """Return the folder of the control group of memory, as ``/proc/PID/cgroup`` names it; the root's without one."""
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            own = f"/sys/fs/cgroup{path.rstrip('/')}"
            return own if os.path.isdir(own) else "/sys/fs/cgroup"  # a container sees its own group as the root
        if "memory" in controllers.split(","):
            own = f"/sys/fs/cgroup/memory{path.rstrip('/')}"
            return own if os.path.isdir(own) else "/sys/fs/cgroup/memory"
    return "/sys/fs/cgroup"


def _integer(text: str) -> int | None:
    with suppress(ValueError):
        return int(text)
    return None


def _text_of(path: str) -> str:
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return ""
