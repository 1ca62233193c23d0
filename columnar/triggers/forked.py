"""Copies of the worker process that functions make by ``os.fork``.

A copy continues in the function.  Afterwards it would answer in the worker's place, amid the worker's own frames.  So a
copy closes its end of the store's socket, and ends with the slice in which it was made (``end_copy``).  The worker
reaps the ended copies, unless the function has waited for them itself.  Processes that never return to the worker's
code are not affected.

A copy of a test's process ends with the call as well (``ending_copies``).
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Final

_PID: Final = Struct("=i")
_READ_BYTES: Final = 4096


class ForkedCopies:
    def __init__(self, link: socket.socket) -> None:
        """``link`` is the worker's end of the socket to the store."""
        self.is_copy = False
        self.were_made = False  # then ``collect`` now and then
        self._link = link
        self._ends: tuple[int, int] | None = None  # of the pipe into which ending copies write their process ids
        self._ended: list[int] = []
        self._mutex = threading.Lock()

    def watch(self) -> None:
        """Register for each fork of this process, from now on."""
        os.register_at_fork(before=self._before, after_in_parent=self._made, after_in_child=self._forked)

    def _before(self) -> None:
        if self._ends is None:
            self._ends = os.pipe()
            os.set_blocking(self._ends[0], False)

    def _made(self) -> None:
        self.were_made = True

    def _forked(self) -> None:
        self.is_copy = True
        self._link.close()

    def end_copy(self) -> None:
        """End this process, which is a copy."""
        assert self._ends is not None, "made before the fork"
        os.write(self._ends[1], _PID.pack(os.getpid()))
        os._exit(0)

    def collect(self) -> None:
        """Reap the copies that have ended."""
        if self._ends is None or not self._mutex.acquire(blocking=False):
            return
        try:
            found = os.read(self._ends[0], _READ_BYTES)
            self._ended += [pid for (pid,) in _PID.iter_unpack(found)]
        except BlockingIOError:
            pass
        finally:
            self._ended = [pid for pid in self._ended if not _is_collected(pid)]
            self._mutex.release()


def _is_collected(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:  # the function has waited for it
        return True


@contextmanager
def ending_copies() -> Iterator[None]:
    """End any copy of this process that a function makes within the ``with`` block.

    A copy would continue with the author's test, and make copies of its own at each further call.
    """
    process = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != process:
            os._exit(0)
