"""A server that answers every request at once with the same page: what is left is the generator's own cost.

``python -m wikibench.null_server BYTES`` prints its port, and ends with its standard input, so with its starter.
``python -m wikibench.null_server BYTES PORT [BUSY_US [COUNT [FILE]]]`` serves there until it is ended: so many
processes share the port, each request costs so many us of processor time, and the file has their ids as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast

PAGE_BYTES: Final = 10_000  # a page of a wiki, as the thesis has it: 8 KB of text, and what stands around it
_END: Final = b"\r\n\r\n"


class NullServer(asyncio.Protocol):
    """A connection.  Requests have no body, and each chunk of bytes ends with the end of one; all are of one method."""

    def __init__(self, answer: bytes, busy_s: float = 0.0) -> None:
        """Take ``busy_s``, the processor time that each request is to cost beside its answer."""
        self._answer = answer
        self._busy_s = busy_s
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        count = data.count(_END)
        assert self._transport is not None
        if self._busy_s:
            until_s = time.thread_time() + count * self._busy_s
            while time.thread_time() < until_s:
                pass
        answer = self._answer
        if data.startswith(b"HEAD "):
            answer = answer[: answer.index(_END) + len(_END)]
        self._transport.write(answer if count == 1 else answer * count)


def answer_of(size_bytes: int) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {size_bytes}\r\n"
    return f"{head}Cache-Control: no-store\r\n\r\n".encode() + bytes(size_bytes).replace(b"\0", b"x")


async def _serve(size_bytes: int, port: int = 0, busy_us: int = 0) -> None:
    loop = asyncio.get_running_loop()
    answer = answer_of(size_bytes)
    server = await loop.create_server(
        lambda: NullServer(answer, busy_us / 1e6), "127.0.0.1", port, reuse_port=port != 0 or None
    )
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        if port:
            await server.serve_forever()
        await loop.run_in_executor(None, sys.stdin.read)


@contextmanager
def null_server(size_bytes: int = PAGE_BYTES) -> Iterator[str]:
    """Start the server in a process of its own; yield its address."""
    words = [sys.executable, "-m", "wikibench.null_server", str(size_bytes)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = process.stdout.readline().strip()
            if not port:
                raise OSError(f"the null server did not start: it ended with {process.wait()}")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.stdin.close()  # its end, too
            process.wait()


def _share(count: int, path: str) -> None:
    """Go on in ``count`` processes, whose ids are written to the file; the first one's end ends all."""
    children = []
    for _ in range(count if count > 1 else 0):
        child = os.fork()
        if not child:
            return
        children.append(child)
    if path:
        Path(path).write_text(json.dumps([{"pid": pid} for pid in children or [os.getpid()]]))
    for child in children:
        os.waitpid(child, 0)
    if children:
        sys.exit(0)


if __name__ == "__main__":
    from .run import loop_factory

    size, *rest = sys.argv[1:]
    if len(rest) > 2:
        _share(int(rest[2]), rest[3] if len(rest) > 3 else "")
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(int(size), *map(int, rest[:2])))
