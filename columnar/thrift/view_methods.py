"""Our methods on views: changes go to the master, status requests to the owners of regions.  Loaded at first use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from columnar.errors import IllegalArgument
from columnar.model.view_generations import role_of
from columnar.model.view_set import KeptView
from columnar.model.view_status import ViewStatus, merged
from columnar.thrift.view_checks import ViewChecks
from columnar.thrift.view_names import RemoteViewStatuses
from columnar.views.local_views import LocalViews
from columnar.wire.idl import columnar

if TYPE_CHECKING:  # a server of a cluster has no master within
    from columnar.master.view_changes import ViewChanges


class ViewChangeMethods:
    """The master's."""

    def __init__(self, changes: ViewChanges) -> None:
        self._changes = changes

    def columnarViewAdd(self, _ctx: Any, definition: bytes) -> Awaitable[None]:
        if not definition:
            raise IllegalArgument("columnarViewAdd needs a definition, as JSON")
        return self._changes.add(definition)

    def columnarViewRebuild(self, _ctx: Any, name: str, definition: bytes) -> Awaitable[str]:
        return self._changes.generations.rebuild(name or "", definition or b"")

    async def columnarViewSwap(self, _ctx: Any, name: str) -> list[str]:
        return list(await self._changes.generations.swap(name or ""))

    async def columnarViewRollback(self, _ctx: Any, name: str) -> list[str]:
        return list(await self._changes.generations.rollback(name or ""))

    def columnarViewDrop(self, _ctx: Any, name: str) -> Awaitable[None]:
        return self._changes.drop(name or "")


class ViewMethods(ViewChangeMethods):
    def __init__(
        self,
        changes: ViewChanges,
        here: LocalViews,
        others: Callable[[], RemoteViewStatuses | None],
        checks: ViewChecks,
    ) -> None:
        """``others``: None: this process has all regions."""
        super().__init__(changes)
        self._checks = checks
        self._local_views = here
        self._others = others

    async def columnarViewList(self, _ctx: Any) -> list[Any]:
        others = self._others()
        elsewhere, silent = await others() if others is not None else ([], [])
        looks = merged([*self._local_views.view_statuses(), *elsewhere])
        views = self._local_views.views
        return [_status(view, looks.get(view.name), silent, role_of(view.name, views.swaps)) for view in views.all]

    def columnarViewCheck(self, ctx: Any, name: str, repair: bool) -> Awaitable[Any]:
        return self._checks.check(ctx, name or "", repair=bool(repair))


def _status(view: KeptView, look: ViewStatus | None, silent: list[str], role: str) -> Any:
    look = look or ViewStatus(view.name, 0, 0.0, 0, 0, "")
    return columnar.ViewStatus(
        name=view.name,
        definition=view.definition,
        state="unreadable" if view.unusable_reason else view.state,
        lagChanges=look.lag_changes,
        lagSeconds=look.lag_seconds,
        rejectedRows=look.rejected,
        builtRows=look.rows_built,
        generation=view.generation,
        lastError=view.unusable_reason or look.error,
        silentServers=silent,
        role=role,
    )
