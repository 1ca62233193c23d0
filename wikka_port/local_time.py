"""(pure) A moment in its reader's time zone; in UTC if the reader has set no zone.

For readers without a zone, ``static/times.js`` then shows the moment in the browser's zone, in the same form.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from wikka_port.feeds import iso_time


def local_time(time_ms: int, zone: ZoneInfo | None) -> str:
    """Format as ``2026-01-31 12:00``: the day in the first 10 characters, the time of day in the last 5."""
    moment = _moment(time_ms, zone)
    iso = iso_time(time_ms) if moment is None else moment.strftime("%Y-%m-%dT%H:%M")
    return f"{iso[:10]} {iso[11:16]}"


def zone_label(time_ms: int, zone: ZoneInfo | None) -> str:
    """Format the zone's offset from UTC at that moment: ``UTC``, ``UTC+1``, ``UTC-3:30``."""
    moment = _moment(time_ms, zone)
    minutes = 0 if moment is None else (moment.utcoffset() or timedelta()) // timedelta(minutes=1)
    if minutes == 0:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '-'}{hours}{f':{rest:02}' if rest else ''}"


def _moment(time_ms: int, zone: ZoneInfo | None) -> datetime | None:
    """Return the moment in the reader's zone, or None if it must be shown in UTC, by ``iso_time``."""
    if zone is None:
        return None
    try:
        return datetime.fromisoformat(iso_time(time_ms)[:19]).replace(tzinfo=UTC).astimezone(zone)
    except OverflowError:  # the zone moves it out of the calendar
        return None
