"""Times of the old database, which are local and have no zone."""

from __future__ import annotations

from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

import pytest

from wikka_port.wikkawiki.source_pages import local_time_ms

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "zone", "time_ms"),
    [
        ("2012-07-01 12:00:00", UTC, 1341144000000),
        ("2012-07-01 12:00:00", BERLIN, 1341136800000),
        ("2012-07-01T12:00:00.25", UTC, 1341144000000),
        ("2016-12-22", UTC, 1482364800000),
        ("0000-00-00 00:00:00", UTC, None),
        ("1900-01-01 00:00:00", UTC, None),
        ("2012-13-01 12:00:00", UTC, None),
        ("soon", UTC, None),
        ("", UTC, None),
    ],
)
def test_times(text: str, zone: tzinfo, time_ms: int | None) -> None:
    assert local_time_ms(text, zone) == time_ms
