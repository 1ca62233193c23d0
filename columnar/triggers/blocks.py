"""Blocked triggers: the obstacle is no fault of their changes, and is temporary (``obstacles``).

    running --met--> blocked, its changes are delivered again when the pause is over --worked--> running

Pauses grow from 0.1 s to LONGEST_S, and all changes that meet an obstacle within one come again at its end.  After
IN_SERIES such calls without any other between them the trigger is suspended, too, until then: thousands of changes
would be called in vain.  If a trigger writes to several tables and one is disabled, changes for the others continue.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from columnar.errors import CallerError, ColumnarError, TableNotEnabled, TableReadOnly
from columnar.flows.delivery_state import pause_s
from columnar.runtime.planned_step import PlannedStep

LOOP: Final = "ends of pauses of blocked triggers"
IN_SERIES: Final = 8


def is_obstacle(error: ColumnarError) -> bool:
    """Return whether what met this error may be done later, as it is."""
    return not isinstance(error, CallerError) or isinstance(error, TableNotEnabled | TableReadOnly)


class _Block:
    __slots__ = ("end", "ends_s", "in_series", "pauses", "why")

    def __init__(self, let_go: Callable[[], None]) -> None:
        self.why = ""  # empty: it is blocked no more
        self.in_series = 0  # calls since one worked
        self.pauses = 0
        self.ends_s = 0.0  # of the pause
        self.end = PlannedStep(LOOP, let_go)  # planned while the trigger is suspended


class Blocks:
    def __init__(self, suspend_trigger: Callable[[str], None], let_go: Callable[[str], None]) -> None:
        """``suspend_trigger``: the trigger is not scheduled until ``let_go``."""
        self._suspend_trigger = suspend_trigger
        self._let_go = let_go
        self._blocks: dict[str, _Block] = {}  # of triggers that were blocked before, too
        self.blocked: set[str] = set()

    def why(self, name: str) -> str:
        """Empty: it is not blocked."""
        return self._blocks[name].why if name in self.blocked else ""

    def is_suspended(self, name: str) -> bool:
        block = self._blocks.get(name)
        return block is not None and block.end.is_planned

    def met(self, name: str, why: str, longest_s: float) -> float:
        """A call met an obstacle: the seconds until its changes come again."""
        now_s = asyncio.get_running_loop().time()
        block = self._blocks.get(name)
        if block is None:
            block = self._blocks[name] = _Block(partial(self._let_go, name))
        if now_s >= block.ends_s:
            is_another = now_s > block.ends_s + 2 * longest_s
            block.pauses = 1 if is_another else block.pauses + 1
            block.ends_s = now_s + min(longest_s, pause_s(block.pauses))
        block.why = why
        self.blocked.add(name)
        block.in_series += 1
        if block.in_series >= IN_SERIES and not block.end.is_planned:
            block.end.after(block.ends_s - now_s)
            self._suspend_trigger(name)
        return block.ends_s - now_s

    def worked(self, name: str) -> None:
        """A call of a blocked trigger met no obstacle."""
        block = self._blocks[name]
        self.blocked.discard(name)
        block.in_series = 0
        if block.end.is_planned:
            block.end.now()

    def forget(self, name: str) -> None:
        """The trigger is removed."""
        self.blocked.discard(name)
        block = self._blocks.pop(name, None)
        if block is not None and block.end.is_planned:
            block.end.now()

    def close(self) -> None:
        for block in self._blocks.values():
            block.end.cancel()
