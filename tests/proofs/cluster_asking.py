"""A client of the proofs at a store of several servers.

A call whose answer is lost may still be under way: its gateway died while the row's owner has the call, or the owner is
slow.  No death ends such a call, so the client ends it by moving the row's region.  From then on the old owner refuses
the call, so it was carried out by then or never will be.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from columnar.client import ClusterAdmin, Connection
from tests.proofs.asking import (
    PATIENCE_S,
    REFUSED_PAUSE_S,
    TIMEOUT_MS,
    AnyCall,
    Cells,
    Lost,
    Refused,
    StoreClient,
    T,
)
from tests.proofs.killed_cluster import KilledCluster
from tests.proofs.killed_store import KilledStore


def client_of(store: KilledStore, table: bytes) -> StoreClient:
    return ClusterClient(store, table) if isinstance(store, KilledCluster) else StoreClient(store, table)


class ClusterClient(StoreClient):
    _store: KilledCluster

    def __init__(self, store: KilledCluster, table: bytes) -> None:
        super().__init__(store, table)

    def ask(self, question: Callable[[Connection], T]) -> T:
        generation = self._store.where()[1]
        answer = super().ask(question)
        self._generation = generation  # the server at the other end lived then
        return answer

    # --- Asking ------------------------------------------------------------------------------------

    def put_rows(self, rows: Sequence[tuple[bytes, Cells]]) -> None:
        """Put rows; a row of a lost call may be written a little later, which must be harmless."""
        self._prompt(lambda: super(ClusterClient, self).put_rows(rows))

    def page(self, start: bytes, rows: int, batch: int, *, backwards: bool = False) -> list[tuple[bytes, Cells]]:
        return self._prompt(lambda: super(ClusterClient, self).page(start, rows, batch, backwards=backwards))

    def perform(self, row: bytes, call: AnyCall) -> Any:
        starts = self._store.starts
        try:
            return self._prompt(lambda: super(ClusterClient, self).perform(row, call))
        except Lost:
            if call.changes:
                self._end(row, starts)
            raise

    def _prompt(self, ask: Callable[[], T]) -> T:
        """Call with a shorter limit, because servers wait less long for each other than clients wait for servers."""
        try:
            return ask()
        except Lost as lost:
            if isinstance(lost.__cause__, TimeoutError):
                self._store.give_up(f"no answer within {TIMEOUT_MS / 1000:.0f} s")
            raise

    def _end(self, row: bytes, starts: int) -> None:
        """Return when no call of this client on the row is under way; ``starts`` was counted before the call."""
        deadline = time.monotonic() + PATIENCE_S
        while self._store.starts == starts:
            try:
                self.ask(lambda connection: self._move(ClusterAdmin(connection), row))
                return
            except (Lost, Refused) as failure:
                if time.monotonic() > deadline:
                    self._store.give_up(f"the region of {row!r} cannot be moved within {PATIENCE_S:.0f} s: {failure}")
            threading.Event().wait(REFUSED_PAUSE_S)

    def _move(self, admin: ClusterAdmin, row: bytes) -> None:
        admin.move(admin.locate(self._table, row).region.name)
