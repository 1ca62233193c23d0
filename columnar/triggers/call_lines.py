"""Log lines about the calls of triggers: failures and output, at most one line a second of each trigger's failures.

Thousands of changes that fail together are due together, and a line for each would take longer than the calls.  A
function that prints for each change would fill the disk with the log.  Owned by the loop.
"""

from __future__ import annotations

import logging
from typing import Final

from columnar.triggers.outcome import last

_log = logging.getLogger(__name__)

LOG_INTERVAL_S: Final = 1.0  # between two lines of the log about failures of one trigger
PRINTED_BYTES: Final = 64 * 1024  # of output that the log takes of one trigger in that time, but for the last call's


class CallLines:
    def __init__(self) -> None:
        self._untold: dict[str, tuple[float, int]] = {}  # by trigger: when its last line was, and failures since
        self._printed: dict[str, tuple[float, int, int]] = {}  # by trigger: since when, bytes, calls left out

    def printed(self, name: str, output: str, now_s: float) -> None:
        """Log the output of a call."""
        since_s, size, left_out = self._printed.get(name, (now_s, 0, 0))
        if now_s - since_s >= LOG_INTERVAL_S:
            since_s, size = now_s, 0
        if size >= PRINTED_BYTES:
            self._printed[name] = since_s, size, left_out + 1
            return
        self._printed[name] = since_s, size + len(output), 0
        suffix = f" ({left_out} other calls printed since the last line)" if left_out else ""
        _log.info("trigger %s printed%s: %s", name, suffix, output.rstrip())

    def failed(self, name: str, attempt: int, error: str, now_s: float) -> None:
        """Log the failure of a call."""
        logged_s, untold = self._untold.get(name, (now_s - LOG_INTERVAL_S, 0))
        if now_s - logged_s < LOG_INTERVAL_S:
            self._untold[name] = logged_s, untold + 1
            return
        self._untold[name] = now_s, 0
        suffix = f" ({untold} other calls failed since the last line)" if untold else ""
        _log.info("trigger %s failed at attempt %d: %s%s", name, attempt, last(error), suffix)
