"""The attackers, in a process of their own: each keeps up one way to overload a store, and counts what it hears.

crowd     connections that each ask for a cell now and then
mute      connections that ask for rows of 1 MiB and never read a reply; one that the store closes is not replaced
giant     one that writes rows of 63 MB
scanners  one that opens scanners and leaves them
filters   one that scans the table through the dearest filter, again and again
parsing   one that opens scanners with the longest filter string, again and again
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

import uvloop

from columnar.bench import calls
from columnar.limits import FILTER_BYTES, MIB
from columnar.wire import idl
from tests.overload.neighbours import TABLE, key

LARGE_TABLE: Final = b"large"
LARGE_ROWS: Final = 8  # of 1 MiB
CROWD_RATE: Final = 500.0  # requests a second of all
GIANT_CELLS: Final = 7
GIANT_CELL_BYTES: Final = 9_000_000
COME_AGAIN_S: Final = 0.2
SPARE_DESCRIPTORS: Final = 200
# As dear a filter as we know of: a regular expression without a beginning, over values in which it is not found.
DEAR_FILTER: Final = b"ValueFilter(=,'regexstring:(a|b|ab)*[0-9]+z') OR " * 20 + b"PrefixFilter('none')"
LONG_FILTER: Final = b" OR ".join([b"(PrefixFilter('a'))"] * (FILTER_BYTES // 24))
Heard = Counter[str]  # answers by attacker and kind: "giant ok", "scanners CallQueueTooBigException"


class TooFewDescriptors(Exception):
    pass


def raise_descriptors(wanted: int) -> None:
    """TooFewDescriptors where the system's hard limit forbids so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise TooFewDescriptors(
            f"{wanted} open files are needed and the hard limit is {hard} (ulimit -Hn): raise it, or ask for fewer "
            "with --connections"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Besieger:
    def __init__(self, port: int, connections: int, mute: int) -> None:
        self._port = port
        self._connections = connections
        self._mute = mute
        self.heard: Heard = Counter()
        self._to_come = connections  # of the many connections

    async def run(self, kinds: frozenset[str], stopped: asyncio.Event, begun: Callable[[], object]) -> Heard:
        """``begun`` is called once all of the many connections are there."""
        self._begun = begun
        self._to_come = (self._connections - self._mute) * ("crowd" in kinds) + self._mute * ("mute" in kinds)
        if not self._to_come:
            begun()
        attacks: dict[str, Callable[[], Awaitable[None]]] = {
            "crowd": self._crowd,
            "mute": self._mutes,
            "giant": self._giant,
            "scanners": self._scanners,
            "filters": self._filters,
            "parsing": self._parsing,
        }
        tasks = [asyncio.ensure_future(attacks[kind]()) for kind in sorted(kinds)]
        ended = asyncio.ensure_future(stopped.wait())
        await asyncio.wait([ended, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done() and not task.cancelled():
                task.result()  # an attacker that could not go on
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return self.heard

    # --- many connections -----------------------------------------------------------------------------

    async def _crowd(self) -> None:
        """Each is asked in its turn whether it is free; what it hears is counted."""
        members = []
        for _ in range(self._connections - self._mute):
            members.append(await self._open(lambda: _Member(self.heard)))
            self._has_come()
        frames = [calls.call("get", TABLE, key(37 * number), b"a:x") for number in range(100)]
        number = 0
        while True:
            for _ in range(5):
                members[number % len(members)].ask(frames[number % len(frames)])
                number += 1
            await asyncio.sleep(5 / CROWD_RATE)

    async def _mutes(self) -> None:
        await asyncio.gather(*(self._be_mute(number) for number in range(self._mute)))

    async def _be_mute(self, number: int) -> None:
        frame = calls.call("getRow", LARGE_TABLE, b"%d" % (number % LARGE_ROWS))
        while True:
            mute = await self._open(_Mute)
            mute.transport.pause_reading()
            mute.transport.write(frame * 20)
            self._has_come()
            await mute.closed
            self.heard["mute closed"] += 1
            await asyncio.sleep(COME_AGAIN_S)

    def _has_come(self) -> None:
        self._to_come -= 1
        if self._to_come == 0:
            self._begun()

    async def _open(self, make: Callable[[], Any]) -> Any:
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(cast(Any, make), "127.0.0.1", self._port)
        return protocol

    # --- one connection -----------------------------------------------------------------------------

    async def _giant(self) -> None:
        value = bytes(GIANT_CELL_BYTES)
        cells = [(b"a:%d" % number, value) for number in range(GIANT_CELLS)]
        frame = calls.call("mutateRow", LARGE_TABLE, b"giant", calls.puts(cells))
        line = await _Line.open(self._port)
        while True:
            self._count("giant", await line.ask(frame))

    async def _scanners(self) -> None:
        columns = [b"a:%d" % number for number in range(20)]
        frame = calls.call("scannerOpenWithScan", TABLE, idl.hbase.TScan(columns=columns))
        line = await _Line.open(self._port)
        while True:
            self._count("scanners", await line.ask(frame))
            await asyncio.sleep(0.0003)

    async def _filters(self) -> None:
        opening = calls.call("scannerOpenWithScan", TABLE, idl.hbase.TScan(filterString=DEAR_FILTER))
        good = calls.good_begin("scannerOpenWithScan", calls.I32_SUCCESS)
        line = await _Line.open(self._port)
        while True:
            opened = await line.ask(opening)
            if not opened.startswith(good, calls.FRAME_HEAD):  # the scanners of another attacker fill the table
                self._count("filters", opened)
                await asyncio.sleep(0.01)
                continue
            scanner = calls.number_at(opened, good)
            self._count("filters", await line.ask(calls.call("scannerGetList", scanner, 100_000)))
            await line.ask(calls.call("scannerClose", scanner))

    async def _parsing(self) -> None:
        opening = calls.call("scannerOpenWithScan", TABLE, idl.hbase.TScan(filterString=LONG_FILTER))
        good = calls.good_begin("scannerOpenWithScan", calls.I32_SUCCESS)
        line = await _Line.open(self._port)
        while True:
            opened = await line.ask(opening)
            self._count("parsing", opened)
            if opened.startswith(good, calls.FRAME_HEAD):
                await line.ask(calls.call("scannerClose", calls.number_at(opened, good)))

    def _count(self, who: str, reply: bytes) -> None:
        text = calls.fault_of(reply) if b"Exception: " in reply[:400] else ""
        _, _, error = text.partition(": ")
        self.heard[f"{who} {error.partition(': ')[0] or 'ok'}"] += 1


class _Member(asyncio.Protocol):
    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._is_free = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._is_free = True

    def ask(self, frame: bytes) -> None:
        if self._is_free:
            self._is_free = False
            self._transport.write(frame)

    def data_received(self, data: bytes) -> None:  # the whole reply: it is short
        self._is_free = True
        self._heard["crowd ok" if b"\x80\x01\x00\x02" in data[:8] else "crowd failed"] += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_free = False
        self._heard["crowd closed"] += 1


class _Mute(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


class _Line:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> _Line:
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=MIB))

    async def ask(self, frame: bytes) -> bytes:
        self._writer.write(frame)
        head = await self._reader.readexactly(4)
        return head + await self._reader.readexactly(int.from_bytes(head, "big"))


def besiege(port: int, connections: int, mute: int, kinds: frozenset[str], told: Any) -> None:
    """Tells ``told``, one end of a pipe, when all are there, goes on until it says stop, and tells what was heard.

    In a process of its own.
    """
    os.nice(10)  # the machine's own share of the damage is not what is measured
    raise_descriptors(connections + SPARE_DESCRIPTORS)

    async def scene() -> Heard:
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_reader(told.fileno(), stopped.set)
        besieger = Besieger(port, connections, mute)
        return await besieger.run(kinds, stopped, lambda: told.send("begun"))

    try:
        told.send(uvloop.run(scene()))
    except (OSError, EOFError) as error:
        with contextlib.suppress(OSError):
            told.send(f"the attackers could not go on: {error!r}")
        sys.exit(1)
