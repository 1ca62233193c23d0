"""Child processes: a child ends with its parent (on Linux by the kernel), and treats repeated signals as one stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_STARTING: Final = threading.Lock()  # a child that another thread starts meanwhile would inherit descriptors, too
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


class SpawnedProcess:
    """A child process: what its parent uses of ``subprocess.Popen``.  Any thread may call.

    ``subprocess`` waits until the child has replaced its program, and before that the child closes copies of the
    parent's files.  Closing a file on a network file system waits for the file system's server, so a parent whose loop
    must live would stand still with it.  The parent of ``posix_spawn`` does not wait for these closes.
    """

    def __init__(self, pid: int, stdin: BinaryIO) -> None:
        """Pass the write end of the pipe that is the child's standard input."""
        self.pid = pid
        self.stdin = stdin
        self._lock = threading.Lock()  # a signal never meets a process that was reaped, whose number may be another's
        self._status: int | None = None

    @classmethod
    def start(
        cls, command: Sequence[str], descriptors: Sequence[int], stdout: int, environment: Mapping[str, str]
    ) -> SpawnedProcess:
        """Start ``command``, whose first word is a path, in a process group of its own.  Raises OSError.

        The child inherits ``descriptors``, and those that this program has inherited; Python and RocksDB open all
        others so that the start of a program closes them.  Takes some 2 ms.
        """
        theirs, ours = os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, theirs, 0), (os.POSIX_SPAWN_DUP2, stdout, 1)]
        reset = [signal.SIGPIPE, signal.SIGXFSZ]  # which Python ignores
        try:
            pid = spawn(command, environment, actions, descriptors, setpgroup=0, setsigdef=reset)
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return cls(pid, os.fdopen(ours, "wb"))

    def wait(self) -> int:
        """Wait for the end and reap the process; returns its status, negative after a signal.  Blocks."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            if self._status is None:
                self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            return self._status

    def send_signal(self, number: int) -> None:
        """Send the signal unless the process was reaped."""
        with self._lock:
            if self._status is None:
                os.kill(self.pid, number)


def spawn(
    command: Sequence[str],
    environment: Mapping[str, str],
    actions: Sequence[tuple[Any, ...]],
    descriptors: Sequence[int] = (),
    **options: Any,
) -> int:
    """Call ``os.posix_spawn`` with the file actions and options; the child inherits ``descriptors``.  Returns its pid.

    Any thread may call: one child is started at a time.  Raises OSError.
    """
    with _STARTING:
        try:
            for descriptor in descriptors:
                os.set_inheritable(descriptor, True)
            return os.posix_spawn(command[0], list(command), environment, file_actions=actions, **options)
        finally:
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)


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
