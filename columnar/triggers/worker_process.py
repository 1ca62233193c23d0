"""Worker processes: starts a process when it is needed, exchanges frames with it, and ends it.

    down --want--> starting --"ready"--> up --the process ends, or kill--> down

Events out (to the ``Listener``): a frame came, the process is ready, the process ended.  A process that ends before it
is ready is restarted after a growing pause, so that a store does not spin on a machine where the process cannot start.
A process that ends later is restarted soon; the dispatcher finds out whether its calls were at fault.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from columnar.runtime.faults import FAULTS, UNEXPECTED, surviving
from columnar.triggers.frames import FULL_FRAME_BYTES, Frames, pack
from columnar.triggers.worker_state import WorkerSlot

if TYPE_CHECKING:
    from columnar.wire.sockets import PrivateSocket

_log = logging.getLogger(__name__)

FIRST_RESTART_PAUSE_S: Final = 0.05
LONGEST_RESTART_PAUSE_S: Final = 10.0
STOP_GRACE_S: Final = 2.0
START_S: Final = 60.0  # a process must be ready this long after its start: 0.3 s suffice on an idle machine
AGAIN_S: Final = 0.1  # after an unexpected exception
LOOP: Final = "the link of a trigger worker"
_STDERR: Final = 2


class Listener(Protocol):
    def take_frame(self, frame: list[Any]) -> None:
        """Handle a frame of the worker.  Raises ValueError for a frame that no worker sends."""

    def worker_ready(self) -> None:
        """Note that the process is ready, so that calls may be sent."""

    def worker_gone(self, how: str) -> None:
        """Note that the process ended; ``how`` describes this for people.  No frame will be answered any more."""


class Link(Protocol):
    """A worker process, as the dispatcher sees it: a ``WorkerProcess``, or a stand-in of tests."""

    @property
    def is_up(self) -> bool: ...

    def want(self) -> None: ...

    def send(self, *parts: Any) -> None: ...

    def kill(self) -> None: ...

    async def close(self) -> None: ...


MakeLink = Callable[[Listener], Link]


class WorkerProcess(asyncio.Protocol):
    def __init__(
        self,
        listener: Listener,
        host: str,
        port: int,
        modules: tuple[str, ...],
        private: PrivateSocket | None = None,
    ) -> None:
        """``private`` is where the worker connects to the store, as background work; if None, it uses the port."""
        self._listener = listener
        self._command = [sys.executable, "-m", "columnar.triggers.worker"]
        self._command += ["--host", host, "--port", str(port), "--modules", ",".join(modules)]
        self._inherited: tuple[int, ...] = ()
        if private is not None:
            self._command += ["--socket", private.path]
            self._inherited = () if private.descriptor is None else (private.descriptor,)
        self._process: subprocess.Popen[bytes] | None = None
        self._transport: asyncio.Transport | None = None
        self._frames = Frames()
        self._starting = False
        self._ready = False
        self._dying = False
        self._closing = False
        self._pause_s = 0.0
        self._restart: asyncio.TimerHandle | None = None
        self._connecting: asyncio.Future[Any] | None = None
        self._late: asyncio.TimerHandle | None = None  # set until the process is ready

    @property
    def is_up(self) -> bool:
        return self._ready and not self._dying

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def want(self) -> None:
        """Start the process unless it runs or is starting."""
        if self._transport is not None or self._starting or self._closing:
            return
        self._starting = True
        self._restart = asyncio.get_running_loop().call_later(self._pause_s, self._start)

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        try:
            command = [*self._command, "--link", str(theirs.fileno())]
            self._process = self._spawn(command, (theirs.fileno(), *self._inherited))
        except Exception as error:  # noqa: BLE001 - otherwise no worker would ever be started again
            ours.close()
            if not isinstance(error, OSError):
                FAULTS.met(LOOP, error)
            self._starting = False
            self._lengthen_pause()
            _log.error("the trigger worker cannot be started, again in %.1f s: %s", self._pause_s, error)
            self.want()
            return
        finally:
            theirs.close()
        ours.setblocking(False)
        self._frames = Frames()
        self._connecting = asyncio.ensure_future(asyncio.get_running_loop().create_connection(lambda: self, sock=ours))
        self._connecting.add_done_callback(self._connected)
        self._late = asyncio.get_running_loop().call_later(START_S, self._starts_late)

    def _spawn(self, command: list[str], descriptors: tuple[int, ...]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=_STDERR,  # the store's stdout is for the one line that says that the store is ready
            process_group=0,  # so that what functions start ends with it
        )

    def _connected(self, connecting: asyncio.Future[Any]) -> None:
        if connecting.cancelled() or (error := connecting.exception()) is None:
            return
        FAULTS.met(LOOP, error)
        self._starting = False
        self._reap()
        self._lengthen_pause()
        self.want()

    def _starts_late(self) -> None:
        """End a process that is not ready after START_S."""
        _log.error("the trigger worker is not ready after %.0f s: it is ended", START_S)
        self.kill()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transport is never closed here: uvloop's transport owns the socket's descriptor only after this iteration.
        # Closed before, it would leave a socket that closes the descriptor again, whoever has the descriptor then.
        self._transport = transport  # type: ignore[assignment]  # a stream's; uvloop's is no subclass
        self._starting = False

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames.feed(data):
                if frame[0] != "ready":
                    self._listener.take_frame(frame)
                elif not self._ready:
                    self._ready = True
                    self._is_not_late()
                    self._pause_s = 0.0
                    _log.debug("trigger worker is process %s", self.process_id)
                    self._listener.worker_ready()
        except ValueError as error:
            _log.error("the trigger worker sent what is no frame (%s): it is ended", error)
            self.kill()

    def connection_lost(self, exc: Exception | None) -> None:
        was_ready = self._ready
        self._is_not_late()
        self._transport = None
        self._ready = self._dying = False
        how = "it is not known how it ended"
        with surviving(LOOP):
            how = self._reap()
        if was_ready:
            self._pause_s = FIRST_RESTART_PAUSE_S
        else:
            self._lengthen_pause()
        if not self._closing:
            self._listener.worker_gone(how)

    def _is_not_late(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _lengthen_pause(self) -> None:
        self._pause_s = min(LONGEST_RESTART_PAUSE_S, max(FIRST_RESTART_PAUSE_S, self._pause_s * 2))

    def _reap(self) -> str:
        """Kill the process, whose socket is closed, and wait for its end; return how it ended."""
        process, self._process = self._process, None
        if process is None:
            return "it was never started"
        _kill_group(process)
        status = process.wait()  # a killed process ends at once
        return f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"

    def send(self, *parts: Any) -> None:
        assert self._transport is not None, "send only while is_up"
        self._transport.write(pack(*parts))

    def kill(self) -> None:
        """End the process now; ``worker_gone`` follows."""
        if self._process is not None and self._transport is not None:
            self._dying = True  # nothing more is sent to it
            _kill_group(self._process)
            # A process that the worker forked may hold the other end open: do not wait for its end.
            self._transport.abort()

    async def close(self) -> None:
        """End the process without waiting for calls in flight: their changes will be delivered again."""
        self._closing = True
        self._is_not_late()
        if self._restart is not None:
            self._restart.cancel()
        if self._connecting is not None:
            await asyncio.wait([self._connecting])
        if self._transport is not None:
            self._transport.close()  # the worker ends when its socket closes
        if self._process is not None:
            process = self._process
            await asyncio.get_running_loop().run_in_executor(None, _end, process)


class WorkerEvents(Protocol):
    """The dispatcher, as workers notify it of events."""

    def frame_came(self, worker: Worker, frame: list[Any]) -> None:
        """Handle a frame of the worker.  Raises ValueError for a frame that no worker sends."""

    def worker_ready(self) -> None: ...

    def worker_exited(self, worker: Worker, how: str) -> None: ...


class Worker:
    """A worker slot with its process; it is the ``Listener`` of its link."""

    def __init__(self, slot: WorkerSlot, events: WorkerEvents, make_link: MakeLink) -> None:
        self.slot = slot
        self.link = make_link(self)
        self._events = events
        self._outgoing: list[Any] = []  # calls
        self._outgoing_bytes = 0
        self._why_ended = ""  # why the store ended the process; empty if it ends by itself

    @property
    def is_up(self) -> bool:
        return self.link.is_up

    def wanted(self) -> bool:
        """Return whether calls may be sent now; start the process if it does not run."""
        if not self.link.is_up:
            self.link.want()
        return self.link.is_up

    def send_call(self, parts: list[Any], size_bytes: int) -> None:
        """Send the call with the next ``flush``, or at once if the buffered calls fill a frame."""
        self._outgoing.append(parts)
        self._outgoing_bytes += size_bytes
        if self._outgoing_bytes >= FULL_FRAME_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._outgoing:
            outgoing, self._outgoing, self._outgoing_bytes = self._outgoing, [], 0
            self.send_frame("run", outgoing)

    def send_frame(self, *parts: Any) -> None:
        """Send a frame.  If that fails, the worker is ended, and its calls are delivered again, each alone."""
        if self.link.is_up:
            try:
                self.link.send(*parts)
            except Exception as fault:  # noqa: BLE001 - no other task would wait for the calls of the frame
                FAULTS.met(LOOP, fault)
                self.link.kill()

    def end_process(self, why: str) -> None:
        """End the process; ``worker_exited`` follows.  It gets ``why``, or if that is empty how the process ended."""
        if self.link.is_up:
            self._why_ended = why
        self._outgoing, self._outgoing_bytes = [], 0
        self.link.kill()

    # --- Listener ------------------------------------------------------------------------------------

    def take_frame(self, frame: list[Any]) -> None:
        try:
            self._events.frame_came(self, frame)
        except ValueError:
            raise
        except UNEXPECTED as fault:  # the rest of the frame is unknown: its calls are delivered again
            FAULTS.met(LOOP, fault)
            self.link.kill()

    def worker_ready(self) -> None:
        try:
            self._events.worker_ready()
        except UNEXPECTED as fault:
            FAULTS.met(LOOP, fault)
            asyncio.get_running_loop().call_later(AGAIN_S, self.worker_ready)

    def worker_gone(self, how: str) -> None:
        self._outgoing, self._outgoing_bytes = [], 0
        try:
            self._events.worker_exited(self, self._why_ended or how)
        except UNEXPECTED as fault:  # no other task would return its calls
            FAULTS.met(LOOP, fault)
            asyncio.get_running_loop().call_later(AGAIN_S, self.worker_gone, how)
        else:
            self._why_ended = ""


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(STOP_GRACE_S)  # it ends with all that its functions have started
    except subprocess.TimeoutExpired:
        _kill_group(process)
        process.wait()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and those that its functions have started.

    Does nothing once the process was waited for: its number may belong to a different process then.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
