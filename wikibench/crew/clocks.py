"""(pure) The controller's clock as a worker sees it: an offset, and how far it may be wrong.

    worker      sent ---------------------- received        the controller's moment belongs to one between them:
    controller            at                                offset := at - (sent + received) / 2, wrong by half the way

The ping with the shortest way decides.  A reading ages, because two clocks differ by up to DRIFT; a new one takes its
place as soon as it is better than the old one is by then.

Invariant:
    K1. If the clocks drift by DRIFT at most, the true offset is within ``uncertainty_s`` of ``offset_s`` at any moment.

Knows nothing of clocks: moments are arguments, in seconds.
"""

from __future__ import annotations

from typing import Final

DRIFT: Final = 100e-6  # crystals keep 50 us in a second, each
PINGS: Final = 32  # before the first request
PING_S: Final = 0.25  # between pings afterwards; they also renew the permission to send
UNHEARD_S: Final = 1.5  # from the sending of the last answered ping to the end of the permission


class ClockComparison:
    """The clock of a controller, compared with one's own."""

    def __init__(self, *, is_same_clock: bool = False) -> None:
        self.pings = 0
        self._is_same = is_same_clock
        self._offset_s = 0.0
        self._error_s = 0.0 if is_same_clock else float("inf")
        self._at_s = 0.0  # of the reading, on the own clock

    def add(self, sent_s: float, at_s: float, received_s: float) -> None:
        """Take the answer to a ping: two moments of the own clock, and one of the controller's between them."""
        self.pings += 1
        error_s = (received_s - sent_s) / 2
        if self._is_same or error_s < 0 or error_s >= self.uncertainty_s(received_s):
            return
        self._offset_s = at_s - (sent_s + received_s) / 2
        self._error_s = error_s
        self._at_s = received_s

    @property
    def is_known(self) -> bool:
        return self._is_same or self.pings >= PINGS

    @property
    def offset_s(self) -> float:
        """The controller's clock less one's own."""
        return self._offset_s

    def uncertainty_s(self, now_s: float) -> float:
        return 0.0 if self._is_same else self._error_s + DRIFT * max(now_s - self._at_s, 0.0)
