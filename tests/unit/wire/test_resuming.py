"""Requests that waited for the same fsync go on, all of them, in their order, and not all in one turn of the loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable
from typing import Any, cast

import pytest

from columnar.bench import calls
from columnar.runtime.immediate_future import ImmediateFuture
from columnar.wire import caller
from columnar.wire import connection as connection_module
from columnar.wire.caller import LARGE_BYTES
from columnar.wire.codec import Request
from columnar.wire.codec_replies import RowList
from columnar.wire.connection import Connection
from columnar.wire.server import RESUMED_AT_ONCE, WireServer
from columnar.wire.service import Later, Waiting


class NothingToServe:
    """As much of a Service as a server wants at its making."""

    handlers: dict[str, Any]
    slow_after_s = 1.0

    def __init__(self) -> None:
        self.handlers = {}


class Noting:
    """In a connection's place."""

    def __init__(self, seen: list[int], counts: int = 1) -> None:
        """``counts``: 0 for a trigger's worker."""
        self._seen = seen
        self.counts = counts

    def resume(self, request: Request, _future: object, _started: float, _later: object) -> None:
        self._seen.append(request.seqid)


@pytest.mark.parametrize(
    ("askers", "expected"), [([], False), ([0], False), ([1], True), ([0, 1], True), ([0] * 3, False)]
)
def test_only_requests_of_clients_are_waiting_ones(askers: list[int], expected: bool) -> None:
    """Flows make way for who waits for a disk; a worker of theirs that waits is no reason to."""

    async def main() -> None:
        server = WireServer(cast(Any, NothingToServe()))
        loop = asyncio.get_running_loop()
        synced: list[asyncio.Future[None]] = [loop.create_future(), loop.create_future()]
        seen: list[int] = []
        for number, counts in enumerate(askers):
            connection = cast(Connection, Noting(seen, counts))
            request = Request(None, b"mutateRow", 1, number, [], 1)
            server.pending.resume_after(synced[number % 2], Waiting(connection, request, 0.0, None))
        assert server.pending.has_waiting is expected
        for one in synced:
            one.set_result(None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert sorted(seen) == list(range(len(askers)))
        assert not server.pending.has_waiting, "all went on"
        await server.close(0.0)

    asyncio.run(main())


@pytest.mark.parametrize("prompt", [False, True])
def test_every_request_goes_on_some_in_each_turn(prompt: bool) -> None:
    count = 2 * RESUMED_AT_ONCE + 1

    async def main() -> None:
        server = WireServer(cast(Any, NothingToServe()))
        loop = asyncio.get_running_loop()
        synced: Any = ImmediateFuture(loop) if prompt else loop.create_future()
        seen: list[int] = []
        connection = cast(Connection, Noting(seen))
        for number in range(count):
            request = Request(None, b"mutateRow", 1, number, [], 1)
            server.pending.resume_after(synced, Waiting(connection, request, 0.0, None))
        await asyncio.sleep(0)
        assert seen == [], "nobody goes on before the fsync has ended"
        if prompt:
            synced.complete()
            assert len(seen) == RESUMED_AT_ONCE, "the first of them at once"
        else:
            synced.set_result(None)
            await asyncio.sleep(0)
        for turn in (1, 2):
            assert len(seen) == turn * RESUMED_AT_ONCE
            await asyncio.sleep(0)
        assert seen == list(range(count))
        await server.close(0.0)

    asyncio.run(main())


class Failing:
    """In a connection's place: one whose answer cannot be sent."""

    def resume(self, *_pending: object) -> None:
        raise KeyError("mine")


def test_an_answer_that_fails_takes_no_other_along(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        server = WireServer(cast(Any, NothingToServe()))
        synced = ImmediateFuture(asyncio.get_running_loop())
        seen: list[int] = []
        for number, connection in enumerate((Noting(seen), Failing(), Noting(seen))):
            request = Request(None, b"mutateRow", 1, number, [], 1)
            server.pending.resume_after(synced, Waiting(cast(Connection, connection), request, 0.0, None))
        synced.complete()
        assert seen == [0, 2]
        await server.close(0.0)

    asyncio.run(main())
    assert "KeyError: 'mine'" in caplog.text


def test_a_large_request_lets_its_rows_go_while_its_answer_waits() -> None:
    async def main() -> None:
        server = WireServer(cast(Any, NothingToServe()))
        connection = Connection(server, 1)
        for size, kept in ((LARGE_BYTES, [b"t", ["row", "row"]]), (LARGE_BYTES + 1, [b"t", [None, None]])):
            synced = asyncio.get_running_loop().create_future()
            request = Request(None, b"mutateRows", 1, 1, [b"t", ["row", "row"]], size)
            connection._pending(request, synced, 0.0, Later(synced, None))
            assert request.args == kept
            synced.cancel()
        await server.close(0.0)

    asyncio.run(main())


class Writes:
    """A service with a method whose answers wait for an fsync, and one that works in steps."""

    slow_after_s = 1.0

    def __init__(self) -> None:
        self.handlers = {"mutateRow": self.write, "getRow": self.gather}
        self.synced: list[ImmediateFuture] = []
        self.begun = 0

    def connection_closed(self, _connection_id: int) -> None:
        """It holds nothing for anybody."""

    def may_be_forwarded(self, _method: str) -> bool:
        return False

    def write(self, *_arguments: object) -> ImmediateFuture:
        self.synced.append(ImmediateFuture(asyncio.get_running_loop()))
        return self.synced[-1]

    def gather(self, *_arguments: object) -> Awaitable[RowList]:
        self.begun += 1
        return self._gathered()

    async def _gathered(self) -> RowList:
        return RowList([])


class Wire(asyncio.Transport):
    """The other side of a connection: what was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.socket, self._peer = socket.socketpair()
        self.sent: list[bytes] = []
        self.written = asyncio.Event()

    def __del__(self) -> None:
        self.socket.close()
        self._peer.close()

    def write(self, data: Any) -> None:
        self.sent.append(bytes(data))
        self.written.set()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """It takes all at once."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.socket if name == "socket" else default

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        self.socket.close()


def connected(service: Writes, wire: Wire) -> tuple[WireServer, Connection]:
    server = WireServer(cast(Any, service))
    connection = Connection(server, 1)
    connection.connection_made(wire)
    return server, connection


async def gone(server: WireServer, connection: Connection) -> None:
    connection.begin_close()
    connection.connection_lost(None)
    await server.close(0.0)


def test_a_writer_is_answered_in_the_turn_of_the_fsync_and_never_waits_among_the_dear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(caller, "SLICE_S", 10.0)
    monkeypatch.setattr(connection_module, "SLICE_S", 10.0)  # what is cheap here is so on a machine of any load

    async def main() -> None:
        service, wire = Writes(), Wire()
        server, connection = connected(service, wire)
        frame = calls.call("mutateRow", b"t", b"row", calls.puts([(b"a:x", b"1")]))
        connection.data_received(frame)
        service.synced[0].complete()
        assert len(wire.sent) == 1, "in this very turn"
        server.loop_budget.soon(lambda: None)
        assert not server.loop_budget.has_room, "dear work waits: whoever is dear, or may be, would wait behind it"
        connection.data_received(frame)
        assert len(service.synced) == 2, "its turns were cheap, though no answer was ready within them"
        service.synced[1].complete()
        assert len(wire.sent) == 2
        await gone(server, connection)

    asyncio.run(main())


def test_who_is_answered_in_steps_waits_for_a_turn() -> None:
    async def main() -> None:
        service, wire = Writes(), Wire()
        server, connection = connected(service, wire)
        frame = calls.call("getRow", b"t", b"row")
        connection.data_received(frame)
        await asyncio.wait_for(wire.written.wait(), 10)
        wire.written.clear()
        server.loop_budget.soon(lambda: None)
        connection.data_received(frame)
        assert service.begun == 1, "nobody knows what this one costs: it waits for a turn"
        await asyncio.wait_for(wire.written.wait(), 10)
        assert service.begun == 2
        await gone(server, connection)

    asyncio.run(main())
