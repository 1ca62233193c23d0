"""A record as text, as JSON and as an entry of the journal, and the journal's socket."""

from __future__ import annotations

import array
import json
import logging
import os
import re
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from columnar.limits import LOG_LINE_BYTES
from columnar.runtime.journal import JournalEntry, JournalSocket, is_journal
from columnar.runtime.line_queue import LineQueue
from columnar.runtime.log_format import JsonLine, Speaker, utc_text
from columnar.runtime.log_lines import QueuedLines
from tests.support.standalone_store import ROOT

WAIT_S = 20.0
SPEAKER = Speaker("server", "s1.7", "0.1.0+abc")


def record_of(text: str, *values: object, error: BaseException | None = None) -> logging.LogRecord:
    info: Any = (type(error), error, error.__traceback__) if error is not None else None
    return logging.LogRecord("columnar.x", logging.ERROR, "/src/x.py", 12, text, values, info, "work")


def raised() -> ValueError:
    try:
        raise ValueError("no\nnewline")
    except ValueError as error:
        return error


# --- JSON ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a\nb\r\nc", "\u2028 \u2029 \x85 \x0b \x1c", "\udce4 \U0001f600", '"\\'])
def test_a_record_is_one_line_of_json_whatever_it_says(text: str) -> None:
    record = record_of("said %s", text, error=raised())
    record.created = 1_763_717_637.6704
    line = JsonLine(SPEAKER).encode(record)
    assert (line.count(b"\n"), line[-1:], len(line.decode().splitlines())) == (1, b"\n", 1)
    found = json.loads(line)
    exception = found.pop("exception")
    assert exception.startswith("Traceback (most recent call last):\n")
    assert exception.endswith("ValueError: no\nnewline")
    assert found == {
        "time": "2025-11-21T09:33:57.670Z",
        "level": "ERROR",
        "logger": "columnar.x",
        "message": f"said {text}",
        "role": "server",
        "server": "s1.7",
        "pid": os.getpid(),
        "build": "0.1.0+abc",
    }


def test_a_time_without_a_fraction_has_its_milliseconds() -> None:
    assert utc_text(0) == "1970-01-01T00:00:00.000Z"


def test_a_huge_record_is_cut_and_stays_json() -> None:
    try:
        raise ValueError("\x01" * 200_000 + " the end")
    except ValueError as error:
        line = JsonLine(Speaker("standalone")).encode(record_of("begin %s", "\x01" * 200_000, error=error))
    assert len(line) <= LOG_LINE_BYTES
    found = json.loads(line)
    assert found["message"].startswith("begin ")
    assert found["exception"].endswith(" the end")
    assert found["cut_from_bytes"] > 2_400_000
    assert "server" not in found


# --- the journal ---------------------------------------------------------------------------------------


def fields_of(datagram: bytes) -> dict[str, bytes]:
    """Parse an entry as the journal does."""
    found = {}
    while datagram:
        line, _, rest = datagram.partition(b"\n")
        if b"=" in line:
            name, _, value = line.partition(b"=")
            datagram = rest
        else:
            (size,) = struct.unpack_from("<Q", rest)
            name, value, datagram = line, rest[8 : 8 + size], rest[8 + size :]
            assert datagram[:1] == b"\n"
            datagram = datagram[1:]
        assert re.fullmatch(rb"[A-Z][A-Z0-9_]{0,63}", name), name
        found[name.decode()] = value
    return found


class Journal:
    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "journal")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._socket.settimeout(WAIT_S)
        self.were_descriptors: list[bool] = []

    def receive(self) -> dict[str, bytes]:
        data, passed, _, _ = self._socket.recvmsg(1 << 20, socket.CMSG_SPACE(4))
        self.were_descriptors.append(bool(passed))
        if passed:
            assert data == b""
            (descriptor,) = array.array("i", passed[0][2])
            data = os.pread(descriptor, 1 << 22, 0)
            with pytest.raises(OSError, match="not permitted"):
                os.ftruncate(descriptor, 0)
            os.close(descriptor)
        return fields_of(data)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path)
    yield made
    made.close()


def test_the_journal_gets_fields_and_a_large_record_as_sealed_memory(journal: Journal) -> None:
    queue = LineQueue(JournalSocket(journal.path))
    handler = QueuedLines(queue, JournalEntry(SPEAKER))
    handler.handle(record_of("it %s", "failed", error=raised()))
    found = journal.receive()
    message = found.pop("MESSAGE").decode()
    assert message.startswith("it failed\nTraceback ")
    assert message.endswith("ValueError: no\nnewline")
    assert found == {
        "PRIORITY": b"3",
        "SYSLOG_IDENTIFIER": b"columnar",
        "CODE_FILE": b"/src/x.py",
        "CODE_LINE": b"12",
        "CODE_FUNC": b"work",
        "COLUMNAR_LOGGER": b"columnar.x",
        "COLUMNAR_ROLE": b"server",
        "COLUMNAR_SERVER": b"s1.7",
        "COLUMNAR_BUILD": b"0.1.0+abc",
    }
    sink = JournalSocket(journal.path)
    assert sink.write_lines([b"MESSAGE=" + b"m" * 2_000_000 + b"\n", b"MESSAGE=small\n"]) == 2
    assert len(journal.receive()["MESSAGE"]) == 2_000_000
    assert journal.receive()["MESSAGE"] == b"small"
    assert journal.were_descriptors == [False, True, False]


def test_a_journal_that_is_missing_loses_counted_lines_and_names_them_when_it_is_there(tmp_path: Path) -> None:
    queue = LineQueue(JournalSocket(str(tmp_path / "journal")))
    handler = QueuedLines(queue, JournalEntry(Speaker()))
    for _ in range(3):
        handler.handle(record_of("lost"))
    assert queue.flush(WAIT_S)
    assert queue.dropped == 3
    journal = Journal(tmp_path)
    handler.handle(record_of("there"))
    assert journal.receive()["MESSAGE"].startswith(b"3 log lines were dropped before this one: ")
    assert journal.receive()["MESSAGE"] == b"there"
    journal.close()


def test_standard_error_is_the_journals_if_systemd_says_so_and_it_is_still_that_file(tmp_path: Path) -> None:
    with (tmp_path / "stream").open("w") as stream:
        found = os.fstat(stream.fileno())
        said = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}
        assert is_journal(stream.fileno(), said)
        assert not is_journal(stream.fileno(), {})
        assert not is_journal(stream.fileno(), {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino + 1}"})
        assert not is_journal(stream.fileno(), {"JOURNAL_STREAM": "x"})
    assert not is_journal(stream_closed := 999_999, said), stream_closed


# --- a process -----------------------------------------------------------------------------------------

_PROGRAM = """
import logging, os, sys, warnings
from columnar.runtime import journal, log_lines
from columnar.runtime.log_format import Speaker
from columnar.runtime.log_settings import LogSettings
how, place = sys.argv[1:]
found = os.fstat(2)
os.environ["JOURNAL_STREAM"] = f"{found.st_dev}:{found.st_ino}"
journal.JournalSocket.__init__.__defaults__ = (place,)
settings = {
    "file": LogSettings(form="json", file=place), "journal": LogSettings(), "json": LogSettings(form="json"),
    "forced": LogSettings(place="stderr"),
}
log_lines.begin_log(settings[how], Speaker("standalone", build="b"))
for number in range(500):
    logging.getLogger("columnar.x").info("line %d", number)
raise RuntimeError("nobody\\ncatches this")
"""


def run(how: str, place: Path) -> subprocess.CompletedProcess[bytes]:
    asked = [sys.executable, "-c", _PROGRAM, how, str(place)]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, timeout=WAIT_S, check=False)


def test_what_is_queued_at_an_uncaught_exception_is_written_and_the_exception_is_the_last_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    ended = run("file", path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, b"", b"")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["message"] for line in lines[:-1]] == [f"line {number}" for number in range(500)]
    assert lines[-1]["level"] == "CRITICAL"
    assert lines[-1]["exception"].endswith("RuntimeError: nobody\ncatches this")


@pytest.mark.parametrize(("how", "goes_to_journal"), [("journal", True), ("json", False), ("forced", False)])
def test_the_journal_is_the_default_if_standard_error_leads_there(
    how: str, goes_to_journal: bool, journal: Journal
) -> None:
    journal._socket.close()
    os.unlink(journal.path)
    receiving = [sys.executable, "-c", _RECEIVER, journal.path]
    with subprocess.Popen(receiving, stdout=subprocess.PIPE) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == b"ready\n"
        ended = run(how, Path(journal.path))
        counted, _ = receiver.communicate(timeout=WAIT_S)
    assert int(counted) == (501 if goes_to_journal else 0)
    assert (len(ended.stderr.splitlines()) == 501) is not goes_to_journal


_RECEIVER = """
import socket, sys
taker = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
taker.bind(sys.argv[1])
print("ready", flush=True)
count = 0
taker.settimeout(2)
try:
    while taker.recv(100_000):
        count += 1
except TimeoutError:
    print(count)
"""
