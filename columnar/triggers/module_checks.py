"""Imports of triggers' modules outside of calls: before a function is registered, for changed source, after a death.

    SourceTrial      a process that imports functions and runs none: it may hang or end, and blocks no trigger
    FunctionChecks   makes workers check whether a function can be a trigger, and import changed source
    ModuleTrials     modules whose import blocked or ended a worker: workers import such a module again only after a
                     separate process could import it

Changed source is first imported by a separate process, which ends afterwards.  If the import fails, hangs or ends that
process, the workers keep the source that they have.

    trusted --begin--> on trial, its triggers pause --imported by a separate process--> trusted, they continue

An import that hangs in C code blocks all triggers of the worker until the worker is ended, and the next change of the
module's triggers would do the same to the next worker.  Trials are repeated after growing pauses of at most
LONGEST_TRIAL_PAUSE_S.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from columnar.flows.delivery_state import pause_s
from columnar.runtime.faults import FAULTS
from columnar.runtime.retry_work import retry_work
from columnar.triggers.worker_process import Link, MakeLink, Worker

_log = logging.getLogger(__name__)

CHECK_TIMEOUT_S: Final = 20.0  # importing a module may take its time
SLOW: Final = f"importing it takes more than {CHECK_TIMEOUT_S:.0f} s"
NO_START: Final = "the trigger worker does not start; the store's log says why"
CHECKS: Final = 3  # workers that may end while they import a function, until the function is blamed
LONGEST_TRIAL_PAUSE_S: Final = 5.0  # the longest pause between two trials
LOOP: Final = "the trials of trigger modules"


def cannot_be_used(function: str) -> str:
    """Return the beginning of a problem's text."""
    return f"{function} cannot be used: "


class SourceTrial:
    """An import of functions by a separate process, as the ``Listener`` of that process."""

    def __init__(self, make_link: MakeLink) -> None:
        self._ready = asyncio.get_running_loop().create_future()
        self._answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._link: Link = make_link(self)

    async def problem_with(self, functions: Iterable[str]) -> str | None:
        """Import the functions from disk; return what is wrong with the first that cannot be used, or None."""
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

    # --- worker_process.Listener ----------------------------------------------------------------------

    def take_frame(self, frame: list[Any]) -> None:
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


class FunctionChecks:
    def __init__(self, workers: Callable[[], Iterable[Worker]]) -> None:
        """``workers`` returns all workers; the first of them runs the triggers without a label."""
        self._workers = workers
        self._waiting: dict[int, tuple[Worker, asyncio.Future[str | None]]] = {}
        self._last_check = 0
        self._worker_went = False  # since the last check was begun
        self._make_link: MakeLink | None = None

    def attach(self, make_link: MakeLink) -> None:
        self._make_link = make_link

    async def problem_with_source(self, functions: Iterable[str]) -> str | None:
        """Have a separate process import the functions; return a problem, or None.  The workers are not changed."""
        assert self._make_link is not None, "source is taken up while the store serves"
        return await SourceTrial(self._make_link).problem_with(functions)

    async def problem_with(self, function: str) -> str | None:
        """Have a worker import the function; return what is wrong with it, or None if it can be a trigger.

        A module that the worker has not imported yet is first imported by a separate process, because the import may
        hang or end the process.  If the worker ends, perhaps through a different call, its next process is tried.
        """
        worker = next(iter(self._workers()))
        if self._make_link is not None and not worker.slot.has(function.partition(":")[0]):
            said = await self.problem_with_source([function])
            if said is not None:
                return said.removeprefix(cannot_be_used(function))
        problem: str | None = None
        for _ in range(CHECKS):
            self._worker_went = False
            problem = await self._check(worker, function)
            if not self._worker_went:
                break
        return problem

    async def _check(self, worker: Worker, function: str) -> str | None:
        deadline = asyncio.get_running_loop().time() + CHECK_TIMEOUT_S
        while not worker.wanted():
            if asyncio.get_running_loop().time() > deadline:
                return NO_START
            await asyncio.sleep(0.01)
        return await self._answer(worker, "check", function)

    async def reload(self) -> None:
        """Have every worker import changed source; a worker that ends or is ended meanwhile starts again with it."""
        workers = [worker for worker in self._workers() if worker.is_up]
        for worker in workers:
            worker.slot.reloads()
        await asyncio.gather(*(self._answer(worker, "reload") for worker in workers))

    async def _answer(self, worker: Worker, *parts: str) -> str | None:
        kind, *rest = parts
        self._last_check += 1
        number = self._last_check
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._waiting[number] = worker, answer
        worker.link.send(kind, number, *rest)
        try:
            return await asyncio.wait_for(answer, CHECK_TIMEOUT_S)
        except TimeoutError:
            # An import that does not end would occupy its thread for ever, or the worker would keep the old source.
            worker.link.kill()
            return SLOW
        finally:
            self._waiting.pop(number, None)

    def checked(self, check_id: int, problem: str | None) -> None:
        _, waiting = self._waiting.get(check_id, (None, None))
        if waiting is not None and not waiting.done():
            waiting.set_result(problem)

    def worker_gone(self, gone: Worker, how: str) -> None:
        if gone is next(iter(self._workers())):
            self._worker_went = True
        for check_id in [check_id for check_id, (worker, _) in self._waiting.items() if worker is gone]:
            self.checked(check_id, f"the worker that imported it {how}")


class ModuleTrials:
    def __init__(
        self, untrusted: dict[str, str], functions_of: Callable[[str], list[str]], trusted: Callable[[str], None]
    ) -> None:
        """``untrusted`` maps modules on trial to their problems, and is updated here.

        ``functions_of`` returns the functions of a module that triggers name; ``trusted`` is called when a module's
        triggers may be called again.
        """
        self._problems = untrusted
        self._functions_of = functions_of
        self._trusted = trusted
        self._make_link: MakeLink | None = None  # None: there are no workers yet
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def attach(self, make_link: MakeLink) -> None:
        self._make_link = make_link

    def begin_trial(self, module: str, why: str) -> None:
        if self._make_link is not None and module not in self._problems:
            _log.warning("module %s is imported by a process of its own until that ends well: %s", module, why)
            self._problems[module] = why
            self._tasks[module] = asyncio.ensure_future(self._try(module, self._make_link))

    async def _try(self, module: str, make_link: MakeLink) -> None:
        async def try_once() -> bool:
            functions = self._functions_of(module)
            problem = await SourceTrial(make_link).problem_with(functions) if functions else None
            if problem is None:
                self._trust(module)
                return True
            self._problems[module] = problem
            return False

        await retry_work(
            try_once,
            lambda fault: FAULTS.met(LOOP, fault),
            lambda tries: min(LONGEST_TRIAL_PAUSE_S, pause_s(tries)),
            pauses_first=True,
        )

    def proven(self) -> None:
        """Trust every module, since the workers have taken up source that a process could import."""
        for task in self._tasks.values():
            task.cancel()
        for module in list(self._problems):
            self._trust(module)

    def _trust(self, module: str) -> None:
        _log.info("module %s can be imported: its triggers go on", module)
        self._problems.pop(module, None)
        self._trusted(module)
        self._tasks.pop(module, None)

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
