"""The last lines of a process in a file that another one reads after its death."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from columnar.limits import LAST_LINE_BYTES, LAST_LINES
from columnar.runtime import log_lines
from columnar.runtime.last_lines import DUMP_BYTES, LastLines, last_lines, lines_file
from columnar.runtime.line_queue import Descriptor, LineQueue
from columnar.runtime.log_format import JsonLine, Speaker
from columnar.runtime.log_lines import QueuedLines
from tests.support.standalone_store import ROOT

WAIT_S = 20.0


@pytest.fixture
def descriptor() -> Iterator[int]:
    made = lines_file()
    yield made
    os.close(made)


def test_a_file_that_nobody_wrote_has_no_lines(descriptor: int) -> None:
    assert last_lines(descriptor) == ()


@pytest.mark.parametrize("count", [1, LAST_LINES - 1, LAST_LINES, LAST_LINES + 1, 3 * LAST_LINES + 2])
def test_the_last_lines_are_there_in_order_and_the_file_does_not_grow(descriptor: int, count: int) -> None:
    kept = LastLines(descriptor)
    for number in range(count):
        kept.add_line(b"line %d" % number)
    assert last_lines(descriptor) == tuple(f"line {number}" for number in range(max(0, count - LAST_LINES), count))
    assert os.fstat(descriptor).st_size <= LAST_LINES * (LAST_LINE_BYTES + 10)


def test_a_long_line_is_cut_and_bytes_that_are_no_text_are_shown(descriptor: int) -> None:
    kept = LastLines(descriptor)
    kept.add_line(b"x" * 100_000)
    kept.add_line(b"a\xffb\x1b[31m")
    assert last_lines(descriptor) == ("x" * LAST_LINE_BYTES, "a\\xffb\\x1b[31m")


def test_damaged_lines_are_left_out(descriptor: int) -> None:
    kept = LastLines(descriptor)
    kept.add_line(b"one")
    kept.add_line(b"two")
    os.pwrite(descriptor, b"\xff" * 10, LAST_LINE_BYTES + 10)
    assert last_lines(descriptor) == ("one",)


def test_a_dump_of_a_crash_follows_the_lines_and_is_cut(descriptor: int) -> None:
    kept = LastLines(descriptor)
    kept.add_line(b"serves")
    os.pwrite(
        descriptor,
        b"Fatal Python error: Segmentation fault\n\n" + b"  File x\n" * 10_000,
        LAST_LINES * (LAST_LINE_BYTES + 10),
    )
    found = last_lines(descriptor)
    assert found[:3] == ("serves", "Fatal Python error: Segmentation fault", "  File x")
    assert sum(map(len, found)) < DUMP_BYTES + 100


def test_lines_of_a_queue_whose_reader_stalls_are_there(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may be ended while nobody reads its log.  The lines are text, whatever the form of the log."""
    stalled, started = threading.Event(), threading.Event()

    def write(_descriptor: int, data: bytes) -> int:
        started.set()
        stalled.wait(WAIT_S)
        return len(data)

    queue = LineQueue(Descriptor(-1, write), bound_bytes=10)
    monkeypatch.setattr(log_lines._process, "last", LastLines(descriptor))
    log = logging.Logger("some.name")
    log.addHandler(QueuedLines(queue, JsonLine(Speaker("server", "s1.4")), "s1.4"))
    log.info("first")
    assert started.wait(WAIT_S)
    log.info("second line that finds no room in the queue")
    assert queue.dropped == 1
    ends = ("INFO s1.4 some.name: first", "INFO s1.4 some.name: second line that finds no room in the queue")
    assert all(line.endswith(end) for line, end in zip(last_lines(descriptor), ends, strict=True))
    stalled.set()
    assert queue.flush(WAIT_S)


_PROGRAM = """
import os, sys
from columnar.runtime.last_lines import LastLines
from columnar.runtime.log_lines import begin_log, keep_last_lines
from columnar.runtime.log_settings import LogSettings
import logging
begin_log(LogSettings(), process="s1.4")
keep_last_lines(LastLines(int(sys.argv[1])))
logging.getLogger("columnar.x").info("works")
if os.fork() == 0:
    logging.getLogger("columnar.x").info("of the child")
    os._exit(0)
os.wait()
os.kill(os.getpid(), int(sys.argv[2]))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_process_that_a_signal_ended_left_its_own_lines(descriptor: int, number: signal.Signals) -> None:
    asked = [sys.executable, "-c", _PROGRAM, str(descriptor), str(int(number))]
    ended = subprocess.run(asked, pass_fds=[descriptor], cwd=ROOT, capture_output=True, timeout=WAIT_S, check=False)
    assert ended.returncode == -number
    found = last_lines(descriptor)
    assert found[0].endswith("INFO s1.4 columnar.x: works")
    assert not [line for line in found if "of the child" in line]
    if number == signal.SIGKILL:
        assert len(found) == 1
    else:
        assert found[1].startswith("Fatal Python error: ")
        assert [line for line in found if line.lstrip().startswith('File "<string>", line')]
