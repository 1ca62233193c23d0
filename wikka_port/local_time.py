"""A moment as its reader's calendar and clock show it (pure); UTC where the reader has set no time zone."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from wikka_port.feeds import iso_time


def local_time(time_ms: int, zone: ZoneInfo | None) -> str:
    """``2026-01-31 12:00``: the day is the first 10 characters, the time of day the last 5."""
    iso = iso_time(time_ms)
    if zone is not None:
        try:
            moment = datetime.fromisoformat(iso[:19]).replace(tzinfo=UTC).astimezone(zone)
        except OverflowError:  # at an end of the calendar
            return f"{iso[:10]} {iso[11:16]}"
        iso = moment.strftime("%Y-%m-%dT%H:%M")
    return f"{iso[:10]} {iso[11:16]}"
