"""The kinds of followers of a store: what each kind promises, and when its cursors may go.  Owned by the loop."""

from __future__ import annotations

from columnar.errors import IllegalArgument
from columnar.flows.follower import Kind
from columnar.flows.follower_name import FollowerName
from columnar.model.flow_graph import Flow
from columnar.regions.region import Region


class Kinds:
    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}

    def register(self, kind: Kind) -> None:
        self._kinds[kind.name] = kind

    def promises(self, name: FollowerName) -> bool:
        """Return whether the log keeps the records that the follower needs; True if its kind is unknown."""
        kind = self._kinds.get(name.kind)
        return kind is None or kind.promises

    def flows(self) -> list[Flow]:
        """Return all registrations as parts of the flow graph."""
        return [flow for kind in self._kinds.values() for flow in kind.flows()]

    def stands(self, flow: Flow) -> tuple[str, int]:
        """Return ``Kind.stands`` of a flow, which must be one of ``flows``."""
        return self._kinds[flow.kind].stands(flow.name)

    def named(self, name: str) -> list[FollowerName]:
        """Return the registrations, of any kind, that a client means by the name.  Raises if one of them rests."""
        found = [(kind.name, kind.named(name)) for kind in self._kinds.values()]
        return [FollowerName(kind, registered) for kind, registered in found if registered is not None]

    def awaited_tables(self, name: FollowerName) -> list[str]:
        """Return the tables whose changes the registration gets.  Raises if it is unknown or cannot be waited for."""
        kind = self._kinds.get(name.kind)
        if kind is None:
            raise IllegalArgument(f"there is no {name}; columnar flows shows those that there are")
        return kind.awaited(name.name)

    def is_removed(self, region: Region, name: FollowerName) -> bool:
        """Return whether the removal of the follower's registration is recorded; False for an unknown kind."""
        kind = self._kinds.get(name.kind)
        return kind is not None and kind.is_removed(name.name, region.log.cursors.number_of(name.key))

    def forget_follower(self, region: Region, name: FollowerName) -> None:
        """Drop the follower's cursor in the region, together with the marks of its kind."""
        kind = self._kinds.get(name.kind)
        marks = kind.marks if kind is not None else ()
        region.log.cursors.drop_cursor(name.key, *(mark + name.key.encode() for mark in marks))
