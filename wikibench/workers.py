"""Worker processes: a replay that is shared among processes of this machine, for rates that one core cannot send.

    controller                        worker k of n
        | start (fork) ----------------> makes the plan, takes requests k, k + n, k + 2n ..., reads up to its first one
        | <---------------------- ready
        | begin: a moment -------------> sends each of its requests at its intended start, counted from that moment
        | <------------- a snapshot each second
        | <---------------- its figures  and ends

Each worker makes the whole plan and leaves out what is not its own (4 us a request): nothing is dealt while the clock
runs, and no worker can starve.  The moment is one of the machine's monotonic clock, which all its processes share.

Invariants:
    C1. Every planned request is in the share of exactly one worker, and is sent by no other.
    C2. The merged histograms are those of a single process that recorded all samples.
    C3. A worker that ends without figures makes the run not valid (``Crew.lost``); the others go on.
    C4. A worker whose controller is gone sends nothing more after its next snapshot.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Final

from .injector import Injector
from .live import LiveLine, Snapshot, snapshot_of, summed
from .pacing import Planned
from .run import replay
from .summary import Replay, merged_replays
from .visits import Load

BEGIN_AHEAD_S: Final = 0.2  # from the moment at which all are ready to the first intended start


def replay_shared(load: Load, plan: Callable[[], Iterator[Planned]], workers: int, line: LiveLine) -> Replay:
    """Replay the plan with so many processes; block until the last has ended.  ``plan`` is called in each.

    The first Ctrl-C reaches the workers, too, and ends their replays early; the second ends them at once.
    """
    context = get_context("fork")  # the plan and what it has read are shared, not sent
    crew: list[tuple[BaseProcess, Pipe]] = []
    interrupts = _Interrupts(crew)
    try:
        for number in range(workers):
            ours, theirs = context.Pipe()
            known = [*(pipe for _, pipe in crew), ours]
            started = context.Process(target=_work, args=(theirs, known, load, plan, number, workers), daemon=True)
            started.start()
            theirs.close()
            crew.append((started, ours))
        with interrupts:
            found = _collected(crew, line)
    finally:
        for process, pipe in crew:
            pipe.close()
            process.join()
    if not found:
        raise OSError("no worker process came to an end: their errors stand above")
    return merged_replays(found, lost=workers - len(found))


def _collected(crew: Sequence[tuple[BaseProcess, Pipe]], line: LiveLine) -> list[Replay]:
    """Return the figures of the workers that end with figures."""
    number_of = {pipe: number for number, (_, pipe) in enumerate(crew)}
    found: list[Replay] = []
    snapshots: dict[int, Snapshot] = {}
    waiting = set(number_of)
    ready: set[Pipe] = set()
    has_begun = False
    while waiting:
        for pipe in wait(list(waiting)):
            assert isinstance(pipe, Pipe)
            try:
                message = pipe.recv()
            except (EOFError, OSError):
                waiting.discard(pipe)
                continue
            if isinstance(message, Replay):
                found.append(message)
                waiting.discard(pipe)
            elif isinstance(message, Snapshot):
                snapshots[number_of[pipe]] = message
                if len(snapshots) == len(waiting | ready):
                    line.tick(summed(list(snapshots.values())))
            else:
                ready.add(pipe)
        if not has_begun and ready >= waiting:
            has_begun = True
            begin_s = time.perf_counter() + BEGIN_AHEAD_S
            for pipe in ready & waiting:
                pipe.send(begin_s)
    return found


class _Interrupts:
    """SIGINT while workers run: the first is theirs, the second ends them."""

    def __init__(self, crew: Sequence[tuple[BaseProcess, Pipe]]) -> None:
        self._crew = crew
        self._count = 0
        self._before: object = None

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGINT, self._on_signal)

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]

    def _on_signal(self, *_: object) -> None:
        self._count += 1
        for process, _pipe in self._crew:
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGINT if self._count == 1 else signal.SIGTERM)


def _work(
    pipe: Pipe, others: Sequence[Pipe], load: Load, plan: Callable[[], Iterator[Planned]], number: int, workers: int
) -> None:
    os.setpgrp()  # Ctrl-C comes from the controller, once
    for other in others:
        other.close()  # or a worker would keep the controller's end of another one open
    share = replace(
        load,
        open_requests=max(1, load.open_requests // workers),
        first_edit=number + 1,
        edit_step=workers,
    )

    def begun() -> float:
        pipe.send("ready")
        return float(pipe.recv())

    def tick(injector: Injector) -> None:
        try:
            pipe.send(snapshot_of(injector))
        except OSError:
            injector.stop()

    try:
        pipe.send(replay(share, islice(plan(), number, None, workers), tick, begun))
    except (EOFError, BrokenPipeError):
        os._exit(1)  # the controller is gone
