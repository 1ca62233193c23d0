"""A TCP proxy that delays what goes each way by a time of its own: a link whose two ways differ."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

CHUNK_BYTES: Final = 64 << 10


@contextmanager
def delaying_proxy(host: str, port: int, there_s: float, back_s: float) -> Iterator[int]:
    """Yield the port of a proxy, which runs in a thread, to a server; bytes keep their order."""
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    ports: list[int] = []
    ended: asyncio.Future[None] = loop.create_future()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
        """Copy until the end; nothing waits for a receiver, since what goes through is small."""
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                loop.call_later(delay_s, writer.write, data)
        loop.call_later(delay_s, writer.close)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other_reader, other_writer = await asyncio.open_connection(host, port)
        await asyncio.gather(copy(reader, other_writer, there_s), copy(other_reader, writer, back_s))

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        async with server:
            await ended
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(ended.set_result, None)
        thread.join()
        loop.close()
