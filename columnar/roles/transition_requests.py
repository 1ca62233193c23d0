"""A master's requests to one server to open, renumber or close a region; each answer is an event.

A refusal is the event ``failed``.  The end of a server meanwhile is reported separately.

Owned by the loop.
"""

from __future__ import annotations

import logging

from columnar.clock import Clock
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.errors import ColumnarError, DamagedData
from columnar.master import instructions as do
from columnar.master.catalogue import Catalogue
from columnar.model import owner_messages as messages
from columnar.model.owner import Incarnation, Owner, servers_to_replay
from columnar.roles.cluster_servers import DeadServerLogs, Servers
from columnar.roles.state_events import LOOP, StateEvents
from columnar.runtime.faults import FAULTS

_log = logging.getLogger(__name__)


class TransitionRequests:
    def __init__(
        self, events: StateEvents, catalogue: Catalogue, servers: Servers, dead_logs: DeadServerLogs, clock: Clock
    ) -> None:
        """Pass the master's clock, which follows owners that close regions; the next owners follow it."""
        self._events = events
        self._catalogue = catalogue
        self._servers = servers
        self._dead_logs = dead_logs
        self._clock = clock

    def observe_clock(self, clock_ms: int) -> None:
        """Follow the clock of a server that has closed regions, before their next owners follow this one."""
        self._clock.observe(clock_ms)

    def notify_server(self, notification: do.NotifyServer) -> None:
        self._events.spawn(self._request_transition(notification.server, notification.request))

    async def _request_transition(self, server: Incarnation, request: do.OwnerRequest) -> None:
        place = self._events.state.current.places.get(request.region)
        if place is None:
            return  # the region was dropped meanwhile
        epoch = request.epoch if isinstance(request, do.Close) else request.owner.epoch
        try:
            if isinstance(request, do.Close):
                given_up = await self._servers.request_server(server, messages.CloseRegion(place.info, request.epoch))
                self.observe_clock(given_up.clock_ms)
            else:
                sealed = self._sealed(request.owner, server)
                for one in self._unsealed(request.owner, server):
                    is_over = self._events.state.ledger.is_fenced(one)
                    sealed += ((one, await self._dead_logs.extents(one, is_over=is_over)),)
                if isinstance(request, do.Open):
                    await self._servers.request_server(
                        server,
                        messages.OpenRegion(place.info, request.owner, sealed, request.is_doubted, self._clock()),
                    )
                else:
                    await self._servers.request_server(
                        server, messages.RenumberRegion(place.info, request.owner, sealed, self._clock())
                    )
        except (NotSent, LinkBroke):
            return  # the end of the server is reported separately
        except Exception as error:  # noqa: BLE001 - whatever the error is, the server has refused the region's epoch
            self._refused(server, request, epoch, error)
            return
        if isinstance(request, do.Close):
            self._events.event(
                self._events.state.closed(
                    server, request.region, given_up.epoch, self._events.now_ms(), is_behind=given_up.has_unreplayed_log
                )
            )
        else:
            self._events.event(self._events.state.opened(server, request.region, epoch, self._events.now_ms()))

    def _refused(self, server: Incarnation, request: do.OwnerRequest, epoch: int, error: Exception) -> None:
        place = self._events.state.current.places.get(request.region)
        if not isinstance(request, do.Close) and (place is None or place.owner != request.owner):
            return  # the region has a new owner by now
        what = "close" if isinstance(request, do.Close) else "open"
        text = error.text if isinstance(error, ColumnarError) else f"{type(error).__name__}: {error}"
        _log.error("server %s cannot %s region %d at epoch %d: %s", server, what, request.region, epoch, text)
        if not isinstance(error, ColumnarError):
            FAULTS.met(LOOP, error)
        if not isinstance(request, do.Close):  # not for a close, which is sent again
            is_damaged = isinstance(error, DamagedData)
            self._events.event(
                self._events.state.failed(server, request.region, epoch, text, is_damaged, self._events.now_ms())
            )

    async def cannot_open(self, server: Incarnation, said: messages.CannotOpen) -> None:
        """Note that a server owns the region but cannot open it, so each request for the region fails alike."""
        what = "is damaged" if said.is_damaged else "cannot be opened"
        _log.error(
            "region %s of %s %s at server %s: %s", said.region.encoded, said.region.table, what, server, said.why
        )
        region, now_ms = said.region.region_id, self._events.now_ms()
        self._events.event(self._events.state.unopened(server, region, said.epoch, said.why, said.is_damaged, now_ms))

    def _sealed(self, owner: Owner, server: Incarnation) -> tuple[tuple[Incarnation, messages.Segments], ...]:
        sealed = self._catalogue.ownership.firm_seals()
        return tuple((one, sealed[one]) for one in servers_to_replay(owner, server) if one in sealed)

    def _unsealed(self, owner: Owner, server: Incarnation) -> list[Incarnation]:
        """Return the servers whose logs have no seal.

        Either such a server still lives, after a close whose fsync failed, and its log has its writes to the region; or
        the server is dead, and its log was damaged when it was last read.
        """
        sealed = self._catalogue.ownership.firm_seals()
        return [one for one in servers_to_replay(owner, server) if one not in sealed]
