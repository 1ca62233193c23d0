"""A ``ChangingHouse`` whose workers run real trigger functions badly: late, in part, repeatedly, and after their death.

Derived tables are ``fake_tables.Tables``, which keep timestamps and delete markers as Columnar does; the source is
the house's own table ``t``, under whatever name the functions know it by.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from columnar.model.read import ReadSpec, projection
from columnar.model.schema import Family
from columnar.model.trigger_registration import Registration
from columnar.regions.read.region_reads import get_row
from columnar.triggers.api import Change
from columnar.triggers.slices import change_from
from tests.support.changing_house import CatalogueRows, ChangingHouse
from tests.support.fake_links import FakeLink, runs
from tests.support.fake_tables import Tables, write_slices
from tests.support.openings import region_at_once

Function = Callable[[Change, Any], Any]  # None, or an iterator of effects


class Fell(Exception):
    """The worker died between two calls of its function."""


class Derived:
    """The tables that triggers write, and the client for them.  Outlives the houses of a run."""

    def __init__(self, rng: random.Random, source: bytes) -> None:
        self.tables = Tables()
        self.tables.gate = self._gate
        self.is_columnar = True
        self.house: DerivingHouse | None = None
        self.ghosts: list[tuple[Function, Change]] = []  # what ran once and may come again, whenever
        self._rng, self._source = rng, source
        self._left = -1  # calls until it falls; -1: it does not

    def table(self, name: bytes) -> Any:
        return _Source(self) if name == self._source else self.tables.table(name)

    def run(self, function: Function, change: Change) -> str | None:
        """Run the function; return its error, or None."""
        self._left = self._rng.randrange(8) if self._rng.random() < 0.3 else -1
        try:
            write_slices(self, function(change, self), change.timestamp, self._rng.shuffle)
        except Fell as error:
            return repr(error)
        finally:
            self._left = -1
        return None

    def haunt(self) -> None:
        """Apply late writes of a worker that was given up but did not die at once."""
        if self.ghosts:
            self.run(*self._rng.choice(self.ghosts))

    def _gate(self) -> None:
        if self._left == 0:
            raise Fell
        self._left -= 1

    def source_row(self, row: bytes) -> dict[bytes, bytes]:
        assert self.house is not None, "while a store runs"
        served, server = self.house.table, self.house.server
        spec = ReadSpec(projection(served.schema, []))
        return {column: value for column, value, _ in get_row(region_at_once(server, served, row), row, spec)}


class _Source:
    def __init__(self, derived: Derived) -> None:
        self._derived = derived

    def rows(
        self, rows: Sequence[bytes], columns: Sequence[bytes], include_timestamp: bool = False
    ) -> list[tuple[bytes, dict[bytes, bytes]]]:
        assert not include_timestamp, "nobody asks for the times of the source's cells"
        self._derived.tables.gate()
        found = [(row, self._derived.source_row(row)) for row in rows]
        return [(row, cells) for row, cells in found if any(column in cells for column in columns)]


class Worker(FakeLink):
    """A worker that runs each call some loop iterations later."""

    def __init__(self, listener: Any, rng: random.Random, functions: Mapping[str, Function], derived: Derived) -> None:
        super().__init__(listener)
        self._rng, self._functions, self._derived = rng, functions, derived

    def send(self, *parts: Any) -> None:
        super().send(*parts)
        for call in runs(parts):
            self._later(call[0], self._functions[call[1]], change_from(list(call[4][0])), self._rng.randrange(6))

    def kill(self) -> None:
        """End the quarantine's process, which is no longer needed; the next one is ready at once."""

    def _later(self, call_id: int, function: Function, change: Change, turns: int) -> None:
        if not self.is_up:
            return
        if turns:
            asyncio.get_running_loop().call_soon(self._later, call_id, function, change, turns - 1)
            return
        error = self._derived.run(function, change)
        self._derived.ghosts.append((function, change))
        self.answer(call_id, error)


class DerivingHouse(ChangingHouse):
    def __init__(
        self,
        engine: Any,
        rows: CatalogueRows,
        clock: Callable[[], int],
        derived: Derived,
        functions: Mapping[str, Function],
        rng: random.Random,
    ) -> None:
        super().__init__(engine, "regions", rows, clock)
        self._derived, self._functions, self._chance = derived, functions, rng
        derived.house = self

    def _worker(self, listener: Any) -> Any:
        return Worker(listener, self._chance, self._functions, self._derived)

    async def make_deriving(
        self, families: list[Family], registrations: list[Registration], attributes: Mapping[str, str] | None = None
    ) -> None:
        await self.changes.create(b"t", families, attributes=attributes or {}, splits=[b"c"])
        for held in registrations:
            await self.register(held)
