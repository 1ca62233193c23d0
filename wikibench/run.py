"""A replay from plan to figures: the event loop, Ctrl-C and the live line around the injector."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from .injector import Injector, PlanSource
from .pacing import Planned
from .request_log import RequestLog
from .summary import Crew, Replay
from .visits import Load

LIVE_S: Final = 1.0  # between two live lines; drawing one costs the generator about a millisecond

OnTick = Callable[[Injector], None]


def replay(load: Load, plan: Iterable[Planned], on_tick: OnTick | None = None, log: RequestLog | None = None) -> Replay:
    """Replay ``plan`` and block until its end.  The first Ctrl-C ends the replay early, the second at once.

    The first request is read before the clock starts, because the plan may have to read far to find it.
    """
    with freeze_collector(), asyncio.Runner(loop_factory=loop_factory()) as runner:
        source = PlanSource(plan)
        source.first()
        injector = runner.run(_run(load, source, on_tick, log))
    return result_of(injector)


@contextlib.contextmanager
def freeze_collector() -> Iterator[None]:
    """Freeze the garbage collector's objects, so that it does not traverse the trace while the clock runs.

    If the process has frozen objects already, nothing is done, because the unfreezing at the end would include those
    objects.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def result_of(injector: Injector) -> Replay:
    """Return the measurements of the injector."""
    load = injector.load
    return Replay(
        figures=injector.figures,
        ending=injector.ending,
        planned_s=load.planned_s,
        warm_up_s=load.warm_up_s,
        elapsed_s=injector.used.elapsed_s,
        cpu_s=injector.used.cpu_s,
        sent=injector.sent,
        most_open=injector.most_open,
        open_limit=load.open_requests,
        connections=injector.connections,
        retried=injector.retried,
        crew=Crew(planned=injector.finished),
    )


async def _run(load: Load, source: PlanSource, on_tick: OnTick | None, log: RequestLog | None) -> Injector:
    injector = Injector(load, log=log)
    loop = asyncio.get_running_loop()

    def interrupted() -> None:
        injector.stop()
        loop.remove_signal_handler(signal.SIGINT)  # a second Ctrl-C is Python's own

    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows; not the main thread
        loop.add_signal_handler(signal.SIGINT, interrupted)
    ticking = loop.create_task(_tick(injector, on_tick)) if on_tick else None
    try:
        await injector.run(source)
    finally:
        if ticking is not None:
            ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ticking
    return injector


async def _tick(injector: Injector, on_tick: OnTick) -> None:
    while True:
        await asyncio.sleep(LIVE_S)
        on_tick(injector)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    if sys.platform != "win32":
        import uvloop

        return uvloop.new_event_loop  # type: ignore[no-any-return]
    return asyncio.new_event_loop
