"""Children of a supervisor: processes that are started with sockets to them, watched, and killed for certain.

    child's arguments   CONTROL_FD CHANNEL_FD BEATS_FD LOCK_FD LINES_FD, after the command; it inherits them
    control             a stream socket; each end sees the end of the other process
    channel             connections of clients, to be served, or returned: ``coordination.connection_channel``
    beats               a pipe to the supervisor: ``Beat``, whenever the child reports
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
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

from columnar.coordination.connection_channel import DispatchedConnection, pair, send_connection
from columnar.runtime.last_lines import last_lines, lines_file

_BEATS_READ: Final = 512  # at a time; the last one has all information of older ones


_BEAT: Final = Struct(">QIQQ")
BEAT_BYTES: Final = _BEAT.size
assert BEAT_BYTES == 28, "both ends are of one program; a server of another version says another number"


@dataclass(frozen=True, slots=True)
class Beat:
    """A beat: the sign of life of a server, with what it says of its connections.

        beat := iterations:u64 open:u32 taken:u64 given:u64        big-endian

    A beat is written to a pipe at once, so it is never torn (PIPE_BUF).  Only the last one counts.
    """

    iterations: int  # how often the loop was seen alive
    open: int = 0  # connections of clients now
    taken: int = 0  # connections that came over the channel so far
    given: int = 0  # connections that were returned over the channel so far


def packed(beat: Beat) -> bytes:
    return _BEAT.pack(beat.iterations, beat.open, beat.taken, beat.given)


def last_of(data: bytes) -> Beat:
    """The last beat of some whole ones, at least one."""
    return Beat(*_BEAT.unpack(data[-BEAT_BYTES:]))


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


_TICK_MS: Final = 1000 / os.sysconf("SC_CLK_TCK")
_WORKED_MS: Final = 20  # of one thread between two polls: two ticks of the usual clock
_BETWEEN_WAITS_MS: Final = 0.1  # of processor time: six times what waiting for the lock has
_ENGINE: Final = "rocksdb:"
POLL_S: Final = 1.0


class ThreadTime(NamedTuple):
    used_ms: float  # of a processor
    waits: int  # how often it gave the processor up by itself


def threads_of(pid: int) -> dict[int, ThreadTime] | None:
    """Return the threads of a process, by number, without the engine's; None: unknown, or the process has ended."""
    folder = f"/proc/{pid}/task"
    try:
        numbers = os.listdir(folder)
    except OSError:
        return None
    found: dict[int, ThreadTime] = {}
    for number in numbers:
        try:
            with open(f"{folder}/{number}/stat", encoding="utf-8", errors="replace") as file:
                name, _, numbers_of_it = file.read().partition("(")[2].rpartition(")")
            with open(f"{folder}/{number}/status", encoding="utf-8", errors="replace") as file:
                waits = next(line for line in file if line.startswith("voluntary_ctxt_switches:"))
        except (OSError, StopIteration):
            continue  # the thread has ended
        if not name.startswith(_ENGINE):
            fields = numbers_of_it.split()
            used = int(fields[11]) + int(fields[12])  # utime, stime: proc(5) counts from the number before the name
            found[int(number)] = ThreadTime(used * _TICK_MS, int(waits.split()[1]))
    return found


def works(before: Mapping[int, ThreadTime] | None, now: Mapping[int, ThreadTime] | None) -> bool:
    """Tell whether a thread has worked between two polls of the same process."""
    if before is None or now is None:
        return False
    for number, thread in now.items():
        earlier = before.get(number, ThreadTime(0.0, 0))
        used_ms, waits = thread.used_ms - earlier.used_ms, thread.waits - earlier.waits
        if used_ms >= _WORKED_MS and used_ms >= waits * _BETWEEN_WAITS_MS:
            return True
    return False


class ProcessorWatch:
    """Processor time of another process' interpreter: whether a silent process works, or is stopped.

    A step that keeps the interpreter lock silences every thread of Python in its process, and burns one processor.  A
    process that is stopped, waits for a disk, or is deadlocked burns none.  Three things burn some without being a sign
    of life, so ``works`` counts threads one by one:

        waiting for the lock    wakes every 0.1 ms (``process_tuning``) and uses a tenth of a processor, 16 us at a time
        the engine's threads    merge files on and on, whatever becomes of the interpreter: they are not counted
        a moment of work        a clock of 10 ms cannot tell it from none

    Only Linux has these numbers; on other systems ``threads_of`` returns None, and a silent process counts as one that
    is stopped.

    The threads of one process as they were at the last poll.
    """

    def __init__(self, pid: int, threads: Callable[[int], dict[int, ThreadTime] | None] = threads_of) -> None:
        self._pid = pid
        self._threads = threads
        self._seen: dict[int, ThreadTime] | None = None
        self._seen_s = 0.0

    def has_worked(self, now_s: float) -> bool:
        """Tell whether it has worked since the last poll; a poll older than POLL_S is ignored."""
        before = self._seen if now_s - self._seen_s <= POLL_S else None
        self._seen, self._seen_s = self._threads(self._pid), now_s
        return works(before, self._seen)
