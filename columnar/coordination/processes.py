"""Children of a supervisor: processes that are started with sockets to them, watched, and killed for certain.

    child's arguments   CONTROL_FD CHANNEL_FD BEATS_FD LOCK_FD LINES_FD, after the command; it inherits them
    control             a stream socket; each end sees the end of the other process
    channel             connections of clients, to be served, or returned: ``coordination.connection_channel``
    beats               a pipe to the supervisor: ``coordination.beat``, whenever the child reports
    lock                a descriptor that the child only keeps open: its lock lasts as long as any process has it
    lines               a file in which the child keeps the last lines of its log: ``last_lines``, read at its end
    stdin               one line, the child's settings; written once they are known, so that the child starts before

The death of a child is known when ``waitpid`` has returned: from then on it sends no answer, and no part of it
runs.  ``fence`` is SIGKILL and that wait; it ends stopped processes, too.

Children end with their supervisor.  On Linux a child asks the kernel for SIGKILL at the death of the thread that
started it, so children are started by the thread that lives as long as the process: that of the loop.

Knows nothing of stores, regions and messages.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from columnar.coordination.beat import BEAT_BYTES, Beat, last_of
from columnar.coordination.connection_channel import DispatchedConnection, pair, send_connection
from columnar.coordination.processor_time import ProcessorWatch
from columnar.runtime.last_lines import last_lines, lines_file

_BEATS_READ: Final = 512  # at a time; the last one has all information of older ones


class Child:
    """A process that was started; ``started`` makes one."""

    def __init__(
        self, process: subprocess.Popen[bytes], control: socket.socket, channel: socket.socket, lines: int
    ) -> None:
        """Take over the supervisor's ends of the child's sockets, and the file of its last lines."""
        self.pid = process.pid
        self.control = control
        self.connection_channel = channel
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()  # its status: reaped
        self.last_lines: tuple[str, ...] = ()  # of its log; once it has ended
        self._lines = lines
        self._process = process
        self._beats = -1  # the pipe's read end; -1: closed
        self._processor = ProcessorWatch(process.pid)

    def settings(self, line: bytes) -> None:
        """Give the child its settings; a child that has died meanwhile takes none."""
        stdin = self._process.stdin
        assert stdin is not None, "a pipe"
        with suppress(BrokenPipeError):
            stdin.write(line + b"\n")
            stdin.flush()
        with suppress(BrokenPipeError):
            stdin.close()

    @property
    def is_over(self) -> bool:
        return self.ended.done()

    def signal(self, number: int) -> None:
        """Send the signal, unless the child was reaped."""
        if not self.is_over:
            self._process.send_signal(number)

    def request_stop(self) -> None:
        self.signal(signal.SIGTERM)

    async def fence(self) -> int:
        """Kill the child and wait for its end; returns its status.  It sends no answer from then on."""
        self.signal(signal.SIGKILL)
        return await asyncio.shield(self.ended)

    def send_connection(self, dispatched: DispatchedConnection) -> bool:
        """Dispatch a connection to the child, as ``connection_channel.send_connection``.  False: it takes none now."""
        return send_connection(self.connection_channel, dispatched)

    def has_worked(self) -> bool:
        """Tell whether the child has used a processor since the last, recent call: it lives, though it is silent."""
        return not self.is_over and self._processor.has_worked(asyncio.get_running_loop().time())

    # --- watching ------------------------------------------------------------------------------------

    def watch(self, beats: int, on_beat: Callable[[Beat], None]) -> None:
        """Report beats and the child's end from now on.  ``beats``: the pipe's read end, taken over by this object."""
        self._beats = beats
        asyncio.get_running_loop().add_reader(beats, self._read_beats, on_beat)
        threading.Thread(target=self._wait, args=(asyncio.get_running_loop(),), daemon=True).start()

    def _read_beats(self, on_beat: Callable[[Beat], None]) -> None:
        try:
            data = os.read(self._beats, _BEATS_READ * BEAT_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._forget_beats()
        elif len(data) >= BEAT_BYTES:
            on_beat(last_of(data))

    def _forget_beats(self) -> None:
        if self._beats >= 0:
            asyncio.get_running_loop().remove_reader(self._beats)
            os.close(self._beats)
            self._beats = -1

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for the child in a thread of its own: works with any loop, and needs no signal."""
        status = self._process.wait()
        with suppress(RuntimeError):  # the loop has ended: so does this process
            loop.call_soon_threadsafe(self._over, status)

    def _over(self, status: int) -> None:
        self._forget_beats()
        self.connection_channel.close()
        with suppress(OSError):  # they cannot be read: the log has them
            self.last_lines = last_lines(self._lines)
        os.close(self._lines)
        if not self.ended.done():
            self.ended.set_result(status)


def started(
    command: Sequence[str], lock: int, on_beat: Callable[[Beat], None], environment: Mapping[str, str]
) -> Child:
    """Start a child, in some 2 ms.  ``lock``: the descriptor that it keeps open.  OSError: no child was started."""
    control, its_control = socket.socketpair()
    channel, its_channel = pair()
    beats, its_beats = os.pipe()
    lines = lines_file()
    ours = [control.fileno(), channel.fileno(), beats]
    try:
        passed = (its_control.fileno(), its_channel.fileno(), its_beats, lock, lines)
        process = subprocess.Popen(
            [*command, *map(str, passed)],
            stdin=subprocess.PIPE,
            stdout=sys.stderr.fileno(),  # the supervisor's stdout has only the ready line
            pass_fds=passed,
            env=dict(environment),
            process_group=0,  # Ctrl-C of a terminal reaches only the supervisor, which stops them in order
        )
    except BaseException:
        control.close()
        channel.close()
        os.close(beats)
        os.close(lines)
        raise
    finally:
        its_control.close()
        its_channel.close()
        os.close(its_beats)
    for descriptor in ours:
        os.set_blocking(descriptor, False)
    child = Child(process, control, channel, lines)
    child.watch(beats, on_beat)
    return child
