"""A worker: one connection to a controller, and an injector that sends what it deals.

The state says what to do; this module owns the socket, the clock and the injector.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Final

from wikibench.errors import WikibenchError
from wikibench.injector import PAUSE_S, Injector, wire_of
from wikibench.pacing import Planned
from wikibench.request_log import RequestLog
from wikibench.run import freeze_collector, loop_factory
from wikibench.visits import Load

from .figures import ticks_of
from .frames import NONCE_BYTES, FrameError, FrameReader, Standing, encoded
from .worker_state import Accept, Begin, EndEarly, Instruction, Leave, Send, Stage, WorkerState

TICK_S: Final = 1.0
POLL_S: Final = 0.05
READ_BYTES: Final = 1 << 18
CLOSED: Final = "the controller closed the connection"
MOST_UNSENT_BYTES: Final = 8 << 20  # to a controller that does not read: it has lost this worker

Check = Callable[[Load], None]  # raises WikibenchError if this worker does not take the load


class Worker:
    """A worker on one connection: one replay.  It is the source of its injector's requests."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        state: WorkerState,
        check: Check,
        log: RequestLog | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._state = state
        self._check = check
        self._log = log
        self._frames = FrameReader()
        self._changed = asyncio.Event()
        self._injector: Injector | None = None
        self._injecting: asyncio.Task[None] | None = None
        self._began_cpu_s = 0.0
        self._tick_s = 0.0
        self._why_left = ""

    async def run(self) -> str:
        """Serve one replay; return why it ended ("done", or what went wrong)."""
        self._do(self._state.opened())
        reading = asyncio.create_task(self._read())
        try:
            while not reading.done() and not self._why_left:
                now_s = time.perf_counter()
                self._do(self._state.poll(now_s))
                self._tick(now_s)
                await asyncio.wait({reading}, timeout=POLL_S)
            if reading.done():
                self._leave(reading.result())
        finally:
            await self._end(reading)
        return "done" if self._state.stage is Stage.ENDED and not self._why_left else self._why_left

    async def _end(self, reading: asyncio.Task[str]) -> None:
        reading.cancel()
        if self._injecting is not None:
            if not self._injecting.done():
                assert self._injector is not None
                self._injector.stop("lost")
                self._injecting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._injecting
        self._writer.close()

    async def _read(self) -> str:
        """Read until the end of the connection; return why it ended."""
        try:
            while data := await self._reader.read(READ_BYTES):
                self._frames.append(data)
                while (frame := self._frames.next_frame()) is not None:
                    self._do(self._state.receive(frame, time.perf_counter()))
                    if self._state.stage is not Stage.GREETING:
                        self._frames.trust()
                self._changed.set()
        except FrameError as error:
            return str(error)
        except OSError:
            pass  # reset: as good as an end
        return CLOSED

    def _do(self, instructions: Iterable[Instruction]) -> None:
        for one in instructions:
            match one:
                case Send():
                    self._writer.write(encoded(one.frame))
                case Accept():
                    self._accept(one.load)
                case Begin():
                    self._injecting = asyncio.create_task(self._inject(one.begin_s))
                case EndEarly():
                    assert self._injector is not None
                    self._injector.stop(one.why)
                case Leave():
                    self._leave(one.why)
        self._changed.set()

    def _accept(self, load: Load) -> None:
        try:
            self._check(load)
        except WikibenchError as error:
            self._do(self._state.refused(str(error)))
            return
        self._injector = Injector(load, time.perf_counter, wire_of, self._log)
        self._do(self._state.accepted(time.perf_counter()))

    async def _inject(self, begin_s: float) -> None:
        injector = self._injector
        assert injector is not None
        self._began_cpu_s = time.process_time()
        self._tick_s = time.perf_counter()
        try:
            await injector.run(self, begin_s)
        except Exception:
            self._leave("a fault of this worker")  # the controller sees the connection end; the traceback goes on
            raise
        self._send_tick(injector, time.perf_counter())
        self._do(self._state.ended(injector.ending, len(self._state.ahead)))

    def _tick(self, now_s: float) -> None:
        if self._injecting is None or self._injecting.done() or now_s - self._tick_s < TICK_S:
            return
        if not self._state.may_send(now_s):
            return  # nobody reads: figures wait in the recorder, not in the connection
        self._tick_s = now_s
        assert self._injector is not None
        self._send_tick(self._injector, now_s)
        if self._writer.transport.get_write_buffer_size() > MOST_UNSENT_BYTES:
            self._leave("the controller does not read")

    def _send_tick(self, injector: Injector, now_s: float) -> None:
        standing = Standing(
            finished=injector.finished,
            sent=injector.sent,
            open=injector.open,
            most_open=injector.most_open,
            connections=injector.connections,
            retried=injector.retried,
            starved=self._state.starved,
            elapsed_s=injector.used.elapsed_s or injector.now_s(),
            cpu_s=time.process_time() - self._began_cpu_s,
            clock_s=self._state.clock_error_s(now_s),
        )
        for tick in ticks_of(injector.take_figures(), standing):
            self._writer.write(encoded(tick))

    def _leave(self, why: str) -> None:
        if self._state.stage is not Stage.ENDED or why != CLOSED:
            self._why_left = self._why_left or why
        if self._injector is not None:
            self._injector.stop("lost")

    # the source of the injector's requests

    @property
    def is_complete(self) -> bool:
        return self._state.is_complete

    def first(self) -> Planned | None:
        return self._state.ahead.first()

    def take_first(self) -> Planned:
        return self._state.take_first()

    def may_send(self) -> bool:
        return self._state.may_send(time.perf_counter())

    async def changed(self) -> None:
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PAUSE_S):
                await self._changed.wait()


def work(connection: socket.socket, name: str, token: bytes, check: Check, log: RequestLog | None = None) -> str:
    """Serve one replay over the connected socket; return why it ended, "done" if as it should."""

    async def serve() -> str:
        reader, writer = await asyncio.open_connection(sock=connection, limit=READ_BYTES)
        return await Worker(reader, writer, WorkerState(name, token, os.urandom(NONCE_BYTES)), check, log).run()

    with freeze_collector(), asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(serve())
