"""Counts of what a wiki does, in memory that all its processes share: the numbers of ``/metrics``.

    table := slab*        slab := f64*        a slab has a place for each number of each sample in FAMILIES
    slab 0                the parent's: workers and their restarts
    another slab          of one worker at a time

Each process writes to a slab of its own, so none waits for another.  A slab keeps its numbers when its worker ends,
and the next worker that takes it counts on: the sums over all slabs never fall.  The table is a file without a name,
mapped by every process that is forked after the file was opened.

Invariants:
    I1. The samples are those of FAMILIES: no request, page or visitor makes a new one.
    I2. A slab has one process that writes to it, and its threads take turns by a lock.  When the process has ended,
        the parent sets its numbers of transfers under way to 0.

Knows nothing of HTTP and of Prometheus' form, which ``metrics`` has.
"""

from __future__ import annotations

import mmap
import tempfile
import threading
from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from wikka_port.urls import PAGE_HANDLERS, RESERVED, SITE_HANDLERS

BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
NO_ROUTE: Final = "none"  # of a request that is refused before its address is read
ROUTES: Final = (*sorted(PAGE_HANDLERS | SITE_HANDLERS | RESERVED | {"api", "download", "static", "titles"}), NO_ROUTE)
STATUSES: Final = ("2xx", "3xx", "4xx", "5xx")
SLABS_PER_WORKER: Final = 4  # a worker that answers its last requests has its slab until it ends (10 s)
_BYTES: Final = 8

Kind = Literal["counter", "gauge", "histogram"]
StoreOutcome = Literal["ok", "refused", "unavailable"]
SignIn = Literal["ok", "refused", "limited"]
Edit = Literal["saved", "merged", "unchanged", "conflict"]
Cache = Literal["documents", "answers"]
TransferState = Literal["in", "out", "waiting"]


@dataclass(frozen=True, slots=True)
class Family:
    """A metric, with every sample that it ever has; a counter's name is shown with ``_total``."""

    name: str
    kind: Kind
    about: str
    labels: tuple[str, ...] = ()
    samples: tuple[tuple[str, ...], ...] = ((),)  # values of the labels

    @property
    def size(self) -> int:
        """The numbers of a sample: of a histogram a count for each bound, one over all bounds, and the seconds."""
        return len(BOUNDS_S) + 2 if self.kind == "histogram" else 1


def _each(*values: str) -> tuple[tuple[str, ...], ...]:
    return tuple((value,) for value in values)


REQUESTS: Final = Family(
    "wikka_requests",
    "counter",
    "Requests answered, by handler and class of status.",
    ("route", "status"),
    tuple((route, status) for route in ROUTES for status in STATUSES),
)
REQUEST_SECONDS: Final = Family(
    "wikka_request_seconds",
    "histogram",
    "From the begin of a request's work, after it has waited for a thread, to its answer.",
    ("route",),
    _each(*ROUTES),
)
STORE_SECONDS: Final = Family(
    "wikka_store_seconds",
    "histogram",
    "Work at the store, one or several calls, with waiting for a connection and repeats.",
    ("outcome",),
    _each("ok", "refused", "unavailable"),
)
SIGN_INS: Final = Family(
    "wikka_sign_ins",
    "counter",
    "Attempts to sign in by a password; limited: after too many.",
    ("outcome",),
    _each("ok", "refused", "limited"),
)
EDITS: Final = Family(
    "wikka_edits",
    "counter",
    "Edits sent; merged: saved with changes of others, conflict: given back to be merged by hand.",
    ("outcome",),
    _each("saved", "merged", "unchanged", "conflict"),
)
CACHED: Final = Family(
    "wikka_cache_lookups",
    "counter",
    "Looks into caches of the processes: parsed pages, answers of lists.",
    ("cache", "found"),
    tuple((cache, found) for cache in ("documents", "answers") for found in ("yes", "no")),
)
TRANSFERS: Final = Family(
    "wikka_transfers",
    "gauge",
    "Uploads (in) and large answers (out) under way, and those that wait for a thread.",
    ("state",),
    _each("in", "out", "waiting"),
)
TRANSFER_BYTES: Final = Family(
    "wikka_transfer_bytes",
    "counter",
    "Bytes of uploads that came in while they were read, and of large answers that went out.",
    ("direction",),
    _each("in", "out"),
)
WORKERS: Final = Family("wikka_workers", "gauge", "Worker processes that serve now.")
RESTARTS: Final = Family("wikka_worker_restarts", "counter", "Workers that ended by themselves and were replaced.")
FAMILIES: Final = (
    *(REQUESTS, REQUEST_SECONDS, STORE_SECONDS, SIGN_INS, EDITS, CACHED),
    *(TRANSFERS, TRANSFER_BYTES, WORKERS, RESTARTS),
)


def _places() -> Iterator[tuple[tuple[str, tuple[str, ...]], int]]:
    place = 0
    for family in FAMILIES:
        for sample in family.samples:
            yield (family.name, sample), place
            place += family.size


PLACES: Final = dict(_places())  # the first number of each sample, by the family's name and its labels
SIZE: Final = sum(family.size * len(family.samples) for family in FAMILIES)


class Counters:
    """A slab, written by this process.  Thread-safe."""

    def __init__(self, numbers: memoryview[float]) -> None:
        """Take SIZE numbers of the format ``d``."""
        self._numbers = numbers  # guarded by _lock
        self._lock = threading.Lock()

    @classmethod
    def of_process(cls) -> Counters:
        """Return counters that no other process sees."""
        return cls(memoryview(bytearray(SIZE * _BYTES)).cast("d"))

    def request_done(self, route: str, status: int, seconds: float) -> None:
        self._count(REQUESTS, route, STATUSES[min(max(status // 100 - 2, 0), len(STATUSES) - 1)])
        self._observe(REQUEST_SECONDS, route, seconds)

    def store_done(self, outcome: StoreOutcome, seconds: float) -> None:
        self._observe(STORE_SECONDS, outcome, seconds)

    def sign_in_done(self, outcome: SignIn) -> None:
        self._count(SIGN_INS, outcome)

    def edit_done(self, outcome: Edit) -> None:
        self._count(EDITS, outcome)

    def lookup_done(self, cache: Cache, *, is_found: bool) -> None:
        self._count(CACHED, cache, "yes" if is_found else "no")

    def transfers_changed(self, state: TransferState, change: int) -> None:
        self._count(TRANSFERS, state, by=change)

    def transfer_moved(self, direction: Literal["in", "out"], size_bytes: int) -> None:
        self._count(TRANSFER_BYTES, direction, by=size_bytes)

    def transfers_broken(self) -> None:
        """Note that the slab's process has ended, and its transfers with it.  For the parent."""
        with self._lock:
            for sample in TRANSFERS.samples:
                self._numbers[PLACES[TRANSFERS.name, sample]] = 0

    def worker_replaced(self) -> None:
        self._count(RESTARTS)

    def note_workers(self, number: int) -> None:
        with self._lock:
            self._numbers[PLACES[WORKERS.name, ()]] = number

    def number(self, family: Family, *sample: str) -> float:
        """Return the first number of a sample."""
        found: float = self._numbers[PLACES[family.name, sample]]
        return found

    def _count(self, family: Family, *sample: str, by: int = 1) -> None:
        place = PLACES[family.name, sample]
        with self._lock:
            self._numbers[place] += by

    def _observe(self, family: Family, sample: str, seconds: float) -> None:
        place = PLACES[family.name, (sample,)]
        with self._lock:
            self._numbers[place + bisect_left(BOUNDS_S, seconds)] += 1
            self._numbers[place + len(BOUNDS_S) + 1] += seconds


class CounterTable:
    """The slabs of a wiki.  Owned by the parent, which gives each worker a slab; any process may sum them."""

    def __init__(self, table: mmap.mmap) -> None:
        """Take the mapped file of whole slabs."""
        self._numbers = memoryview(table).cast("d")
        self._slabs = len(self._numbers) // SIZE

    @classmethod
    def opened(cls, workers: int) -> CounterTable:
        """Return a new table, in a file without a name.  Raises OSError."""
        size_bytes = (1 + workers * SLABS_PER_WORKER) * SIZE * _BYTES
        with tempfile.TemporaryFile(prefix="wikka-counters-") as file:
            file.truncate(size_bytes)
            return cls(mmap.mmap(file.fileno(), size_bytes))

    def of_parent(self) -> Counters:
        return self.counters(0)

    def counters(self, slab: int) -> Counters:
        return Counters(self._numbers[slab * SIZE : (slab + 1) * SIZE])

    def free_slab(self, used: Collection[int]) -> int | None:
        """Return a slab for a worker that is none of ``used``, or None if all are."""
        return next((slab for slab in range(1, self._slabs) if slab not in used), None)

    def sums(self) -> list[float]:
        """Return each number summed over all slabs."""
        slabs = [self._numbers[start : start + SIZE].tolist() for start in range(0, len(self._numbers), SIZE)]
        return [sum(column) for column in zip(*slabs, strict=True)]
