"""Places (a table and a family) that triggers write effects to, checked for cycles that no trigger declared.

An effect that closes a cycle is refused unless the cycle was allowed: otherwise the trigger would run for ever, called
by changes that its own effects caused.  A server knows the places of its own triggers' effects only.  A cycle whose
parts run on several servers may go unseen, and is ended by the bound ``model.flow_graph.HOPS``.

Invariants:
    I1. A place is checked when its trigger first writes there, and again after each change of registrations.
    I2. At most SEEN_PLACES places are remembered for each trigger; HOPS ends cycles through further places.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from columnar.errors import TooManyHops
from columnar.flows.effects import Write
from columnar.model.derivations import Triggers
from columnar.model.flow_graph import HOPS, Flow, Place, check_seen
from columnar.model.mutation import Contribute

SEEN_PLACES: Final = 64
_Target = tuple[bytes, bytes]  # table, family; an empty family means all families


class EffectPlaces:
    def __init__(self, triggers: Callable[[], Triggers], flows: Callable[[], Iterable[Flow]]) -> None:
        """``flows`` returns all flows, of every kind."""
        self._triggers = triggers
        self._flows = flows
        self._seen: dict[str, dict[_Target, None]] = {}  # by trigger
        self._sound: dict[str, set[_Target]] = {}  # places checked since registrations last changed

    def seen(self, trigger: str) -> list[Place]:
        return [place_of(target) for target in self._seen.get(trigger, ())]

    def follow(self) -> None:
        """Follow a change of registrations: check every place again (I1)."""
        self._sound.clear()
        there = {one.name for one in self._triggers().all}
        for name in self._seen.keys() - there:
            del self._seen[name]

    def check(self, trigger: str, writes: Iterable[Write], hops: int) -> None:
        """Check the effects of a change before they are written.

        Raises TriggerError if they would close a cycle, and TooManyHops if HOPS changes led to this one.
        """
        if hops >= HOPS:
            raise TooManyHops(hops, HOPS)
        sound = self._sound.get(trigger)
        if sound is None:
            sound = self._sound[trigger] = set()
        for table, mutation in writes:
            if mutation.sends and (table, b"") not in sound:  # a queue
                self._check_place(trigger, (table, b""), sound)
            for operation in mutation.operations:
                if (table, operation.family) not in sound:
                    self._check_place(trigger, (table, operation.family), sound)
                if isinstance(operation, Contribute):
                    for family in families_beside(operation):
                        if (table, family) not in sound:
                            self._check_place(trigger, (table, family), sound)

    def _check_place(self, trigger: str, target: _Target, sound: set[_Target]) -> None:
        registered = self._triggers().find(trigger)
        seen = self._seen.setdefault(trigger, {})
        if registered is None or (len(seen) >= SEEN_PLACES and target not in seen):  # I2
            return
        check_seen(registered.registration, place_of(target), self._flows())
        sound.add(target)
        seen[target] = None


def families_beside(operation: Contribute) -> Iterator[bytes]:
    """Yield the families of the contribution's totals and of its order, beside the family of its members."""
    yield from {family for family, _ in operation.totals}
    if operation.order_family:
        yield operation.order_family


def place_of(target: _Target) -> Place:
    table, family = target
    return Place(table.decode("utf-8", "replace"), family.decode("latin-1"))
