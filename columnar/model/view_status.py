"""(pure) What a server knows of a view in its own regions of the sources, and what all servers know together.

Between servers the first fields travel, up to ``last_error``; a gateway adds those of the store for its client, to
which the record travels whole (``record_codec``).

Knows nothing of who asks, nor of followers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from columnar.errors import DamagedData
from columnar.model.view_generations import base_of

if TYPE_CHECKING:  # a store without views needs none of it
    from columnar.model.view_definition import View


@dataclass(frozen=True, slots=True)
class ViewStatus:
    table: str  # of its generation
    lag_changes: int = 0
    lag_seconds: float = 0.0  # of the oldest change
    rejected_rows: int = 0  # of the sources, which cannot be read as the definition says: they are in no group
    built_rows: int = 0  # that were there before the view and have been backfilled
    last_error: str = ""
    definition_json: bytes = b""
    state: str = ""  # adding, building, live (built) or unreadable
    generation: int = 1  # 1 at first; the next one with each rebuild
    role: str = "live"  # which generation it is: live, next (not swapped in) or kept (for a rollback)
    silent_servers: tuple[str, ...] = ()  # of several servers: those whose part is not in the numbers

    @property
    def name(self) -> str:
        """The view's, of all generations."""
        return base_of(self.table)

    @property
    def definition(self) -> View | None:
        """None: of a newer version, or none."""
        from columnar.model.view_definition import from_json

        try:
            return from_json(self.definition_json)
        except DamagedData:
            return None


def merged(statuses: Iterable[ViewStatus]) -> dict[str, ViewStatus]:
    """Merge the status of several servers by table: numbers are summed, but for the age of the oldest change."""
    found: dict[str, ViewStatus] = {}
    for status in statuses:
        held = found.get(status.table)
        found[status.table] = status if held is None else _both(held, status)
    return found


def _both(one: ViewStatus, other: ViewStatus) -> ViewStatus:
    return replace(
        one,
        lag_changes=one.lag_changes + other.lag_changes,
        lag_seconds=max(one.lag_seconds, other.lag_seconds),
        rejected_rows=one.rejected_rows + other.rejected_rows,
        built_rows=one.built_rows + other.built_rows,
        last_error=one.last_error or other.last_error,
    )
