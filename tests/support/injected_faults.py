"""Exceptions raised in a loop at each of its calls in turn: the loop must continue and do all its other work.

``survived`` runs a scenario once to note the calls that the loop's modules make while it works by itself, and then once
for each of those calls, at whose beginning an exception is raised.  Of the repeated calls of one line the first and the
last are used; COLUMNAR_INJECTIONS=all uses all of these, otherwise DRAWN are drawn.  A scenario sets up, works within
``armed``, and asserts in its second half what must be true whatever failed.

Only calls count that frames of the modules make in callbacks and tasks of the event loop.  Calls on behalf of a caller
in the test do not count, because an exception there is the caller's, and neither do calls into ``faults`` and
``planned_step`` (by which loops survive), into futures and into Python's own library.

An exception that reaches the event loop is a failure, and so is one that nobody reported.
"""

from __future__ import annotations

import asyncio
import dis
import gc
import os
import sys
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType, ModuleType
from typing import Any, Final

from columnar.runtime import faults, immediate_future, planned_step
from columnar.runtime.faults import FAULTS
from tests.support.seeds import seed

DRAWN: Final = 30
NOTED: Final = 3  # runs without an exception: on a busy machine a loop makes fewer calls in some
SEED: Final = 2026
_TESTS: Final = str(Path(__file__).parent.parent)
_CALLBACK: Final = asyncio.Handle._run.__code__
_OURS: Final = str(Path(__file__).parents[2])
_MECHANISM: Final = frozenset({faults.__file__, planned_step.__file__, immediate_future.__file__})


class InjectedFault(Exception):
    """An exception that no part of the program expects."""


class Calls:
    """A tracer that notes the calls of some modules, and raises at one."""

    def __init__(self, modules: frozenset[str], at: tuple[str, int] | None = None) -> None:
        """Take ``at``: a place and the number of its call at which to raise."""
        self._modules = modules
        self._at = at
        self.counts: Counter[str] = Counter()  # by place
        self.fault: InjectedFault | None = None

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        caller = frame.f_back
        if event != "call" or caller is None or caller.f_code.co_filename not in self._modules:
            return
        file = frame.f_code.co_filename
        if file in _MECHANISM or not file.startswith(_OURS) or _goes_on(frame) or _is_on_behalf_of_the_test(caller):
            return
        place = f"{caller.f_code.co_qualname}:{caller.f_lineno} -> {frame.f_code.co_qualname}"
        self.counts[place] += 1
        if (place, self.counts[place]) == self._at:
            self.fault = InjectedFault(place)
            raise self.fault

    @contextmanager
    def armed(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._event)
        threading.settrace(self._event)
        try:
            yield
        finally:
            sys.settrace(before)
            threading.settrace(before)  # type: ignore[arg-type]  # None is what it was


def _goes_on(frame: FrameType) -> bool:
    """Return whether the frame is no new call but a generator or coroutine that resumes or is closed."""
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at] != dis.opmap["RESUME"] or code[at + 1] != 0


def _is_on_behalf_of_the_test(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code is not _CALLBACK:
        if frame.f_code.co_filename.startswith(_TESTS):
            return True
        frame = frame.f_back
    return False


Scenario = Callable[[Calls], Awaitable[None]]


def survived(scenario: Scenario, *modules: ModuleType, only: str = "", but: tuple[str, ...] = ()) -> int:
    """Run the scenario with an exception at each drawn call of ``modules``; return the number of calls.

    ``only`` restricts the places to names that contain it, for debugging; ``but`` leaves out names that end so, which
    guard themselves.
    """
    files = frozenset(str(module.__file__) for module in modules)
    runs = [_run(scenario, Calls(files)).counts for _ in range(NOTED)]
    assert all(runs), "the loop makes no calls"
    places = [place for place in runs[0] if only in place and not place.endswith(but)]
    meant = {place: min(run[place] for run in runs) for place in places if all(place in run for run in runs)}
    calls = [(place, number) for place, count in meant.items() for number in sorted({1, count})]
    chosen = _drawn(calls)
    gc.collect()
    gc.freeze()  # a collection after each run looks at what that run has left
    raised = sum(
        _survives(scenario, Calls(files, one), f"{one[0]} (call {one[1]} of {meant[one[0]]})") for one in chosen
    )
    assert raised > len(chosen) // 2, "threads may have other calls in other runs, and not so many"
    return len(calls)


def _drawn(calls: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return a share of the calls, chosen by the seed; all calls with COLUMNAR_INJECTIONS=all."""
    if os.environ.get("COLUMNAR_INJECTIONS") == "all" or len(calls) <= DRAWN:
        return calls
    drawn = seed(SEED)
    print(f"COLUMNAR_SEED={drawn}: {DRAWN} of {len(calls)} calls")
    return Random(drawn).sample(calls, DRAWN)


def _survives(scenario: Scenario, calls: Calls, where: str) -> bool:
    before = FAULTS.counts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a coroutine that is never awaited, for it was refused
        try:
            _run(scenario, calls)
        except Exception as error:
            raise AssertionError(f"after an exception at {where}") from error
        if calls.fault is not None:
            traceback.clear_frames(calls.fault.__traceback__)  # the log keeps the exception, and its frames coroutines
        gc.collect()
    if calls.fault is not None:  # threads may have other calls in other runs
        assert FAULTS.counts() != before, f"nobody reported the exception at {where}"
    return calls.fault is not None


def _run(scenario: Scenario, calls: Calls) -> Calls:
    escaped: list[dict[str, Any]] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: escaped.append(context))
        async with asyncio.timeout(20):
            await scenario(calls)

    asyncio.run(run())
    assert not escaped, f"reached the event loop: {escaped}"
    return calls
