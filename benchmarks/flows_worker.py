"""The worker behind the queue of the variant ``external``: takes tweets and writes them into the followers' rows.

The worker is a process of its own (``python -m benchmarks.flows_worker``), at the same lower priority as the store's
own trigger worker.  It acknowledges a tweet when all followers have it.  Tweets that a worker took and did not
acknowledge within OFFERED_MS are claimed by the next one.
"""

from __future__ import annotations

import argparse
import os
import select
import time
from collections import deque
from functools import partial
from typing import Any, Final

from benchmarks.flows_crew import Crew, Line, Poller
from benchmarks.flows_queue import GROUP, STREAM, QueueLink, pushed
from benchmarks.flows_steps import spread
from benchmarks.resp import command
from columnar.bench.address import Endpoint, parse_endpoint

OFFERED_MS: Final = 1_000
BLOCK_MS: Final = 1_000
CLAIMED: Final = 100  # entries of one XAUTOCLAIM
NICENESS: Final = 5


class QueueWorker:
    def __init__(self, poller: Poller, endpoint: Endpoint, queue: str, executions: int) -> None:
        """Take the descriptor of the file that grows by a byte with each execution."""
        self._poller = poller
        self._executions = executions
        self._consumer = f"worker-{os.getpid()}"
        self._taking = QueueLink(poller, queue)  # a blocking read delays later commands on its connection
        self._saying = QueueLink(poller, queue)
        self._crew = Crew(poller, endpoint, spread, self._done)
        self._free: list[Line] = []
        self._todo: deque[tuple[bytes, list[bytes]]] = deque()
        self._known_entries: set[bytes] = set()  # entries in ``_todo`` or under way
        self._entry_of: dict[Line, bytes] = {}
        self._is_taking = self._is_claiming = False
        self._claim_ns = 0

    def serve(self, connections: int) -> None:
        """Serve for ever with ``connections`` connections to the store."""
        self._free = self._crew.join(connections)
        while True:
            now = time.perf_counter_ns()
            for part in (self._crew, self._taking, self._saying):
                part.reconnect_due(now)
            self._take()
            self._claim(now)
            self._taking.flush()
            self._saying.flush()
            self._poller.wait(self._crew.wait_ns(now))

    def _take(self) -> None:
        if self._free and not self._todo and not self._is_taking:
            self._is_taking = True
            count = len(self._free)
            words = ("XREADGROUP", "GROUP", GROUP, self._consumer, "COUNT", count, "BLOCK", BLOCK_MS)
            self._taking.enqueue_command(command(*words, "STREAMS", STREAM, ">"), self._taken)

    def _taken(self, reply: Any) -> None:
        self._is_taking = False
        self._offer(reply[0][1] if reply else [])

    def _claim(self, now_ns: int) -> None:
        if now_ns >= self._claim_ns and not self._is_claiming:
            self._is_claiming = True
            self._claim_ns = now_ns + OFFERED_MS * 1_000_000
            words = ("XAUTOCLAIM", STREAM, GROUP, self._consumer, OFFERED_MS, "0-0", "COUNT", CLAIMED)
            self._saying.enqueue_command(command(*words), self._claimed)

    def _claimed(self, reply: Any) -> None:
        self._is_claiming = False
        if len(reply[1]) == CLAIMED:
            self._claim_ns = 0  # there are more
        self._offer(reply[1])

    def _offer(self, entries: list[Any]) -> None:
        for entry, fields in entries:
            if entry not in self._known_entries:
                self._known_entries.add(entry)
                self._todo.append((entry, fields))
        self._begin()

    def _begin(self) -> None:
        while self._free and self._todo:
            entry, fields = self._todo.popleft()
            line = self._free.pop()
            self._entry_of[line] = entry
            os.write(self._executions, b".")
            self._crew.begin(line, 0, pushed(fields))

    def _done(self, line: Line) -> None:
        entry = self._entry_of.pop(line)
        self._saying.enqueue_command(command("XACK", STREAM, GROUP, entry), partial(self._acknowledged, entry))
        self._saying.enqueue_command(command("XDEL", STREAM, entry), _nothing)
        self._free.append(line)
        self._begin()

    def _acknowledged(self, entry: bytes, _count: Any) -> None:
        self._known_entries.discard(entry)


def _nothing(_reply: Any) -> None:
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description="writes tweets to followers; python -m benchmarks flows starts it")
    parser.add_argument("--store", required=True)
    parser.add_argument("--queue", required=True, help="path of the queue's socket")
    parser.add_argument("--executions", required=True, help="file that grows by a byte with each execution")
    parser.add_argument("--connections", type=int, required=True)
    given = parser.parse_args()
    os.nice(NICENESS)
    executions = os.open(given.executions, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with select.epoll() as epoll:
        worker = QueueWorker(Poller(epoll), parse_endpoint(given.store), given.queue, executions)
        worker.serve(given.connections)


if __name__ == "__main__":
    main()
