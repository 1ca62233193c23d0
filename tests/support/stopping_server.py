"""A server that answers at once, and stands still for a while by its own clock, again and again.

    python -m tests.support.stopping_server FIRST_S EVERY_S LASTING_S

Stops begin FIRST_S after its start, and each EVERY_S from then on.  A stop is a blocking sleep of its only thread, so
the kernel takes connections and requests meanwhile, and the server reads them afterwards.  It prints its port; when
its standard input ends it prints its notes, as JSON:

    stops   [begin, end] of each, on the monotonic clock
    read    [path, moment, number of the connection] of each request, in order: the first NOTES_KEPT
    count   of all requests
"""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import urlsplit

from tests.support.stop_schedule import Stop
from wikibench.run import loop_factory

NOTES_KEPT: Final = 100_000
WAITING: Final = 2_048  # connections that the kernel takes during a stop; asyncio's own bound, 100, would refuse some
BODY: Final = b"<!doctype html><title>A page</title><p>words</p>"
ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
SERVICE_REQUESTS: Final = 300


@dataclass
class Notes:
    """The stops and requests of one server, complete once it has ended."""

    url: str = ""
    stops: list[Stop] = field(default_factory=list)
    read: list[tuple[str, float, int]] = field(default_factory=list)
    count: int = 0
    connections: int = 0

    def read_s(self) -> dict[str, float]:
        """Return the moment of each path; of one that was read again, the last."""
        return {path: moment_s for path, moment_s, _ in self.read}

    def first_read_s(self) -> dict[int, float]:
        """Return the moment of the first request of each connection, in order."""
        first_s: dict[int, float] = {}
        for _, moment_s, connection in self.read:
            first_s.setdefault(connection, moment_s)
        return first_s


class StoppingServer(asyncio.Protocol):
    """A connection.  Its requests have no body, and none is cut in two."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._notes.connections += 1
        self._number = self._notes.connections

    def data_received(self, data: bytes) -> None:
        now_s, notes = time.monotonic(), self._notes
        for head in data.split(b"\r\n\r\n")[:-1]:
            notes.count += 1
            if len(notes.read) < NOTES_KEPT:
                notes.read.append((head.split(b" ", 2)[1].decode("latin-1"), now_s, self._number))
            self._transport.write(ANSWER)


async def serve(notes: Notes, first_s: float, every_s: float, lasting_s: float) -> None:
    loop = asyncio.get_running_loop()

    def stop(due_s: float) -> None:
        begin_s = time.monotonic()
        time.sleep(max(0.0, due_s + lasting_s - begin_s))
        notes.stops.append(Stop(begin_s, time.monotonic()))
        wait_for(due_s + every_s)

    def wait_for(due_s: float) -> None:
        loop.call_later(max(0.0, due_s - time.monotonic()), stop, due_s)

    server = await loop.create_server(lambda: StoppingServer(notes), "127.0.0.1", backlog=WAITING)
    async with server:
        print(server.sockets[0].getsockname()[1], flush=True)
        wait_for(time.monotonic() + first_s)
        await loop.run_in_executor(None, sys.stdin.read)


@contextmanager
def stopping_server(first_s: float, every_s: float, lasting_s: float) -> Iterator[Notes]:
    """Run the server in a process of its own; its notes are complete after the block."""
    words = [sys.executable, "-m", "tests.support.stopping_server", *map(str, (first_s, every_s, lasting_s))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port:
            raise OSError(f"the server did not start: it ended with {process.wait()}")
        notes = Notes(f"http://127.0.0.1:{port}")
        try:
            yield notes
        finally:
            said = json.loads(process.communicate()[0])
            notes.stops.extend(Stop(*times) for times in said["stops"])
            notes.read.extend((path, moment_s, number) for path, moment_s, number in said["read"])
            notes.count = said["count"]


def service_s() -> float:
    """Return the median time that a request needs outside of stops, asked for one after another by a plain client."""
    with stopping_server(3_600, 3_600, 0) as server:
        client = http.client.HTTPConnection(urlsplit(server.url).netloc)
        took = []
        for number in range(SERVICE_REQUESTS):
            began_s = time.perf_counter()
            client.request("GET", f"/{number}")
            client.getresponse().read()
            took.append(time.perf_counter() - began_s)
        client.close()
    return statistics.median(took)


if __name__ == "__main__":
    own = Notes()
    gc.disable()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(own, *map(float, sys.argv[1:4])))
    json.dump({"stops": own.stops, "read": own.read, "count": own.count}, sys.stdout)
