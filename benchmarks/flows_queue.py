"""The queue of the variant ``external``: Redis with a stream and a group, which syncs each command to the disk.

XADD, XREADGROUP, XACK and XAUTOCLAIM stand for push, open, close and the second offer of Kestrel, the paper's queue.
Tweets that the worker gave up lie in a stream of their own.
``QueueLink`` pipelines the commands of many tweets over one connection.
"""

from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.flows_crew import RETRY_NS, Poller
from benchmarks.flows_steps import Tweet
from benchmarks.own_stores import Started
from benchmarks.resp import RedisError, Replies, command
from columnar.bench.address import EndpointFailed

STREAM: Final = "tweets"
DEAD: Final = "dead"  # stream of the tweets that were given up
TAKEN: Final = 1_000  # entries of DEAD that are read at once
GROUP: Final = "spreading"
START_S: Final = 30.0
_POLL_S: Final = 0.01
_RECEIVE_BYTES: Final = 256 * 1024
ADDRESS_BYTES: Final = 107  # of the path of a local socket (``sun_path`` of unix(7))
_PROGRAM: Final = "redis-server"


class QueueMissing(EndpointFailed):
    """Raised if this machine has no redis-server."""

    def __init__(self) -> None:
        super().__init__(
            f"the variant external wants {_PROGRAM} on the PATH (Debian: apt-get install redis-server); without it"
            " leave the variant out: --variant sync,sync-batched,integrated"
        )


def program() -> str:
    """Return the path of redis-server.  Raises QueueMissing."""
    found = shutil.which(_PROGRAM)
    if found is None:
        raise QueueMissing
    return found


def started_queue(folder: Path) -> Started:
    """Begin to start the queue on the folder; ``wait_for_queue`` says when it answers.  Raises QueueMissing."""
    folder.mkdir(exist_ok=True)
    # The socket is named within ``dir``: an address has ADDRESS_BYTES at most, and a folder may have a longer path.
    options = {"port": "0", "dir": str(folder), "unixsocket": socket_of(folder).name, "save": "", "appendonly": "yes"}
    options |= {"appendfsync": "always", "loglevel": "warning", "logfile": str(folder / "log")}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return Started(subprocess.Popen([program(), *words], start_new_session=True))


def socket_of(folder: Path) -> Path:
    return folder / "socket"


def connect(sock: socket.socket, path: Path) -> None:
    """Connect to a local socket, also if its path is longer than a socket address may be.  Raises OSError."""
    if len(os.fsencode(path)) <= ADDRESS_BYTES:
        sock.connect(str(path))
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sock.connect(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def wait_for_queue(path: Path) -> None:
    """Block until the queue answers, and make its group.  Raises EndpointFailed."""
    ends_s = time.monotonic() + START_S
    while True:
        try:
            run_redis_command(path, "XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM")
            return
        except (OSError, RedisError) as error:
            if str(error).startswith("BUSYGROUP"):
                return
            if time.monotonic() > ends_s:
                raise EndpointFailed(f"{_PROGRAM} does not answer; {path.parent / 'log'} says why") from error
        time.sleep(_POLL_S)


def undone(path: Path) -> int:
    """Return the number of tweets in the queue; the worker deletes the tweets that are spread.

    Raises OSError or RedisError.
    """
    return int(run_redis_command(path, "XLEN", STREAM))


def take_dead(path: Path) -> Counter[bytes]:
    """Remove the tweets that were given up, and return their number by author.  Raises OSError or RedisError."""
    found: Counter[bytes] = Counter()
    while entries := run_redis_command(path, "XRANGE", DEAD, "-", "+", "COUNT", TAKEN):
        found.update(pushed(fields).author for _, fields in entries)
        run_redis_command(path, "XDEL", DEAD, *(entry for entry, _ in entries))
    return found


def run_redis_command(path: Path, *words: bytes | str | int) -> Any:
    """Carry out a command over a connection of its own.  Raises OSError or RedisError."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(START_S)
        connect(sock, path)
        sock.sendall(command(*words))
        replies = Replies()
        while data := sock.recv(_RECEIVE_BYTES):
            for reply in replies.feed(data):
                if isinstance(reply, RedisError):
                    raise reply
                return reply
    raise ConnectionResetError("the queue closed the connection")


def push(tweet: Tweet) -> bytes:
    return command("XADD", STREAM, "*", "a", tweet.author, "i", tweet.id, "t", tweet.text)


def push_dead(fields: list[bytes]) -> bytes:
    """Return the command that notes a given up tweet with all its fields."""
    return command("XADD", DEAD, "*", *fields)


def pushed(fields: list[bytes]) -> Tweet:
    """Return the tweet that ``push`` put into an entry."""
    found = dict(zip(fields[::2], fields[1::2], strict=True))
    return Tweet(found[b"a"], found[b"i"], found[b"t"])


class QueueLink:
    """A connection that sends commands in order, and sends those without an answer again after it reconnects."""

    def __init__(self, poller: Poller, path: str) -> None:
        self._poller = poller
        self._path = path
        self._sock: socket.socket | None = None
        self._replies = Replies()
        self._unanswered: deque[tuple[bytes, Callable[[Any], None]]] = deque()
        self._unsent = bytearray()
        self._retry_ns = 0
        self.sent_bytes = self.received_bytes = 0
        self.breaks = 0

    def enqueue_command(self, words: bytes, heard: Callable[[Any], None]) -> None:
        """Append a command, which ``flush`` sends."""
        self._unanswered.append((words, heard))
        self._unsent += words
        self.sent_bytes += len(words)

    def reconnect_due(self, now_ns: int) -> None:
        """Connect if the connection is broken and a retry is due."""
        if self._sock is not None or now_ns < self._retry_ns:
            return
        sock = socket.socket(socket.AF_UNIX)
        try:
            connect(sock, Path(self._path))
        except OSError:
            sock.close()
            self._retry_ns = now_ns + RETRY_NS
            return
        sock.setblocking(False)
        self._sock, self._replies = sock, Replies()
        self._unsent = bytearray(b"".join(words for words, _ in self._unanswered))
        self._poller.watch(sock.fileno(), self._ready)

    def flush(self) -> None:
        if self._sock is None or not self._unsent:
            return
        try:
            del self._unsent[: self._sock.send(self._unsent)]
        except BlockingIOError:
            pass  # EPOLLOUT says when
        except OSError:
            self._broke()
            return
        self._poller.want_to_send(self._sock.fileno(), bool(self._unsent))

    def close(self) -> None:
        if self._sock is not None:
            self._poller.forget(self._sock.fileno())
            self._sock.close()
            self._sock = None

    def _ready(self, event: int) -> None:
        assert self._sock is not None, "a link that is away is not watched"
        try:
            data = self._sock.recv(_RECEIVE_BYTES) if event & ~select.EPOLLOUT else None
        except OSError:
            data = b""
        if data == b"":
            self._broke()
            return
        self.received_bytes += len(data or b"")
        for reply in self._replies.feed(data or b""):
            if isinstance(reply, RedisError):
                if not str(reply).startswith("LOADING"):
                    raise EndpointFailed(f"{_PROGRAM}: {reply}")
                self._broke()  # it reads its log: requests are sent again
                return
            self._unanswered.popleft()[1](reply)

    def _broke(self) -> None:
        self.close()
        self.breaks += 1
        self._retry_ns = time.perf_counter_ns() + RETRY_NS
