"""The shell of ``master.liveness``: checks the servers, reports their state, and reports servers to be killed.

Owned by the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from columnar.master.liveness import Liveness, Works
from columnar.model.owner import Incarnation
from columnar.runtime.faults import surviving
from columnar.runtime.planned_step import PlannedStep

_log = logging.getLogger(__name__)

LOOP: Final = "the watch of servers"


class ServerWatch:
    """Checks from the first server on, until ``stop``."""

    def __init__(self, now_ms: Callable[[], int], works: Works, dead: Callable[[Incarnation, str], None]) -> None:
        """``dead``: called with a server that is to be killed, and why."""
        self._now_ms = now_ms
        self._works = works
        self._dead = dead
        self._liveness: Liveness | None = None
        self._check_step = PlannedStep(LOOP, self._check_servers)
        self._busy: dict[Incarnation, int] = {}  # and since when

    def joined(self, server: Incarnation) -> None:
        now_ms = self._now_ms()
        if self._liveness is None:
            self._liveness = Liveness(now_ms, self._works)
            self._check_servers()
        self._liveness.joined(server, now_ms)

    def left(self, server: Incarnation) -> None:
        self._busy.pop(server, None)
        if self._liveness is not None:
            self._liveness.left(server)

    def heard(self, server: Incarnation, iterations: int) -> None:
        if self._liveness is not None:
            self._liveness.heard(server, iterations, self._now_ms())

    def busy_ms(self, server: Incarnation) -> int:
        """Return how long the server has been in one step; 0: it is not, or not for long."""
        since_ms = self._busy.get(server)
        return 0 if since_ms is None else self._now_ms() - since_ms

    def _check_servers(self) -> None:
        assert self._liveness is not None, "somebody joined"
        now_ms = self._now_ms()
        verdict = self._liveness.check_liveness(now_ms)
        self._check_step.after((verdict.wake_at_ms - now_ms) / 1000)  # first: checks continue even if the rest fails
        self._busy = dict(verdict.busy)
        for remark in verdict.remarks:
            _log.warning("%s", remark)
        for server, why in verdict.kill:
            with surviving(LOOP):
                self._dead(server, why)

    def stop(self) -> None:
        self._check_step.cancel()
