"""The queue of log lines: nobody waits for a reader that stalls, lost lines are counted and named."""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Iterator, Sequence

import pytest

from columnar.limits import LOG_LINE_BYTES
from columnar.runtime.line_queue import Descriptor, LineQueue
from columnar.runtime.log_format import OneLine
from columnar.runtime.log_lines import QueuedLines

WAIT_S = 20.0


class Pipe:
    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self.queue = LineQueue(Descriptor(self.writing), bound_bytes=2_000)

    def fill(self) -> int:
        """Until it takes no byte more; how many."""
        os.set_blocking(self.writing, False)
        count = 0
        try:
            while True:
                count += os.write(self.writing, b"x" * 4_096)
        except BlockingIOError:
            pass
        try:
            while True:
                count += os.write(self.writing, b"x")
        except BlockingIOError:
            pass
        os.set_blocking(self.writing, True)
        return count

    def read(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            found += os.read(self.reading, count - len(found))
        return found


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    os.close(made.reading)
    assert made.queue.flush(WAIT_S)
    os.close(made.writing)


def test_lines_come_whole_and_in_order(pipe: Pipe) -> None:
    for number in range(300):
        pipe.queue.write_line(f"{number:05}")
        if number % 100 == 99:
            assert pipe.queue.flush(WAIT_S)
    assert pipe.read(300 * 6).split() == [b"%05d" % number for number in range(300)]
    assert pipe.queue.dropped == 0


def test_a_stalled_reader_stalls_nobody_and_lost_lines_are_counted(pipe: Pipe) -> None:
    filled = pipe.fill()
    for _ in range(1_000):
        pipe.queue.write_line("a" * 99)  # 100 bytes with its end: 20 of them have room
    assert pipe.queue.dropped == 980
    assert not pipe.queue.flush(0.01)
    pipe.read(filled)
    assert pipe.queue.flush(WAIT_S)
    assert pipe.read(20 * 100) == (b"a" * 99 + b"\n") * 20
    pipe.queue.write_line("the next one")
    pipe.queue.write_line("and one more")
    assert pipe.queue.flush(WAIT_S)
    expected = b"(980 lines dropped: nobody read them)\nthe next one\nand one more\n"
    assert pipe.read(len(expected)) == expected
    assert pipe.queue.dropped == 980


class TimedSink:
    """Takes the lines of each call in so many seconds of its own clock; between calls the clock is read."""

    def __init__(self, takes_s: float) -> None:
        self.written = 0
        self._takes_s = takes_s
        self._now_s = 0.0
        self._was_read = threading.Event()

    def now_s(self) -> float:
        found = self._now_s
        self._was_read.set()
        return found

    def write_lines(self, lines: Sequence[bytes]) -> int:
        assert self._was_read.wait(WAIT_S)
        self._was_read.clear()
        self._now_s += self._takes_s
        self.written += len(lines)
        return len(lines)


@pytest.mark.parametrize(("within_s", "written"), [(100.0, {20}), (9.5, {11, 12})])
def test_an_end_waits_as_long_as_lines_are_taken_but_not_for_ever(within_s: float, written: set[int]) -> None:
    sink = TimedSink(takes_s=0.9)
    queue = LineQueue(sink, bound_bytes=20_000_000, now_s=sink.now_s)
    with queue._changed:  # the sink is called once the wait has begun
        for _ in range(20):
            queue.add_line(b"x" * 64 * 1024)  # as many as one call takes
        is_over = queue.flush(within_s, stalled_s=1.0)
    assert sink.written in written
    assert is_over is (written == {20})
    assert queue.flush(1_000.0)
    assert sink.written == 20


def test_an_end_does_not_wait_for_who_takes_nothing(pipe: Pipe) -> None:
    filled = pipe.fill()
    pipe.queue.write_line("late")
    assert not pipe.queue.flush(WAIT_S * 100, 0.01)
    pipe.read(filled)
    assert pipe.read(5) == b"late\n"


def test_a_long_line_is_cut(pipe: Pipe) -> None:
    queue = LineQueue(Descriptor(pipe.writing))
    size = LOG_LINE_BYTES + 10
    expected = b"b" * LOG_LINE_BYTES + b"... (%d bytes)\n" % size
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read(len(expected))))
    reader.start()
    queue.write_line("b" * size)
    reader.join(WAIT_S)
    assert found == [expected]


def test_a_reader_that_has_gone_costs_the_line_alone() -> None:
    tries: list[bytes] = []

    def write(_descriptor: int, data: bytes) -> int:
        tries.append(data)
        raise OSError(errno.EPIPE, "nobody")

    queue = LineQueue(Descriptor(1, write))
    queue.write_line("one")
    assert queue.flush(WAIT_S)
    queue.write_line("two")
    assert queue.flush(WAIT_S)
    assert (tries, queue.dropped) == ([b"one\n", b"(1 lines dropped: nobody read them)\ntwo\n"], 2)


def test_lost_lines_are_named_once_the_sink_can_write_again_whatever_was_lost_between() -> None:
    class Failing:
        can_write = False

        def __init__(self) -> None:
            self.written: list[bytes] = []

        def write_lines(self, lines: Sequence[bytes]) -> int:
            if self.can_write:
                self.written += lines
            return len(lines) if self.can_write else 0

    sink = Failing()
    queue = LineQueue(sink)
    for number in range(5):  # each but the first follows a line on the lost ones, which is lost itself
        queue.write_line(f"lost {number}")
        assert queue.flush(WAIT_S)
    sink.can_write = True
    queue.write_line("written")
    assert queue.flush(WAIT_S)
    assert sink.written == [b"(5 lines dropped: nobody read them)\n", b"written\n"]
    assert queue.dropped == 5


def test_a_descriptor_that_does_not_block_is_waited_for(pipe: Pipe) -> None:
    filled = pipe.fill()
    os.set_blocking(pipe.writing, False)
    pipe.queue.write_line("late")
    assert not pipe.queue.flush(0.01)
    pipe.read(filled)
    assert pipe.read(5) == b"late\n"


def test_a_forked_child_writes_its_own_lines(pipe: Pipe) -> None:
    """The thread stays with the parent, and with it perhaps the lock."""
    pipe.queue.write_line("parent")
    assert pipe.queue.flush(WAIT_S)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            pipe.queue.begin_again()
            pipe.queue.write_line("child")
            status = 0 if pipe.queue.flush(WAIT_S) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pipe.read(13) == b"parent\nchild\n"


def test_the_log_writes_a_line_for_each_record_and_survives_one_that_cannot_be_written(pipe: Pipe) -> None:
    handler = QueuedLines(pipe.queue, OneLine("s1.7"))
    log = logging.Logger("some.name")
    log.addHandler(handler)
    try:
        raise ValueError("no\nnewline")
    except ValueError:
        log.exception("it %s", "failed")

    class Unwritable:
        def __str__(self) -> str:
            raise RuntimeError("mine")

    log.warning("%s", Unwritable())
    handler.flush()
    first, second = os.read(pipe.reading, 10_000).decode().splitlines()
    assert " ERROR s1.7 some.name: it failed | Traceback" in first
    assert first.endswith("| ValueError: no | newline")
    assert "test_log_lines.py" in second
    assert second.endswith("a log line cannot be written: RuntimeError: mine")


def test_a_signal_handler_may_log_while_a_line_is_put(pipe: Pipe) -> None:
    """The lock is reentrant: a handler runs in the thread that holds it."""
    with pipe.queue._changed:
        pipe.queue.write_line("inner")
    assert pipe.queue.flush(WAIT_S)
    assert pipe.read(6) == b"inner\n"
