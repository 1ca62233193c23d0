"""(pure) Splits by load: regions over the limit of their table, and hot ones.

A hot region alone makes over half of a server's share of the load, and has 64 MiB.  A split takes a slot of its server
and one of all; the region most over its limit is first.
"""

from __future__ import annotations

from typing import Final

from columnar.limits import MIB
from columnar.master.instructions import Split
from columnar.master.placement import Place
from columnar.master.plan_draft import Draft
from columnar.master.replacements import due
from columnar.model.region_messages import RegionLoad

HOT_SHARE: Final = 0.5  # of a server's share, by one region
HOT_LOAD: Final = 100.0  # below it no region is worth a split, however idle the others are
HOT_BYTES: Final = 64 * MIB


def is_large(place: Place, share: float) -> bool:
    """Return whether ``split_large`` should check the region.  ``share``: a server's load, if all had the same."""
    return _is_hot(place, share) or place.size_bytes > place.limit_bytes > 0


def _is_hot(place: Place, share: float) -> bool:
    return place.load > max(HOT_SHARE * share, HOT_LOAD) and place.size_bytes >= HOT_BYTES


def split_large(draft: Draft) -> None:
    """Split regions over the limit of their table, then hot ones, as far as there are slots."""
    current, throttles = draft.current, draft.desired.throttles
    left = throttles.changes - len(current.changes)
    weight = sum(server.weight for server in current.servers.values() if current.is_up(server.name))
    if left <= 0 or weight <= 0:
        return
    share = current.load / weight
    free = {region: current.places[region] for region in current.large}
    free = {region: place for region, place in free.items() if _may_split(draft, place)}
    busy: set[str] = set()
    while left > 0 and (found := _next_split(free, share, current.free_bytes)) is not None:
        place, why = found
        del free[place.info.region_id]
        if place.server is not None and place.server not in busy:
            draft.begin(Split(place.info.region_id, None, why), place.info.region_id)
            busy.add(place.server)
            left -= 1


def _may_split(draft: Draft, place: Place) -> bool:
    if place.server is None or not draft.may_begin(place):
        return False
    return draft.current.servers[place.server].changes < draft.desired.throttles.changes_per_server


def _next_split(places: dict[int, Place], share: float, free_bytes: int) -> tuple[Place, str] | None:
    limited = [place for place in places.values() if place.limit_bytes]
    loads = [RegionLoad(place.info, place.size_bytes, place.limit_bytes) for place in limited]
    tried = {region: place.unsplit_bytes for region, place in places.items() if place.unsplit_bytes}
    info = due(loads, tried, free_bytes)
    if info is not None:
        place = places[info.region_id]
        return place, f"{place.size_bytes // MIB} MiB are over its table's {place.limit_bytes // MIB}"
    for place in places.values():
        is_new = place.size_bytes > place.unsplit_bytes * 3 // 2
        if _is_hot(place, share) and is_new and place.size_bytes * 2 < free_bytes:
            return place, f"it alone has {place.load / share:.1f} times the mean load of a server"
    return None
