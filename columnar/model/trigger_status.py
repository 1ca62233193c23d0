"""(pure) What a server knows of a trigger's deliveries in its own regions, and what all servers know together.

Servers send each other a ``TriggerStatus``; clients get a ``ListedTrigger`` (``record_codec``).

Knows nothing of who asks, nor of consumers and letters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Final

from columnar.model.trigger_registration import DEFAULT_ATTEMPTS, DEFAULT_TIMEOUT_MS, Registration, settings_of

RUNNING: Final = "running"


@dataclass(frozen=True, slots=True)
class TriggerStatus:
    name: str
    table_name: str
    function: str
    state: str = RUNNING  # running, paused, blocked or unreadable
    lag_changes: int = 0
    lag_seconds: float = 0.0  # of the oldest change
    parked_rows: int = 0
    dead_letters: int = 0
    last_error: str = ""
    rate_per_s: float = 0.0  # deliveries, in the last minute
    share: int = 0  # of the workers' time, beside the shares of others; 0: it cannot be read
    process: str = ""  # label of its worker process; empty: the common one
    settings: str = ""  # of pace (``trigger_registration.settings_of``)
    allows_cycle: bool = False  # it may follow its own changes


@dataclass(frozen=True, slots=True)
class ListedTrigger(TriggerStatus):
    """The status as a gateway gives it to its client."""

    registration: Registration | None = None  # None: it cannot be read
    silent_servers: tuple[str, ...] = ()  # of several servers: those whose part is not in the numbers, with the cause

    @property
    def table(self) -> bytes:
        return self.table_name.encode()

    @property
    def families(self) -> tuple[bytes, ...]:
        return () if self.registration is None else tuple(sorted(self.registration.family_bytes))

    @property
    def attempts(self) -> int:
        return DEFAULT_ATTEMPTS if self.registration is None else self.registration.attempts

    @property
    def timeout_ms(self) -> int:
        return DEFAULT_TIMEOUT_MS if self.registration is None else self.registration.timeout_ms


def listed(status: TriggerStatus, registration: Registration | None, silent_servers: Iterable[str]) -> ListedTrigger:
    known = {one.name: getattr(status, one.name) for one in fields(TriggerStatus)}
    return ListedTrigger(**known, registration=registration, silent_servers=tuple(silent_servers))


def status_of(registration: Registration) -> TriggerStatus:
    """Return the status of a trigger that has nothing to deliver."""
    return TriggerStatus(
        registration.name,
        registration.table,
        registration.function,
        share=registration.share,
        process=registration.process,
        settings=settings_of(registration),
        allows_cycle=registration.allow_cycle,
    )


def merged(statuses: Iterable[TriggerStatus]) -> list[TriggerStatus]:
    """Merge the status of several servers into one for each trigger, in the order in which triggers come first.

    Numbers are summed, but for the age of the oldest change.  A state other than running is the trigger's state.
    """
    found: dict[str, TriggerStatus] = {}
    for status in statuses:
        held = found.get(status.name)
        found[status.name] = status if held is None else _both(held, status)
    return list(found.values())


def _both(one: TriggerStatus, other: TriggerStatus) -> TriggerStatus:
    return replace(
        one,
        state=one.state if one.state != RUNNING else other.state,
        lag_changes=one.lag_changes + other.lag_changes,
        lag_seconds=max(one.lag_seconds, other.lag_seconds),
        parked_rows=one.parked_rows + other.parked_rows,
        dead_letters=one.dead_letters + other.dead_letters,
        last_error=one.last_error or other.last_error,
        rate_per_s=one.rate_per_s + other.rate_per_s,
    )
