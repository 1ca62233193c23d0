"""Connections that carry out the steps of tweets side by side; a connection that breaks is made anew.

    idle        the line waits for a tweet
    under way   a step waits for its answer
    disconnected  the connection broke: the line tries to connect every RETRY_NS, then begins its tweet anew
    put off     the store refused a step: the tweet begins anew after REFUSED_NS

All steps write cells that are named by their tweet, so a tweet may begin anew.  Owned by one loop.
"""

from __future__ import annotations

import select
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Final

from benchmarks.flows_steps import Steps, StepsOf, Tweet
from benchmarks.open_loop import SPIN_NS
from columnar.bench.address import Endpoint, EndpointFailed
from columnar.bench.connections import FrameStream, plain_socket
from columnar.bench.protocols import BadReply

RETRY_NS: Final = 10_000_000
REFUSED_NS: Final = 50_000_000


class Poller:
    """A watcher of descriptors, which calls the subscriber of each ready descriptor."""

    def __init__(self, epoll: select.epoll) -> None:
        self._epoll = epoll
        self._heard: dict[int, Callable[[int], None]] = {}

    def watch(self, descriptor: int, heard: Callable[[int], None]) -> None:
        self._heard[descriptor] = heard
        self._epoll.register(descriptor, select.EPOLLIN)

    def forget(self, descriptor: int) -> None:
        del self._heard[descriptor]
        self._epoll.unregister(descriptor)

    def want_to_send(self, descriptor: int, wants: bool) -> None:
        self._epoll.modify(descriptor, select.EPOLLIN | select.EPOLLOUT * wants)

    def wait(self, most_ns: int) -> None:
        """Wait until a descriptor is ready, or until shortly before ``most_ns`` is over; notify the subscribers."""
        if most_ns > SPIN_NS:
            select.select([self._epoll], [], [], (most_ns - SPIN_NS) / 1e9)
        for descriptor, event in self._epoll.poll(0):
            heard = self._heard.get(descriptor)
            if heard is not None:  # else a subscriber that was notified before closed it
                heard(event)


class Line:
    """A connection and the tweet under way on it."""

    __slots__ = ("job", "steps", "stream", "tweet")

    def __init__(self) -> None:
        self.job = -1  # the caller's number of the tweet; -1: idle
        self.tweet: Tweet | None = None
        self.steps: Steps | None = None
        self.stream: FrameStream | None = None  # None: disconnected


class Crew:
    def __init__(self, poller: Poller, endpoint: Endpoint, steps: StepsOf, done: Callable[[Line], None]) -> None:
        self._poller = poller
        self._endpoint = endpoint
        self._steps = steps
        self._done = done
        self._lines: list[Line] = []
        self._disconnected: deque[Line] = deque()
        self._put_off: deque[tuple[int, Line]] = deque()
        self._retry_ns = 0
        self.sent_bytes = self.received_bytes = 0
        self.breaks = 0
        self.refusals: Counter[str] = Counter()  # in the store's words

    def join(self, count: int) -> list[Line]:
        """Add ``count`` lines; a line that cannot connect begins as disconnected."""
        lines = [Line() for _ in range(count)]
        self._lines += lines
        self._disconnected += lines
        self.reconnect_due(time.perf_counter_ns())
        return lines

    def begin(self, line: Line, job: int, tweet: Tweet) -> None:
        """Begin a tweet on ``line``, which must be idle."""
        line.job, line.tweet = job, tweet
        self._begin(line)

    def reconnect_due(self, now_ns: int) -> None:
        """Connect the disconnected lines that are due, and begin the tweets that were put off until now."""
        if self._disconnected and now_ns >= self._retry_ns:
            try:
                while self._disconnected:
                    self._connect(self._disconnected[0])
                    self._begin(self._disconnected.popleft())
            except OSError:
                self._retry_ns = now_ns + RETRY_NS
        while self._put_off and self._put_off[0][0] <= now_ns:
            self._begin(self._put_off.popleft()[1])

    def wait_ns(self, now_ns: int) -> int:
        """Return the time until ``reconnect_due`` must be called again; RETRY_NS at most."""
        when = [self._retry_ns] if self._disconnected else []
        when += [self._put_off[0][0]] if self._put_off else []
        return min(RETRY_NS, max(0, min(when) - now_ns)) if when else RETRY_NS

    def close(self) -> None:
        for line in self._lines:
            if line.stream is not None:
                self._poller.forget(line.stream.sock.fileno())
                line.stream.sock.close()
                line.stream = None

    def _connect(self, line: Line) -> None:
        stream = FrameStream(plain_socket(self._endpoint.host, self._endpoint.port))
        line.stream = stream
        self._poller.watch(stream.sock.fileno(), partial(self._heard, line))

    def _begin(self, line: Line) -> None:
        if line.tweet is not None and line.stream is not None:
            line.steps = self._steps(line.tweet)
            self._say(line, next(line.steps))

    def _say(self, line: Line, frame: bytes) -> None:
        assert line.stream is not None, "lines that are away say nothing"
        self.sent_bytes += len(frame)
        try:
            if not line.stream.send(frame):
                self._poller.want_to_send(line.stream.sock.fileno(), True)
        except OSError:
            self._broke(line)

    def _heard(self, line: Line, event: int) -> None:
        assert line.stream is not None, "lines that are away are not watched"
        try:
            if event & select.EPOLLOUT and line.stream.send_on():
                self._poller.want_to_send(line.stream.sock.fileno(), False)
            reply = line.stream.receive() if event & ~select.EPOLLOUT else None
        except (OSError, EndpointFailed):
            self._broke(line)
            return
        if reply is not None:
            self.received_bytes += len(reply)
            self._answered(line, reply)

    def _answered(self, line: Line, reply: bytes) -> None:
        assert line.steps is not None, "an answer is to a step"
        try:
            frame = line.steps.send(reply)
        except StopIteration:
            line.job, line.tweet, line.steps = -1, None, None
            self._done(line)
        except BadReply as bad:
            self.refusals[str(bad)] += 1
            self._put_off.append((time.perf_counter_ns() + REFUSED_NS, line))
        else:
            self._say(line, frame)

    def _broke(self, line: Line) -> None:
        assert line.stream is not None, "a line breaks once"
        self._poller.forget(line.stream.sock.fileno())
        line.stream.sock.close()
        line.stream = None
        self.breaks += 1
        self._disconnected.append(line)
