"""``{{calendar year="2026" month="11"}}``: a month as a table; the present one where nothing is given."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime

from wikka_port.actions.call import ActionCall


def run(call: ActionCall) -> str:
    now = datetime.now(UTC)
    year, month = call.number("year", now.year, 9_998), call.number("month", now.month, 12)
    is_now = (year, month) == (now.year, now.month)
    return call.site.fragment(
        "calendar.html",
        name=f"{calendar.month_name[month]} {year}",
        days=list(calendar.day_abbr),
        weeks=calendar.Calendar().monthdayscalendar(year, month),
        today=now.day if is_now else 0,
    )
