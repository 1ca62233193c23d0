"""What dealing costs: a controller and four workers that take requests when they are due and send nothing.

    python -m tests.measure.crew                      50,000/s for 60 s, in a good minute
    python -m tests.measure.crew --rate 20000 --seconds 15

The worker processes are real, as are their connections; there is no target.  The exit status is 1 if the controller
takes more than half a core, or if a worker is starved or lost.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import socket
import sys
import time
from collections.abc import Iterator

from gauge.machine import machine
from wikibench.crew.controller import Controller, conducted
from wikibench.crew.controller_state import ControllerState
from wikibench.crew.frames import NONCE_BYTES
from wikibench.crew.local import LEAD_S, LocalWorkers
from wikibench.crew.worker import READ_BYTES, Check, Worker
from wikibench.crew.worker_state import WorkerState
from wikibench.live import LiveLine
from wikibench.pacing import Planned
from wikibench.request_log import RequestLog
from wikibench.run import freeze_collector, loop_factory
from wikibench.targets.target import Target
from wikibench.trace.lines import Request
from wikibench.visits import Load

TAKE_S = 0.01
SEED = 1
CONTROLLER_SHARE = 0.5  # of a core, at most


class TakingWorker(Worker):
    """A worker whose requests end when they are due."""

    async def _inject(self, begin_s: float) -> None:
        injector, state = self._injector, self._state
        assert injector is not None
        injector._began = begin_s
        while not state.is_complete or len(state.ahead):
            since_s = injector.now_s()
            while (first := state.ahead.first()) is not None and first.start_s <= since_s:
                state.take_first()
                injector.finished += 1
            await asyncio.sleep(TAKE_S)
        self._send_tick(injector, time.perf_counter())
        self._do(state.ended("complete", 0))


def take(connection: socket.socket, name: str, token: bytes, check: Check, log: RequestLog | None = None) -> str:
    async def serve() -> str:
        reader, writer = await asyncio.open_connection(sock=connection, limit=READ_BYTES)
        return await TakingWorker(reader, writer, WorkerState(name, token, os.urandom(NONCE_BYTES)), check, log).run()

    with freeze_collector(), asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(serve())


def planned(rate: float, seconds: float) -> Iterator[Planned]:
    rng = random.Random(SEED)
    requests = [Request(0, f"/wiki/Page_{rng.randrange(10_000)}") for _ in range(1_000)]
    for number in range(round(rate * seconds)):
        yield Planned(number / rate, requests[number % 1_000])


def slowness() -> float:
    """Return the wall time of a fixed loop over its CPU time: what others take of a core."""
    began_s, cpu_s = time.perf_counter(), time.process_time()
    sum(range(20_000_000))
    return (time.perf_counter() - began_s) / (time.process_time() - cpu_s)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=50_000.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=4)
    given = parser.parse_args()
    before, load_average = slowness(), os.getloadavg()[0]
    load = Load(Target("http://127.0.0.1:1"), planned_s=given.seconds)
    state = ControllerState(load, planned(given.rate, given.seconds), given.workers, lead_s=LEAD_S)
    state.prepare()
    with LocalWorkers(take).start(given.workers) as processes, LiveLine("dealing") as line:
        result = conducted(Controller(state, line, processes.kill_worker), processes.connections)
    state.check()
    crew = result.crew
    print(f"{machine()}; load average {load_average:.1f}, a core's second takes {before:.2f} s")
    share = crew.controller_cpu_s / given.seconds
    print(f"{crew.planned} requests of seed {SEED}, {given.rate:g}/s for {given.seconds:g} s to {crew.workers} workers")
    print(f"controller: {crew.controller_cpu_s:.1f} s of CPU, {share:.2f} of a core, "
          f"{crew.controller_cpu_s / max(crew.planned or 1, 1) * 1e6:.1f} us a request")  # fmt: skip
    print(f"busiest worker: {(crew.busiest_cpu_s or 0.0) / given.seconds:.2f} of a core")
    print(f"starved {crew.starved}, lost workers {crew.lost}, lost requests {crew.lost_requests}")
    if share > CONTROLLER_SHARE or crew.starved or crew.lost:
        print(f"missed: the controller is to take {CONTROLLER_SHARE:g} of a core at most, and nobody to be starved")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
