"""Threads that work until they are told to stop; an exception of one of them ends all and is raised."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from tests.proofs.killed_store import StoreBroken

LOOK_S = 0.1
Work = Callable[[threading.Event], None]


def work_together(
    works: Sequence[Work], seconds: float, look: Callable[[], None], stop: threading.Event | None = None
) -> None:
    """Run each of ``works`` in a thread of its own for ``seconds``; ``look`` is called now and then.

    Raises the first exception of a thread, except StoreBroken, which the store itself reports.
    """
    stop = stop or threading.Event()
    failures: list[BaseException] = []

    def run(work: Work) -> None:
        try:
            work(stop)
        except StoreBroken:
            stop.set()
        except BaseException as failure:  # noqa: BLE001 - raised in the caller's thread
            failures.append(failure)
            stop.set()

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    try:
        while (left := deadline - time.monotonic()) > 0 and not stop.is_set():
            working = next((thread for thread in threads if thread.is_alive()), None)
            if working is None:
                break
            look()
            working.join(min(left, LOOK_S))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    look()
    if failures:
        raise failures[0]
