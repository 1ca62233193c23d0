"""The store's end of the worker: one process, started when it is first needed and again when it ends.

Events out (to the ``Listener``): an answer to a call, the process gone.  Everything here is owned by the
loop.  A process that ends soon after its start is started again after a growing pause, so that a
module that cannot be imported does not make the store spin.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from typing import Any, Final, Protocol

from columnar.triggers.frames import Frames, pack

_log = logging.getLogger(__name__)

FIRST_RESTART_PAUSE_S: Final = 0.05
LONGEST_RESTART_PAUSE_S: Final = 10.0
HEALTHY_AFTER_S: Final = 10.0  # alive so long: the next restart comes at once again
STOP_GRACE_S: Final = 2.0
POLL_S: Final = 0.02


class Listener(Protocol):
    def answered(self, frame: list[Any]) -> None: ...

    def worker_ready(self) -> None:
        """The process is there: calls may be sent."""

    def worker_gone(self, how: str) -> None:
        """The process ended; ``how`` for people.  Nothing that was sent will be answered."""


class WorkerLink(asyncio.Protocol):
    def __init__(self, listener: Listener, host: str, port: int, modules: tuple[str, ...]) -> None:
        self._listener = listener
        self._address = (host, port)
        self._modules = modules
        self._process: subprocess.Popen[bytes] | None = None
        self._transport: asyncio.Transport | None = None
        self._frames = Frames()
        self._starting = False
        self._dying = False
        self._closing = False
        self._pause_s = 0.0
        self._started_at = 0.0
        self._restart: asyncio.TimerHandle | None = None

    @property
    def is_up(self) -> bool:
        return self._transport is not None and not self._dying

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def want(self) -> None:
        """Start the process unless it is there or on its way."""
        if self._transport is not None or self._starting or self._closing:
            return
        self._starting = True
        self._restart = asyncio.get_running_loop().call_later(self._pause_s, self._start)

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "columnar.triggers.worker", "--link", str(theirs.fileno())]
        command += ["--host", self._address[0], "--port", str(self._address[1]), "--modules", ",".join(self._modules)]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()
        ours.setblocking(False)
        self._started_at = asyncio.get_running_loop().time()
        self._frames = Frames()
        self._connecting = asyncio.ensure_future(asyncio.get_running_loop().create_connection(lambda: self, sock=ours))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a stream's; uvloop's is no subclass
        self._starting = False
        _log.debug("trigger worker is process %s", self.process_id)
        self._listener.worker_ready()

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames.feed(data):
                self._listener.answered(frame)
        except ValueError as error:
            _log.error("the trigger worker sent what is no frame (%s): it is ended", error)
            self.kill()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._dying = False
        how = self._reap()
        lived = asyncio.get_running_loop().time() - self._started_at
        self._pause_s = (
            0.0
            if lived > HEALTHY_AFTER_S
            else min(LONGEST_RESTART_PAUSE_S, max(FIRST_RESTART_PAUSE_S, self._pause_s * 2))
        )
        if not self._closing:
            self._listener.worker_gone(how)

    def _reap(self) -> str:
        """The socket is closed: the process is ending or has ended; see that it does."""
        process, self._process = self._process, None
        if process is None:
            return "it was never started"
        process.kill()
        status = process.wait()  # a killed process ends at once
        return f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"

    def send(self, *parts: Any) -> None:
        assert self._transport is not None, "send only while is_up"
        self._transport.write(pack(*parts))

    def kill(self) -> None:
        """End the process now; ``worker_gone`` follows."""
        if self._process is not None:
            self._dying = True  # nothing more is sent to it
            os.kill(self._process.pid, signal.SIGKILL)

    async def close(self) -> None:
        """Calls in flight are not waited for: they will be delivered again."""
        self._closing = True
        if self._restart is not None:
            self._restart.cancel()
        if self._transport is not None:
            self._transport.close()  # the worker ends when its socket closes
        if self._process is not None:
            process = self._process
            await asyncio.get_running_loop().run_in_executor(None, _end, process)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(STOP_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
