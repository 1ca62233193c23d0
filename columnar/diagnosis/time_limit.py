"""Time limits of calls that may block for ever: a file operation on a network file system whose servers are away."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
THREAD: Final = "facts of a folder"  # the name of each
PATH_S: Final = 5.0  # of a question about one path, or the start of one file


def within(seconds: float, call: Callable[[], T]) -> T | None:
    """Return the result of a call that may block for ever, or None after so many seconds; raises its error."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    thread = threading.Thread(target=run, name=THREAD, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    return results[0] if results else None


def is_same_folder(one: str, other: str) -> bool:
    """Tell whether two paths lead to one folder; in a folder that stalls paths are compared as they are written."""
    if os.path.abspath(one) == os.path.abspath(other):
        return True
    return within(PATH_S, lambda: os.path.realpath(one) == os.path.realpath(other)) is True
