"""The worker behind the queue of the variant ``external``: takes tweets and writes them into the followers' rows.

The worker is a process of its own (``python -m benchmarks.flows_worker``), at the same lower priority as the store's
own trigger worker.  It acknowledges a tweet when all followers have it.  Tweets that a worker took and did not
acknowledge within OFFERED_MS are claimed by the next one.

A tweet that raises is tried again after the pauses of the store's own triggers, while others go on, and after its last
attempt it goes to the stream of dead tweets.  Attempts are counted in this process, so they begin anew after a kill.
"""

from __future__ import annotations

import argparse
import heapq
import os
import select
import time
from collections import Counter, deque
from functools import partial
from typing import Any, Final

from benchmarks.flows_crew import Crew, Line, Poller
from benchmarks.flows_plan import PoisonError
from benchmarks.flows_queue import GROUP, STREAM, QueueLink, push_dead, pushed
from benchmarks.flows_steps import spread
from benchmarks.flows_trigger import note_execution
from benchmarks.resp import command
from columnar.bench.address import Endpoint, parse_endpoint

OFFERED_MS: Final = 1_000
BLOCK_MS: Final = 1_000
CLAIMED: Final = 100  # entries of one XAUTOCLAIM
NICENESS: Final = 5
FIRST_PAUSE_NS: Final = 100_000_000  # after a tweet's first failure; each further pause is twice as long
MAX_PAUSE_NS: Final = 60_000_000_000


class Retries:
    """(pure) Entries that raised, and when each is tried again: after the pauses of the store's triggers."""

    def __init__(self, attempts: int) -> None:
        """Take the attempts after which an entry is given up."""
        self._attempts = attempts
        self._failures: Counter[bytes] = Counter()
        self._waiting: list[tuple[int, bytes, list[bytes]]] = []  # (when, entry, fields), a heap

    def is_given_up(self, entry: bytes, fields: list[bytes], now_ns: int) -> bool:
        """Count a failed attempt; return whether it was the last one, else put the entry off."""
        self._failures[entry] += 1
        failed = self._failures[entry]
        if failed >= self._attempts:
            del self._failures[entry]
            return True
        heapq.heappush(self._waiting, (now_ns + min(MAX_PAUSE_NS, FIRST_PAUSE_NS << failed - 1), entry, fields))
        return False

    def due(self, now_ns: int) -> list[tuple[bytes, list[bytes]]]:
        """Remove and return the entries that are to be tried again now."""
        found = []
        while self._waiting and self._waiting[0][0] <= now_ns:
            found.append(heapq.heappop(self._waiting)[1:])
        return found

    def wait_ns(self, now_ns: int) -> int:
        """Return the time until the next entry is due; MAX_PAUSE_NS at most."""
        return max(0, self._waiting[0][0] - now_ns) if self._waiting else MAX_PAUSE_NS


class QueueWorker:
    def __init__(self, poller: Poller, endpoint: Endpoint, queue: str, executions: int, attempts: int) -> None:
        """Take the descriptor of the file that grows by a byte with each execution, and the attempts of a tweet."""
        self._poller = poller
        self._executions = executions
        self._retries = Retries(attempts)
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
            self._todo += self._retries.due(now)
            self._begin()
            self._taking.flush()
            self._saying.flush()
            self._poller.wait(min(self._crew.wait_ns(now), self._retries.wait_ns(now)))

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
            tweet = pushed(fields)
            try:
                note_execution(self._executions, tweet.text)
            except PoisonError:
                self._raised(entry, fields)
                continue
            line = self._free.pop()
            self._entry_of[line] = entry
            self._crew.begin(line, 0, tweet)

    def _raised(self, entry: bytes, fields: list[bytes]) -> None:
        if self._retries.is_given_up(entry, fields, time.perf_counter_ns()):
            self._saying.enqueue_command(push_dead(fields), _nothing)  # before the entry leaves the queue
            self._close(entry)

    def _done(self, line: Line) -> None:
        self._close(self._entry_of.pop(line))
        self._free.append(line)
        self._begin()

    def _close(self, entry: bytes) -> None:
        self._saying.enqueue_command(command("XACK", STREAM, GROUP, entry), partial(self._acknowledged, entry))
        self._saying.enqueue_command(command("XDEL", STREAM, entry), _nothing)

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
    parser.add_argument("--attempts", type=int, required=True, help="after which a tweet that raises is given up")
    given = parser.parse_args()
    os.nice(NICENESS)
    executions = os.open(given.executions, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with select.epoll() as epoll:
        worker = QueueWorker(Poller(epoll), parse_endpoint(given.store), given.queue, executions, given.attempts)
        worker.serve(given.connections)


if __name__ == "__main__":
    main()
