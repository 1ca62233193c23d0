"""Modules whose import blocked or ended a worker: no worker imports them again before a process of their own could.

    trusted --begin--> on trial, its triggers pause --imported by a process of its own--> trusted, they continue

An import in C code blocks all triggers of the worker until the worker is ended; the next change of the module's
triggers would do the same to the next worker.  Trials repeat after growing pauses, LONGEST_TRIAL_PAUSE_S at most.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from columnar.flows.delivery_state import pause_s
from columnar.runtime.faults import FAULTS
from columnar.triggers.consumer import Consumer
from columnar.triggers.source_trial import SourceTrial
from columnar.triggers.worker_slot import MakeLink

_log = logging.getLogger(__name__)

LONGEST_TRIAL_PAUSE_S: Final = 5.0  # the longest pause between two trials
LOOP: Final = "the trials of trigger modules"


class ModuleTrials:
    def __init__(self, consumers: Callable[[], Iterable[Consumer]], go_on: Callable[[Consumer], None]) -> None:
        """``consumers``: those of all triggers on this server; ``go_on``: a consumer may be scheduled again."""
        self._consumers = consumers
        self._advance_consumer = go_on
        self._make_link: MakeLink | None = None  # None: there are no workers yet
        self._problems: dict[str, str] = {}  # of the modules on trial
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def attach(self, make_link: MakeLink) -> None:
        self._make_link = make_link

    def __contains__(self, module: str) -> bool:
        return module in self._problems

    def obstacle(self, name: str) -> str:
        """Return why a trigger is paused; empty: its module is trusted."""
        if not self._problems:
            return ""
        modules = (one.registration.module for one in self._consumers() if one.registration.name == name)
        return next((self._problems[module] for module in modules if module in self._problems), "")

    def begin(self, module: str, why: str) -> None:
        if self._make_link is not None and module not in self._problems:
            _log.warning("module %s is imported by a process of its own until that ends well: %s", module, why)
            self._problems[module] = why
            self._tasks[module] = asyncio.ensure_future(self._try(module, self._make_link))

    async def _try(self, module: str, make_link: MakeLink) -> None:
        tries = 0
        while True:
            tries += 1
            await asyncio.sleep(min(LONGEST_TRIAL_PAUSE_S, pause_s(tries)))
            try:
                functions = self._functions_of(module)
                problem = await SourceTrial(make_link).problem_with(functions) if functions else None
            except Exception as fault:  # noqa: BLE001 - its triggers would stay paused for ever
                FAULTS.met(LOOP, fault)
                continue
            if problem is None:
                break
            self._problems[module] = problem
        self._trust(module)

    def _functions_of(self, module: str) -> list[str]:
        registrations = [one.registration for one in self._consumers()]
        return sorted({one.function for one in registrations if one.module == module})

    def proven(self) -> None:
        """Source was taken up that a process could import: every module is trusted."""
        for task in self._tasks.values():
            task.cancel()
        for module in list(self._problems):
            self._trust(module)

    def _trust(self, module: str) -> None:
        _log.info("module %s can be imported: its triggers go on", module)
        del self._problems[module], self._tasks[module]
        for consumer in list(self._consumers()):
            if consumer.registration.module == module:
                self._advance_consumer(consumer)

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
