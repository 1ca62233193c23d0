"""A real ``columnar standalone`` that is killed every few seconds and started again.

Most shots are ``kill -9`` of the serving store.  Some are repeated while the store starts, some are a SIGTERM, and some
kill the trigger worker alone, if there is one.  A client that loses its connection calls ``settle``.  When ``settle``
returns, a process serves that was started after the call was sent, so the call has been done by then or never will be.
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Final, Self

from tests.proofs.verdict import Plan
from tests.support.standalone_store import StoreProcess

PORTS: Final = range(20_000, 32_000)  # below those the system gives to clients, which could take it while nobody has it
START_S: Final = 60.0
SHOT_AGAIN: Final = 0.2  # of the kills
STOPPED: Final = 0.1
WORKER_ALONE: Final = 0.3
ENDING_S: Final = 0.5  # between the loss of its connections and the end of a process
START_AGAIN_S: Final = 0.4  # a second shot comes within so long


class StoreBroken(Exception):
    """The store does not start, or ended by itself: no further calls are possible."""


def quiet_port(rng: random.Random) -> int:
    while True:
        port = rng.choice(PORTS)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue


class KilledStore:
    """The store, a context manager; with ``plan.kill_every_s`` of 0 only ``settle`` kills."""

    def __init__(self, folder: Path, plan: Plan, modules: tuple[str, ...] = ()) -> None:
        self._rng = random.Random(f"kills {plan.seed}")
        self._every_s, self._most_kills = plan.kill_every_s, plan.most_kills
        self.routing = plan.routing
        flags = ["--log-level", "info", *(["--trigger-modules", ",".join(modules)] if modules else [])]
        self._process = self._made(folder, plan, flags)
        self._lock = threading.Lock()  # held while nobody serves
        self._over = threading.Event()
        self._killer = threading.Thread(target=self._kill_and_kill, name="killer", daemon=True)
        self.generation = 0  # written under the lock
        self.broken = ""
        self.shots: Counter[str] = Counter()
        self.slowest_start_s = 0.0
        self.log = self._process.log

    def _made(self, folder: Path, plan: Plan, flags: list[str]) -> StoreProcess:
        # The port is a matter of this machine's moment, not of the seed.
        return StoreProcess(folder, *flags, port=quiet_port(random.Random()))

    def __enter__(self) -> Self:
        self._start()
        if self._every_s:
            self._killer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.peace()
        self._process.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    def peace(self) -> None:
        """Stop the shots; return when the store serves, or is broken."""
        self._over.set()
        if self._killer.is_alive():
            self._killer.join()

    def end(self) -> None:
        """Start the store once more, so that it cleans up after the last kill, and stop it in order."""
        self.peace()
        with self._lock:
            self._check()
            self._restart("kill -9")
            self._clear_away()
            status = self._process.stop()
            if status:
                self._give_up(f"SIGTERM ended it with status {status}")

    def _clear_away(self) -> None:
        """Return when the remains of the last kill are removed, which a start of one process does before it serves."""

    def where(self) -> tuple[int, int]:
        """Return port and generation of the serving process; waits while none serves."""
        with self._lock:
            self._check()
            return self._process.port, self.generation

    def settle(self, generation: int, why: str = "") -> None:
        """Return when a process later than ``generation`` serves; kill the process of ``generation`` if it still lives.

        ``why`` is the error that the client met.
        """
        with self._lock:
            self._check()
            if self.generation == generation:
                if self._process.has_ended(ENDING_S):
                    self._give_up("the store ended, and nobody had killed it")
                self.shots["to settle"] += 1
                self._restart("kill -9")
            self._check()

    def _kill_and_kill(self) -> None:
        for _ in range(self._most_kills):
            if self._over.wait(self._every_s * self._rng.uniform(0.3, 1.7)):
                return
            with self._lock:
                if self.broken:
                    return
                if self._process.has_ended():
                    self.broken = "the store ended, and nobody had killed it"
                    return
                try:
                    self._shoot()
                except StoreBroken:
                    return

    def _shoot(self) -> None:
        """Shoot the store; called under the lock."""
        if self._rng.random() < WORKER_ALONE and self._process.kill_workers():
            self.shots["kill -9 of the trigger worker"] += 1
            return
        how = "SIGTERM" if self._rng.random() < STOPPED else "kill -9"
        self.shots[how] += 1
        self._restart(how)

    def _restart(self, how: str) -> None:
        self.generation += 1
        if how == "SIGTERM":
            status = self._process.stop()
            if status:
                self._give_up(f"SIGTERM ended it with status {status}")
        else:
            self._process.kill()
        if self._rng.random() < SHOT_AGAIN:
            self.shots["kill -9 while it starts"] += 1
            self._process.begin()
            threading.Event().wait(self._rng.uniform(0, START_AGAIN_S))
            self._process.kill()
        self._start()

    def _start(self) -> None:
        begun = time.monotonic()
        self._process.begin()
        watch = threading.Timer(START_S, self._process.shoot)
        watch.start()
        try:
            self._process.await_ready()
        except AssertionError as failure:
            self._give_up(f"it does not start, or not within {START_S:.0f} s: {failure}")
        finally:
            watch.cancel()
        self.slowest_start_s = max(self.slowest_start_s, time.monotonic() - begun)

    def _give_up(self, why: str) -> None:
        self.broken = why
        raise StoreBroken(why)

    def _check(self) -> None:
        if self.broken:
            raise StoreBroken(self.broken)
