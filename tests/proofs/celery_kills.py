"""``python -m tests.proofs.celery_kills --kills 50 [--servers 3]``: kills under a Celery worker lose no task.

A Celery worker takes tasks over the SQS port, and this process sends them, with Celery, each with a number of its own.
Meanwhile the store is killed with -9 and started again, and each WORKER_EVERY-th time the worker is, too.  After the
last kill:

    1  each task whose sending succeeded was done, once or more often
    2  the queue is empty: no message is left in flight, and none comes again

A send that failed is repeated, so a task may be done twice; how often that was is counted.  The consumer of kombu 5.7
asks no more after an answer that is an error or none at all (``_on_messages_ready`` gets an empty list), so a worker
that does nothing for STALLED_S is started again, as a supervisor with a liveness check would.  The exit status is 0 if
all of this holds.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import click
from rich.console import Console

from tests.proofs.killed_doors import kill_and_start, store_of
from tests.proofs.killed_store import quiet_port
from tests.proofs.verdict import end_report
from tests.support.celery_worker import CeleryWorker, task_sender
from tests.support.standalone_store import StoreProcess

WORKER_EVERY: Final = 5
STALLED_S: Final = 6.0
SETTLE_S: Final = 300.0
PAUSE_S: Final = 0.1  # between two sends: the worker asks for messages once a second
TASK: Final = "tests.support.celery_tasks.add"


@dataclass
class Found:
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Supervisor(threading.Thread):
    """Keeps a worker running: starts it again if it has ended, or does nothing for STALLED_S."""

    def __init__(self, worker: CeleryWorker) -> None:
        super().__init__(name="supervisor", daemon=True)
        self._worker = worker
        self._over = threading.Event()
        self._lock = threading.Lock()  # held while there is no worker
        self.counts: Counter[str] = Counter()

    def run(self) -> None:
        with self._lock:
            self._worker.start()
        done, since_s = 0, time.monotonic()
        while not self._over.wait(0.5):
            now_s, now = time.monotonic(), len(self._worker.numbers())
            if now > done:
                done, since_s = now, now_s
            with self._lock:
                is_stalled = now_s - since_s > STALLED_S
                if self._worker.has_ended or is_stalled:
                    self.counts["starts of a worker that asked no more" if is_stalled else "starts of the worker"] += 1
                    self._worker.kill()
                    self._worker.start()
                    since_s = now_s

    def kill_worker(self) -> None:
        with self._lock:
            self._worker.kill()
        self.counts["kills of the worker"] += 1

    def stop(self) -> None:
        self._over.set()
        self.join(60)
        self._worker.kill()


class Sender(threading.Thread):
    """Sends tasks, one after the other, until it is stopped."""

    def __init__(self, app: Any, pause_s: float) -> None:
        super().__init__(name="sender", daemon=True)
        self._app = app
        self._pause_s = pause_s
        self._over = threading.Event()
        self.sent: list[int] = []
        self.failures = 0
        self.last_failure = ""

    def run(self) -> None:
        number = 0
        while not self._over.wait(self._pause_s):
            try:
                self._app.send_task(TASK, (number, 0), retry=False)
            except Exception as error:  # noqa: BLE001 - of Celery, kombu or boto: the store is being killed
                self.failures += 1
                self.last_failure = repr(error)
                continue
            self.sent.append(number)
            number += 1

    def stop(self) -> None:
        self._over.set()
        self.join(120)


def prove(folder: Path, kills: int, seed: int, tell: Any, servers: int = 1) -> Found:
    found, rng = Found(), Random(f"celery {seed}")
    port = quiet_port(rng)
    worker = CeleryWorker(port, folder)
    with store_of(folder / "data", servers, "--sqs-port", str(port)) as store:
        sender, supervisor = Sender(task_sender(worker), PAUSE_S), Supervisor(worker)
        try:
            supervisor.start()
            sender.start()
            for number in range(1, kills + 1):
                time.sleep(rng.uniform(0.5, 3.0))
                if number % WORKER_EVERY == 0:
                    supervisor.kill_worker()
                found.counts[kill_and_start(store, rng)] += 1
                tell(f"{number} kills, {len(sender.sent):,} tasks sent, {len(set(worker.numbers())):,} done")
            sender.stop()
            _settle(store, worker, set(sender.sent))
            _judge(found, store, worker, sender)
        finally:
            supervisor.stop()
            found.counts += supervisor.counts
    return found


def _settle(store: StoreProcess, worker: CeleryWorker, sent: set[int]) -> None:
    """Wait until the worker has done all tasks and deleted their messages."""
    until_s = time.monotonic() + SETTLE_S
    while time.monotonic() < until_s:
        if not sent - set(worker.numbers()):
            connection = store.connection()
            left = connection.queue("celery").stats().messages
            connection.close()
            if not left:
                return
        time.sleep(0.2)


def _judge(found: Found, store: StoreProcess, worker: CeleryWorker, sender: Sender) -> None:
    done = Counter(worker.numbers())
    lost = sorted(set(sender.sent) - done.keys())
    found.counts["tasks sent"] = len(sender.sent)
    found.counts["sends that failed and were repeated"] = sender.failures
    found.counts["tasks done"] = len(done)
    found.counts["done more than once"] = sum(count > 1 for count in done.values())
    if lost:
        found.wrong.append(f"{len(lost)} tasks were lost, the first ones {lost[:10]}")
    connection = store.connection()
    stats = connection.queue("celery").stats()
    connection.close()
    if stats.messages:
        found.wrong.append(f"the queue has messages when all is done: {stats}")
    if len(sender.sent) < 10:
        text = f"only {len(sender.sent)} tasks were sent, which proves nothing; the last failure: {sender.last_failure}"
        found.wrong.append(text)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--kills", default=50, show_default=True, type=click.IntRange(1))
@click.option("--servers", default=1, show_default=True, type=click.IntRange(1, 16), help="1: one process.")
@click.option("--seed", default=1, show_default=True)
def main(kills: int, servers: int, seed: int) -> None:
    """Kill a store under a Celery worker, and look for tasks that were lost."""
    console = Console(width=120)
    folder = Path(tempfile.mkdtemp(prefix="columnar-celery-"))
    found = prove(folder, kills, seed, lambda text: console.print(text, highlight=False), servers)
    for name, count in found.counts.items():
        console.print(f"{count:>8,}  {name}", highlight=False)
    end_report(console, found.wrong, folder)


if __name__ == "__main__":
    sys.exit(main())
