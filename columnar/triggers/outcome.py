"""The outcome of one slice of a call, as a "did" frame carries it (``frames``)."""

from __future__ import annotations

from typing import Any

from columnar.limits import LONGEST_LATER_S
from columnar.triggers.lane import Call


class Outcome:
    __slots__ = ("call", "checkpoint", "error", "output", "what")

    def __init__(self, call: Call, what: str, error: Any, output: str, checkpoint: list[Any] | None) -> None:
        """``error``: the traceback's text, seconds, or texts by place in the batch; ``checkpoint``: state and part."""
        self.call = call
        self.what = what
        self.error = error
        self.output = output
        self.checkpoint = checkpoint


def is_error(what: str, error: Any) -> bool:
    if what == "named":
        return isinstance(error, list) and all(
            isinstance(one, list) and len(one) == 2 and isinstance(one[0], int) and isinstance(one[1], str)
            for one in error
        )
    if what == "later":
        return isinstance(error, float) and 0 <= error <= LONGEST_LATER_S
    return error is None or isinstance(error, str)


def is_state(checkpoint: Any) -> bool:
    if checkpoint is None:
        return True
    is_pair = isinstance(checkpoint, list) and len(checkpoint) == 2
    return is_pair and isinstance(checkpoint[0], bytes) and isinstance(checkpoint[1], int)
