"""Names of machines: their own threads, each of their addresses, and nothing left open."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from columnar.cluster import peer_address
from columnar.cluster.peer_address import TcpAddress
from columnar.runtime.name_lookup import LOOKUPS_AT_ONCE, NameLookup


def looking_up(test: Callable[[NameLookup, int], Awaitable[None]]) -> Callable[[], None]:
    """Run the test with a port at which a server on loopback closes each connection."""

    def run() -> None:
        async def inside() -> None:
            names = NameLookup()
            server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
            async with asyncio.timeout(20):
                await test(names, server.sockets[0].getsockname()[1])
            names.close()
            server.close()

        asyncio.run(inside())

    run.__name__ = test.__name__
    return run


def resolved(*addresses: str) -> Callable[..., Any]:
    def look_up(_host: str, port: int, *_given: Any, **_options: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    return look_up


@looking_up
async def test_each_address_of_a_name_is_tried(names: NameLookup, port: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", resolved("127.0.0.2", "127.0.0.1"))
        connected = await names.connect("store.example", port)
        assert connected.getpeername() == ("127.0.0.1", port)
        connected.close()
        patch.setattr(socket, "getaddrinfo", resolved("127.0.0.2", "127.0.0.3"))
        with pytest.raises(ConnectionRefusedError):
            await names.connect("store.example", port)
        patch.setattr(socket, "getaddrinfo", resolved())
        with pytest.raises(OSError, match=r"store\.example has no address"):
            await names.connect("store.example", port)


@looking_up
async def test_an_address_needs_no_thread(names: NameLookup, port: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda _thread: pytest.fail("a thread"))
        (await names.connect("127.0.0.1", port)).close()


@looking_up
async def test_lookups_have_a_bound_and_those_that_were_given_up_do_not_begin(names: NameLookup, port: int) -> None:
    tried: list[str] = []
    loop, both, may_end = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def slow(host: str, *_given: Any, **_options: Any) -> Any:
        tried.append(host)
        if len(tried) == LOOKUPS_AT_ONCE:
            loop.call_soon_threadsafe(both.set)
        may_end.wait(20)
        return resolved("127.0.0.1")(host, port)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", slow)
        waiting = [asyncio.ensure_future(names.connect(f"{n}.example", port)) for n in range(LOOKUPS_AT_ONCE)]
        await both.wait()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await names.connect("late.example", port)
        await asyncio.sleep(0)  # a cancellation reaches the threads' queue one iteration later
        may_end.set()
        for one in waiting:
            (await one).close()
        (await names.connect("next.example", port)).close()
    assert sorted(tried) == sorted([*[f"{n}.example" for n in range(LOOKUPS_AT_ONCE)], "next.example"])


@looking_up
async def test_names_of_peers_wait_for_no_work_of_the_threads_that_open_regions(names: NameLookup, port: int) -> None:
    names.close()  # peers have their own
    loop, may_end, began = asyncio.get_running_loop(), threading.Event(), asyncio.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))

    def work() -> None:
        loop.call_soon_threadsafe(began.set)
        may_end.wait(20)

    opening = asyncio.ensure_future(asyncio.to_thread(work))
    await began.wait()
    made = asyncio.Protocol()
    try:
        async with asyncio.timeout(10):
            await peer_address.connect(TcpAddress("localhost", port), lambda: made)
    finally:
        may_end.set()
    await opening
