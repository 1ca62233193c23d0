"""Uploads and downloads of a byte at a time, beside a reader of a small page.

    python -m tests.overload.slow_transfers [--clients 40] [--seconds 10]

Starts a store and a wiki with two workers, adds a file of 30 MB, and has half of the clients send one and half fetch
it, a byte a second each.  Prints how long the small page took before and meanwhile.  Exit status 1 where its 95th
percentile grew to more than twice and 20 ms.
"""

from __future__ import annotations

import argparse
import re
import socket
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import requests

from tests.overload.dear_pages import alone_for, beside, running

SIZE = 30_000_000
LINE = b"a line of a table\n"
TIMES, SPARE_S = 2.0, 0.02


def p95(took: Sequence[float]) -> float:
    return took[int(0.95 * (len(took) - 1))]


def summary(took: Sequence[float]) -> str:
    return f"{len(took)} times, median {took[len(took) // 2] * 1e3:.1f} ms, 95 % within {p95(took) * 1e3:.1f} ms"


def add_file(url: str) -> None:
    with requests.Session() as session:
        form = session.get(f"{url}/HomePage/files", timeout=30).text
        found = re.search(r'name="csrf" value="([^"]*)"', form)
        assert found is not None
        files = {"file": ("Table.csv", LINE * (SIZE // len(LINE)))}
        sent = session.post(f"{url}/HomePage/files", data={"csrf": found[1]}, files=files, timeout=120)
        assert sent.status_code == 200, sent.text[:500]


def connected(url: str, number: int) -> socket.socket:
    """A client of a network of its own for every three."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.bind((f"127.0.0.{2 + number // 3}", 0))
    made.connect(("127.0.0.1", urlsplit(url).port or 80))
    if number % 2:
        made.sendall(b"GET /HomePage/files/Table.csv HTTP/1.1\r\nHost: localhost\r\n\r\n")
    else:
        form = b"Content-Type: multipart/form-data; boundary=x\r\n"
        made.sendall(b"POST /HomePage/files HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n" % (form, SIZE))
    made.setblocking(False)
    return made


def trickle(clients: Sequence[socket.socket], stop: threading.Event) -> int:
    """Move a byte of each client a second; returns how many are still connected."""
    while not stop.wait(1.0):
        for number, client in enumerate(clients):
            with suppress(OSError):
                if number % 2:
                    client.recv(1)
                else:
                    client.send(b"-")
    return sum(is_open(client) for client in clients)


def is_open(client: socket.socket) -> bool:
    try:
        return client.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as (url, _store), ExitStack() as stack:
        add_file(url)
        alone = alone_for(url, given.seconds)
        stop = threading.Event()
        clients = [stack.enter_context(connected(url, number)) for number in range(given.clients)]
        with ThreadPoolExecutor(2) as pool:
            slow, reader = pool.submit(trickle, clients, stop), pool.submit(beside, url, stop)
            stop.wait(given.seconds)
            stop.set()
            took, still = sorted(reader.result()), slow.result()
        print(f"the small page alone:                 {summary(alone)}")
        print(f"beside {given.clients} slow clients ({still} at the end): {summary(took)}")
    return 0 if p95(took) <= TIMES * p95(alone) + SPARE_S else 1


if __name__ == "__main__":
    raise SystemExit(main())
