"""HBase's IntegrationTestBigLinkedList: a lost node shows as a reference to nothing.

A writer makes a layer of nodes with random keys, each referring to a node of the layer before, and goes on
only when the whole layer is acknowledged; so a node refers to nothing that was not acknowledged before, at
whatever moment anybody dies.  After some layers the first one is written once more, to refer to the last:
one circle of width x layers nodes, each referred to exactly once.

What gets no answer is sent again: a node sent twice is the same node.  In the end a reader goes through the whole
table, kills go on, and ``list_accounts`` says what each key is.  Besides, each node has cells
in two families, and both must be there; and random walks follow the references by single gets.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.proofs.asking import Asking, Cells, until_answered
from tests.proofs.crew import work_together
from tests.proofs.list_accounts import KEY_BYTES, WRONG, ListAccounts
from tests.proofs.row_semantics import Read
from tests.proofs.verdict import Plan, Tell, Verdict

TABLE: Final = b"linked-list"
FAMILIES: Final = {"meta": {"max_versions": 1}, "big": {"max_versions": 1}}
WIDTH: Final = 500  # nodes of a layer
LAYERS: Final = 25
BATCH: Final = 100  # nodes of a call
PAUSE: Final = 0.05  # of the layers are followed by a pause: logs that are nearly empty find other mistakes
PAGE: Final = 1_000
WALK: Final = 200  # steps of a walk
WALKS: Final = 5
PREVIOUS: Final = b"meta:prev"
WRITER: Final = b"meta:writer"
FILLER: Final = b"big:filler"


class ListWriter:
    def __init__(self, client: Asking, number: int, seed: int, accounts: ListAccounts, width: int, layers: int) -> None:
        self._client, self._accounts = client, accounts
        self._number, self._width, self._layers = number, width, layers
        self._rng = random.Random(f"list {seed} {number}")
        self.nodes = 0
        self.circles = 0
        self.start: bytes | None = None  # a node to walk from

    def run(self, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                self._circle(stop)
        finally:
            self._client.close()

    def _circle(self, stop: threading.Event) -> None:
        """Closed also when it is told to stop: with the layers there are."""
        first: list[bytes] = []
        previous: list[bytes] = []
        for _ in range(self._layers):
            layer = [self._rng.randbytes(KEY_BYTES) for _ in range(self._width)]
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
        """Returns when all of it is acknowledged."""
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


def read_back(client: Asking, accounts: ListAccounts, verdict: Verdict, tell: Tell) -> ReadBack:
    """The whole table into the books, page by page."""
    at, found = b"", ReadBack()
    while True:
        page = until_answered(lambda at=at: client.page(at, PAGE, PAGE // 2))
        keys = [row for row, _ in page]
        if keys != sorted(set(keys)) or (keys and keys[0] < at):
            verdict.add(f"a scan from {at.hex()} gives rows out of order, or twice")
        for row, cells in page:
            if len(row) != KEY_BYTES or WRITER not in cells or FILLER not in cells:
                found.torn += 1
                found.example = f"node {row.hex()} has only {sorted(cells)}"
        accounts.add("defined", (row for row in keys if len(row) == KEY_BYTES))
        accounts.add("referred", (cells[PREVIOUS] for _, cells in page if len(cells.get(PREVIOUS, b"")) == KEY_BYTES))
        found.nodes += len(page)
        tell(f"reading back: {found.nodes:,} nodes")
        if len(page) < PAGE:
            return found
        at = keys[-1] + b"\0"


def walk(client: Asking, start: bytes, steps: int) -> str:
    """What is wrong on the way, or nothing."""
    key = start
    for taken in range(steps):
        cells = dict(until_answered(lambda key=key: client.perform(key, Read())))
        if PREVIOUS not in cells:
            return f"UNDEFINED: step {taken} of a walk from {start.hex()} is {key.hex()}, which has {sorted(cells)}"
        key = cells[PREVIOUS]
    return ""


def prove(
    connect: Callable[[], Asking], folder: Path, plan: Plan, tell: Tell, width: int = WIDTH, layers: int = LAYERS
) -> Verdict:
    """One round: write for so long, then read everything."""
    verdict = Verdict("linked list")
    with ListAccounts(folder) as accounts:
        writers = [ListWriter(connect(), n, plan.seed, accounts, width, layers) for n in range(plan.writers)]
        begun = time.monotonic()
        work_together([w.run for w in writers], plan.seconds, lambda: tell(f"{sum(w.nodes for w in writers):,} nodes"))
        took_s = time.monotonic() - begun
        reader = connect()
        try:
            there = read_back(reader, accounts, verdict, tell)
            starts = [writer.start for writer in writers if writer.start is not None][:WALKS]
            for problem in filter(None, (walk(reader, start, WALK) for start in starts)):
                verdict.add(problem)
        finally:
            reader.close()
        found = accounts.count()
    for what in WRONG:
        if found.counts[what]:
            examples = ", ".join(key.hex() for key in found.examples[what])
            verdict.add(f"{what}: {found.counts[what]:,} nodes, for example {examples}")
    if there.torn:
        verdict.add(f"TORN: {there.torn:,} nodes, for example {there.example}")
    if found.counts["acknowledged"] == 0:
        verdict.add("nothing was acknowledged: the run shows nothing")
    verdict.counts = {
        "nodes acknowledged": found.counts["acknowledged"],
        "nodes read back": there.nodes,
        "circles": sum(writer.circles for writer in writers),
        "nodes per second": round(found.counts["acknowledged"] / took_s),
        **{what: found.counts[what] for what in ("REFERENCED", *WRONG)},
        "TORN": there.torn,
    }
    return verdict
