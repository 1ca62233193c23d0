"""A TCP balancer as stands before a cluster: each connection goes to the next node whose ``/ready`` answers 200."""

from __future__ import annotations

import asyncio
import threading
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Self

from tests.support.many_nodes import NodeProcess

LOOK_S: Final = 0.1
CHUNK_BYTES: Final = 64 << 10
ANSWER_S: Final = 1.0  # a node that answers later is not ready


def is_ready(node: NodeProcess) -> bool:
    try:
        url = f"http://{node.host}:{node.web_port}/ready"
        with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


class TcpBalancer:
    """A context manager; ``port`` takes connections while it is entered."""

    def __init__(self, nodes: Sequence[NodeProcess]) -> None:
        self.port = 0
        self._nodes = nodes
        self._ready: list[NodeProcess] = list(nodes)
        self._next = 0
        self._loop = asyncio.new_event_loop()
        self._threads = [
            threading.Thread(target=self._serve, name="balancer", daemon=True),
            threading.Thread(target=self._look, name="balancer's looks", daemon=True),
        ]
        self._is_listening = threading.Event()
        self._is_over = threading.Event()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        self._is_listening.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._loop.call_soon_threadsafe(self._end.set_result, None)
        for thread in self._threads:
            thread.join()

    def _look(self) -> None:
        while not self._is_over.wait(LOOK_S):
            self._ready = [node for node in self._nodes if is_ready(node)]

    def _serve(self) -> None:
        self._loop.run_until_complete(self._listen())
        self._loop.close()

    async def _listen(self) -> None:
        self._end: asyncio.Future[None] = self._loop.create_future()
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._is_listening.set()
        await self._end
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(len(self._nodes)):
            ready = self._ready or list(self._nodes)
            self._next += 1
            node = ready[self._next % len(ready)]
            try:
                inner_reader, inner_writer = await asyncio.open_connection(node.host, node.port)
            except OSError:
                continue
            with suppress(asyncio.CancelledError):  # the balancer ends
                await asyncio.gather(pipe(reader, inner_writer), pipe(inner_reader, writer))
            return
        writer.close()


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until their end; then close the other side."""
    with suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()
