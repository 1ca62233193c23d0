"""A command of an operator as a child process: any program with its children, in a session of its own.

    start    by ``posix_spawn``, whose caller does not wait until the child has closed its copies of the caller's files
             (``child_processes.SpawnedProcess``).  The child is Python at first: it has the kernel kill it when the
             thread that started it ends, and becomes the program
    end      a thread waits for it; the process is reaped by ``close``, when everything that is left of the command was
             killed.  So a signal meets no other process that got the number

Any thread may call.  ``start`` takes some 10 ms, the change to the program 30 ms more in the child.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from columnar.runtime.child_processes import spawn

# The arguments: the parent's number, then the command.  Python ignores two signals, which a program does not expect.
_BECOME: Final = """
import os, signal, sys
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
if os.getppid() != int(sys.argv[1]):
    os._exit(137)  # the parent has ended meanwhile
for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(ignored, signal.SIG_DFL)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"{sys.argv[2]} cannot be run: {error.strerror}")
"""


class SpawnedCommand:
    """A running command; its output comes over two pipes.  Call ``close`` last."""

    def __init__(self, pid: int, stdout: int, stderr: int) -> None:
        """Pass the read ends of the pipes."""
        self.stdout = stdout
        self.stderr = stderr
        self._pid = pid
        self._lock = threading.Lock()  # a signal never meets a process that was reaped, whose number may be another's
        self._status: int | None = None  # once it was reaped
        self._ended = threading.Event()
        self._may_be_reaped = threading.Event()
        self._reaped = threading.Event()

    @classmethod
    def start(cls, words: Sequence[str], environment: Mapping[str, str]) -> SpawnedCommand:
        """Start the command, whose first word is looked up in PATH.  Raises OSError if nothing can be started.

        The command ends with the thread that calls this.  A program that cannot be run is a line of stderr, ``...
        cannot be run: ...``, and a status other than 0.
        """
        stdout, its_stdout = os.pipe()
        stderr, its_stderr = os.pipe()
        command = [sys.executable, "-I", "-S", "-c", _BECOME, str(os.getpid()), *words]
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, its_stdout, 1),
            (os.POSIX_SPAWN_DUP2, its_stderr, 2),
        ]
        try:
            pid = spawn(command, environment, actions, setsid=True)
        except BaseException:
            os.close(stdout)
            os.close(stderr)
            raise
        finally:
            os.close(its_stdout)
            os.close(its_stderr)
        made = cls(pid, stdout, stderr)
        threading.Thread(target=made._wait, name=f"end of {words[0]}", daemon=True).start()
        return made

    def _wait(self) -> None:
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        self._ended.set()
        self._may_be_reaped.wait()
        with self._lock:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        self._reaped.set()

    def has_ended(self, limit_s: float) -> bool:
        """Wait for the end of the program itself, for ``limit_s`` at most; tell whether it has ended."""
        return self._ended.wait(limit_s)

    def kill(self) -> None:
        """Kill the command and its children, if they live.  Does not wait."""
        with self._lock:
            if self._status is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._pid, signal.SIGKILL)

    def close(self, limit_s: float) -> int | None:
        """Kill what is left of the command, and return its status; negative after a signal.

        None: the killed program does not end within ``limit_s``, because it is in an uninterruptible call.  It is
        reaped when it ends.
        """
        self.kill()
        os.close(self.stdout)
        os.close(self.stderr)
        has_ended = self.has_ended(limit_s)
        self._may_be_reaped.set()
        if has_ended:
            self._reaped.wait()
        return self._status
