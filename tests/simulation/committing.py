"""Fsyncs of a server: of a store by itself, or of several stores in one round of the server log.

They work as in ``storage.commit`` and ``storage.shared_rounds``: one round at a time.  A store's first batch, or one
that its capture does not hold, is synced by itself.  When a segment is full, its stores are synced by themselves, and
the segment is removed.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from columnar.storage.capture import Capture
from columnar.storage.server_log import Written
from tests.simulation.agenda import MS
from tests.simulation.disk import Segment
from tests.simulation.stores import OpenStore, Waiter, record_of

if TYPE_CHECKING:
    from tests.simulation.server import Server

SEGMENT_FRAMES = 6


class Committing:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._world = server.world
        self._agenda = server.world.agenda
        self.log = server.log
        self.stamp = count(1).__next__
        self._dirty: dict[OpenStore, None] = {}
        self._is_round_due = False
        self._members: list[OpenStore] | None = None  # of the round under way
        self._segment = 0
        self._standing: dict[int, dict[Capture, int]] = {}  # by segment: the last number of each store in it
        self._stores: dict[Capture, OpenStore] = {}
        self._unsynced: dict[str, None] = {}  # regions whose closed store lacks what stands here

    def commit(self, store: OpenStore, waiter: Waiter) -> None:
        """Call ``waiter`` when all writes to the store so far are on disk, or have failed."""
        store.waiting.append(waiter)
        self._dirty[store] = None
        self._look()

    def _look(self) -> None:
        if not self._is_round_due and self._members is None and self._dirty:
            self._is_round_due = True
            self._agenda.later(self._server.process, 100, self._begin)

    def _begin(self) -> None:
        self._is_round_due = False
        records: list[Written] = []
        members: list[OpenStore] = []
        numbers: dict[Capture, int] = {}
        for store in list(self._dirty):
            if store.under_way is not None:
                continue  # looked at again when its fsync has ended
            del self._dirty[store]
            if not store.is_open:
                continue
            store.hand_over()
            taken = self._taken(store)
            store.take_waiting()
            if taken is None:
                self._sync_by_itself(store)
            else:
                assert store.capture is not None, "it takes from one"
                members.append(store)
                records += taken
                if taken:
                    numbers[store.capture] = store.capture.last
        if members:
            self._members = members
            self._append(records, numbers)

    def _taken(self, store: OpenStore) -> list[Written] | None:
        if store.capture is None:
            if self._world.chance(0.5):
                store.begin_capture(self.log.era, self.stamp)
                assert store.capture is not None, "it was begun"
                self._stores[store.capture] = store
                store.capture.take()
            return None
        return store.capture.take()

    # --- the store's own log -------------------------------------------------------------------------

    def _sync_by_itself(self, store: OpenStore) -> None:
        """Sync the store's own log; its waiters are under way."""
        written = len(store.files.log)
        covered = store.capture.last if store.capture is not None else 0

        def end() -> None:
            if not store.is_open and not self._world.has("answers unchecked"):
                return
            if self._world.happens("fsync"):
                store.files.lose(self._world.rng)
                self._server.owning.store_failed(store)
                return
            store.files.sync(written)
            if store.capture is not None:
                store.capture.synced = max(store.capture.synced, covered)
            self._ended(store)
            self._free()

        self._agenda.later(self._server.process, self._agenda.drawn(MS, 6 * MS), end)

    def sync_own(self, store: OpenStore, waiter: Waiter) -> None:
        """Sync to the store's own log all batches that only the server log has."""
        store.waiting.append(waiter)
        if store.under_way is None:
            store.hand_over()
            if store.capture is not None:
                store.capture.take()
            self._dirty.pop(store, None)
            store.take_waiting()
            self._sync_by_itself(store)
        else:
            self._dirty[store] = None  # whichever way: all is on disk then, and the caller looks again

    def _ended(self, store: OpenStore) -> None:
        store.ended(True)
        if store.waiting and store.is_open:
            self._dirty[store] = None
        self._look()
        self._server.owning.look(store.region_id)

    # --- the server's log ----------------------------------------------------------------------------

    def _append(self, records: list[Written], numbers: dict[Capture, int]) -> None:
        segment = self.log.segments.get(self._segment)
        if records and (segment is None or len(segment.frames) >= SEGMENT_FRAMES):
            self._segment += 1
            segment = self.log.segments[self._segment] = Segment()
            self._settle()
        number, length = self._segment, 0
        if records and segment is not None:
            segment.frames.append([record_of(one) for one in records])
            length = len(segment.frames)

        def end() -> None:
            members, self._members = self._members or [], None
            if self._world.happens("fsync"):
                self._fail(members, number)
                return
            if segment is not None:
                segment.synced = max(segment.synced, length)
            if numbers:
                self._standing.setdefault(number, {}).update(numbers)
            for store in members:
                self._ended(store)
            self._settle()
            self._look()

        self._agenda.later(self._server.process, self._agenda.drawn(MS, 6 * MS), end)

    def _fail(self, members: list[OpenStore], number: int) -> None:
        """Fail a round: the next one goes to a new segment, and the members sync their own logs."""
        segment = self.log.segments.get(number)
        if segment is not None:
            del segment.frames[self._world.rng.randint(segment.synced, len(segment.frames)) :]
            if not segment.synced:
                del self.log.segments[number]
            self._segment += 1
            self.log.segments[self._segment] = Segment()
        for store in members:
            if store.is_open:
                self._sync_by_itself(store)
        self._look()

    def _settle(self) -> None:
        """Sync the stores of full segments."""
        for number, standing in list(self._standing.items()):
            if number == self._segment:
                continue
            for capture, last in standing.items():
                store = self._stores.get(capture)
                if capture.synced < last and store is not None and store.is_open and store.under_way is None:
                    store.hand_over()
                    capture.take()
                    self._dirty.pop(store, None)
                    store.take_waiting()
                    self._sync_by_itself(store)
        self._free()

    def _free(self) -> None:
        for number, standing in list(self._standing.items()):
            if number == self._segment or any(capture.synced < last for capture, last in standing.items()):
                continue
            if not any(capture.region in self._unsynced for capture in standing):
                del self._standing[number]
                del self.log.segments[number]

    # --- closed stores -------------------------------------------------------------------------------

    def closed(self, store: OpenStore, *, is_synced: bool) -> None:
        """Note that a store was closed; with ``is_synced`` its own log has all acknowledged writes."""
        self._dirty.pop(store, None)
        if store.capture is None:
            return
        self._stores.pop(store.capture, None)
        if is_synced:
            store.capture.synced = store.capture.last
        else:
            self._unsynced[store.name] = None

    def brought_in(self, region: str) -> None:
        """Note that the region's store, here or at a different server, has all batches of this log."""
        self._unsynced.pop(region, None)
        for standing in self._standing.values():
            for capture in standing:
                if capture.region == region and capture not in self._stores:
                    capture.synced = capture.last
