"""(pure) Status of a cluster for operators: the places of regions, the reasons, and obstacles to requests.

    HBase's word   phase (``placement``)
    OPENING        WRITING of a region that no server serves; OPENING
    OPEN           OPEN
    CLOSING        WRITING of a region that its owner is to give up; CLOSING, LEAVING
    SPLITTING      CHANGING without a partner
    MERGING        CHANGING with a partner
    OFFLINE        HOMELESS: no server may serve it yet; OFFLINE: an operator wants it closed
    FAILED_OPEN    FAILED_OPEN

A status of all servers costs a sum over all regions (some 0.3 us each).  A status of a table looks through all regions
for those of the table.

Knows nothing of processes, whose ``ServerFacts`` are an argument, nor of how a status is shown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from columnar.errors import NotServingRegion, TableNotFound
from columnar.limits import MIB
from columnar.master.balancing import TOO_MUCH
from columnar.master.cluster_state import ClusterState
from columnar.master.instructions import Close, Decision, Give, Merge, Prefer, Say, Split
from columnar.master.placement_records import IDLE, NEVER_MS, Phase, Place, Server, ServerState
from columnar.model import cluster_status_records as words
from columnar.model.cluster_status_records import (
    UNKNOWN_MS,
    ClusterStatus,
    DecisionStatus,
    RegionStatus,
    RowStatus,
    ServerStatus,
    TableStatus,
    TransitionStatus,
)
from columnar.model.node_messages import ServerFacts
from columnar.model.owner import Incarnation
from columnar.model.region_info import counted, write_fault_text

BUSY_LOAD: Final = 100.0  # of a server, in addition to the load of idle regions: below it no client waits
LARGE_SHARE: Final = 0.5  # of its server's load: a region that has more is the reason why the server is busy
_WORDS: Final = {
    Phase.HOMELESS: words.OFFLINE,
    Phase.CLOSING: words.CLOSING,
    Phase.OPENING: words.OPENING,
    Phase.OPEN: words.OPEN,
    Phase.LEAVING: words.CLOSING,
    Phase.OFFLINE: words.OFFLINE,
    Phase.FAILED_OPEN: words.FAILED_OPEN,
}


FactsOf: TypeAlias = Callable[[Incarnation], ServerFacts]


# --- servers -----------------------------------------------------------------------------------------


def build_cluster_status(state: ClusterState, facts: FactsOf, now_ms: int) -> ClusterStatus:
    current, settings = state.current, state.desired.operator_settings
    servers = [build_server_status(state, server, facts, now_ms) for _, server in sorted(current.servers.items())]
    unwritable = (current.places[region] for region in current.unwritable)
    faults = (*_unread(state), *_failed(len(current.failed)), *_write_faults(unwritable))
    return ClusterStatus(
        servers=tuple(servers),
        regions=len(current.places),
        unassigned=len(current.homeless) + len(current.failed),
        transitions=len(current.in_transition),
        is_balancing=settings.balancer,
        is_splitting=settings.auto_split,
        is_writable=current.catalogue.is_sound,
        remarks=(*_unwritable(state, now_ms), *state.plans.remarks, *faults, *_busy_remarks(servers)),
        zones={server.name: server.zone for _, server in sorted(current.servers.items()) if server.zone},
        faults=faults,
    )


def _write_faults(places: Iterable[Place]) -> Iterable[str]:
    found = list(places)
    if found:
        yield write_fault_text(len(found), found[0].info, found[0].measured.write_fault)


def _unwritable(state: ClusterState, now_ms: int) -> Iterable[str]:
    if not state.current.catalogue.is_sound:
        yield state.current.catalogue.remark(now_ms)


def _unread(state: ClusterState) -> Iterable[str]:
    for server, why in state.current.unread_logs.items():
        owners = (place.owner for place in state.current.places.values())
        regions = counted(sum(owner is not None and owner.server == server for owner in owners))
        wait = f"the log of server {server}, which is over, cannot be read, and is needed by {regions}"
        yield f"{wait}: {why}; it is tried again each second"


def _failed(regions: int) -> Iterable[str]:
    if regions:
        what = f"{counted(regions)} could not be opened"
        yield f"{what}; 'columnar transitions' says why, 'columnar assign --all' tries again"


def _busy_remarks(servers: Iterable[ServerStatus]) -> Iterable[str]:
    for server in servers:
        if server.busy_ms:
            yield words.busy_remark(server)


def _busy_note(found: ServerFacts) -> Iterable[str]:
    if found.busy_ms:
        yield words.busy_words(found.busy_ms)


def build_server_status(state: ClusterState, server: Server, facts: FactsOf, now_ms: int) -> ServerStatus:
    found = facts(server.incarnation) if server.incarnation is not None else ServerFacts()
    places = state.current.places
    return ServerStatus(
        name=server.name,
        state=server.state.name.lower(),
        incarnation=server.incarnation.number if server.incarnation is not None else 0,
        is_drained=server.name in state.desired.operator_settings.drained,
        state_ms=_age(server.since_ms, now_ms),
        regions=len(server.regions),
        load=server.load,
        requests_per_s=sum(_requests_per_s(places[region]) for region in server.regions),
        moves=server.moves,
        version=found.version,
        address=found.address,
        pid=found.pid,
        connections=found.connections,
        notes=(*_busy_note(found), *_notes(state, server, now_ms), *([found.last_death] if found.last_death else [])),
        busy_ms=found.busy_ms,
        last_lines=found.last_lines,
    )


def _notes(state: ClusterState, server: Server, now_ms: int) -> Iterable[str]:
    if server.name in state.desired.operator_settings.drained:
        left = left_on(state, server)
        is_ending = any(one.name == server.name for one in state.desired.operator_settings.until_restart)
        drained = "drained until its next start" if is_ending else "drained"
        yield f"{drained}, {counted(left)} left on it" if left else f"{drained}: it gets no region"
    if server.name in state.desired.leaving:
        yield f"it is to stop, {counted(left_on(state, server))} left on it"
    if server.failures.shunned_until_ms > now_ms:
        seconds = (server.failures.shunned_until_ms - now_ms + 999) // 1_000
        yield f"for {seconds} s it gets no region, {server.failures.why_shunned(now_ms)}"
    if server.opening:
        yield f"on the way to it: {counted(len(server.opening))}"
    unwritable = sum(bool(state.current.places[region].measured.write_fault) for region in server.regions)
    if unwritable:
        yield f"{counted(unwritable)} cannot be written"
    astray = len(state.current.homes.astray.get(server.name, ()))
    if astray:
        yield f"elsewhere, though at home here: {counted(astray)}"


def left_on(state: ClusterState, server: Server) -> int:
    """Count the regions that the server owns, or serves until it has given them up."""
    leaving = sum(source == server.name for source, _ in state.current.moves.values())
    return len(server.regions) + leaving


def _age(since_ms: int, now_ms: int) -> int:
    return UNKNOWN_MS if since_ms == NEVER_MS else max(0, now_ms - since_ms)


def _requests_per_s(place: Place) -> float:
    return place.measured.reads_per_s + place.measured.writes_per_s


# --- regions -----------------------------------------------------------------------------------------


def hbase_word(place: Place) -> str:
    if place.phase is Phase.WRITING:
        is_served = place.owner is not None and place.owner.source is not None
        return words.CLOSING if is_served else words.OPENING
    if place.phase is Phase.CHANGING:
        return words.SPLITTING if place.partner is None else words.MERGING
    return _WORDS[place.phase]


def build_region_status(place: Place, facts: FactsOf, now_ms: int) -> RegionStatus:
    owner = place.owner
    is_owned = owner is not None and place.server is not None
    return RegionStatus(
        info=place.info,
        state=hbase_word(place),
        state_ms=max(0, now_ms - place.since_ms),
        server=place.server or "",
        incarnation=owner.server.number if owner is not None and is_owned else 0,
        address=facts(owner.server).address if owner is not None and is_owned else "",
        epoch=owner.epoch if owner is not None else 0,
        source=owner.source.server.name if owner is not None and owner.source is not None else "",
        home=place.ideal or "",
        why=_why(place),
        load=place.load,
        reads_per_s=place.measured.reads_per_s,
        writes_per_s=place.measured.writes_per_s,
        deliveries_per_s=place.measured.deliveries_per_s,
        size_bytes=place.measured.size_bytes,
    )


def _why(place: Place) -> str:
    if place.phase is Phase.OFFLINE:
        return "a person has unassigned it"
    if place.phase is Phase.FAILED_OPEN:
        return f"{_tried(place)}: {place.attempts.failure}"
    if place.phase is Phase.HOMELESS and place.attempts.tried:
        return f"{_tried(place)} and is tried again: {place.attempts.failure}"
    if place.phase is Phase.HOMELESS:
        waits = "no server may take it as yet"
        return waits if place.owner is None else f"{place.owner.server} had it last, and {waits}"
    if place.measured.write_fault:
        return f"it cannot be written: {place.measured.write_fault}"
    return place.why or "it was there when the master started, or a split or merge made it there"


def _tried(place: Place) -> str:
    times = f", {len(place.attempts.tried)} times in all" if len(place.attempts.tried) > 1 else ""
    return f"it could not be opened by {' nor '.join(dict.fromkeys(place.attempts.tried))}{times}"


def list_table_statuses(state: ClusterState) -> list[TableStatus]:
    """List the tables by name.  O(regions)."""
    places: dict[str, list[Place]] = {}
    for place in state.current.places.values():
        places.setdefault(place.info.table, []).append(place)
    return [
        TableStatus(
            name,
            len(assigned),
            len({place.server for place in assigned} - {None}),
            sum(place.load for place in assigned),
            sum(place.measured.size_bytes for place in assigned),
        )
        for name, assigned in sorted(places.items())
    ]


def table_places(state: ClusterState, table: str) -> list[Place]:
    """Return the table's regions in key order.  O(regions of all tables).  Raises TableNotFound if there is none."""
    found = [place for place in state.current.places.values() if place.info.table == table]
    if not found:
        raise TableNotFound(table)
    return sorted(found, key=lambda place: place.info.start)


def list_region_statuses(state: ClusterState, table: str, facts: FactsOf, now_ms: int) -> list[RegionStatus]:
    return [build_region_status(place, facts, now_ms) for place in table_places(state, table)]


def server_regions(state: ClusterState, server: str, facts: FactsOf, now_ms: int) -> list[RegionStatus]:
    """List the regions of a server, most loaded first; none if there is no such server."""
    found = state.current.servers.get(server)
    places = [state.current.places[region] for region in found.regions] if found is not None else []
    places.sort(key=lambda place: (-place.load, place.info.table, place.info.start))
    return [build_region_status(place, facts, now_ms) for place in places]


def place_of(places: Sequence[Place], row: bytes) -> Place:
    """Return the place whose region has the row.  Raises NotServingRegion if that region is being made."""
    at = bisect_right(places, row, key=lambda place: place.info.start) - 1
    if at < 0 or not places[at].info.contains_row(row):
        raise NotServingRegion("the region of that row is being made; ask again")
    return places[at]


def build_row_status(state: ClusterState, table: str, row: bytes, facts: FactsOf, now_ms: int) -> RowStatus:
    place = place_of(table_places(state, table), row)
    server = state.current.servers.get(place.server) if place.server is not None else None
    decisions = list_decision_statuses(state, now_ms, place.info.region_id)
    found = build_server_status(state, server, facts, now_ms) if server is not None else None
    return RowStatus(
        region=build_region_status(place, facts, now_ms),
        server=found,
        remarks=(*_busy_remarks([found] if found is not None else []), *_obstacles(state, place, server, now_ms)),
        decisions=tuple(decisions),
    )


def list_blocked_regions(state: ClusterState) -> dict[int, str]:
    """Return the regions that stay closed until an operator assigns them, each with the error text for clients."""
    current = state.current
    found = [*current.failed, *(one for one in state.desired.operator_settings.unassigned if one in current.places)]
    places = [current.places[region] for region in found]
    return {
        place.info.region_id: _explain_blocked(place)
        for place in places
        if place.phase in (Phase.OFFLINE, Phase.FAILED_OPEN)
    }


def _explain_blocked(place: Place) -> str:
    encoded = place.info.encoded
    what = f"region {encoded} of {place.info.table} is not served: {_why(place)}"
    if place.phase is Phase.FAILED_OPEN and place.attempts.rounds:
        return f"{what}; it is tried again by itself, and 'columnar assign {encoded}' tries at once"
    then = "then " if place.phase is Phase.FAILED_OPEN and place.attempts.is_damaged else ""
    return f"{what}; {then}'columnar assign {encoded}' opens it"


# --- obstacles ---------------------------------------------------------------------------------------


def _obstacles(state: ClusterState, place: Place, server: Server | None, now_ms: int) -> Iterable[str]:
    """List why requests for the region may wait: obstacles first, then causes of delay."""
    yield from _explain_not_served(state, place, now_ms)
    if place.phase is not Phase.WRITING:
        yield from _unwritable(state, now_ms)
    if server is not None and server.state is ServerState.FENCING:
        yield f"{server.name} does not answer and is being fenced: another server takes the region next"
    if server is not None and place.phase is Phase.OPEN:
        yield from _crowd(state, place, server)
        if server.name in state.desired.operator_settings.drained:
            yield f"{server.name} is drained: the region leaves it"
        elif server.name in state.desired.leaving:
            yield f"{server.name} is to stop: the region leaves it"
    if place.measured.write_fault:
        yield f"it cannot be written: {place.measured.write_fault}"
    if place.info.table in state.current.paused_tables:
        yield "the table is being copied: none of its regions moves, splits or merges meanwhile"
    size_bytes, limit_bytes = place.measured.size_bytes, place.measured.limit_bytes
    if size_bytes > limit_bytes > 0:
        text = f"it has {size_bytes // MIB} MiB, over its table's limit of {limit_bytes // MIB}"
        is_splitting = state.desired.operator_settings.auto_split
        yield f"{text}: it is split next" if is_splitting else f"{text}, and auto-split is off"


def _explain_not_served(state: ClusterState, place: Place, now_ms: int) -> Iterable[str]:
    encoded, since = place.info.encoded, _seconds(now_ms - place.since_ms)
    owner = place.owner
    if place.phase is Phase.OFFLINE:
        yield f"a person has unassigned the region; 'columnar assign {encoded}' opens it"
    elif place.phase is Phase.FAILED_OPEN:
        again = "it is tried again by itself; " if place.attempts.rounds else ""
        yield f"{_why(place)}; {again}'columnar assign {encoded}' tries again"
    elif place.phase is Phase.HOMELESS:
        yield f"no server has owned it for {since}: {_why(place)}"
    elif place.phase is Phase.CHANGING:
        yield f"it has been {hbase_word(place).lower()} for {since}; requests wait for the last hundredths of a second"
    elif place.phase is Phase.LEAVING and place.attempts.tried:
        yield f"{_tried(place)}, which has been giving it up for {since}: {place.attempts.failure}"
    elif place.phase is Phase.LEAVING:
        yield f"a person has unassigned it: {place.server} has been closing it for {since}"
    elif owner is not None and place.phase is not Phase.OPEN:
        if place.phase is Phase.WRITING and not state.current.catalogue.is_sound:
            yield f"its owner row is not written: {state.current.catalogue.remark(now_ms)}"
        elif owner.source is not None:
            yield f"it has been on its way from {owner.source.server.name} to {owner.server.name} for {since}"
        elif place.phase is Phase.WRITING:
            yield f"its owner row is not written: the write has run for {since}, and {owner.server.name} opens it then"
        else:
            yield f"{owner.server.name} has been opening it for {since}; requests wait until then"
        logs = {period.server for period in owner.unreplayed_logs if period.server != owner.server}
        if logs:
            yield f"before that the log of {', '.join(map(str, sorted(logs)))} is read for it"


def _crowd(state: ClusterState, place: Place, server: Server) -> Iterable[str]:
    up = [one for one in state.current.servers.values() if one.state is ServerState.UP]
    mean = state.current.load / max(1e-9, sum(one.weight for one in up))
    is_busy = server.load - IDLE * len(server.regions) > BUSY_LOAD * server.weight
    if len(up) < 2 or not is_busy or server.load / server.weight <= TOO_MUCH * mean:
        return
    busy = f"{server.name} has {server.load / server.weight / mean:.1f} times the mean load"
    share = place.load / server.load
    if share > LARGE_SHARE and len(server.regions) > 1:
        yield f"{busy}, and this region alone makes {share:.0%} of it; 'columnar split {place.info.encoded}' divides it"
    elif len(server.regions) == 1:
        yield f"{busy}, all of it by this region; 'columnar split {place.info.encoded}' divides it"
    elif state.desired.operator_settings.balancer:
        yield f"{busy}; the balancer looks at it every 10 s"
    else:
        yield f"{busy}, and the balancer is off; 'columnar balancer on' or 'columnar move' helps"


def _seconds(duration_ms: int) -> str:
    return f"{max(0, duration_ms) / 1_000:.1f} s"


# --- transitions and decisions -----------------------------------------------------------------------


def list_transition_statuses(state: ClusterState, now_ms: int) -> list[TransitionStatus]:
    """List regions that are in transition, wait for a server or stay FAILED_OPEN for an operator; longest first."""
    current = state.current
    regions = (*current.in_transition, *current.homeless, *current.failed)
    found = [_transition(current.places[region], current.catalogue.is_sound, now_ms) for region in regions]
    return sorted(found, key=lambda one: -one.state_ms)


def _transition(place: Place, is_writable: bool, now_ms: int) -> TransitionStatus:
    source = place.owner.source.server.name if place.owner is not None and place.owner.source is not None else ""
    target = place.server or ""
    if place.phase is Phase.CHANGING:
        kind = "split" if place.partner is None else "merge"
        source = target
    elif place.phase is Phase.LEAVING:
        kind, source, target = "close", target, ""
    elif place.phase is Phase.FAILED_OPEN:
        kind = "failed"
    elif place.phase is Phase.HOMELESS:
        kind = "waiting"
    else:
        kind = "move" if source else "open"
    why = _why(place) if kind in ("failed", "waiting") else place.why
    if place.phase is Phase.WRITING and not is_writable:
        why = f"its owner row is not written: the catalogue cannot be; {why}"
    return TransitionStatus(kind, place.info, hbase_word(place), source, target, now_ms - place.since_ms, why)


def list_decision_statuses(state: ClusterState, now_ms: int, region: int | None = None) -> list[DecisionStatus]:
    """List decisions, newest first; if ``region`` is given, only decisions about it."""
    found = []
    for decision in reversed(state.plans.decisions):
        if region is None or region in _regions_of(decision):
            found.append(_decision(state, decision, now_ms))
    return found


def _regions_of(decision: Decision) -> tuple[int, ...]:
    what = decision.what
    if isinstance(what, Merge):
        return what.regions
    return (what.region,) if isinstance(what, Give | Prefer | Close | Split) else ()


def _decision(state: ClusterState, decision: Decision, now_ms: int) -> DecisionStatus:
    places = state.current.places
    ids = _regions_of(decision)
    regions = tuple(places[one].info.encoded if one in places else str(one) for one in ids)
    named = [_named(places[one].info.table, name) if one in places else f"region {one} (gone)" for one, name in
             zip(ids, regions, strict=True)]  # fmt: skip
    what, server, why = decision.what, "", ""
    if isinstance(what, Say):
        kind, text = "say", what.text
    elif isinstance(what, Give):
        kind, text, server, why = "give", f"{named[0]} goes to {what.server}", what.server, what.why
    elif isinstance(what, Prefer):
        kind, text, server, why = "prefer", f"{named[0]} belongs on {what.server}", what.server, what.why
    elif isinstance(what, Close):
        kind, text, why = "close", f"{named[0]} is closed", what.why
    elif isinstance(what, Split):
        kind, text, why = "split", f"{named[0]} is split", what.why
    elif isinstance(what, Merge):
        kind, text, why = "merge", f"{named[0]} and {named[1]} are merged", what.why
    else:
        kind, text, server, why = "fence", f"{what.server} is fenced", what.server.name, what.why
    whole = f"{text}: {why}" if why else text
    return DecisionStatus(max(0, now_ms - decision.at_ms), kind, regions, server, why, whole)


def _named(table: str, encoded: str) -> str:
    return f"{table} {encoded[:8]}"
