"""Statuses of flows that take reads: a look shows what was read last, and begins to read again if that is old.

Owned by the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Final

from columnar.errors import ColumnarError
from columnar.model.flow_status import FlowStatus
from columnar.runtime.background import Background
from columnar.runtime.faults import FAULTS

REFRESH_S: Final = 5.0
LOOP: Final = "lags of groups"
_log = logging.getLogger(__name__)


class RefreshedStatuses:
    def __init__(
        self,
        background: Background,
        are_any: Callable[[], bool],
        read: Callable[[], Awaitable[Sequence[FlowStatus]]],
        now_s: Callable[[], float] = monotonic,
    ) -> None:
        """``are_any`` tells, without a read, whether there may be such flows at this server."""
        self._background = background
        self._are_any = are_any
        self._read = read
        self._now_s = now_s
        self._found: Sequence[FlowStatus] = ()
        self._due_s = 0.0
        self._is_reading = False

    def flow_statuses(self) -> Sequence[FlowStatus]:
        """Return the statuses as they were at the last read; the first look finds none."""
        if not self._are_any():
            self._found = ()
        elif not self._is_reading and self._now_s() >= self._due_s:
            self._is_reading = True
            self._background.spawn(self._refresh())
        return self._found

    async def _refresh(self) -> None:
        try:
            self._found = await self._read()
        except ColumnarError as error:  # of a row without an owner now
            _log.info("the lags of groups are those of before: %s", error.text)
        except Exception as fault:  # noqa: BLE001 - the next look reads again
            FAULTS.met(LOOP, fault)
        finally:
            self._is_reading = False
            self._due_s = self._now_s() + REFRESH_S
