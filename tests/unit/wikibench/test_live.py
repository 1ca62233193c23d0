"""The line of a replay where standard error is no terminal."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

import pytest

from wikibench import live
from wikibench.injector import Injector
from wikibench.live import LiveLine, snapshot_of, takes_a_line
from wikibench.targets.target import Target
from wikibench.visits import Load


def test_a_pipe_that_nobody_reads_takes_no_line_and_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay stood still, and its report told of the standstill."""
    monkeypatch.setattr(live, "QUIET_S", 0.0)
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as errors:
        monkeypatch.setattr(sys, "stderr", errors)
        injector = Injector(Load(Target("http://x"), planned_s=1.0, open_requests=1))
        line = LiveLine("replay")
        assert takes_a_line(errors)
        line.tick(snapshot_of(injector))
        assert os.read(reading, 4_096).startswith(b"replay  ")
        os.set_blocking(writing, False)
        with suppress(BlockingIOError):
            while True:
                os.write(writing, b"." * 4_096)
        os.set_blocking(writing, True)
        assert not takes_a_line(errors)
        line.tick(snapshot_of(injector))  # returns
        os.read(reading, 65_536)
        line.tick(snapshot_of(injector))
        os.close(reading)


def test_a_stream_of_no_file_takes_every_line() -> None:
    assert takes_a_line(io.StringIO())
