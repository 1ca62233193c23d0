"""(pure) The subscriptions of a store by name and by table, and the data that they want their tables to log."""

from __future__ import annotations

from collections.abc import Iterable

from columnar.flows.follower import Subscription
from columnar.flows.follower_name import FollowerName
from columnar.regions.hooks import LogPolicy
from columnar.regions.write.images import union

Key = tuple[FollowerName, str]  # name and table: a follower of several tables subscribes to each


class Subscriptions:
    def __init__(self) -> None:
        self._active: dict[Key, Subscription] = {}
        self._beginning: dict[Key, Subscription] = {}  # their tables log already, but no follower exists yet

    def begin_subscription(self, subscription: Subscription) -> None:
        """Have the table log for the subscription until ``add_subscription`` or ``remove``."""
        self._beginning[subscription.name, subscription.table] = subscription

    def add_subscription(self, subscription: Subscription) -> None:
        self._beginning.pop((subscription.name, subscription.table), None)
        self._active[subscription.name, subscription.table] = subscription

    def remove(self, name: FollowerName) -> list[Subscription]:
        """Remove the follower's subscriptions to all tables, and return them."""
        removed: dict[Key, Subscription] = {}
        for group in (self._beginning, self._active):
            for key in [key for key in group if key[0] == name]:
                removed[key] = group.pop(key)
        return list(removed.values())

    def remove_one(self, name: FollowerName, table: str) -> None:
        """Remove the follower's subscription to one table."""
        self._active.pop((name, table), None)

    def is_subscribed(self, name: FollowerName, table: str) -> bool:
        return (name, table) in self._active

    def __contains__(self, name: FollowerName) -> bool:
        return any(key[0] == name for key in self._active)

    def of_table(self, table: str) -> list[Subscription]:
        return [one for one in self._active.values() if one.table == table]

    def beginning(self, table: str) -> list[Subscription]:
        return [one for one in self._beginning.values() if one.table == table]

    def is_followed(self, table: str) -> bool:
        return any(one.table == table for one in self._active.values())

    def tables(self) -> list[str]:
        return list(dict.fromkeys(one.table for one in self._active.values()))

    def tables_of(self, name: FollowerName) -> list[str]:
        """Return the tables of the follower, or with an empty name those of all followers of the kind."""
        return list(
            dict.fromkeys(
                table for one, table in self._active if one == name or (not name.name and one.kind == name.kind)
            )
        )

    def wanted(self, table: str) -> LogPolicy:
        """Return the union of the data that the table's subscriptions want; each may see more than it wants."""
        subscriptions = [*self.of_table(table), *self.beginning(table)]
        images = union(one.images for one in subscriptions)
        askers: dict[bytes, str] = {}
        for one in subscriptions:
            for family, qualifiers in one.images.items():
                if qualifiers is None:
                    askers.setdefault(family, str(one.name))
        return LogPolicy(
            frozenset(family for one in subscriptions for family in one.families).union(images),
            frozenset(family for one in subscriptions for family in one.before),
            images,
            askers,
            _lasting(subscriptions),
            any(one.sends for one in subscriptions),
        )


def _lasting(subscriptions: Iterable[Subscription]) -> dict[bytes, dict[bytes | None, str]]:
    found: dict[bytes, dict[bytes | None, str]] = {}
    for one in subscriptions:
        for family, qualifiers in one.lasting.items():
            for qualifier in (None,) if qualifiers is None else qualifiers:
                found.setdefault(family, {}).setdefault(qualifier, str(one.name))
    return found
