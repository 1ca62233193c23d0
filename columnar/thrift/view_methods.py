"""Our methods on views: changes go to the master, status requests to the owners of regions.  Loaded at first use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from columnar.cluster.scatter_gather import Owners
from columnar.errors import ClientGone, IllegalArgument, ViewError
from columnar.flows.applier import Applier
from columnar.model.flow_status import CheckReport, ViewStatus, merged
from columnar.model.record_codec import pack_records
from columnar.model.view_definition import from_json
from columnar.model.view_generations import role_of
from columnar.views.check_owners import CheckOwners
from columnar.views.checking import ViewCheck
from columnar.views.local_views import LocalViews
from columnar.views.view_check_peer_handlers import ViewCheckPeerHandlers

if TYPE_CHECKING:  # a server of a cluster has no master within
    from columnar.master.view_changes import ViewChanges
    from columnar.master.view_generations import ViewGenerations


# The statuses of other servers, and the names of servers that did not answer.
RemoteViewStatuses: TypeAlias = Callable[[], Awaitable[tuple[list[ViewStatus], list[str]]]]


class ViewChangeMethods:
    """The methods on views that the master serves."""

    def __init__(self, changes: ViewChanges, generations: ViewGenerations) -> None:
        self._changes = changes
        self._generations = generations

    def columnarViewAdd(self, _ctx: Any, definition: bytes) -> Awaitable[None]:
        if not definition:
            raise IllegalArgument("columnarViewAdd needs a definition, as JSON")
        return self._changes.add_view(definition)

    def columnarViewRebuild(self, _ctx: Any, name: str, definition: bytes) -> Awaitable[str]:
        return self._generations.rebuild(name or "", definition or b"")

    async def columnarViewSwap(self, _ctx: Any, name: str) -> list[str]:
        return list(await self._generations.swap(name or ""))

    async def columnarViewRollback(self, _ctx: Any, name: str) -> list[str]:
        return list(await self._generations.rollback(name or ""))

    def columnarViewDrop(self, _ctx: Any, name: str) -> Awaitable[None]:
        return self._changes.drop(name or "")


class ViewMethods(ViewChangeMethods):
    def __init__(
        self,
        changes: ViewChanges,
        generations: ViewGenerations,
        here: LocalViews,
        others: Callable[[], RemoteViewStatuses | None],
        checks: ViewChecks,
    ) -> None:
        """Pass ``others``, which returns None if this process has all regions."""
        super().__init__(changes, generations)
        self._checks = checks
        self._local_views = here
        self._others = others

    async def columnarViews(self, _ctx: Any) -> bytes:
        others = self._others()
        elsewhere, silent = await others() if others is not None else ([], [])
        statuses = {one.table: one for one in merged([*self._local_views.view_statuses(), *elsewhere])}
        views = self._local_views.views
        return pack_records(
            [
                replace(
                    status := statuses.get(view.name, ViewStatus(view.name)),
                    last_error=view.unusable_reason or status.last_error,
                    definition_json=view.definition,
                    state="unreadable" if view.unusable_reason else view.state,
                    generation=view.generation,
                    role=role_of(view.name, views.swaps),
                    silent_servers=tuple(silent),
                )
                for view in views.all
            ]
        )

    async def columnarCheckView(self, ctx: Any, name: str, repair: bool) -> bytes:
        return pack_records([await self._checks.check(ctx, name or "", repair=bool(repair))])


LAG_MS: Final = 60_000  # how long a check waits for the lag to end; afterwards it reports differences as unsure


class ViewChecks:
    def __init__(
        self,
        here: LocalViews,
        asked: Callable[[], ViewCheckPeerHandlers],
        applier: Applier,
        wait: Callable[[Any, str, str, int], Awaitable[bool]],
        owners: Callable[[], Owners | None],
    ) -> None:
        """Pass ``columnarViewWait``'s handler as ``wait``; ``owners`` returns None if all regions are local."""
        self._local_views = here
        self._peer_handlers = asked
        self._applier = applier
        self._wait = wait
        self._owners = owners

    async def check(self, ctx: Any, name: str, *, repair: bool) -> CheckReport:
        """Compare the view with its table.

        Raises ViewError if the view does not exist or is not built yet, and ClientGone if the client has disconnected.
        """
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
