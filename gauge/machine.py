"""The machine on which figures were taken, in words."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def processor() -> str:
    """Return the processor's name, as the kernel has it (Linux) or as Python knows it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""  # not Linux
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine() or "unknown"


def machine() -> str:
    """Return cores, processor and Python, for the head of a table."""
    return f"{os.cpu_count()} cores, {processor()}, Python {platform.python_version()}"


def busy_s() -> float:
    """Return the seconds that the machine's cores have worked since its start; 0 if the kernel does not say."""
    try:
        with open("/proc/stat", encoding="ascii") as stat:
            fields = [int(field) for field in stat.readline().split()[1:]]
    except (OSError, ValueError):
        return 0.0
    return (sum(fields[:3]) + sum(fields[5:7])) / os.sysconf("SC_CLK_TCK")


def environment() -> dict[str, str | int | None]:
    """Return the moment, the machine and Python, for a report."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
