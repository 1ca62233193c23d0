"""The controller: the sockets and the clock around its state, and the figures of a crew's replay."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from wikibench.errors import CrewError
from wikibench.live import LiveLine, snapshot
from wikibench.run import LIVE_S, freeze_collector, loop_factory
from wikibench.summary import Crew, Replay

from .controller_state import Close, ControllerState, Instruction, SendTo, Stage
from .frames import NONCE_BYTES, FrameError, FrameReader, encoded

POLL_S: Final = 0.02
READ_BYTES: Final = 1 << 18


class Controller:
    """The controller of one replay: its connections, each served by a task."""

    def __init__(self, state: ControllerState, line: LiveLine, lost: Callable[[int], None] = lambda _: None) -> None:
        """Take ``lost``, which is called with the number of a connection that the state closes."""
        self.state = state
        self._line = line
        self._lost = lost
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0

    async def run(self, connections: Sequence[socket.socket], listener: socket.socket | None = None) -> None:
        """Replay until all workers have ended.  ``connections`` are those of local workers."""
        loop = asyncio.get_running_loop()

        def interrupted() -> None:
            self._do(self.state.interrupt())
            loop.remove_signal_handler(signal.SIGINT)  # a second Ctrl-C is Python's own

        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows; not the main thread
            loop.add_signal_handler(signal.SIGINT, interrupted)
        try:
            for connection in connections:
                self._take(*await asyncio.open_connection(sock=connection, limit=READ_BYTES), is_local=True)
            if listener is None:
                await self._conduct()
            else:
                server = await asyncio.start_server(self._take, sock=listener, limit=READ_BYTES)
                async with server:
                    await self._conduct()
        finally:
            for writer in self._writers.values():
                writer.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _conduct(self) -> None:
        drawn_s = time.perf_counter()
        while not self.state.is_over:
            now_s = time.perf_counter()
            self._do(self.state.poll(now_s))
            if now_s - drawn_s >= LIVE_S:
                drawn_s = now_s
                self._draw(now_s)
            await asyncio.sleep(0 if self.state.is_dealing else POLL_S)

    def _draw(self, now_s: float) -> None:
        state = self.state
        if state.begin_s is not None:
            opened = sum(one.standing.open for one in state.members.values() if one.stage is not Stage.LOST)
            self._line.tick(snapshot(state.figures, state.load, now_s - state.begin_s, opened))

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_local: bool = False) -> None:
        number, self._number = self._number, self._number + 1
        self._writers[number] = writer
        self._do(self.state.join(number, time.perf_counter(), os.urandom(NONCE_BYTES), is_local=is_local))
        task = asyncio.get_running_loop().create_task(self._serve(number, reader))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, number: int, reader: asyncio.StreamReader) -> None:
        frames = FrameReader()
        try:
            while data := await reader.read(READ_BYTES):
                frames.append(data)
                while (frame := frames.next_frame()) is not None:
                    self._do(self.state.receive(number, frame, time.perf_counter()))
                    member = self.state.members.get(number)
                    if member is not None and member.stage is not Stage.GREETING:
                        frames.trust()
        except (OSError, FrameError):
            pass  # as if the connection had ended: the state says what follows
        self._do(self.state.closed(number, time.perf_counter()))
        if (writer := self._writers.pop(number, None)) is not None:
            writer.close()

    def _do(self, instructions: Iterable[Instruction]) -> None:
        for one in instructions:
            match one:
                case SendTo():
                    if (writer := self._writers.get(one.member)) is not None:
                        writer.write(encoded(one.frame))
                case Close():
                    if (writer := self._writers.pop(one.member, None)) is not None:
                        writer.close()
                    self._lost(one.member)


def conducted(
    controller: Controller, connections: Sequence[socket.socket], listener: socket.socket | None = None
) -> Replay:
    """Run the controller and block until its end; return the figures of all workers.

    Raises CrewError, and KeyboardInterrupt if the user ended it before the load began: then there are no figures.
    """
    began_s = time.process_time()
    with freeze_collector(), asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(controller.run(connections, listener))
    if controller.state.failure:
        raise CrewError(controller.state.failure)
    if controller.state.begin_s is None:
        raise KeyboardInterrupt
    return result_of(controller.state, time.process_time() - began_s)


def result_of(state: ControllerState, cpu_s: float) -> Replay:
    """Return the figures of all workers together; ``cpu_s`` is the controller's."""
    members = [one for one in state.members.values() if one.stage is not Stage.GREETING]
    known = [one.standing for one in members]
    crew = Crew(
        len(members),
        sum(one.stage is Stage.LOST for one in members),
        max(one.cpu_s for one in known),
        cpu_s,
        state.planned,
        state.lost_requests,
        sum(one.starved for one in known),
        max(one.clock_s for one in members) * 1000,
    )
    return Replay(
        state.figures,
        ending=state.ending,
        planned_s=state.load.planned_s,
        warm_up_s=state.load.warm_up_s,
        elapsed_s=max(one.elapsed_s for one in known),
        cpu_s=sum(one.cpu_s for one in known),
        sent=sum(one.sent for one in known),
        most_open=sum(one.most_open for one in known),
        open_limit=state.open_share * len(members),
        connections=sum(one.connections for one in known),
        retried=sum(one.retried for one in known),
        crew=crew,
    )
