"""Our methods on views: changes go to the master, status requests to the owners of regions.  Loaded at first use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from columnar.errors import IllegalArgument
from columnar.model.record_codec import pack_records
from columnar.model.view_generations import role_of
from columnar.model.view_status import ViewStatus, merged
from columnar.thrift.view_checks import ViewChecks
from columnar.thrift.view_names import RemoteViewStatuses
from columnar.views.local_views import LocalViews

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

    async def columnarViews(self, _ctx: Any) -> bytes:
        others = self._others()
        elsewhere, silent = await others() if others is not None else ([], [])
        statuses = merged([*self._local_views.view_statuses(), *elsewhere])
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
