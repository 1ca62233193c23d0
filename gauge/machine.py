"""The machine on which figures were taken, in words."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def processor() -> str:
    """Return the processor's name, as the kernel has it (Linux) or as Python knows it."""
    text = _text("/proc/cpuinfo")
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


@dataclass(frozen=True, slots=True)
class Contention:
    """The seconds since the machine's start that its programs lacked a core for; None if the kernel does not say."""

    stolen_s: float | None = None  # of all cores, that the host of a virtual machine kept for others
    waited_s: float | None = None  # in which some program was ready to run and had no core

    def shares_since(self, before: Contention, elapsed_s: float, cores: int) -> dict[str, float | None]:
        """Return the share of the cores that was stolen, and the share of the time in which some program waited."""
        return {
            "stolen_share": _share(self.stolen_s, before.stolen_s, elapsed_s * cores),
            "waited_share": _share(self.waited_s, before.waited_s, elapsed_s),
        }


def _share(after_s: float | None, before_s: float | None, of_s: float) -> float | None:
    if after_s is None or before_s is None or of_s <= 0:
        return None
    return round(min(max((after_s - before_s) / of_s, 0.0), 1.0), 4)


def contention() -> Contention:
    """Return what the kernel says now; older kernels, and some containers, have no pressure."""
    return contention_in(_text("/proc/stat"), _text("/proc/pressure/cpu"), os.sysconf("SC_CLK_TCK"))


def contention_in(stat: str, pressure: str, ticks_per_s: int) -> Contention:
    """(pure) Return the contention of the texts of /proc/stat and /proc/pressure/cpu."""
    ticks, waited = stat.partition("\n")[0].split(), pressure.partition("\n")[0].rpartition("total=")[2]
    stolen_s = int(ticks[8]) / ticks_per_s if len(ticks) > 8 and ticks[8].isdigit() else None
    return Contention(stolen_s, int(waited) / 1e6 if waited.isdigit() else None)


def governor() -> str | None:
    """Return how the kernel chooses the clock of the first core; None if it does not, as in most virtual machines."""
    return _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # not Linux, or an older kernel


def environment() -> dict[str, str | int | None]:
    """Return the moment, the machine and Python, for a report."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": processor(),
        "cores": os.cpu_count(),
        "governor": governor(),
        "python": platform.python_version(),
    }
