"""Two ends of a link between peers, and the calls and answers of a test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any

from columnar.cluster import row_forms
from columnar.cluster.hello import Hello, obstacle
from columnar.cluster.peer_frames import Frame
from columnar.cluster.peer_link import PeerLink
from columnar.coordination.lease_gate import LeaseGate
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import CloseTable, Message, MiddleRow

S1, S2 = Incarnation("s1", 4), Incarnation("s2", 17)
REGION = RegionInfo("t", 7)
CLUSTER = "c"


class Told:
    """A call that notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.ended = asyncio.get_running_loop().create_future()

    def frame_written(self) -> None:
        self.heard.append("written")

    def _end(self, what: Any) -> None:
        self.heard.append(what)
        self.ended.set_result(what)

    def not_sent(self) -> None:
        self._end("not sent")

    def link_broke(self) -> None:
        self._end("link broke")

    def take_reply(self, frame: Frame) -> None:
        self._end(bytes(frame.body))

    def refused(self, refusal: Any) -> None:
        self._end(refusal)


class Answering:
    """Answers calls with their message turned round, unless told to keep silent."""

    def __init__(self) -> None:
        self.calls: list[Frame] = []
        self.asks: list[Message[Any]] = []
        self.is_silent = False
        self.failure: Exception | None = None
        self.refusal: Any = None
        self._used = asyncio.Event()

    async def until(self, count: int) -> None:
        """So many calls and asks have come."""
        while len(self.calls) + len(self.asks) < count:
            self._used.clear()
            await self._used.wait()

    def called(self, link: PeerLink, frame: Frame) -> None:
        self.calls.append(frame)
        self._used.set()
        if self.failure is not None:
            raise self.failure
        if self.is_silent:
            return
        if self.refusal is not None:
            link.refuse(frame.number, self.refusal)
        else:
            link.answer(frame.number, frame.buffer[frame.message_start : frame.end][::-1])

    def handle_request(self, link: PeerLink, number: int, message: Message[Any]) -> None:
        self.asks.append(message)
        self._used.set()
        if self.failure is not None:
            raise self.failure
        if self.refusal is not None:
            link.refuse(number, self.refusal)
        elif not self.is_silent:
            link.send_response(number, message, b"m" if isinstance(message, MiddleRow) else None)


class Pair:
    """Two ends of a link, of which the lease of the near one is in the test's hand."""

    def __init__(self, **options: Any) -> None:
        self.ends: list[PeerLink] = []
        self.opens: list[PeerLink] = []
        self.near_side, self.far_side = Answering(), Answering()
        self.has_lease, self.questions = True, 0
        self.gate = LeaseGate(self._asked, wait_s=0.2)
        self.near = self._link(S1, self.near_side, gate=self.gate, **options)
        self.far = self._link(S2, self.far_side)

    def _asked(self) -> bool:
        self.questions += 1
        return self.has_lease

    def _link(self, server: Incarnation, side: Answering, cluster: str = CLUSTER, **options: Any) -> PeerLink:
        hello, fault = Hello(cluster, server), partial(obstacle, cluster=cluster, leader_epoch=0)
        return PeerLink(hello, fault, side, self.ends.append, on_open=self.opens.append, **options)

    async def until_withheld(self) -> None:
        while not self.gate.waiting_count:  # noqa: ASYNC110 - the loop flushes later
            await asyncio.sleep(0)

    async def connect(self) -> None:
        here, there = socket.socketpair()
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self.near, sock=here)
        await loop.create_connection(lambda: self.far, sock=there)

    async def opened(self) -> None:
        await self.connect()
        await self.near.send_request(CloseTable("t"))
        self.far_side.asks.clear()

    def call(self, message: bytes = b"abc") -> Told:
        told = Told()
        told.number = self.near.call(row_forms.THRIFT1, 1, message, told)  # type: ignore[attr-defined]
        return told

    def close(self) -> None:
        for link in (self.near, self.far):
            link.check_invariants()
            link.end("the test is over")
            link.check_invariants()


def paired(test: Callable[[Pair], Awaitable[None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        async def main() -> None:
            pair = Pair()
            try:
                async with asyncio.timeout(20):
                    await test(pair)
            finally:
                pair.close()

        asyncio.run(main())

    del run.__wrapped__  # type: ignore[attr-defined]
    return run
