"""Child processes: a child ends with its parent (on Linux by the kernel), and treats repeated signals as one stop."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
# Set by a parent that itself kills a child which does not stop.  The child treats every signal after the first as the
# same stop, because a service manager signals all processes of a unit and the parent also signals its children.
STOP_ONCE: Final = "COLUMNAR_STOP_ONCE"


def stops_once() -> bool:
    return bool(os.environ.get(STOP_ONCE))


def _prctl() -> Callable[..., Any] | None:
    if sys.platform != "linux":
        return None
    import ctypes  # only Linux needs it

    found: Callable[..., Any] = ctypes.CDLL(None).prctl
    return found


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Have the kernel signal this process when the thread that started it ends.  Only on Linux."""
    prctl = _prctl()
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def before_exec(number: int = signal.SIGTERM) -> Callable[[], None] | None:
    """Return a ``preexec_fn`` by which the kernel signals the child, whatever it runs, when this process ends."""
    prctl, parent = _prctl(), os.getpid()
    if prctl is None:
        return None

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # the parent has ended meanwhile
            os._exit(128 + number)

    return prepare
