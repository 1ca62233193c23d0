"""A moment as its reader's calendar and clock show it (pure); UTC where the reader has set no time zone.

``static/times.js`` shows a moment in the same form, in the zone of a browser whose reader has set none.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from wikka_port.feeds import iso_time


def local_time(time_ms: int, zone: ZoneInfo | None) -> str:
    """``2026-01-31 12:00``: the day is the first 10 characters, the time of day the last 5."""
    moment = _moment(time_ms, zone)
    iso = iso_time(time_ms) if moment is None else moment.strftime("%Y-%m-%dT%H:%M")
    return f"{iso[:10]} {iso[11:16]}"


def zone_label(time_ms: int, zone: ZoneInfo | None) -> str:
    """``UTC``, ``UTC+1``, ``UTC-3:30``: how far the reader's clock is from UTC at that moment."""
    moment = _moment(time_ms, zone)
    minutes = 0 if moment is None else (moment.utcoffset() or timedelta()) // timedelta(minutes=1)
    if minutes == 0:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '-'}{hours}{f':{rest:02}' if rest else ''}"


def _moment(time_ms: int, zone: ZoneInfo | None) -> datetime | None:
    """None: it is shown in UTC, as ``iso_time`` has it."""
    if zone is None:
        return None
    try:
        return datetime.fromisoformat(iso_time(time_ms)[:19]).replace(tzinfo=UTC).astimezone(zone)
    except OverflowError:  # at an end of the calendar
        return None
