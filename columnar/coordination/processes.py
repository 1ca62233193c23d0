"""Children of a supervisor: processes that it starts with sockets to them, watches, and kills for certain.

    child's arguments   CONTROL_FD CHANNEL_FD BEATS_FD LINES_FD PAGE_FD and kept descriptors, after the command; it
                        inherits them
    control             a stream socket; each process notices when the other one ends
    channel             connections of clients, to be served or returned (``coordination.connection_channel``)
    beats               a pipe to the supervisor; the child writes a ``Beat`` to it at each report
    kept                descriptors of the caller: the folder's lock, which lasts while any process has it open, and
                        the page of the lease (``lease_page``)
    lines               a file in which the child keeps the last lines of its log (``last_lines``), read at its end
    page                memory that the child shares with this process alone (``server_page``)
    stdin               one line with the child's settings, written when they are known; the child starts before that

A child is known to be dead when ``waitpid`` has returned: from then on no part of it runs, so it sends no answer.
``fence`` sends SIGKILL and waits for ``waitpid``; it ends stopped processes, too.

Children end with their supervisor.  On Linux a child asks the kernel for SIGKILL at the death of the thread that
started it.  So the loop's thread starts the children, because this thread lives as long as the process.

Knows nothing of stores, regions and messages.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

from columnar.coordination.connection_channel import DispatchedConnection, pair, send_connection
from columnar.coordination.server_page import ServerPage
from columnar.runtime.child_processes import SpawnedProcess
from columnar.runtime.last_lines import last_lines, lines_file

_BEATS_READ: Final = 512  # at a time; the last beat includes the information of older ones


_BEAT: Final = Struct(">QIQQQ")
BEAT_BYTES: Final = _BEAT.size
assert BEAT_BYTES == 36, "both ends are of one program; a server of another version says another number"


@dataclass(frozen=True, slots=True)
class Beat:
    """A beat: the sign of life of a server, with the numbers of its connections, and the leader that it follows.

        beat := iterations:u64 open:u32 taken:u64 given:u64 leader_epoch:u64        big-endian

    A beat is written to the pipe by one call, so it is never torn (PIPE_BUF).  Only the last beat counts.
    """

    iterations: int  # how often the server's loop was seen alive
    open: int = 0  # connections of clients now
    taken: int = 0  # connections that came over the channel so far
    given: int = 0  # connections that were returned over the channel so far
    leader_epoch: int = 0  # of the leader with which the server is linked, and whose routes it has; 0: there is none


def packed(beat: Beat) -> bytes:
    return _BEAT.pack(beat.iterations, beat.open, beat.taken, beat.given, beat.leader_epoch)


def last_of(data: bytes) -> Beat:
    """Return the last beat in ``data``, which has at least one and no incomplete one."""
    return Beat(*_BEAT.unpack(data[-BEAT_BYTES:]))


class Child:
    """A process that the function ``started`` has started."""

    def __init__(
        self,
        process: SpawnedProcess,
        control: socket.socket,
        channel: socket.socket,
        lines: int,
        page: ServerPage,
    ) -> None:
        """Take over the supervisor's ends of the child's sockets, the file of its last lines, and its page."""
        self.pid = process.pid
        self.control = control
        self.connection_channel = channel
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()  # the exit status, once reaped
        self.last_lines: tuple[str, ...] = ()  # of its log, once it has ended
        self.page = page
        self._lines = lines
        self._process = process
        self._beats = -1  # the pipe's read end; -1 if closed
        self._processor = ProcessorWatch(process.pid)

    def settings(self, line: bytes) -> None:
        """Write the child's settings to it; has no effect if the child has died meanwhile."""
        stdin = self._process.stdin
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
        """Kill the child and wait for its end; returns its status.  Then the child sends no more answers."""
        self.signal(signal.SIGKILL)
        return await asyncio.shield(self.ended)

    def send_connection(self, dispatched: DispatchedConnection) -> bool:
        """Send a connection to the child (``connection_channel``); returns False if the child takes none now."""
        return send_connection(self.connection_channel, dispatched)

    def has_worked(self) -> bool:
        """Tell whether the child has used a processor since the last recent call: then it works, though silent."""
        return not self.is_over and self._processor.has_worked(asyncio.get_running_loop().time())

    # --- watching ------------------------------------------------------------------------------------

    def watch(self, beats: int, on_beat: Callable[[Beat], None]) -> None:
        """Report beats and the child's end from now on.  Takes over ``beats``, the read end of the pipe."""
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
        """Wait for the child; runs in its own thread, which works with any loop and needs no signal."""
        status = self._process.wait()
        with suppress(RuntimeError):  # the loop has ended, so this process ends too
            loop.call_soon_threadsafe(self._over, status)

    def _over(self, status: int) -> None:
        self._forget_beats()
        self.connection_channel.close()
        with suppress(OSError):  # if they cannot be read, the log still has them
            self.last_lines = last_lines(self._lines)
        os.close(self._lines)
        if not self.ended.done():
            self.ended.set_result(status)


def started(
    command: Sequence[str], kept: Sequence[int], on_beat: Callable[[Beat], None], environment: Mapping[str, str]
) -> Child:
    """Start a child, which takes some 2 ms.  The child inherits the descriptors ``kept``.

    Raises OSError if no child was started.
    """
    control, its_control = socket.socketpair()
    channel, its_channel = pair()
    beats, its_beats = os.pipe()
    lines = lines_file()
    page, its_page = ServerPage.create()
    ours = [control.fileno(), channel.fileno(), beats]
    try:
        passed = (its_control.fileno(), its_channel.fileno(), its_beats, lines, its_page, *kept)
        process = SpawnedProcess.start(
            [*command, *map(str, passed)],
            passed,
            sys.stderr.fileno(),  # the supervisor's stdout has only the ready line
            environment,
        )  # in a process group of its own: Ctrl-C reaches only the supervisor, which stops the children in order
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
        os.close(its_page)
    for descriptor in ours:
        os.set_blocking(descriptor, False)
    child = Child(process, control, channel, lines, page)
    child.watch(beats, on_beat)
    return child


_TICK_MS: Final = 1000 / os.sysconf("SC_CLK_TCK")
_WORKED_MS: Final = 20  # of one thread between two polls: two ticks of the usual clock
_BETWEEN_WAITS_MS: Final = 0.1  # of processor time: six times that of a thread waiting for the lock
_ENGINE: Final = "rocksdb:"
_DISK_WAIT: Final = "D"  # as in proc(5)
POLL_S: Final = 1.0


class ThreadTime(NamedTuple):
    used_ms: float  # processor time
    waits: int  # how often the thread gave the processor up by itself
    is_in_disk_wait: bool = False  # the kernel works for it, and cannot be interrupted


def threads_of(pid: int) -> dict[int, ThreadTime] | None:
    """Return the threads of a process by number, without RocksDB's; None if unknown or if the process has ended."""
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
            found[int(number)] = ThreadTime(used * _TICK_MS, int(waits.split()[1]), fields[0] == _DISK_WAIT)
    return found


def works(before: Mapping[int, ThreadTime] | None, now: Mapping[int, ThreadTime] | None) -> bool:
    """Tell whether a thread has worked between two polls of the same process, or waits for a disk now."""
    if now is not None and any(thread.is_in_disk_wait for thread in now.values()):
        return True
    if before is None or now is None:
        return False
    for number, thread in now.items():
        earlier = before.get(number, ThreadTime(0.0, 0))
        used_ms, waits = thread.used_ms - earlier.used_ms, thread.waits - earlier.waits
        if used_ms >= _WORKED_MS and used_ms >= waits * _BETWEEN_WAITS_MS:
            return True
    return False


class ProcessorWatch:
    """The processor time of a child's interpreter, which tells whether a silent child works or is stopped.

    A step that keeps the interpreter lock silences every Python thread of its process, and uses one processor fully, or
    waits for a disk: the opening of a store syncs files under the lock, which takes seconds on a busy or remote disk.
    A process that is stopped or deadlocked does neither.  Three activities use processor time without being a sign of
    life, so ``works`` examines each thread:

        waiting for the lock    wakes every 0.1 ms (``process_tuning``) and uses a tenth of a processor, 16 us at a time
        RocksDB's threads       compact files whether or not the interpreter works, so they are not counted
        a very short step       cannot be told from none by a clock of 10 ms

    Only Linux has these numbers; on other systems ``threads_of`` returns None, and a silent process counts as
    stopped.

    The object has the threads of the process as they were at the last poll.
    """

    def __init__(self, pid: int, threads: Callable[[int], dict[int, ThreadTime] | None] = threads_of) -> None:
        self._pid = pid
        self._threads = threads
        self._seen: dict[int, ThreadTime] | None = None
        self._seen_s = 0.0

    def has_worked(self, now_s: float) -> bool:
        """Tell whether the process has worked since the last poll; a poll older than POLL_S is ignored."""
        before = self._seen if now_s - self._seen_s <= POLL_S else None
        self._seen, self._seen_s = self._threads(self._pid), now_s
        return works(before, self._seen)
