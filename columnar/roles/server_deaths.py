"""(pure) Deaths of servers: how long a replacement waits, and when a start is given up.

A server that ended is replaced at once, after the third death within 5 minutes 1, 2, 4, 8 s later.  During the start of
the whole a process that ended by itself has said why in its log, and would say it again: the start is given up.  A
process that a signal ended (a person, the kernel's memory killer, the fence of one that stood still) is replaced, up
to DEATHS_AT_ONCE times.

Knows nothing of processes.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Final

DEATHS_WITHIN_S: Final = 300.0
DEATHS_AT_ONCE: Final = 3  # this many are replaced without a pause
PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, slots=True)
class Death:
    at_s: float
    who: str  # the incarnation
    status: int  # as of ``waitpid`` in Python: the negative number of the signal, or the exit status
    lines: tuple[str, ...] = ()  # the last of its log

    @property
    def is_by_signal(self) -> bool:
        return self.status < 0


def ending(status: int) -> str:
    """Return how a process ended, as the text after "it ended"."""
    if status < 0:
        return f"by {signal.Signals(-status).name}" if -status in list(signal.Signals) else f"by signal {-status}"
    return f"with status {status}"


class ServerDeaths:
    """The recent deaths of each server, by name; the end of a requested stop is no death."""

    def __init__(self) -> None:
        self._deaths: dict[str, list[Death]] = {}

    def add(self, name: str, death: Death) -> None:
        recent = [one for one in self._deaths.get(name, []) if death.at_s - one.at_s < DEATHS_WITHIN_S]
        self._deaths[name] = [*recent, death]

    def last(self, name: str) -> Death | None:
        return self._deaths[name][-1] if name in self._deaths else None

    def number(self, name: str) -> int:
        return len(self._deaths.get(name, ()))

    def pause_s(self, name: str) -> float:
        """Return how long the replacement of a server waits that has just died."""
        over = self.number(name) - DEATHS_AT_ONCE
        return 0.0 if over <= 0 else PAUSES_S[min(over, len(PAUSES_S)) - 1]

    def is_start_hopeless(self, name: str) -> bool:
        """Return whether another process would not get further than the last one, which has just died."""
        deaths = self._deaths.get(name, [])
        return bool(deaths) and (not deaths[-1].is_by_signal or len(deaths) >= DEATHS_AT_ONCE)
