"""A limit for the end of a process's stop, which a thread in a dead mount would hold for ever.

    ended     the block ended in time, and nothing has happened
    left      the limit has passed: the process ends at once, with status LEFT, and says where its threads wait
    held      GRACE_S later even that has not run, because a call of the engine holds the interpreter: the process ends
              with status 1, and the places are in a traceback on standard error

A thread that waits for a network folder whose servers are gone cannot be ended, and the interpreter waits at its own
end for each thread of an executor, and so does the loop.  An end at the limit is as safe as ``kill -9``: use it when
all that was acknowledged is on disk.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Final

from columnar.runtime.log_lines import flush

_log = logging.getLogger(__name__)

THREADS_S: Final = 15.0  # for the threads of a process that has stopped otherwise
GRACE_S: Final = 5.0
LEFT: Final = 5  # the exit status
MOST_PLACES: Final = 8  # in the line of the log
_FLUSH_S: Final = 0.5  # for the last log lines
_STDERR: Final = 2


def keep_nothing() -> None:
    """Stand for ``release`` of a process that has nothing to release."""


class StopLimit:
    """A block that ends within ``limit_s``, or with the process.  Blocks are not nested."""

    def __init__(self, limit_s: float, release: Callable[[], None] = keep_nothing) -> None:
        """Pass ``release``, called before the end, in a thread; it must touch no folder that may stand still."""
        self._limit_s = limit_s
        self._release = release
        self._is_over = threading.Event()

    def __enter__(self) -> None:
        threading.Thread(target=self._watch, name="limit of the stop", daemon=True).start()
        faulthandler.dump_traceback_later(self._limit_s + GRACE_S, exit=True, file=_STDERR)

    def __exit__(self, *_: object) -> None:
        faulthandler.cancel_dump_traceback_later()
        self._is_over.set()

    def _watch(self) -> None:
        if self._is_over.wait(self._limit_s):
            return
        text = "the stop is not over after %g s, as if the data folder stood still; this process ends. It waits in %s"
        _log.critical(text, self._limit_s, "; ".join(_places()))
        self._release()
        flush(_FLUSH_S)
        os._exit(LEFT)


def _places() -> list[str]:
    """Return where the threads are: name, file, line and function; the main thread's first."""
    frames, found = sys._current_frames(), []
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        if frame is not None and thread is not threading.current_thread():
            code = frame.f_code
            found.append(f"{thread.name}: {code.co_filename}:{frame.f_lineno} {code.co_name}")
    return found[:MOST_PLACES]
