"""(pure) The planner: derives what a master should do now from the desired and the present state.

A plan contains, in this order and each with a reason:

    1. regions without an owner   at once, without a throttle; most loaded first
    2. requests of operators      move, unassign, split, merge
    3. drains                     four at a time from one server
    4. home                       regions whose ideal server came back, or was chosen by balance
    5. splits                     by size, and of a region whose load alone is over half of a server's share
    6. balance                    every 10 s

A plan is made after every event, and once a second without events.  It considers the regions that are out of place
(indexes of ``placement``), so its cost depends on their number.  A round of balance considers every server, and the
regions of the servers that have too much.  Moves are throttled per server and in total; priority 1 is not.

The same arguments give the same plan.  Time and chance are arguments; knows nothing of rows, epochs and messages.
"""

from __future__ import annotations

from typing import Final

from columnar.limits import MIB
from columnar.master.balancing import balance
from columnar.master.instructions import (
    REQUESTED,
    Close,
    Merge,
    MergeRegions,
    MoveRegion,
    Plan,
    Reason,
    Split,
    SplitRegion,
    UnassignRegion,
)
from columnar.master.placement import Current, Desired
from columnar.master.placement_records import OPENING_TRIES, Phase, Place
from columnar.master.plan_draft import Chance, Draft
from columnar.master.replacements import due
from columnar.model.region_messages import RegionLoad

SHARE_MS: Final = 5_000  # for this long a new server takes over regions that others have not opened yet
SHARED_AT_ONCE: Final = 4  # fewer regions are not worth a write of the catalogue and a request to their server
RETRY_MS: Final = 1_000  # before the same server tries an opening again, if there is no other server
OPENING_WAITS_MS: Final = (0, 1_000, 2_000, 4_000)  # after 1, 2, 3 and 4 tries
assert len(OPENING_WAITS_MS) == OPENING_TRIES - 1


def plan(desired: Desired, current: Current, now_ms: int, rng: Chance, *, balances_now: bool = False) -> Plan:
    draft = Draft(desired, current, now_ms, rng, balances_now=balances_now)
    if current.homeless and not draft.eligible:
        draft.remarks.append(f"no server is up: {len(current.homeless)} regions have no owner")
    if now_ms < current.catalogue.unwritable_until_ms:
        draft.wake(current.catalogue.unwritable_until_ms)
        return draft.plan()
    if current.homeless:
        _house_the_homeless(draft)
    for request in desired.requests.values():
        if isinstance(request, MoveRegion):
            _move(draft, request)
        elif isinstance(request, UnassignRegion):
            _unassign(draft, request)
        elif isinstance(request, SplitRegion):
            _split(draft, request)
        elif isinstance(request, MergeRegions):
            _merge(draft, request)
    if desired.drained:
        _empty_drained(draft)
    if current.homes.astray:
        _send_home(draft)
    if desired.operator_settings.auto_split and current.large:
        split_large(draft)
    if desired.operator_settings.balancer and not current.homeless:
        balance(draft)
    return draft.plan()


# --- 1 -----------------------------------------------------------------------------------------------


def _house_the_homeless(draft: Draft) -> None:
    current, places = draft.current, draft.current.places
    if not draft.eligible:
        return
    waiting = sorted((places[region] for region in current.homeless), key=lambda place: (-place.load, place.info.table))
    for place in waiting:
        server, why, reason = _next_owner(draft, place)
        if server is not None:
            draft.house(place, server, why, reason)


def _next_owner(draft: Draft, place: Place) -> tuple[str | None, str, Reason]:
    owner = place.owner
    if owner is None:
        return draft.choose(place), "new", Reason.NEW
    if owner.source is not None and draft.current.is_alive(owner.source.server):
        why = f"{owner.server} is gone, and {owner.source.server} has not closed it yet"
        return owner.source.server.name, why, Reason.RETURNED
    if place.attempts.is_exhausted:
        return draft.choose(place), f"tried again: {place.attempts.failure}", Reason.FAILURE
    if place.attempts.tried:
        why = f"could not be opened by {' nor '.join(dict.fromkeys(place.attempts.tried))}: {place.attempts.failure}"
        has_others = any(name not in place.attempts.tried for name in draft.eligible)
        wait_ms = max(OPENING_WAITS_MS[len(place.attempts.tried) - 1], 0 if has_others else RETRY_MS)
        if draft.now_ms - place.since_ms < wait_ms:
            draft.wake(place.since_ms + wait_ms)
            return None, why, Reason.FAILURE
        if place.attempts.is_suspect and not draft.may_try(place):
            return None, why, Reason.FAILURE
        return draft.choose(place, apart_from=place.attempts.tried) or draft.choose(place), why, Reason.FAILURE
    if draft.current.balance.is_beginning and place.ideal is not None and draft.may_take(place.ideal):
        return place.ideal, "the start: the server that had it last", Reason.START
    if draft.current.is_alive(owner.server):
        return draft.choose(place), f"assigned; {owner.server} had closed it", Reason.ASSIGNED
    reason = Reason.START if draft.current.balance.is_beginning else Reason.DEATH
    return draft.choose(place), f"{owner.server} is gone", reason


# --- 2 -----------------------------------------------------------------------------------------------


def _move(draft: Draft, request: MoveRegion, reason: Reason = Reason.REQUESTED) -> None:
    place = draft.current.places.get(request.region)
    if place is None or place.server is None or not draft.may_leave(place):
        return
    server = request.server or draft.choose(place, apart_from=(place.server,), with_slot=True)
    if server is None or server == place.server or not draft.current.is_up(server):
        return
    if draft.has_slots and draft.has_slot(server):
        draft.move(place, server, request.why, reason)


def _unassign(draft: Draft, request: UnassignRegion) -> None:
    place = draft.current.places.get(request.region)
    if place is not None and draft.may_begin(place):
        assert place.owner is not None
        draft.begin(Close(request.region, place.owner.epoch, "asked for"), request.region)


def _may_change(draft: Draft, place: Place | None) -> bool:
    if place is None or place.server is None or not draft.may_begin(place):
        return False
    throttles = draft.desired.throttles
    is_idle = draft.current.servers[place.server].changes < throttles.changes_per_server
    return is_idle and len(draft.current.changes) < throttles.changes


def _split(draft: Draft, request: SplitRegion) -> None:
    if _may_change(draft, draft.current.places.get(request.region)):
        draft.begin(Split(request.region, request.row, REQUESTED), request.region)


def _merge(draft: Draft, request: MergeRegions) -> None:
    left, right = (draft.current.places.get(region) for region in (request.left, request.right))
    if left is None or right is None or not (draft.may_begin(left) and draft.may_begin(right)):
        return
    if left.server != right.server:
        why = f"to be merged with region {left.info.encoded}"
        _move(draft, MoveRegion(request.right, left.server, why), Reason.MERGE)
    elif _may_change(draft, left) and _may_change(draft, right):
        draft.begin(Merge((request.left, request.right), REQUESTED), request.left, request.right)


# --- 3 and 4 -----------------------------------------------------------------------------------------


def _empty_drained(draft: Draft) -> None:
    current, most = draft.current, draft.desired.throttles.moves_per_drained
    for name in sorted(draft.desired.drained):
        server = current.servers.get(name)
        if server is None or not current.is_up(name) or not server.regions or draft.may_take(name):
            continue
        for region in server.regions:
            if not (draft.has_slots and draft.has_slot(name, most)):
                break
            place = current.places[region]
            if draft.may_begin(place):
                target = draft.choose(place, apart_from=(name,), with_slot=True)
                if target is None:
                    break
                why = "is to stop" if name in draft.desired.leaving else "is drained"
                draft.move(place, target, f"{name} {why}", Reason.DRAIN)


def _send_home(draft: Draft) -> None:
    for name, regions in draft.current.homes.astray.items():
        if not draft.current.is_up(name) or not draft.may_take(name):
            continue
        if draft.now_ms - draft.current.servers[name].since_ms < SHARE_MS and _share_openings(draft, name):
            continue  # regions that no server has opened have priority over regions that only are not at home
        if not draft.has_slot(name):
            continue
        for region in regions:
            if not (draft.has_slots and draft.has_slot(name)):
                break
            place = draft.current.places[region]
            if not draft.may_leave(place) or (not place.why_ideal and not place.may_settle(draft.now_ms)):
                continue
            reason = Reason.BALANCE if place.why_ideal else Reason.HOME
            draft.move(place, name, place.why_ideal or f"{name} is back", reason)


def _share_openings(draft: Draft, name: str) -> bool:
    """Give a server that has just come up its share of its unopened regions, least loaded first.

    Returns whether other servers have such regions.  The shares leave each server equally many regions to open, so no
    region is moved twice if all servers open equally fast.
    """
    current, server = draft.current, draft.current.servers[name]
    waits = (
        place for place in map(current.places.__getitem__, current.homes.astray[name]) if _is_opening(draft, place)
    )
    servers = max(2, len(draft.eligible))
    of_others = sum(len(one.opening) for one in current.servers.values()) - len(server.opening)
    if server.opening and (of_others - (servers - 1) * len(server.opening)) // servers < SHARED_AT_ONCE:
        return next(waits, None) is not None  # the usual case; each of thousands of openings calls this
    waiting = list(waits)
    if not waiting:
        return False
    share = (len(waiting) - (servers - 1) * len(server.opening)) // servers
    if share >= SHARED_AT_ONCE or not server.opening:
        waiting.sort(key=lambda place: place.load)
        for place in waiting[: max(0, share)]:
            draft.move(place, name, f"{name} is back, and {place.server} has not opened it yet", Reason.HOME)
    return True


def _is_opening(draft: Draft, place: Place) -> bool:
    """Return whether a living server has been asked to open the region."""
    return place.phase is Phase.OPENING and place.owner is not None and draft.current.is_alive(place.owner.server)


HOT_SHARE: Final = 0.5  # of a server's share, by one region
HOT_LOAD: Final = 100.0  # a region below this load is not worth a split, however idle other servers are
HOT_BYTES: Final = 64 * MIB


def is_large(place: Place, share: float) -> bool:
    """Return whether ``split_large`` should check the region.  ``share``: the mean load of a server."""
    return _is_hot(place, share) or place.measured.size_bytes > place.measured.limit_bytes > 0


def _is_hot(place: Place, share: float) -> bool:
    return place.load > max(HOT_SHARE * share, HOT_LOAD) and place.measured.size_bytes >= HOT_BYTES


def split_large(draft: Draft) -> None:
    """Split regions over the limit of their table, then hot regions, as far as there are slots.

    A hot region alone has over half of a server's share of the load, and at least 64 MiB.  A split takes a slot of its
    server and a slot of the cluster.  The region furthest over its limit is first.
    """
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
    limited = [place for place in places.values() if place.measured.limit_bytes]
    loads = [RegionLoad(place.info, place.measured.size_bytes, place.measured.limit_bytes) for place in limited]
    tried = {region: place.measured.unsplit_bytes for region, place in places.items() if place.measured.unsplit_bytes}
    info = due(loads, tried, free_bytes)
    if info is not None:
        place = places[info.region_id]
        return place, f"{place.measured.size_bytes // MIB} MiB are over its table's {place.measured.limit_bytes // MIB}"
    for place in places.values():
        is_new = place.measured.size_bytes > place.measured.unsplit_bytes * 3 // 2
        if _is_hot(place, share) and is_new and place.measured.size_bytes * 2 < free_bytes:
            return place, f"it alone has {place.load / share:.1f} times the mean load of a server"
    return None
