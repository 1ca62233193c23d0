"""A connection of the Kafka port: which requests are carried out side by side, and the order of their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from columnar.kafka import connection
from columnar.kafka.codec import Head, answer_frame, read_answer, request_frame
from columnar.kafka.schemas import API_VERSIONS, METADATA, PRODUCE, Api
from columnar.kafka.server import KafkaServer
from columnar.wire.connection_table import WireLimits

EMPTY = {"acks": -1, "timeout_ms": 1, "topics": []}


class Requests:
    """Requests that are answered when the test says so."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self._ends: dict[int, asyncio.Future[None]] = {}
        self._changed = asyncio.Event()

    async def answer(self, _frame: bytes, head: Head, *_: Any) -> bytearray:
        self.begun.append(head.correlation)
        end = self._ends[head.correlation] = asyncio.get_running_loop().create_future()
        self._changed.set()
        await end
        return answer_frame(API_VERSIONS, 0, head.correlation, {"apis": []})

    async def until_begun(self, *correlations: int) -> None:
        while self.begun != list(correlations):
            self._changed.clear()
            await self._changed.wait()

    def end(self, correlation: int) -> None:
        self._ends[correlation].set_result(None)


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, *requests: tuple[Api, int]) -> None:
        """Send requests with their correlations."""
        for api, correlation in requests:
            values = EMPTY if api is PRODUCE else {"topics": []}
            self._writer.write(bytes(request_frame(api, 4, correlation, "c", values)))

    async def next_answer(self) -> int:
        """Return the correlation of the next answer."""
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        return read_answer(API_VERSIONS, 0, await self._reader.readexactly(size))[0]

    @property
    def has_answer(self) -> bool:
        return bool(self._reader._buffer)  # type: ignore[attr-defined]


def served(test: Callable[[Requests, Client], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        async def inside() -> None:
            requests = Requests()
            server = KafkaServer(requests, WireLimits())  # type: ignore[arg-type]
            await server.start("127.0.0.1", 0)
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            try:
                async with asyncio.timeout(20):
                    await test(requests, Client(reader, writer))
            finally:
                writer.close()
                await server.close(0)

        asyncio.run(inside())

    run.__name__ = test.__name__
    return run


async def looped() -> None:
    for _ in range(20):
        await asyncio.sleep(0.001)


@served
async def test_answers_leave_in_the_order_of_requests(requests: Requests, client: Client) -> None:
    client.send((PRODUCE, 1), (PRODUCE, 2), (PRODUCE, 3))
    await requests.until_begun(1, 2, 3)
    requests.end(3)
    requests.end(2)
    await looped()
    assert not client.has_answer
    requests.end(1)
    assert [await client.next_answer() for _ in range(3)] == [1, 2, 3]


@served
async def test_only_produce_goes_beside_produce(requests: Requests, client: Client) -> None:
    client.send((PRODUCE, 1), (METADATA, 2), (PRODUCE, 3), (PRODUCE, 4))
    await looped()
    assert requests.begun == [1]
    requests.end(1)
    await requests.until_begun(1, 2)
    await looped()
    assert requests.begun == [1, 2], "what comes behind another request waits for it"
    requests.end(2)
    await requests.until_begun(1, 2, 3, 4)
    requests.end(4)
    requests.end(3)
    assert [await client.next_answer() for _ in range(4)] == [1, 2, 3, 4]


@served
async def test_requests_side_by_side_have_a_bound(requests: Requests, client: Client) -> None:
    most = connection.OVERLAPPING
    client.send(*[(PRODUCE, number) for number in range(most + 2)])
    await requests.until_begun(*range(most))
    await looped()
    assert requests.begun == list(range(most))
    requests.end(0)
    await requests.until_begun(*range(most + 1))
    assert await client.next_answer() == 0
