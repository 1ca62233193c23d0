"""Has workers check whether a function can be a trigger, before it is registered, and take up changed source.

Changed source is imported by a process of its own first (``SourceTrial``), which ends afterwards.  If the source cannot
be imported, hangs or ends its process there, the workers keep the source that they have.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from columnar.triggers.feeder import Feeder
from columnar.triggers.source_trial import CHECK_TIMEOUT_S, NO_START, SLOW, SourceTrial, cannot_be_used
from columnar.triggers.worker_slot import MakeLink, WorkerSlot

CHECKS: Final = 3  # workers that may end while they import a function, until the function is blamed


class FunctionChecks:
    def __init__(self, feeder: Feeder) -> None:
        feeder.on_checked = self._checked
        feeder.on_worker_gone = self._worker_gone
        self._feeder = feeder
        self._worker_slot = feeder.common.main
        self._waiting: dict[int, tuple[WorkerSlot, asyncio.Future[str | None]]] = {}
        self._last_check = 0
        self._worker_went = False  # since the last check was begun
        self._make_link: MakeLink | None = None

    def attach(self, make_link: MakeLink) -> None:
        self._make_link = make_link

    async def problem_with_source(self, functions: Iterable[str]) -> str | None:
        """Have a process of its own import them; None: workers may take up the source.  No worker is changed."""
        assert self._make_link is not None, "source is taken up while the store serves"
        return await SourceTrial(self._make_link).problem_with(functions)

    async def problem_with(self, function: str) -> str | None:
        """Have it imported; None: it is good.  A worker may end through other calls: then the next worker is tried.

        A module that the worker does not have is imported by a process of its own first: it may hang, or end it.
        """
        if self._make_link is not None and not self._worker_slot.has(function.partition(":")[0]):
            said = await self.problem_with_source([function])
            if said is not None:
                return said.removeprefix(cannot_be_used(function))
        problem: str | None = None
        for _ in range(CHECKS):
            self._worker_went = False
            problem = await self._check(function)
            if not self._worker_went:
                break
        return problem

    async def _check(self, function: str) -> str | None:
        slot, loop = self._worker_slot, asyncio.get_running_loop()
        assert slot.link is not None, "triggers are added while the store serves"
        deadline = loop.time() + CHECK_TIMEOUT_S
        while not slot.wanted():
            if loop.time() > deadline:
                return NO_START
            await asyncio.sleep(0.01)
        return await self._answer(slot, "check", function)

    async def reload(self) -> None:
        """Have every worker take up changed source; one that ends meanwhile, or has to be ended, begins with it."""
        self._feeder.trials.proven()
        slots = [slot for slot in self._feeder.worker_slots() if slot.link is not None and slot.link.is_up]
        for slot in slots:
            slot.reloads()
        await asyncio.gather(*(self._answer(slot, "reload") for slot in slots))

    async def _answer(self, slot: WorkerSlot, *parts: str) -> str | None:
        kind, *rest = parts
        assert slot.link is not None, "it is up"
        self._last_check += 1
        number = self._last_check
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._waiting[number] = slot, answer
        slot.link.send(kind, number, *rest)
        try:
            return await asyncio.wait_for(answer, CHECK_TIMEOUT_S)
        except TimeoutError:
            # An import that does not end would hold its thread for ever; and the worker has not got the reload.
            slot.link.kill()
            return SLOW
        finally:
            self._waiting.pop(number, None)

    def _checked(self, check_id: int, problem: str | None) -> None:
        _, waiting = self._waiting.get(check_id, (None, None))
        if waiting is not None and not waiting.done():
            waiting.set_result(problem)

    def _worker_gone(self, gone: WorkerSlot, how: str) -> None:
        if gone is self._worker_slot:
            self._worker_went = True
        for check_id in [check_id for check_id, (slot, _) in self._waiting.items() if slot is gone]:
            self._checked(check_id, f"the worker that imported it {how}")
