"""Children and their parent: the end of a child with its parent (the kernel's part of it, on Linux), and stops."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
# Set by a parent that kills a child which does not stop.  The child takes every signal after the first for the same
# stop: a service manager signals all processes of a unit, and the parent signals its children as well.
STOP_ONCE: Final = "COLUMNAR_STOP_ONCE"


def stops_once() -> bool:
    return bool(os.environ.get(STOP_ONCE))


def _prctl() -> Callable[..., Any] | None:
    if sys.platform != "linux":
        return None
    import ctypes  # Linux alone needs it

    found: Callable[..., Any] = ctypes.CDLL(None).prctl
    return found


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Have the kernel signal this process when the thread that started it ends.  Only on Linux."""
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
