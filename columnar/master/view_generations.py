"""Generations of a view: rebuild it next to itself, swap the next generation in, and roll back.

    rebuild   the next generation is added like any view, under the name of its table (``view_changes``)
    swap      one write of the catalogue -> every owner is notified; from then on readers of the name see the next
              generation
    rollback  one write: the generation before, which was kept up to date, is live again
    sweep     generations without readers are dropped: a kept generation when its hour is over, or soon after the next
              swap

Owners are notified of a swap one after the other.  Meanwhile some answer from the old generation and some from the new
one; both are kept up to date.

This module uses the changes of views (``view_changes``), which know nothing of generations.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final, NoReturn

from columnar.errors import ColumnarError, ViewError
from columnar.master.view_changes import ViewChanges
from columnar.model.derivations import KeptView, ViewSet
from columnar.model.view_generations import KEPT_MS, Swap, base_of, expired, generation_of, role_of, table_of
from columnar.runtime.faults import FAULTS

_log = logging.getLogger(__name__)

SWEEP_S: Final = 60.0  # between two checks for generations to drop


def wall_ms() -> int:
    return int(time.time() * 1_000)


class ViewGenerations:
    def __init__(self, changes: ViewChanges, now_ms: Callable[[], int] = wall_ms) -> None:
        self._changes = changes
        self._now_ms = now_ms
        self._sweeping: asyncio.Task[None] | None = None

    @property
    def _views(self) -> ViewSet:
        return self._changes.derivations

    # --- changes -----------------------------------------------------------------------------------

    async def rebuild(self, name: str, definition: bytes) -> str:
        """Begin to build the next generation, and return its table.

        Without ``definition`` the generation is declared as the live one.  Raises ViewError if there is no such view,
        if it has a next generation already, or if a view or a trigger follows it.
        """
        async with self._changes.lock:
            live = self._live(name)
            self._check_alone(name)
            ahead = self._next(name)
            if ahead is not None:
                raise ViewError(
                    f"view {name} has a next generation, {ahead.name}; swap it in (columnar view swap {name}), or drop "
                    f"it (columnar view drop {ahead.name})"
                )
            number = max(generation_of(one.name) for one in self._views.generations(name)) + 1
        table = table_of(name, number)
        await self._changes.add_view(definition or live.definition, table=table)
        _log.info("generation %d of view %s is being built", number, name)
        return table

    async def swap(self, name: str) -> tuple[str, str]:
        """Swap the next generation in; return the table that is live now and the one before.

        Raises ViewError if there is no generation to swap in.
        """
        async with self._changes.lock:
            live, ahead = self._live(name), self._next(name)
            self._check_alone(name)
            if ahead is None:
                raise ViewError(f"view {name} has no next generation; columnar view rebuild {name} builds one")
            if ahead.state != "live":
                raise ViewError(f"{ahead.name} is still being built; columnar view list shows how far it is")
            await self._see(name, ahead.name, live.name)
        return ahead.name, live.name

    async def rollback(self, name: str) -> tuple[str, str]:
        """Swap the kept generation in; return as ``swap`` does.  Raises ViewError if no generation is kept."""
        async with self._changes.lock:
            live = self._live(name)
            self._check_alone(name)
            swap = self._views.swap_of(name)
            if swap is None or not swap.kept:
                raise ViewError(f"view {name} has no generation to go back to; one is kept for an hour after a swap")
            kept = self._views.known(swap.kept)
            await self._see(name, kept.name, live.name)
        return kept.name, live.name

    async def _see(self, name: str, table: str, kept: str) -> None:
        """Make readers of ``name`` see ``table``.  The caller holds the lock."""
        swap = Swap(name, table, kept, self._now_ms() + KEPT_MS)
        await self._changes.write_views(self._views.swapped(swap))
        _log.info("readers of view %s see %s; %s is kept up for an hour", name, table, kept)

    def _live(self, name: str) -> KeptView:
        """Return the live generation of the view.  Raises ViewError."""
        table = self._views.live_table(name)
        if self._views.find(table) is not None and not self._views.generations(name):
            raise ViewError(f"{name} is a generation of view {base_of(table)}: say {base_of(table)}")
        return self._views.known(table)

    def _next(self, name: str) -> KeptView | None:
        ahead = [one for one in self._views.generations(name) if role_of(one.name, self._views.swaps) == "next"]
        return ahead[-1] if ahead else None

    def _check_alone(self, name: str) -> None:
        """Raise ViewError if a view or a trigger follows the table of a generation."""
        tables = [one.name for one in self._views.generations(name)]
        readers = {base_of(reader.name) for table in tables for reader in self._views.readers(table)}
        if readers:
            self._refuse("view", sorted(readers), name, "drop")
        watchers = {one.name for table in tables for one in self._changes.watchers(table)}
        if watchers:
            self._refuse("trigger", sorted(watchers), name, "remove")

    def _refuse(self, kind: str, above: list[str], name: str, verb: str) -> NoReturn:
        shows = f"columnar view show {above[0]}" if kind == "view" else "columnar trigger list"
        raise ViewError(
            f"{kind if len(above) == 1 else kind + 's'} {', '.join(above)} would not follow a swap of {name}. "
            f"See how it is declared ({shows}), take it away (columnar {kind} {verb} {above[0]}), rebuild and swap "
            f"{name}, and add it again; what is wrong in {name} is set right without that by columnar view check "
            f"{name} --repair"
        )

    # --- generations without readers -----------------------------------------------------------------

    async def sweep(self) -> None:
        """Drop generations whose time is over; set the present compression on view tables of earlier versions."""
        tables = [one.name for one in self._views.all]
        for table in expired(tables, self._views.swaps, self._now_ms()):
            await self._changes.drop_table(table)
            _log.info("generation %s of a view is dropped: its time is over", table)
        await self._changes.compress_tables()

    def start(self) -> None:
        self._sweeping = asyncio.ensure_future(self._sweep_for_ever())

    async def _sweep_for_ever(self) -> None:
        while True:
            try:
                await self.sweep()
            except ColumnarError as error:
                _log.info("generations of views are dropped later: %s", error.text)
            except Exception as fault:  # noqa: BLE001 - none would be dropped any more
                FAULTS.met("sweeps of generations of views", fault)
            await asyncio.sleep(SWEEP_S)

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.wait([self._sweeping])
