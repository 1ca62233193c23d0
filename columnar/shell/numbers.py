"""Numbers on command lines: at most what a field of a call can hold; and seconds, which must be real numbers."""

from __future__ import annotations

import math
from typing import Any, Final

import click

MOST: Final = (1 << 31) - 1
LONGEST_S: Final = MOST // 1_000  # as milliseconds, and as a time-out of a socket
COUNT: Final = click.IntRange(1, MOST)


class Seconds(click.FloatRange):
    """A number of seconds from ``least`` to ``most``; ``nan``, which no comparison with bounds excludes, is refused."""

    def __init__(self, most: float = LONGEST_S, *, least: float = 0, min_open: bool = False) -> None:
        super().__init__(least, most, min_open=min_open)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return seconds
