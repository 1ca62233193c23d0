"""Splits and merges at the simulated master, which carries out the planner's changes as ``master.region_changes`` does.

    announce -> Begin -> Finish, within which the owner requests the commit -> the old folders are removed
    an error, or the owner's end, before the commit: the change is called off, and the new folders are removed

Changes run one at a time.  A commit of unknown outcome keeps the old regions blocked at their owner until it is undone
on disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from columnar.errors import IllegalArgument
from columnar.master.instructions import Merge, Split
from columnar.master.placement_records import Phase
from columnar.master.replacements import Plan, merge_plan, split_plan
from columnar.model.owner import Incarnation, first_owner
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import RegionChange
from columnar.model.route import ChangeRoutes, route_to
from tests.simulation.catalogue import Change
from tests.simulation.changing import COMMITTED, UNSURE, Changing

if TYPE_CHECKING:
    from tests.simulation.master import Master
    from tests.simulation.server import Server

Failed = str | None  # why; None: it was done


class RegionChanges:
    def __init__(self, master: Master) -> None:
        self._master = master
        self._world = master.world
        self._waiting: deque[Split | Merge] = deque()
        self._regions: tuple[int, ...] = ()  # of the change that is carried out
        self._change: RegionChange | None = None  # it was begun at its owner
        self._carrier: Server | None = None
        self._finishing: RegionChange | None = None  # its commit is answered
        self._is_committing = False
        self._ended: Callable[[], None] | None = None  # waits for the end of a commit
        self._unsure: list[RegionChange] = []
        self._unsent: dict[Incarnation, list[Callable[[], None]]] = {}  # requests to servers without a link

    def begin(self, instruction: Split | Merge) -> None:
        self._waiting.append(instruction)
        self._next()

    def _next(self) -> None:
        if self._regions or not self._waiting:
            return
        instruction = self._waiting.popleft()
        self._regions = (instruction.region,) if isinstance(instruction, Split) else instruction.regions
        plan = self._plan(instruction)
        if isinstance(plan, str):
            self._over(plan)
            return
        catalogue, places = self._master.catalogue, self._master.state.current.places
        epochs = [place.owner.epoch for place in map(places.get, self._regions) if place is not None and place.owner]
        change = RegionChange(plan.gone, plan.fresh, max(epochs))
        why = "the catalogue refused the write"
        catalogue.write(
            Change(lambda: catalogue.announced(plan.fresh), lambda: self._announced(change), lambda: self._over(why))
        )

    def _plan(self, instruction: Split | Merge) -> Plan | str:
        catalogue = self._master.catalogue
        infos = [catalogue.regions.get(region) for region in self._regions]
        known = [info for info in infos if info is not None]
        if len(known) < len(infos):
            return "it is gone"
        try:
            if isinstance(instruction, Split):
                assert instruction.row is not None, "whoever asks names one"
                return split_plan(known[0], instruction.row, catalogue.next_ids(2))
            return merge_plan(known[0], known[1], *catalogue.next_ids(1))
        except IllegalArgument as error:
            return error.text

    def _over(self, why: Failed) -> None:
        regions, self._regions, self._change, self._carrier = self._regions, (), None, None
        if why is not None and regions[0] in self._master.state.current.places:
            self._world.trace(self._master.process, f"regions {regions} are not changed: {why}")
            self._master.event("change_failed", regions, why)
        self._next()

    # --- its owner -----------------------------------------------------------------------------------

    def _announced(self, change: RegionChange) -> None:
        self._change = change
        self._world.infos.update((info.region_id, info) for info in change.fresh)
        carriers = {self._owner(info) for info in change.gone}
        carrier = carriers.pop()
        if carriers or carrier is None:
            self._call_off("there is no such owner")
            return
        self._carrier = carrier
        self._ask(lambda changing: changing.begin(change, self._answer(change, self._begun)))

    def _owner(self, info: RegionInfo) -> Server | None:
        state = self._master.state
        place = state.current.places.get(info.region_id)
        if place is None or place.owner is None or place.phase is not Phase.CHANGING:
            return None
        is_alive = state.current.is_alive(place.owner.server)
        return self._world.servers.get(place.owner.server) if is_alive else None

    def _ask(self, what: Callable[[Changing], None], carrier: Server | None = None) -> None:
        target = carrier or self._carrier
        assert target is not None, "it was begun"
        if target.master is None:  # it has lost its link, and nothing is sent before the next one
            self._unsent.setdefault(target.me, []).append(lambda: self._ask(what, target))
            return

        def came() -> None:
            if target.master is self._master:  # else this link has ended
                what(target.changing)

        self._master.post(target.process, came)

    def _answer(self, change: RegionChange, then: Callable[[Failed], None]) -> Callable[[Server, Failed], None]:
        """Return a handler of the carrier's answer, which counts only while the master waits for it."""

        def answered(carrier: Server, why: Failed) -> None:
            def came() -> None:
                if self._change is change and self._carrier is carrier:
                    then(why)

            carrier.to_master(lambda _master: came())

        return answered

    def linked_again(self, server: Server) -> None:
        for send in self._unsent.pop(server.me, ()):
            send()

    def is_carried_by(self, server: Server) -> bool:
        """Return whether the server carries out a split or merge."""
        return self._carrier is server

    def server_ended(self, server: Server) -> None:
        """Handle a reaped server: its requests are not answered any more, and its regions leave the queue."""
        self._unsent.pop(server.me, None)
        places = self._master.state.current.places
        for instruction in list(self._waiting):
            regions = (instruction.region,) if isinstance(instruction, Split) else instruction.regions
            owners = [places[region].owner for region in regions]
            if any(owner is not None and owner.server == server.me for owner in owners):
                self._waiting.remove(instruction)
                self._master.event("change_failed", regions, "its server died")
        if self._carrier is server:
            self._carrier = None
            self._finished("its server died")

    def _begun(self, why: Failed) -> None:
        change = self._change
        assert change is not None, "it was begun"
        if why is not None or any(info.region_id not in self._master.catalogue.regions for info in change.gone):
            self._call_off(why or "a region was changed meanwhile")
            return
        self._finishing = change
        self._ask(lambda changing: changing.finish(change, self._answer(change, self._finished)))

    def _finished(self, why: Failed) -> None:
        self._finishing = None
        if self._is_committing:
            self._ended = lambda: self._settled(why)
        else:
            self._settled(why)

    def _settled(self, why: Failed) -> None:
        change = self._change
        if change is None or change in self._unsure:
            self._over(why)
        elif change.fresh[0].region_id not in self._master.catalogue.regions:
            self._call_off(why)
        elif why is None:
            self._remove(change.gone, None)
        else:
            self._over(why)  # the old folders go at the next start

    def _call_off(self, why: Failed) -> None:
        change, carrier = self._change, self._carrier
        assert change is not None, "it was announced"
        if carrier is None:
            self._remove(change.fresh, why)
            return

        def forgotten(_why: Failed) -> None:
            self._remove(change.fresh, why)

        self._ask(lambda changing: changing.call_off(change, self._answer(change, forgotten)))

    def _remove(self, infos: Sequence[RegionInfo], why: Failed) -> None:
        self._carrier = None
        for info in infos:
            self._world.destroy(info.region_id)
        catalogue = self._master.catalogue
        catalogue.write(
            Change(lambda: catalogue.forgotten(infos), lambda: self._over(why), lambda: self._over(why))
        )  # fmt: skip

    # --- the commit ----------------------------------------------------------------------------------

    def commit(self, carrier: Server, change: RegionChange) -> None:
        """Commit at the owner's request; answer with the outcome."""
        place = self._master.state.current.places.get(change.gone[0].region_id)
        if place is None or place.owner is None or change != self._finishing or self._is_committing:
            self._tell(carrier, change, "it was called off meanwhile")
            return
        catalogue, row = self._master.catalogue, first_owner(place.owner.server)
        self._is_committing = True
        ends_early, ends_late = (self._master.may_end_amid_commit() for _ in range(2))

        def stands() -> None:
            if ends_late:
                self._world.end_leader(self._master)
            self._committed(change)
            self._tell(carrier, change, COMMITTED)
            self._commit_ends()

        def unsure() -> None:
            self._unsure.append(change)
            self._tell(carrier, change, UNSURE)
            self._commit_ends()

        catalogue.write(
            Change(lambda: catalogue.replaced(change, row), stands, unsure, lambda: self._undone(carrier, change))
        )
        if ends_early:
            self._world.end_leader(self._master)

    def _tell(self, carrier: Server, change: RegionChange, what: str) -> None:
        self._ask(lambda changing: changing.commit_answered(change, what), carrier)

    def _commit_ends(self) -> None:
        self._is_committing = False
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()

    def _committed(self, change: RegionChange) -> None:
        """Finish a committed change; routes come first, because requests wait."""
        master = self._master
        gone = [info.region_id for info in change.gone]
        row = master.state.tables.successor_owner(gone[0])
        self._world.changes[len(gone) - 1] += 1
        master.publish(lambda number: ChangeRoutes(number, change.gone, tuple(route_to(i, row) for i in change.fresh)))
        master.event("changed", gone, change.fresh)

    def _undone(self, carrier: Server, change: RegionChange) -> None:
        self._unsure.remove(change)
        if not carrier.process.is_dead:
            self._ask(lambda changing: changing.settle(change), carrier)
        for info in change.fresh:
            self._world.destroy(info.region_id)
