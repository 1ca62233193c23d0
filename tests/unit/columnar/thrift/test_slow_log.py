"""Slow requests: which are logged, once each, and with what."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from columnar.model.measures import RequestTime
from columnar.model.read import Projection, ReadSpec, ScanSpec
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, make_table
from columnar.operations.descriptions import Descriptions
from columnar.operations.scanner_table import ScannerTable
from columnar.operations.scanners import Scanner
from columnar.operations.slow_log import LINES_PER_SECOND, MUCH_READ
from columnar.operations.slow_log import SlowLog as Log
from columnar.regions.tables import ServedTable, Tables
from columnar.thrift.service import SlowCalls
from columnar.wire.codec_replies import RowList
from columnar.wire.service import CallContext

CTX = CallContext(1, "10.0.0.7:1234")
INFO = RegionInfo("pages", 7)


class SlowLog:
    """The log and a service's way into it."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.was_slow = SlowCalls(log).was_slow


def slow_log(limit_ms: int, now_s: Callable[[], float] = lambda: 0.0) -> SlowLog:
    tables = Tables()
    tables.install(ServedTable(make_table("pages", [Family("f")]), True, [INFO]))
    server: Any = SimpleNamespace(tables=tables)
    return SlowLog(Log(Descriptions(server), ScannerTable(lambda: 0.0), limit_ms, now_s=now_s))


def test_a_line_names_the_request_and_its_cost(caplog: pytest.LogCaptureFixture) -> None:
    log = slow_log(250)
    assert log.log.limit_s == 0.25
    rows = RowList([(b"r", [(b"f:a", b"1", 1), (b"f:b", b"2", 1)])])
    log.was_slow(CTX, "getRow", [b"pages", b"r\x00", {}], RequestTime(0.3004), rows)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.message == (
        f"slow request: getRow took 300 ms table=pages region={INFO.encoded} row=r\\x00 rows=1 cells=2 "
        "reply_bytes=0 worked_ms=300; peer=10.0.0.7:1234"
    )
    assert log.log.count == 1


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (
            RequestTime(1.5, 1.25, "fsync", 12),
            "reply_bytes=12 worked_ms=250 waited_ms=1250 waited_for=fsync; peer=",
        ),
        (RequestTime(1.5, reply_bytes=12), "reply_bytes=12 worked_ms=1500; peer="),
    ],
)
def test_a_line_says_why_the_request_was_slow(time: RequestTime, said: str, caplog: pytest.LogCaptureFixture) -> None:
    log = slow_log(250)
    log.was_slow(CTX, "mutateRow", [b"pages", b"r", [], {}], time, None)
    assert said in caplog.text
    assert said in f"{log.log.recent[-1].about}"


def test_one_that_failed(caplog: pytest.LogCaptureFixture) -> None:
    slow_log(0).was_slow(CTX, "getRow", [b"nope", b"r", {}], RequestTime(0.1), None)
    assert "table=nope row=r" in caplog.text


def test_waiting_on_purpose_is_not_slow(caplog: pytest.LogCaptureFixture) -> None:
    log = slow_log(0)
    log.was_slow(CTX, "columnarTriggerWait", ["t", "", 60_000], RequestTime(60.0), True)
    assert (log.log.count, caplog.records) == (0, [])


def test_a_slow_fsync_gives_few_lines_and_the_next_one_says_how_many_it_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    times = iter([7.1] * (LINES_PER_SECOND + 5) + [8.0])
    log = slow_log(0, lambda: next(times))
    for number in range(LINES_PER_SECOND + 6):
        log.was_slow(CTX, "mutateRow", [b"pages", b"%d" % number, [1, 2], {}], RequestTime(1.0), None)
    assert log.log.count == LINES_PER_SECOND + 6
    assert len(caplog.records) == LINES_PER_SECOND + 1
    assert "row=0 mutations=2" in caplog.records[0].message
    assert caplog.records[-1].message.endswith("; 5 more before it")


def test_rows_of_structs_name_their_table(caplog: pytest.LogCaptureFixture) -> None:
    class Append:
        table, row = b"pages", b"r"

    slow_log(0).was_slow(CTX, "append", [Append()], RequestTime(1.0), [])
    assert "table=pages" in caplog.text
    assert "row=r" in caplog.text


def test_a_call_about_a_group_names_its_region(caplog: pytest.LogCaptureFixture) -> None:
    slow_log(0).was_slow(CTX, "columnarMutateGroup", [b"pages", b"g/", [1, 2], []], RequestTime(1.0), None)
    assert f"table=pages region={INFO.encoded} row=g/ rows=2 " in caplog.text


def test_a_filter_that_reads_much_and_returns_little_is_named(caplog: pytest.LogCaptureFixture) -> None:
    log = slow_log(0)
    text = b"ValueFilter(=, 'substring:" + b"x" * 300 + b"\xff')"
    spec = ScanSpec(b"", b"", ReadSpec(Projection(())), filter_string=text)
    scanner = Scanner(SimpleNamespace(), b"pages", spec, None)  # type: ignore[arg-type]
    opened = log.log._scanners.open_scanner(scanner, 1)

    def logged(before: int, read: int, cells: int) -> str:
        scanner.cells_read_before, scanner.cells_read = before, before + read
        log.was_slow(
            CTX, "scannerGetList", [opened, 100], RequestTime(0.3), RowList([(b"r", [(b"f:a", b"1", 1)] * cells)])
        )
        return caplog.records[-1].message

    found = logged(7, 10_000, 3)
    assert f" cells_read=10007 filter={text.decode('latin-1')[:200]}... reply_bytes=" in found
    assert "filter=" not in logged(7, MUCH_READ - 1, 1), "little is read"
    assert "filter=" not in logged(90_000, 5_000, 501), "an earlier call read much"
    tscan = SimpleNamespace(filterString=b"PageFilter(3)")
    log.was_slow(CTX, "scannerOpenWithScan", [b"pages", tscan, {}], RequestTime(0.3), 1)
    assert " filter=PageFilter(3) reply_bytes=" in caplog.records[-1].message
