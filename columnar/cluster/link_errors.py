"""Errors of a request over a link, in a module that a process without links (a standalone) can import by itself.

Also the log of peers that were refused because they do not know the cluster's secret.
"""

from __future__ import annotations

import logging
import time
from typing import Final

_log = logging.getLogger(__name__)

REFUSED_LOG_S: Final = 60.0  # between two lines about peers that do not know the secret


class NotSent(Exception):
    """Nothing of the request has left this process."""


class LinkBroke(Exception):
    """The link ended after the request was written: the peer may have carried it out."""


class RefusedPeers:
    """The log of peers that did not prove that they know the secret: a line in REFUSED_LOG_S, whoever tries."""

    def __init__(self) -> None:
        self._logged_s = float("-inf")
        self._unlogged = 0

    def add_refusal(self, address: object, why: object) -> None:
        now_s = time.monotonic()
        if now_s - self._logged_s < REFUSED_LOG_S:
            self._unlogged += 1
            return
        more = f" ({self._unlogged} more were refused since the last line)" if self._unlogged else ""
        self._logged_s, self._unlogged = now_s, 0
        _log.warning("a peer at %s was refused: %s%s", address, why, more)


REFUSED_PEERS: Final = RefusedPeers()
