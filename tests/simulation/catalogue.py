"""The simulated catalogue: regions, owners, seals and wishes, written one change after the other.

    r/ID regions   d/ID regions without a table, whose folders go at a start   o/ID owners   n the next id
    e  the epoch of the leader   w  wishes   s/NAME.INC  sealed logs

A failed change has an unknown outcome: it may be on disk.  It is undone on disk before the next change begins, as in
``meta_region``; if the master dies before that, the next master reads the state on disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from columnar.master import catalogue_rows
from columnar.master.catalogue_rows import OperatorSettings
from columnar.master.instructions import Write
from columnar.model import owner as owners
from columnar.model import region_info
from columnar.model.owner import Incarnation, Owner
from columnar.model.owner_messages import Segments
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import RegionChange
from tests.simulation.agenda import MS
from tests.simulation.disk import Files, Pair, apply

if TYPE_CHECKING:
    from tests.simulation.master import Master
    from tests.simulation.world import World

T = TypeVar("T")
EPOCH, WISHES, NEXT = b"e", b"w", b"n"
OWNER, REGION, DROPPED = b"o/", b"r/", b"d/"


class Change:
    """A write under way.

    ``pairs`` is called when it begins; for an unknown outcome ``unsure`` and later ``undone`` are called.
    """

    __slots__ = ("pairs", "stands", "undone", "unsure")

    def __init__(
        self,
        pairs: Callable[[], list[Pair]],
        stands: Callable[[], None],
        unsure: Callable[[], None] = lambda: None,
        undone: Callable[[], None] = lambda: None,
    ) -> None:
        self.pairs = pairs
        self.stands = stands
        self.unsure = unsure
        self.undone = undone


class Catalogue:
    """The catalogue: it reads the disk, raises the leader's epoch there, and removes folders without a table."""

    def __init__(self, world: World, master: Master) -> None:
        self._world = world
        self._agenda = world.agenda
        self._process = master.process
        self._master = master
        if world.has_leases:
            world.disk.meta = world.disk.meta.taken_over(world.disk.meta.generation + 1, is_linked=False)
        self._files = world.disk.meta
        self.data = self._files.recover()
        last = int(self.data.get(EPOCH, b"0"))
        self.leader = world.coordination.elect(last) if world.has_leases else last + 1
        self._next_id = int(self.data[NEXT])
        self._changes: deque[Change] = deque()  # the first one is under way
        self._is_writing = False
        self.regions: dict[int, RegionInfo] = {}
        self.durable: dict[int, Owner] = {}
        self._take(list(self.data.items()))
        folders = [] if world.has_leases else self._remove_dropped()
        pairs: list[Pair] = [(EPOCH, b"%d" % self.leader), *((DROPPED + b"%d" % region, None) for region in folders)]
        self._files.append(pairs)
        self._files.sync(len(self._files.log))
        self._take(pairs)

    def _remove_dropped(self) -> list[int]:
        folders = [int(key[len(DROPPED) :]) for key in self.data if key.startswith(DROPPED)]
        for region in folders:
            self._world.destroy(region)
        return folders

    def finish_drops(self) -> None:
        """Remove what an earlier leader left, once every living server has ended the changes of that leader."""
        folders = self._remove_dropped()
        if folders:
            self.write(Change(lambda: [(DROPPED + b"%d" % region, None) for region in folders], lambda: None))

    def _take(self, pairs: list[Pair]) -> None:
        """Take the pairs, which are on disk now."""
        apply(self.data, [(None, pairs)])
        for key, value in pairs:
            if key.startswith(REGION):
                _set(self.regions, int(key[len(REGION) :]), value, region_info.from_json)
            elif key.startswith(OWNER):
                _set(self.durable, int(key[len(OWNER) :]), value, owners.from_json)
        if self._files is self._world.disk.meta:
            self._world.laws.on_disk(self.durable)

    def wishes(self) -> OperatorSettings:
        found = self.data.get(WISHES)
        return catalogue_rows.operator_settings_from_json(found) if found is not None else OperatorSettings()

    def sealed(self) -> dict[Incarnation, Segments]:
        return {
            catalogue_rows.sealed_server(key): catalogue_rows.sealed_from_json(value)
            for key, value in self.data.items()
            if key.startswith(catalogue_rows.SEALED)
        }

    def may_name(self, region: int) -> bool:
        """Return whether the disk names the region, or may name it after a power cut."""
        key = REGION + b"%d" % region
        return key in self.data or any(
            one == key and value for _, pairs in self._files.log[self._files.synced :] for one, value in pairs
        )

    def next_ids(self, count: int) -> list[int]:
        first = self._next_id
        self._next_id += count
        return list(range(first, first + count))

    # --- what is written -----------------------------------------------------------------------------

    def owners_written(self, write: Write) -> list[Pair]:
        """Return the pairs of an owners' write, without rows of regions that the catalogue does not have."""
        pairs: list[Pair] = [
            (OWNER + b"%d" % info.region_id, owners.to_json(row))
            for info, row in write.owners
            if info.region_id in self.regions
        ]
        pairs += [
            (catalogue_rows.sealed_row(one), catalogue_rows.sealed_to_json(segments)) for one, segments in write.sealed
        ]
        pairs += [(catalogue_rows.sealed_row(one), None) for one in write.forgotten]
        if write.operator_settings is not None:
            pairs.append((WISHES, catalogue_rows.operator_settings_to_json(write.operator_settings)))
        return pairs

    def announced(self, fresh: Sequence[RegionInfo]) -> list[Pair]:
        return [(NEXT, b"%d" % self._next_id), *((DROPPED + _id(info), region_info.to_json(info)) for info in fresh)]

    def replaced(self, change: RegionChange, of: Owner) -> list[Pair]:
        pairs: list[Pair] = []
        for info in change.gone:
            pairs += [(REGION + _id(info), None), (OWNER + _id(info), None)]
            pairs.append((DROPPED + _id(info), region_info.to_json(info)))
        for info in change.fresh:
            pairs += [(REGION + _id(info), region_info.to_json(info)), (OWNER + _id(info), owners.to_json(of))]
            pairs.append((DROPPED + _id(info), None))
        return pairs

    def forgotten(self, infos: Iterable[RegionInfo]) -> list[Pair]:
        return [(DROPPED + _id(info), None) for info in infos]

    # --- writing -------------------------------------------------------------------------------------

    def write(self, change: Change) -> None:
        self._changes.append(change)
        self._begin()

    def _begin(self) -> None:
        if self._is_writing or not self._changes:
            return
        self._is_writing = True
        change = self._changes.popleft()
        pairs = change.pairs()
        self._files.append(pairs)
        delay_us = self._agenda.drawn(2 * MS, 25 * MS)
        self._agenda.later(self._process, delay_us, lambda: self._ends(change, pairs))

    def _ends(self, change: Change, pairs: list[Pair]) -> None:
        if not self._master.leads_after_write():
            return
        if self._world.happens("catalogue"):
            self._files.lose(self._world.rng)
            back = [(key, self.data.get(key)) for key, _ in pairs]
            self._agenda.later(self._process, self._agenda.drawn(5 * MS, 200 * MS), lambda: self._undo(change, back))
            change.unsure()
            return
        self._files.sync(len(self._files.log))
        self._take(pairs)
        self._is_writing = False
        change.stands()
        self._begin()

    def _undo(self, change: Change, back: list[Pair]) -> None:
        """Undo a change: write its old rows back, whichever of them are on disk."""
        if not self._master.leads_after_write():
            return
        self._files.append(back)
        self._files.sync(len(self._files.log))
        self._is_writing = False
        change.undone()
        self._begin()


def first_rows(infos: Iterable[RegionInfo], next_id: int) -> Files:
    """Return the catalogue of a newly made table, on disk."""
    held = {REGION + _id(info): region_info.to_json(info) for info in infos}
    return Files(held | {NEXT: b"%d" % next_id})


def _id(info: RegionInfo) -> bytes:
    return b"%d" % info.region_id


def _set(held: dict[int, T], region: int, value: bytes | None, read: Callable[[bytes], T]) -> None:
    if value is None:
        held.pop(region, None)
    else:
        held[region] = read(value)
