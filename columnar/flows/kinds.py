"""The kinds of followers of a store: what they promise, and when a cursor of theirs may go.  Owned by the loop."""

from __future__ import annotations

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
        """Return whether the log keeps what a follower needs; True if the kind is unknown."""
        kind = self._kinds.get(name.kind)
        return kind is None or kind.promises

    def flows(self) -> list[Flow]:
        """All registrations as parts of the graph."""
        return [flow for kind in self._kinds.values() for flow in kind.flows()]

    def stands(self, flow: Flow) -> tuple[str, int]:
        """``Kind.stands`` of a flow of ``flows``."""
        return self._kinds[flow.kind].stands(flow.name)

    def is_removed(self, region: Region, name: FollowerName) -> bool:
        """Return whether the removal of its registration is recorded; an unknown kind's never is."""
        kind = self._kinds.get(name.kind)
        return kind is not None and kind.is_removed(name.name, region.log.cursors.number_of(name.key))

    def forget_follower(self, region: Region, name: FollowerName) -> None:
        """Drop the cursor with the marks of its kind."""
        kind = self._kinds.get(name.kind)
        marks = kind.marks if kind is not None else ()
        region.log.cursors.drop_cursor(name.key, *(mark + name.key.encode() for mark in marks))
