"""The check that a trigger got every change, the changes of each row in their order.

``noting`` appends the number of each change to the log of its row.  A change may be delivered more than once; the
first deliveries of a row's changes are in the order of the changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from columnar.client import Connection
from tests.proofs import noting
from tests.proofs.region_clients import RegionClient, row_of

EXAMPLES: Final = 5
PATIENCE_S: Final = 120.0  # without a single further delivery
LOOK_S: Final = 0.2


@dataclass(slots=True)
class Deliveries:
    delivered: int = 0  # changes, each once
    repeats: int = 0
    missing: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, problem: str) -> None:
        if len(self.problems) < EXAMPLES:
            self.problems.append(problem)


def delivered(
    connection: Connection, trigger: str, clients: Sequence[RegionClient], tell: Callable[[str], None]
) -> Deliveries:
    """Return when every change is delivered, or no further one is for PATIENCE_S."""
    found, last = Deliveries(), time.monotonic()
    while True:
        logs = {row: cells[noting.COLUMN] for row, cells in connection.table(noting.TABLE).scan()}
        now = judge(clients, logs)
        if now.delivered > found.delivered:
            last = time.monotonic()
        found = now
        if not found.missing or time.monotonic() > last + PATIENCE_S:
            break
        tell(f"waiting for the trigger, {found.missing:,} changes")
        time.sleep(LOOK_S)
    if letters := connection.triggers.dead_letters(trigger, limit=1):
        found.add(f"the trigger gave up: {letters}")
    return found


def judge(clients: Iterable[RegionClient], logs: Mapping[bytes, bytes]) -> Deliveries:
    """Compare the writes of clients with ``logs``, the noted changes by row."""
    found = Deliveries()
    for client in clients:
        numbers_of: dict[bytes, list[int]] = {}
        for number in client.journal.acknowledged():
            numbers_of.setdefault(row_of(client.prefix, number), []).append(number)
        for row, numbers in numbers_of.items():
            _judge_row(row, numbers, client.journal.unsure, logs.get(row, b""), found)
    return found


def _judge_row(row: bytes, acknowledged: list[int], unsure: set[int], log: bytes, found: Deliveries) -> None:
    noted = [int(word) for word in log.split()]
    first = list(dict.fromkeys(noted))
    found.repeats += len(noted) - len(first)
    found.delivered += len(first)
    missing = sorted(set(acknowledged) - set(first))
    found.missing += len(missing)
    if missing:
        found.add(f"{row.decode()}: changes {missing[:EXAMPLES]} were not delivered")
    in_order = [number for number in first if number not in unsure]  # a write without an answer may come late
    if in_order != sorted(in_order):
        found.add(f"{row.decode()}: delivered as {first}")
