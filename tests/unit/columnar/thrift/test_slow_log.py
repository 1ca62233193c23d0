"""Slow requests: which are logged, once each, and with what."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, make_table
from columnar.regions.scanners import ScannerTable
from columnar.regions.tables import ServedTable, Tables
from columnar.thrift.slow_log import LINES_PER_FSYNC, SlowLog
from columnar.wire.codec_replies import RowList
from columnar.wire.service import CallContext, Later

CTX = CallContext(1, "10.0.0.7:1234")
INFO = RegionInfo("pages", 7)


def slow_log(limit_ms: int) -> SlowLog:
    tables = Tables()
    tables.install(ServedTable(make_table("pages", [Family("f")]), True, [INFO]))
    return SlowLog(tables, ScannerTable(lambda: 0.0), limit_ms)


def test_a_direct_answer_is_logged_with_its_cost(caplog: pytest.LogCaptureFixture) -> None:
    log = slow_log(0)
    rows = RowList([(b"r", [(b"f:a", b"1", 1), (b"f:b", b"2", 1)])])
    handler = log.wrapped({"getRow": lambda _ctx, *_args: rows})["getRow"]
    assert handler(CTX, b"pages", b"r\x00", {}) is rows
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"table=pages region={INFO.encoded} row=r\\x00 rows=1 cells=2; peer=10.0.0.7:1234" in record.message
    assert record.message.startswith("slow request: getRow took ")
    assert log.count == 1


def test_a_quick_one_is_not(caplog: pytest.LogCaptureFixture) -> None:
    log = slow_log(60_000)
    assert log.wrapped({"getRow": lambda _ctx, *_args: 5})["getRow"](CTX, b"pages", b"r", {}) == 5
    assert (log.count, caplog.records) == (0, [])


def test_one_that_raises_is_logged_and_raises(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_ctx: CallContext, *_args: Any) -> None:
        raise ValueError("no")

    log = slow_log(0)
    with pytest.raises(ValueError, match="no"):
        log.wrapped({"getRow": refuse})["getRow"](CTX, b"nope", b"r", {})
    assert "table=nope row=r" in caplog.text


def test_waiting_on_purpose_is_not_slow() -> None:
    handlers = {"columnarTriggerWait": lambda _ctx, *_args: True}
    assert slow_log(0).wrapped(handlers) == handlers


def test_an_fsync_is_part_of_the_time_and_one_fsync_gives_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> int:
        log = slow_log(0)
        synced = asyncio.get_running_loop().create_future()
        handler = log.wrapped({"mutateRow": lambda _ctx, *_args: Later(synced, None)})["mutateRow"]
        for number in range(LINES_PER_FSYNC + 5):
            assert handler(CTX, b"pages", b"%d" % number, [1, 2], {}).future is synced
        assert log.count == 0
        synced.set_result(None)
        await asyncio.sleep(0)
        return log.count

    assert asyncio.run(main()) == LINES_PER_FSYNC + 5
    assert len(caplog.records) == LINES_PER_FSYNC
    assert "row=0 mutations=2" in caplog.records[0].message


def test_answers_that_take_several_turns(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        log = slow_log(0)

        async def rows() -> RowList:
            return RowList([(b"z", [(b"f:a", b"1", 1)])])

        async def several() -> None:
            return None

        handlers: dict[str, Any] = {
            "scannerGetList": lambda _ctx, *_args: rows(),
            "mutateRows": lambda _ctx, *_args: Later(several(), "done"),
        }
        wrapped = log.wrapped(handlers)
        assert len((await wrapped["scannerGetList"](CTX, 5, 10)).rows) == 1
        later = wrapped["mutateRows"](CTX, b"pages", [1, 2, 3], {})
        assert later.result == "done"
        await later.future
        assert log.count == 2

    asyncio.run(main())
    assert "rows=1 cells=1" in caplog.records[0].message
    assert "rowBatches=3" in caplog.records[1].message


def test_rows_of_structs_name_their_table(caplog: pytest.LogCaptureFixture) -> None:
    class Append:
        table, row = b"pages", b"r"

    slow_log(0).wrapped({"append": lambda _ctx, *_args: []})["append"](CTX, Append())
    assert "table=pages" in caplog.text
    assert "row=r" in caplog.text
