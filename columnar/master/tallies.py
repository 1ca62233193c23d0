"""(pure) Tallies of a master: how often regions got another owner, and how long they were without one.

A pause begins when the owner is asked to close the region, is found dead or says that it cannot open it, and ends when
the next owner serves.  A region that stays closed has no pause.

Knows nothing of clocks and of the readers of the tallies.
"""

from __future__ import annotations

from columnar.master.instructions import Reason
from columnar.model.histogram import Histogram


class Tallies:
    """Owned by the loop."""

    def __init__(self) -> None:
        self.moves: dict[Reason, int] = {}  # that are done
        self.pauses: dict[Reason, Histogram] = {}
        self._paused_ms: dict[int, int] = {}  # regions that no server serves, since when

    def paused(self, region: int, now_ms: int) -> None:
        """Begin a pause.  The first time counts, also if the region goes from one failure to the next."""
        self._paused_ms.setdefault(region, now_ms)

    def stays_closed(self, region: int) -> None:
        self._paused_ms.pop(region, None)

    def opened(self, region: int, reason: Reason | None, now_ms: int) -> None:
        """``reason``: why the region was given to this owner; None: it has gone on with its owner."""
        paused_ms = self._paused_ms.pop(region, None)
        if reason is None or not reason.is_move:
            return
        self.moves[reason] = self.moves.get(reason, 0) + 1
        if paused_ms is not None:
            self.pauses.setdefault(reason, Histogram()).observe((now_ms - paused_ms) / 1_000)
