"""Places that the effects of triggers went to: whether undeclared places lead back to their trigger.

An effect into a place that closes a cycle is refused unless the cycle was allowed: the trigger would run for its own
changes, through others, for ever.  Places are known by the effects of this server's triggers; a cycle whose parts run
on several servers may not be seen here, and ends by ``model.flow_graph.HOPS``.

Invariants:
    I1. A place is checked when its trigger first writes there, and again after each change of registrations.
    I2. At most SEEN_PLACES are remembered of a trigger; HOPS bounds the effects in other places.

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
_Target = tuple[bytes, bytes]  # table, family; empty: all of them


class EffectPlaces:
    def __init__(self, triggers: Callable[[], Triggers], flows: Callable[[], Iterable[Flow]]) -> None:
        """``flows``: all that there are, of every kind."""
        self._triggers = triggers
        self._flows = flows
        self._seen: dict[str, dict[_Target, None]] = {}  # by trigger
        self._sound: dict[str, set[_Target]] = {}  # checked since registrations changed

    def seen(self, trigger: str) -> list[Place]:
        return [place_of(target) for target in self._seen.get(trigger, ())]

    def follow(self) -> None:
        """Registrations have changed (I1)."""
        self._sound.clear()
        there = {one.name for one in self._triggers().all}
        for name in self._seen.keys() - there:
            del self._seen[name]

    def check(self, trigger: str, writes: Iterable[Write], hops: int) -> None:
        """Check effects of a change before they are written.  TriggerError: they would close a cycle; TooManyHops."""
        if hops >= HOPS:
            raise TooManyHops(hops, HOPS)
        sound = self._sound.get(trigger)
        if sound is None:
            sound = self._sound[trigger] = set()
        for table, mutation in writes:
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
    """The families of its totals and its order."""
    yield from {family for family, _ in operation.totals}
    if operation.order_family:
        yield operation.order_family


def place_of(target: _Target) -> Place:
    table, family = target
    return Place(table.decode("utf-8", "replace"), family.decode("latin-1"))
