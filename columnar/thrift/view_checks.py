"""Checks of views at a client's request: one call, which takes as long as reading both sides does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from columnar.cluster.scatter_gather import Owners
from columnar.errors import ClientGone, ViewError
from columnar.flows.applier import Applier
from columnar.model.view_check import CheckReport
from columnar.model.view_definition import from_json
from columnar.views.check_owners import CheckOwners
from columnar.views.checking import ViewCheck
from columnar.views.local_views import LocalViews
from columnar.views.view_check_peer_handlers import ViewCheckPeerHandlers

LAG_MS: Final = 60_000  # that a check waits for the lag to be over; what differs then is said to be unsure


class ViewChecks:
    def __init__(
        self,
        here: LocalViews,
        asked: Callable[[], ViewCheckPeerHandlers],
        applier: Applier,
        wait: Callable[[Any, str, str, int], Awaitable[bool]],
        owners: Callable[[], Owners | None],
    ) -> None:
        """``wait``: ``columnarViewWait``; ``owners``: None: this process has all regions."""
        self._local_views = here
        self._peer_handlers = asked
        self._applier = applier
        self._wait = wait
        self._owners = owners

    async def check(self, ctx: Any, name: str, *, repair: bool) -> CheckReport:
        """ViewError: there is no such view, or it is not built yet.  ClientGone ends it."""
        view = self._local_views.views.known(self._local_views.views.live_table(name))
        if view.state != "live" and not await self._caught_up(view.name):
            raise ViewError(f"view {name} is still being built; columnar view list shows how far it is")

        def advance(_read: int) -> None:
            if ctx.has_gone():
                raise ClientGone

        owners = CheckOwners(self._peer_handlers(), self._applier, self._caught_up, self._owners())
        return await ViewCheck(from_json(view.definition), view.name, owners, advance).run(repair=repair)

    async def _caught_up(self, view: str) -> bool:
        return await self._wait(None, view, "", LAG_MS)
