"""The start of this machine, as a text: two processes with the same text share a monotonic clock."""

from __future__ import annotations

import platform
from functools import cache
from typing import Final

_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"  # the same in each container of the machine


@cache
def boot_id() -> str:
    """Return the kernel's identity of the machine's start; without /proc the machine's name, which outlives a start."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return platform.node()
