"""HBase's IntegrationTestBigLinkedList: a lost node leaves a dangling reference.

A writer makes a layer of nodes with random keys, each referring to a node of the layer before, and goes on
only when the whole layer is acknowledged.  So a node refers only to acknowledged nodes, whenever a process dies.  After
some layers the first layer is written once more, to refer to the last: a circle of width x layers nodes, each referred
to exactly once.

A call without an answer is sent again: a node sent twice is the same node.  At the end a reader goes through the whole
table while kills continue, and ``list_accounts`` says what each key is.  Each node has cells in two families, which
must both be stored, and random walks follow the references by single gets.

In some rounds a trigger (``referring``) records for each node which nodes refer to it, and the count is made a second
time with the trigger's references instead of the list's own: a change that was not delivered shows as a node without
references to it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.proofs.asking import Asking, Cells, until_answered
from tests.proofs.crew import work_together
from tests.proofs.list_accounts import KEY_BYTES, WRONG, ListAccounts, ListCounts
from tests.proofs.row_semantics import Read
from tests.proofs.verdict import Plan, Tell, Verdict

TABLE: Final = b"linked-list"
FAMILIES: Final = {"meta": {"max_versions": 1}, "big": {"max_versions": 1}}
DERIVED_SHAPE: Final = (100, 5)  # width and layers where a trigger hears of each node: small, it is waited for
BATCH: Final = 100  # nodes of a call
PAUSE: Final = 0.05  # of the layers are followed by a pause: logs that are nearly empty find other mistakes
PAGE: Final = 1_000
WALK: Final = 200  # steps of a walk
WALKS: Final = 5
PREVIOUS: Final = b"meta:prev"
WRITER: Final = b"meta:writer"
FILLER: Final = b"big:filler"


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a circle: nodes of a layer, and layers."""

    width: int = 500
    layers: int = 25


@dataclass(frozen=True, slots=True)
class Derived:
    """The trigger's table: for each node a row with a column for each node that refers to it."""

    connect: Callable[[], Asking]
    deliver: Callable[[], bool]  # returns when all that is acknowledged is delivered; False: it takes too long


class ListWriter:
    """A writer of circles; ``rest`` is called after each circle."""

    def __init__(
        self, client: Asking, number: int, seed: int, accounts: ListAccounts, shape: Shape, rest: Callable[[], object]
    ) -> None:
        self._client, self._accounts, self._rest = client, accounts, rest
        self._number, self._shape = number, shape
        self._rng = random.Random(f"list {seed} {number}")
        self.nodes = 0
        self.circles = 0
        self.start: bytes | None = None  # a node to walk from

    def run(self, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                self._circle(stop)
                self._rest()
        finally:
            self._client.close()

    def _circle(self, stop: threading.Event) -> None:
        """Write a circle, and close it also when told to stop, with the layers written so far."""
        first: list[bytes] = []
        previous: list[bytes] = []
        for _ in range(self._shape.layers):
            layer = [self._rng.randbytes(KEY_BYTES) for _ in range(self._shape.width)]
            self._write(layer, previous)
            self._accounts.add("acknowledged", layer)
            self.nodes += len(layer)
            first, previous = first or layer, layer
            if self._rng.random() < PAUSE:
                stop.wait(self._rng.uniform(0, 0.3))
            if stop.is_set():
                break
        self._write(first[1:] + first[:1], previous)
        self.circles += 1
        self.start = first[0]

    def _write(self, layer: Sequence[bytes], previous: Sequence[bytes]) -> None:
        """Write a layer; return when all of it is acknowledged."""
        rows = [(key, self._cells(previous[n] if previous else None)) for n, key in enumerate(layer)]
        for at in range(0, len(rows), BATCH):
            part = rows[at : at + BATCH]
            until_answered(lambda part=part: self._client.put_rows(part))

    def _cells(self, previous: bytes | None) -> Cells:
        cells = {WRITER: b"%d" % self._number, FILLER: bytes(self._rng.choice((8, 8, 100, 1_000)))}
        return cells | ({PREVIOUS: previous} if previous is not None else {})


@dataclass
class ReadBack:
    nodes: int = 0
    torn: int = 0
    example: str = ""


def pages(client: Asking, verdict: Verdict) -> Iterator[list[tuple[bytes, Cells]]]:
    """Yield a whole table page by page; a page whose answer is lost is requested again."""
    at = b""
    while True:
        page = until_answered(lambda: client.page(at, PAGE, PAGE // 2))  # noqa: B023 - called at once
        keys = [row for row, _ in page]
        if keys != sorted(set(keys)) or (keys and keys[0] < at):
            verdict.add(f"a scan from {at.hex()} gives rows out of order, or twice")
        yield page
        if len(page) < PAGE:
            return
        at = keys[-1] + b"\0"


def read_back(client: Asking, accounts: ListAccounts, verdict: Verdict, tell: Tell) -> ReadBack:
    """Read the list into the accounts."""
    found = ReadBack()
    for page in pages(client, verdict):
        for row, cells in page:
            if len(row) != KEY_BYTES or WRITER not in cells or FILLER not in cells:
                found.torn += 1
                found.example = f"node {row.hex()} has only {sorted(cells)}"
        nodes = [(row, cells.get(PREVIOUS, b"")) for row, cells in page if len(row) == KEY_BYTES]
        accounts.add("defined", (row for row, _ in nodes))
        accounts.add("referred", (previous for _, previous in nodes if len(previous) == KEY_BYTES))
        found.nodes += len(page)
        tell(f"reading back: {found.nodes:,} nodes")
    return found


def read_derived(client: Asking, accounts: ListAccounts, verdict: Verdict) -> None:
    """Read the trigger's table into the accounts."""
    for page in pages(client, verdict):
        for row, cells in page:
            accounts.add("derived", [row] * len(cells))


def walk(client: Asking, start: bytes, steps: int) -> str:
    """Follow the references from ``start``; return the first fault, or an empty text."""
    key = start
    for taken in range(steps):
        cells = dict(until_answered(lambda key=key: client.perform(key, Read())))
        if PREVIOUS not in cells:
            return f"UNDEFINED: step {taken} of a walk from {start.hex()} is {key.hex()}, which has {sorted(cells)}"
        key = cells[PREVIOUS]
    return ""


def prove(
    connect: Callable[[], Asking],
    folder: Path,
    plan: Plan,
    tell: Tell,
    *,
    shape: Shape | None = None,
    derived: Derived | None = None,
) -> Verdict:
    """Run one round: write for the plan's time, then read everything."""
    shape = shape or (Shape(*DERIVED_SHAPE) if derived else Shape())
    verdict = Verdict("linked list", needed=("nodes acknowledged", "nodes read back"))
    with ListAccounts(folder) as accounts:
        rest = derived.deliver if derived else lambda: True
        writers = [ListWriter(connect(), n, plan.seed, accounts, shape, rest) for n in range(plan.writers)]
        begun = time.monotonic()
        work_together([w.run for w in writers], plan.seconds, lambda: tell(f"{sum(w.nodes for w in writers):,} nodes"))
        verdict.seconds = time.monotonic() - begun
        reader = connect()
        try:
            there = read_back(reader, accounts, verdict, tell)
            starts = [writer.start for writer in writers if writer.start is not None][:WALKS]
            for problem in filter(None, (walk(reader, start, WALK) for start in starts)):
                verdict.add(problem)
        finally:
            reader.close()
        if derived:
            _look_at(derived, accounts, verdict, tell)
        found = accounts.count("referred")
        derived_counts = accounts.count("derived") if derived else None
    _tell_wrong(verdict, found, "")
    if there.torn:
        verdict.add(f"TORN: {there.torn:,} nodes, for example {there.example}")
    verdict.done = found.counts["acknowledged"]
    verdict.counts = {
        "nodes acknowledged": found.counts["acknowledged"],
        "nodes read back": there.nodes,
        "circles": sum(writer.circles for writer in writers),
        **{what: found.counts[what] for what in ("REFERENCED", *WRONG)},
        "TORN": there.torn,
    }
    if derived_counts is not None:
        _tell_wrong(verdict, derived_counts, "by the trigger's table, ")
        verdict.counts |= {f"by trigger: {what}": derived_counts.counts[what] for what in ("REFERENCED", *WRONG)}
    return verdict


def _look_at(derived: Derived, accounts: ListAccounts, verdict: Verdict, tell: Tell) -> None:
    tell("waiting for the trigger")
    if not derived.deliver():
        verdict.add("the trigger was not told everything in time")
    client = derived.connect()
    try:
        read_derived(client, accounts, verdict)
    finally:
        client.close()


def _tell_wrong(verdict: Verdict, found: ListCounts, where: str) -> None:
    for what in WRONG:
        if found.counts[what]:
            examples = ", ".join(key.hex() for key in found.examples[what])
            verdict.add(f"{where}{what}: {found.counts[what]:,} nodes, for example {examples}")
