"""Moments on a reader's clock, and how far it is from UTC."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from wikka_port.local_time import local_time, zone_label

JUNE = 1_750_000_000_000  # 2025-06-15 15:06:40 UTC
JANUARY = 1_736_942_800_000  # 2025-01-15 12:06:40 UTC
END_OF_THE_CALENDAR = 253_402_300_799_000


@pytest.mark.parametrize(
    ("time_ms", "zone", "shown", "label"),
    [
        (JUNE, None, "2025-06-15 15:06", "UTC"),
        (JUNE, "Europe/Berlin", "2025-06-15 17:06", "UTC+2"),
        (JANUARY, "Europe/Berlin", "2025-01-15 13:06", "UTC+1"),
        (JANUARY, "Europe/London", "2025-01-15 12:06", "UTC"),
        (JUNE, "Asia/Kathmandu", "2025-06-15 20:51", "UTC+5:45"),
        (JANUARY, "America/St_Johns", "2025-01-15 08:36", "UTC-3:30"),
        (END_OF_THE_CALENDAR, "Asia/Tokyo", "9999-12-31 23:59", "UTC"),
    ],
)
def test_a_moment_and_its_zone(time_ms: int, zone: str | None, shown: str, label: str) -> None:
    info = None if zone is None else ZoneInfo(zone)
    assert (local_time(time_ms, info), zone_label(time_ms, info)) == (shown, label)
