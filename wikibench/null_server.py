"""A server that answers every request at once with the same page: what is left is the generator's own cost.

``python -m wikibench.null_server BYTES`` prints its port, and ends with its standard input, so with its starter.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, cast

PAGE_BYTES: Final = 10_000  # a page of a wiki, as the thesis has it: 8 KB of text, and what stands around it
_END: Final = b"\r\n\r\n"


class NullServer(asyncio.Protocol):
    """A connection.  Requests have no body, and each chunk of bytes ends with the end of one."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        count = data.count(_END)
        assert self._transport is not None
        self._transport.write(self._answer if count == 1 else self._answer * count)


def answer_of(size_bytes: int) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {size_bytes}\r\n"
    return f"{head}Cache-Control: no-store\r\n\r\n".encode() + bytes(size_bytes).replace(b"\0", b"x")


async def _serve(size_bytes: int) -> None:
    loop = asyncio.get_running_loop()
    answer = answer_of(size_bytes)
    server = await loop.create_server(lambda: NullServer(answer), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
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


if __name__ == "__main__":
    from .run import loop_factory

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(int(sys.argv[1])))
