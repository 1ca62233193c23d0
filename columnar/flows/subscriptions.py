"""(pure) The subscriptions of a store by name and by table, and what they want their tables to log."""

from __future__ import annotations

from columnar.flows.follower import Subscription
from columnar.flows.follower_name import FollowerName
from columnar.regions.hooks import LogPolicy
from columnar.regions.images import union


class Subscriptions:
    def __init__(self) -> None:
        self._by_name: dict[FollowerName, Subscription] = {}
        self._beginning: dict[FollowerName, Subscription] = {}  # their tables log for them, nobody follows yet

    def begin(self, subscription: Subscription) -> None:
        """Its table logs for it until ``add`` or ``remove``."""
        self._beginning[subscription.name] = subscription

    def add(self, subscription: Subscription) -> None:
        self._beginning.pop(subscription.name, None)
        self._by_name[subscription.name] = subscription

    def remove(self, name: FollowerName) -> Subscription | None:
        """None: there was none."""
        begun = self._beginning.pop(name, None)
        return self._by_name.pop(name, begun)

    def __contains__(self, name: FollowerName) -> bool:
        return name in self._by_name

    def of_table(self, table: str) -> list[Subscription]:
        return [held for held in self._by_name.values() if held.table == table]

    def beginning(self, table: str) -> list[Subscription]:
        return [held for held in self._beginning.values() if held.table == table]

    def is_followed(self, table: str) -> bool:
        return any(held.table == table for held in self._by_name.values())

    def tables(self) -> list[str]:
        return list(dict.fromkeys(held.table for held in self._by_name.values()))

    def wanted(self, table: str) -> LogPolicy:
        """The union of what they want: whoever asked for more is answered, and sees more than it asked for."""
        held = [*self.of_table(table), *self.beginning(table)]
        images = union(one.images for one in held)
        askers: dict[bytes, str] = {}
        for one in held:
            for family, qualifiers in one.images.items():
                if qualifiers is None:
                    askers.setdefault(family, str(one.name))
        return LogPolicy(
            frozenset(family for one in held for family in one.families).union(images),
            frozenset(family for one in held for family in one.before),
            images,
            askers,
        )
