"""(pure) What a server knows of a view in its own regions of the sources, and what all servers know together.

Knows nothing of who asks, nor of followers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ViewStatus:
    name: str
    lag_changes: int
    lag_seconds: float  # of the oldest change
    rejected: int  # rows of the sources that cannot be read as the view says
    rows_built: int  # rows that the build has shown; they stay counted when it is over
    error: str


def merged(looks: Iterable[ViewStatus]) -> dict[str, ViewStatus]:
    """Merge the status of several servers by name: numbers are summed, but for the age of the oldest change."""
    found: dict[str, ViewStatus] = {}
    for look in looks:
        held = found.get(look.name)
        found[look.name] = look if held is None else _both(held, look)
    return found


def _both(one: ViewStatus, other: ViewStatus) -> ViewStatus:
    return ViewStatus(
        one.name,
        one.lag_changes + other.lag_changes,
        max(one.lag_seconds, other.lag_seconds),
        one.rejected + other.rejected,
        one.rows_built + other.rows_built,
        one.error or other.error,
    )
