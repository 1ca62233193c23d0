"""(pure) What a server knows of a trigger's deliveries in its own regions, and what all servers know together.

Knows nothing of who asks, nor of consumers and letters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

RUNNING: Final = "running"


@dataclass(frozen=True, slots=True)
class TriggerStatus:
    """``triggers.trigger_manager.Summary`` as it is sent."""

    name: str
    table: str
    function: str
    state: str  # running, paused, blocked or unreadable
    lag_changes: int
    lag_seconds: float  # of the oldest change
    parked: int  # rows
    letters: int
    error: str
    rate_per_s: float = 0.0  # deliveries, in the last minute
    share: int = 0  # 0: of an older server, or it cannot be read
    process: str = ""  # label; empty: the common one
    settings: str = ""  # of pace (``trigger_registration.settings_of``)
    allows_cycle: bool = False  # it may follow its own changes


def merged(looks: Iterable[TriggerStatus]) -> list[TriggerStatus]:
    """Merge the status of several servers into one for each trigger, in the order in which triggers come first.

    Numbers are summed, but for the age of the oldest change.  A state other than running is the trigger's state.
    """
    found: dict[str, TriggerStatus] = {}
    for look in looks:
        held = found.get(look.name)
        found[look.name] = look if held is None else _both(held, look)
    return list(found.values())


def _both(one: TriggerStatus, other: TriggerStatus) -> TriggerStatus:
    return replace(
        one,
        state=one.state if one.state != RUNNING else other.state,
        lag_changes=one.lag_changes + other.lag_changes,
        lag_seconds=max(one.lag_seconds, other.lag_seconds),
        parked=one.parked + other.parked,
        letters=one.letters + other.letters,
        error=one.error or other.error,
        rate_per_s=one.rate_per_s + other.rate_per_s,
    )
