"""A process that imports functions of triggers and runs none: it may hang or end, and blocks no trigger.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from columnar.triggers.worker_slot import Link, MakeLink

CHECK_TIMEOUT_S: Final = 20.0  # importing a module may take its time
SLOW: Final = f"importing it takes more than {CHECK_TIMEOUT_S:.0f} s"
NO_START: Final = "the trigger worker does not start; the store's log says why"


def cannot_be_used(function: str) -> str:
    """The beginning of a problem."""
    return f"{function} cannot be used: "


class SourceTrial:
    """``Listener`` of its link."""

    def __init__(self, make_link: MakeLink) -> None:
        self._ready = asyncio.get_running_loop().create_future()
        self._answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._link: Link = make_link(self)

    async def problem_with(self, functions: Iterable[str]) -> str | None:
        """Import them as their source is on disk: what is wrong with the first that cannot be used, or None."""
        loop, link, prefix = asyncio.get_running_loop(), self._link, ""
        try:
            if not link.is_up:
                link.want()
                await asyncio.wait_for(self._ready, CHECK_TIMEOUT_S)
            for number, function in enumerate(functions):
                self._answer, prefix = loop.create_future(), cannot_be_used(function)
                link.send("check", number, function)
                problem = await asyncio.wait_for(self._answer, CHECK_TIMEOUT_S)
                if problem is not None:
                    return prefix + problem
            return None
        except TimeoutError:
            return prefix + SLOW if self._ready.done() or link.is_up else NO_START
        finally:
            link.kill()
            await link.close()

    # --- worker_link.Listener ----------------------------------------------------------------------

    def answered(self, frame: list[Any]) -> None:
        match frame:
            case ["checked", int(), problem] if problem is None or isinstance(problem, str):
                if not self._answer.done():
                    self._answer.set_result(problem)
            case _:
                raise ValueError(f"no answer to a check: {str(frame)[:60]}")

    def worker_ready(self) -> None:
        self._ready.set_result(None)

    def worker_gone(self, how: str) -> None:
        if not self._answer.done():
            self._answer.set_result(f"the process that imported it {how}")
