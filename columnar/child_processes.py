"""The end of a child with its parent, however that ends: the kernel's part of it, on Linux."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h


def _prctl() -> Callable[..., Any] | None:
    if sys.platform != "linux":
        return None
    import ctypes  # Linux alone needs it

    found: Callable[..., Any] = ctypes.CDLL(None).prctl
    return found


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Have the kernel signal this process when the thread that started it ends.  Not on other systems than Linux."""
    prctl = _prctl()
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def before_exec(number: int = signal.SIGTERM) -> Callable[[], None] | None:
    """Return a ``preexec_fn`` by which the child, whatever program it becomes, is signalled when this process ends."""
    prctl, parent = _prctl(), os.getpid()
    if prctl is None:
        return None

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # it has ended meanwhile
            os._exit(128 + number)

    return prepare
