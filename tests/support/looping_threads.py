"""Threads that work beside a test, each in a loop of its own, until they are stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Self


class LoopingThreads:
    """A thread for each of ``works``, which returns soon after ``over`` is set.  Their ends are waited for."""

    def __init__(self, works: Iterable[Callable[[threading.Event], None]]) -> None:
        self.over = threading.Event()
        self._threads = [threading.Thread(target=work, args=(self.over,), daemon=True) for work in works]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
