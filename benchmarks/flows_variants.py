"""The variants of the ETH experiment: which processes each has, and how they are filled, drained, killed and restarted.

    sync          store                                  the application writes everything, one follower after the other
    sync-batched  store                                  the application writes everything in one batch
    external      store, queue, worker                   the application writes and pushes; the worker does the rest
    integrated    store with its worker of triggers      the application writes; a trigger does the rest

Each variant has a site of its own: a folder, a store that keeps its port over restarts, and the rest.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

from thriftpy2.thrift import TException

from benchmarks import flows_queue, flows_trigger
from benchmarks.flows_app import length_of
from benchmarks.flows_plan import FOLLOWERS, FOLLOWERS_FAMILY, IN, MARK, OWN, TIMELINE, Profile, graph_of, user_key
from benchmarks.own_stores import Started, store_command
from benchmarks.resp import RedisError
from columnar.bench.address import Endpoint, EndpointFailed, parse_endpoint
from columnar.bench.faults import failed
from columnar.client import Connection, RegionAdmin
from gauge.processes import children_of, cpu_s_of, resident_mb

VARIANTS: Final = ("sync", "sync-batched", "external", "integrated")
PARTS: Final = {  # that can be killed
    "sync": ("store",),
    "sync-batched": ("store",),
    "external": ("store", "worker", "queue"),
    "integrated": ("store", "worker"),
}
CHANGES: Final = (  # one after the other, and again: the timeline has one to three regions
    ("split", b"8"), ("split", b"4"), ("merge", b"4"), ("split", b"c"), ("merge", b"c"), ("merge", b"8"),
)  # fmt: skip
FILL_CELLS: Final = 20_000  # of one call
TIMEOUT_MS: Final = 120_000
WORKER_CONNECTIONS: Final = 16
_WORKER_S: Final = 30.0  # in which the store starts its worker
_POLL_S: Final = 0.002


class Site:
    def __init__(self, variant: str, profile: Profile, folder: Path, attempts: int) -> None:
        """Take an empty ``folder``, which is not removed afterwards, and the attempts before a tweet is given up."""
        self._attempts = attempts
        self._next_change = 0  # of CHANGES
        self.variant = variant
        self.profile = profile
        self.executions = str(folder / "executions")
        self._folder = folder
        self._store: Started | None = None
        self._worker: Started | None = None  # behind the queue
        self._queue: Started | None = None
        self.endpoint = Endpoint("127.0.0.1", 0)
        self.next_tweet = 0  # number that none has had

    @property
    def queue(self) -> str:
        """The path of the queue's socket; empty if the variant has no queue."""
        return str(flows_queue.socket_of(self._queue_folder)) if self.variant == "external" else ""

    @property
    def _queue_folder(self) -> Path:
        return self._folder / "queue"

    def start(self) -> None:
        """Start the parts that do not run.  Blocks until the store and the queue answer.  Raises EndpointFailed."""
        if self.queue and self._queue is None:
            self._queue = flows_queue.started_queue(self._queue_folder)
        if self._store is None:
            modules = ("--trigger-modules", flows_trigger.__name__) if self.variant == "integrated" else ()
            command = store_command(str(self._folder / "data"), *modules, port=self.endpoint.port)
            self._store, said = Started.with_ready_line(command, {flows_trigger.EXECUTIONS: self.executions})
            self.endpoint = parse_endpoint(said["store"])
        if self.queue:
            flows_queue.wait_for_queue(Path(self.queue))

    def fill(self) -> None:
        """Make the tables, write the followers, and start the worker or trigger that spreads tweets.

        Raises EndpointFailed.
        """
        with self._connected() as connection:
            connection.admin.create_table(FOLLOWERS, {FOLLOWERS_FAMILY: {"max_versions": 1}})
            connection.admin.create_table(TIMELINE, {OWN: {"max_versions": 1}, IN: {"max_versions": 1}})
            self._fill_followers(connection)
            if self.variant == "integrated":
                flows_trigger.register(connection, self._attempts)
        self.start_worker()

    def start_worker(self) -> None:
        """Start the worker behind the queue; the store starts its own worker."""
        if self.queue and self._worker is None:
            command = [sys.executable, "-m", "benchmarks.flows_worker", "--store", self.endpoint.address]
            command += ["--queue", self.queue, "--executions", self.executions]
            command += ["--connections", str(WORKER_CONNECTIONS), "--attempts", str(self._attempts)]
            self._worker = Started(subprocess.Popen(command, start_new_session=True))

    def _fill_followers(self, connection: Connection) -> None:
        graph = graph_of(self.profile)
        with connection.table(FOLLOWERS).batch(batch_size=FILL_CELLS) as batch:
            for user in graph.authors():
                for chunk in _chunks(map(user_key, graph.followers(user)), FILL_CELLS):
                    batch.put(user_key(user), {FOLLOWERS_FAMILY + b":" + follower: MARK for follower in chunk})

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Yield a connection.  Raises EndpointFailed, also for errors in the body of the ``with``."""
        connection = None
        try:
            connection = Connection(self.endpoint.host, self.endpoint.port, timeout=TIMEOUT_MS)
            yield connection
        except (TException, OSError) as error:
            raise failed(self.endpoint, error) from error
        finally:
            if connection is not None:
                connection.close()

    # --- tweets ---------------------------------------------------------------------------------------

    def drained(self, timeout_s: float) -> bool:
        """Wait until all acknowledged tweets are spread.  Raises EndpointFailed."""
        ends_s = time.monotonic() + timeout_s
        if self.variant == "integrated":
            with self._connected() as connection:
                while time.monotonic() < ends_s:
                    if connection.triggers.wait(flows_trigger.NAME, timeout_ms=1_000):
                        return True
            return False
        while self.queue and self._undone():
            if time.monotonic() > ends_s:
                return False
            time.sleep(_POLL_S)
        return True

    def _undone(self) -> int:
        try:
            return flows_queue.undone(Path(self.queue))
        except (OSError, RedisError) as error:
            raise EndpointFailed(f"the queue: {error}") from error

    def take_given_up(self) -> Counter[bytes]:
        """Remove the tweets that were given up, and return their number by the author's row.  Raises EndpointFailed."""
        found: Counter[bytes] = Counter()
        if self.queue:
            try:
                return flows_queue.take_dead(Path(self.queue))
            except (OSError, RedisError) as error:
                raise EndpointFailed(f"the queue: {error}") from error
        if self.variant == "integrated":
            with self._connected() as connection:
                while rows := self._rows_of_dead_letters(connection):
                    for row in rows:
                        found[row] += connection.triggers.skip_dead(flows_trigger.NAME, row)
        return found

    def _rows_of_dead_letters(self, connection: Connection) -> set[bytes]:
        letters: Any = connection.triggers.dead_letters(flows_trigger.NAME)
        return {letter.row for letter in letters}

    def change_regions(self) -> str:
        """Make the next of CHANGES in the timeline, which the trigger follows and writes; return its kind.

        Blocks until the new regions serve.  Raises EndpointFailed; the next call tries the same change again.
        """
        kind, row = CHANGES[self._next_change]
        with self._connected() as connection:
            regions = sorted(connection.admin.regions(TIMELINE), key=lambda one: one.start_key)
            after = next((at for at, one in enumerate(regions) if one.start_key == row), None)
            region_admin = RegionAdmin(connection)
            if kind == "split" and after is None:
                region_admin.split(TIMELINE, row)
            elif kind == "merge" and after is not None:
                region_admin.merge(regions[after - 1].name, regions[after].name)
        self._next_change = (self._next_change + 1) % len(CHANGES)
        return kind

    def executed(self) -> int:
        """Return how often the spreading of a tweet was begun in the site's life."""
        return length_of(self.executions)

    def executed_in_vain(self, begin: int, end: int) -> int:
        """Return how often the spreading of a poison tweet was begun, among executions ``begin`` to ``end``."""
        with suppress(FileNotFoundError), open(self.executions, "rb") as file:
            file.seek(begin)
            return file.read(end - begin).count(flows_trigger.POISONED)
        return 0

    def timelines(self) -> Iterator[tuple[bytes, Iterable[bytes]]]:
        """Yield each user's row of the timeline: key and columns.  Raises EndpointFailed."""
        with self._connected() as connection:
            yield from connection.table(TIMELINE).scan(filter=b"KeyOnlyFilter()", batch_size=1_000)

    # --- processes ------------------------------------------------------------------------------------

    def roles(self) -> dict[str, int]:
        """Return the process of each part, but for the application."""
        if self._store is None or not self._store.pids:
            raise EndpointFailed("the store ended; it says why above")
        found = {}
        (store,) = self._store.pids
        if self.variant == "integrated":
            found["worker"] = self._store_worker(store)
        elif self._worker is not None and self._queue is not None:
            (found["worker"],) = self._worker.pids
            (found["queue"],) = self._queue.pids
        return found | {"store": store}

    def cpu_s(self) -> dict[str, float]:
        """Return the processor time of each part so far."""
        roles = self.roles()
        return dict(zip(roles, cpu_s_of(roles.values()), strict=True))  # the store last: the worker is its child

    def resident_mb(self) -> dict[str, float]:
        found = {role: resident_mb([pid]) for role, pid in self.roles().items()}
        if self.variant == "integrated":
            found["store"] -= found["worker"]
        return found

    def _store_worker(self, store: int) -> int:
        """Return the process id of the store's worker.  Raises EndpointFailed if it does not start in time."""
        ends_s = time.monotonic() + _WORKER_S
        while not (children := children_of(store)):
            if time.monotonic() > ends_s:
                raise EndpointFailed("the store did not start its worker of triggers")
            time.sleep(_POLL_S)
        return children[0]

    def kill(self, parts: Iterable[str]) -> None:
        """``kill -9`` of these parts, at once.  ``start`` and ``start_worker`` start them again."""
        killed = set(parts)
        pids = [pid for role, pid in self.roles().items() if role in killed]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        if "store" in killed and self._store is not None:
            self._store.kill(with_children=killed == set(PARTS[self.variant]))
            self._store = None
        if "worker" in killed and self._worker is not None:
            self._worker.kill(with_children=True)
            self._worker = None
        if "queue" in killed and self._queue is not None:
            self._queue.kill(with_children=True)
            self._queue = None

    def freeze(self) -> int:
        """Send SIGSTOP to the store; return its process id."""
        pid = self.roles()["store"]
        os.kill(pid, signal.SIGSTOP)
        return pid

    def stop(self) -> None:
        for part in (self._worker, self._store, self._queue):
            if part is not None:
                part.stop()
        self._worker = self._store = self._queue = None


def thaw(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)


def _chunks(keys: Iterable[bytes], most: int) -> Iterator[list[bytes]]:
    left = iter(keys)
    while chunk := list(islice(left, most)):
        yield chunk
