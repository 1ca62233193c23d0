"""Random histories for tests: events of source rows, and faults of the runs that deliver these events.

    put, delete     a change of a source row, by the clock or with a timestamp that a client invented
    begin           the trigger is added: existing rows are delivered as they are, earlier changes are not
    deliver         the row's oldest change is delivered; with ``cut`` the run dies after that many steps, and repeats
    ghost           the writes of an earlier run, done or outstanding when the run died, arrive now

Any part of a history is a history: an event that is impossible at its place does nothing.  ``shrunk`` relies on that.

Knows nothing of how functions are called.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from columnar.errors import printable

HOUR_MS: Final = 3_600_000
EVENTS: Final = 16
MOST_STEPS: Final = 5  # of a run, before it dies
_SHIFTS: Final = (-2 * HOUR_MS, -HOUR_MS, HOUR_MS, 2 * HOUR_MS)

Kind = Literal["put", "delete", "begin", "deliver", "ghost"]


@dataclass(frozen=True, slots=True)
class Event:
    kind: Kind
    row: bytes = b""
    cells: tuple[tuple[bytes, bytes], ...] = ()  # of a put
    columns: tuple[bytes, ...] = ()  # of a delete; none: the whole row
    shift_ms: int | None = None  # the client's timestamp minus the clock; None: the clock's timestamp
    cut: int | None = None  # steps after which a run dies
    which: int = 0  # of the ghosts

    def __str__(self) -> str:
        at = "" if self.shift_ms is None else f", stamped {self.shift_ms / HOUR_MS:+.0f} h by the client"
        row = printable(self.row)
        if self.kind == "put":
            cells = " ".join(f"{printable(column)}={printable(value)}" for column, value in self.cells)
            return f"put {row}: {cells}{at}"
        if self.kind == "delete":
            return f"delete {row}: {' '.join(map(printable, self.columns)) or 'all of it'}{at}"
        if self.kind == "deliver":
            return f"run for {row}" + ("" if self.cut is None else f", dies after {self.cut} steps")
        if self.kind == "ghost":
            return "what an earlier run wrote arrives once more, late"
        return "the trigger is added: it begins with the rows that there are"


def random_history(
    rng: random.Random, columns: Mapping[bytes, Sequence[bytes]], rows: Sequence[bytes]
) -> tuple[Event, ...]:
    """Return a random history; ``columns`` are the source's columns, with values to choose from."""
    count = rng.randrange(3, EVENTS + 1)
    events = [_event(rng, columns, rows) for _ in range(count)]
    if rng.random() < 0.3:
        events.insert(rng.randrange(len(events)), Event("begin"))
    return tuple(events)


def _event(rng: random.Random, columns: Mapping[bytes, Sequence[bytes]], rows: Sequence[bytes]) -> Event:
    kind, row = rng.random(), rng.choice(rows)
    shift = rng.choice(_SHIFTS) if rng.random() < 0.2 else None
    if kind < 0.4:
        named = rng.sample(sorted(columns), rng.randint(1, len(columns)))
        return Event("put", row, tuple((column, rng.choice(columns[column])) for column in named), shift_ms=shift)
    if kind < 0.52:
        deleted = () if rng.random() < 0.5 else (rng.choice(sorted(columns)),)
        return Event("delete", row, columns=deleted, shift_ms=shift)
    if kind < 0.86:
        return Event("deliver", row, cut=rng.randrange(MOST_STEPS) if rng.random() < 0.4 else None)
    return Event("ghost", which=rng.randrange(8))


def shrunk(history: tuple[Event, ...], fails: Callable[[tuple[Event, ...]], bool]) -> tuple[Event, ...]:
    """Return a part of the history that fails, too, and of which no event can be left out or made simpler."""
    size = max(1, len(history) // 2)
    while True:
        shorter = _without_some(history, size, fails)
        if shorter is not None:
            history = shorter
        elif size > 1:
            size //= 2
        elif (simpler := _simpler(history, fails)) is not None:
            history = simpler
        else:
            return history


def _without_some(
    history: tuple[Event, ...], size: int, fails: Callable[[tuple[Event, ...]], bool]
) -> tuple[Event, ...] | None:
    for at in range(0, len(history), size):
        candidate = history[:at] + history[at + size :]
        if fails(candidate):
            return candidate
    return None


def _simpler(history: tuple[Event, ...], fails: Callable[[tuple[Event, ...]], bool]) -> tuple[Event, ...] | None:
    for at, event in enumerate(history):
        for other in _simplifications(event):
            candidate = (*history[:at], other, *history[at + 1 :])
            if fails(candidate):
                return candidate
    return None


def _simplifications(event: Event) -> list[Event]:
    found = []
    if event.shift_ms is not None:
        found.append(replace(event, shift_ms=None))
    if event.cut is not None:
        found.append(replace(event, cut=None))
        found += [replace(event, cut=cut) for cut in range(event.cut)]
    if len(event.cells) > 1:
        found += [replace(event, cells=(one,)) for one in event.cells]
    if event.which:
        found.append(replace(event, which=0))
    return found
