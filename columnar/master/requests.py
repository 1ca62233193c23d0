"""(pure) Requests of operators: decides which are refused at once, and when each is answered.

A request about a region is answered when the region is in the requested state, or cannot reach it any more; a newer
request about the region may take its place (``is_superseded``).  A request about the whole cluster is an operator
setting.  A request whose setting must survive restarts (also ``assign`` and ``unassign``) is answered when the setting
is on disk, or could not be written.  While the catalogue cannot be written every request is refused, and a setting
under way has an unknown outcome.

Knows nothing of how a request is carried out: the planner turns it into instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from columnar.errors import IllegalArgument
from columnar.master.catalogue_rows import OperatorSettings
from columnar.master.instructions import (
    Answer,
    AssignRegion,
    BalanceNow,
    DrainNode,
    DrainServer,
    EvacuateServer,
    Give,
    Merge,
    MergeRegions,
    MoveRegion,
    Output,
    Request,
    Split,
    SplitRegion,
    SwitchSetting,
    UnassignRegion,
)
from columnar.master.placement import Current, Desired
from columnar.master.placement_records import Phase, Place, Server, ServerState
from columnar.master.replacements import check_merge, check_split
from columnar.model.owner import Incarnation

GONE: Final = "the region was dropped, split or merged meanwhile; ask for the regions again"
REFUSED: Final = "the catalogue refused the write"


def regions_of(request: Request) -> tuple[int, ...]:
    if isinstance(request, MergeRegions):
        return (request.left, request.right)
    if isinstance(request, MoveRegion | AssignRegion | UnassignRegion | SplitRegion):
        return (request.region,)
    return ()


def regions_changed(change: Split | Merge) -> tuple[int, ...]:
    return (change.region,) if isinstance(change, Split) else change.regions


def refusal(request: Request, desired: Desired, current: Current, now_ms: int) -> str | None:
    """Return why the request is refused, or None if it is accepted."""
    if isinstance(request, EvacuateServer) and not request.on:
        return None
    if not current.catalogue.is_sound:
        return f"nothing was done: {current.catalogue.remark(now_ms)}"
    if isinstance(request, DrainServer | EvacuateServer):
        return None if request.server in current.servers else f"there is no server {request.server}"
    if isinstance(request, DrainNode):
        unknown = sorted(set(request.servers) - current.servers.keys())
        return f"there is no server {unknown[0]}" if unknown else None
    if any(region not in current.places for region in regions_of(request)):
        return GONE
    if isinstance(request, SplitRegion | MergeRegions):
        return _senseless(request, current)
    return _misdirected(request, desired, current, now_ms) if isinstance(request, MoveRegion) else None


def _senseless(request: SplitRegion | MergeRegions, current: Current) -> str | None:
    infos = [current.places[region].info for region in regions_of(request)]
    closed = _closed(request, current)
    if closed is not None:
        return closed
    try:
        if isinstance(request, MergeRegions):
            check_merge(*infos)
        elif request.row is not None:
            check_split(infos[0], request.row)
    except IllegalArgument as error:
        return error.text
    return None


def _closed(request: Request, current: Current) -> str | None:
    for region in regions_of(request):
        place = current.places[region]
        if place.phase in (Phase.OFFLINE, Phase.FAILED_OPEN):
            return f"region {place.info.encoded} is not open; 'columnar assign {place.info.encoded}' opens it"
    return None


def _misdirected(request: MoveRegion, desired: Desired, current: Current, now_ms: int) -> str | None:
    closed = _closed(request, current)
    if closed is not None:
        return closed
    if request.server is None:
        return _nowhere(current.places[request.region], desired, current, now_ms)
    if not current.is_up(request.server):
        return f"server {request.server} is not up"
    if request.server in desired.operator_settings.drained:
        return f"server {request.server} is drained; undrain it first"
    if request.server in desired.leaving:
        return f"server {request.server} is being stopped or restarted; wait for it"
    return None


def _nowhere(place: Place, desired: Desired, current: Current, now_ms: int) -> str | None:
    """Return why the planner can choose no other server for the region, and what helps; None if it can."""
    others = [one for one in sorted(current.servers.values(), key=_name) if one.name != place.server]
    obstacles = [(one, _obstacle(one, desired, now_ms)) for one in others]
    if not others:
        return "the store has no other server"
    if not all(obstacle for _, obstacle in obstacles):
        return None
    whys = "; ".join(f"{one.name} {obstacle}" for one, obstacle in obstacles)
    return f"no other server may take the region now: {whys}"


def _name(server: Server) -> str:
    return server.name


def _obstacle(server: Server, desired: Desired, now_ms: int) -> str:
    """Return why the planner gives the server no region, or an empty text if it may."""
    if server.state is not ServerState.UP:
        return f"is {server.state.name.lower()}"
    if server.name in desired.operator_settings.drained:
        return f"is drained ('columnar undrain {server.name}' ends that)"
    if server.name in desired.leaving:
        return "is being stopped or restarted"
    if server.failures.shunned_until_ms > now_ms:
        seconds, why = (server.failures.shunned_until_ms - now_ms + 999) // 1_000, server.failures.why_shunned(now_ms)
        return f"is to be left alone for {seconds} s more, {why} (a move that names it goes there)"
    return ""


def _has_restarted(server: Server, since: Incarnation) -> bool:
    found = server.incarnation
    return server.state is ServerState.UP and found is not None and found.number > since.number


def update_operator_settings(request: Request, settings: OperatorSettings) -> OperatorSettings:
    if isinstance(request, DrainServer):
        return _update_drains(DrainNode((request.server,), request.on), settings)
    if isinstance(request, DrainNode):
        return _update_drains(request, settings)
    if isinstance(request, UnassignRegion):
        return replace(settings, unassigned=settings.unassigned | {request.region})
    if isinstance(request, AssignRegion):
        return replace(settings, unassigned=settings.unassigned - {request.region})
    if isinstance(request, SwitchSetting):
        if request.setting == "balancer":
            return replace(settings, balancer=request.on)
        return replace(settings, auto_split=request.on)
    return settings


def _update_drains(request: DrainNode, settings: OperatorSettings) -> OperatorSettings:
    servers = frozenset(request.servers)
    ending = {one.name for one in settings.until_restart}
    others = frozenset(one for one in settings.until_restart if one.name not in servers)
    if not request.on:
        return replace(settings, drained=settings.drained - servers, until_restart=others)
    own = frozenset(one for one in request.until_restart if one.name in ending or one.name not in settings.drained)
    return replace(settings, drained=settings.drained | servers, until_restart=others | own)


def _is_in(settings: OperatorSettings, request: Request) -> bool:
    """Return whether the settings are as the request wants them; true for a request without a setting."""
    return update_operator_settings(request, settings) == settings


def is_superseded(earlier: Request, newer: Request, current: Current) -> bool:
    """Return whether the newer request takes the place of the earlier one, as both need a region at different servers.

    A merge first moves its right region to the server of its left region; once the merge itself has begun, it is not
    called off any more.
    """
    if isinstance(earlier, SplitRegion):
        return False
    if isinstance(earlier, MergeRegions):
        is_moved = isinstance(newer, MoveRegion) and newer.region == earlier.right
        return is_moved and current.places[earlier.right].phase is not Phase.CHANGING
    return not set(regions_of(earlier)).isdisjoint(regions_of(newer))


def is_over(request: Request, desired: Desired, current: Current, now_ms: int) -> tuple[bool, str | None]:
    """Return whether the request is done or cannot be done any more, and its error.

    A split or merge under way is over when ``change_ended`` reports its end.
    """
    places = [current.places.get(region) for region in regions_of(request)]
    if None in places:
        return True, GONE
    place = places[0]
    assert place is not None, "looked at"
    if isinstance(request, AssignRegion):
        return place.phase in (Phase.OPEN, Phase.FAILED_OPEN), _unopened(place)
    if isinstance(request, UnassignRegion):
        return place.phase is Phase.OFFLINE, None
    if isinstance(request, MoveRegion):
        if place.phase is Phase.OPEN and place.server == request.server:
            return True, None
        if place.phase in (Phase.OFFLINE, Phase.FAILED_OPEN):
            return True, _unopened(place)
        if request.server is not None and not current.is_up(request.server):
            return True, f"server {request.server} is not up any more"
        nowhere = _nowhere(place, desired, current, now_ms) if request.server is None and place.server else None
        return nowhere is not None, nowhere
    if isinstance(request, SplitRegion | MergeRegions):
        closed = _closed(request, current)
        return closed is not None, closed
    return False, None


def _unopened(place: Place) -> str | None:
    if place.phase is Phase.OPEN:
        return None
    if place.phase is Phase.OFFLINE:
        return f"region {place.info.encoded} was unassigned meanwhile"
    return f"region {place.info.encoded} could not be opened: {place.attempts.failure}"


class Requests:
    """The requests that were not answered yet.  Answers are appended to ``outputs``."""

    def __init__(self, desired: Desired, current: Current, outputs: list[Output]) -> None:
        self.operator_settings_to_write: OperatorSettings | None = None
        self.drained_ms: dict[str, int] = {}  # since when a server is drained
        self._desired = desired
        self._current = current
        self._outputs = outputs
        self._on_disk = desired.operator_settings
        self._to_answer: list[int] = []  # requests that the next write's end answers
        self._sent: dict[int, tuple[OperatorSettings | None, list[int]]] = {}  # by number of the write
        self._begun: dict[frozenset[int], int] = {}  # requests for changes that are under way, by the change's regions

    def add_request(self, number: int, request: Request, now_ms: int) -> None:
        why = refusal(request, self._desired, self._current, now_ms)
        if why is not None:
            self._outputs.append(Answer(number, why))
        elif isinstance(request, BalanceNow):
            self._current.balance.balance_at_once()
            self._outputs.append(Answer(number, None))
        elif isinstance(request, EvacuateServer):
            (self._desired.leaving.add if request.on else self._desired.leaving.discard)(request.server)
            self._outputs.append(Answer(number, None))
        else:
            self._set_operator_settings(request, now_ms)
            if regions_of(request):
                self._add_region_request(number, request, now_ms)
            else:
                self.operator_settings_to_write = self._desired.operator_settings
                self._to_answer.append(number)

    def _set_operator_settings(self, request: Request, now_ms: int) -> None:
        before, settings = (
            self._desired.operator_settings,
            update_operator_settings(request, self._desired.operator_settings),
        )
        if settings != before:
            for name in settings.drained - before.drained:
                self.drained_ms[name] = now_ms
            self._desired.set_operator_settings(settings)
            self.operator_settings_to_write = settings

    def end_drains(self, now_ms: int) -> None:
        """End the drains of servers that have started anew since."""
        servers = self._current.servers
        ended = tuple(
            one.name
            for one in self._desired.operator_settings.until_restart
            if one.name in servers and _has_restarted(servers[one.name], one)
        )
        if ended:
            self._set_operator_settings(DrainNode(ended, on=False), now_ms)

    def _add_region_request(self, number: int, request: Request, now_ms: int) -> None:
        for earlier, other in list(self._desired.requests.items()):
            if is_superseded(other, request, self._current):
                self._answer(earlier, "another request for the region came meanwhile")
        self._desired.requests[number] = request
        place = self._current.places[regions_of(request)[0]]
        if isinstance(request, AssignRegion) and place.phase in (Phase.OFFLINE, Phase.FAILED_OPEN):
            place.note_attempt(place.attempts.assigned())  # the answer says whether its store could be opened
            self._current.set_phase(place, Phase.HOMELESS, now_ms)
        if isinstance(request, UnassignRegion) and place.phase in (Phase.HOMELESS, Phase.FAILED_OPEN):
            self._current.set_phase(place, Phase.OFFLINE, now_ms)

    def is_by_hand(self, give: Give) -> bool:
        """Return whether an operator requested the move; a request without a server names this server from now on."""
        found = False
        for number, request in self._desired.requests.items():
            if isinstance(request, MoveRegion) and request.region == give.region:
                found = True
                if request.server is None:
                    self._desired.requests[number] = MoveRegion(request.region, give.server, request.why)
            elif isinstance(request, MergeRegions) and request.right == give.region:
                found = True
        return found

    # --- writes ------------------------------------------------------------------------------------

    def sent(self, number: int) -> None:
        """Note that the write ``number`` includes the settings."""
        if self.operator_settings_to_write is not None:
            self._sent[number] = (self.operator_settings_to_write, self._to_answer)
            self.operator_settings_to_write, self._to_answer = None, []

    def row_written(self, number: int) -> None:
        settings, answered = self._sent.pop(number, (None, []))
        self._on_disk = settings or self._on_disk
        self._outputs += [Answer(request, None) for request in answered]

    def not_written(self, number: int) -> None:
        settings, answered = self._sent.pop(number, (None, []))
        if settings is not None and not self._sent:
            self._desired.set_operator_settings(self._on_disk)
            self.operator_settings_to_write = None
            answered, self._to_answer = [*answered, *self._to_answer], []
        self._outputs += [Answer(request, REFUSED) for request in answered]
        for waiting, request in list(self._desired.requests.items()):
            if not _is_in(self._desired.operator_settings, request):
                self._answer(waiting, REFUSED)

    def unsound(self, remark: str) -> None:
        """Answer requests for settings under way now, as their write ends only when the catalogue is sound again."""
        unknown = f"it is not known whether the wish will be kept ('columnar servers' shows it later): {remark}"
        for number, (settings, requests) in self._sent.items():
            self._outputs += [Answer(request, unknown) for request in requests]
            self._sent[number] = (settings, [])
        self._outputs += [Answer(request, unknown) for request in self._to_answer]
        self._to_answer = []

    # --- answers -----------------------------------------------------------------------------------

    def answer_ended_requests(self, now_ms: int) -> None:
        """Answer the requests that are over."""
        for number, request in list(self._desired.requests.items()):
            is_ended, error = is_over(request, self._desired, self._current, now_ms)
            if is_ended and (error is not None or self._is_setting_durable(request)):
                self._answer(number, error)

    def _is_setting_durable(self, request: Request) -> bool:
        """Return whether the request's setting is on disk, whatever the outcome of the writes under way."""
        under_way = (settings for settings, _ in self._sent.values() if settings is not None)
        return all(_is_in(settings, request) for settings in (self._on_disk, *under_way))

    def change_begun(self, change: Split | Merge) -> None:
        """Note that the planner has begun a change; its outcome will answer the first request for the change."""
        regions = frozenset(regions_changed(change))
        if not change.is_requested:
            return  # begun because of size or load
        for number, request in self._desired.requests.items():
            if isinstance(request, SplitRegion | MergeRegions) and regions == set(regions_of(request)):
                self._begun[regions] = number
                return

    def change_ended(self, regions: Sequence[int], error: str | None) -> None:
        """Answer the request that the change was begun for.

        Other requests for the same change may begin it again after a failure; after a success
        ``answer_ended_requests`` answers them.
        """
        number = self._begun.pop(frozenset(regions), None)
        if number is not None and number in self._desired.requests:
            self._answer(number, error)

    def _answer(self, number: int, error: str | None) -> None:
        del self._desired.requests[number]
        self._outputs.append(Answer(number, error))
