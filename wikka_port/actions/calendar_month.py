"""``{{calendar year="2026" month="11"}}``: a month as a table; the present one where nothing is given."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime
from typing import Final

from wikka_port.actions.call import ActionCall
from wikka_port.texts import N_, _

_MONTHS: Final = (
    N_("January"), N_("February"), N_("March"), N_("April"), N_("May"), N_("June"),
    N_("July"), N_("August"), N_("September"), N_("October"), N_("November"), N_("December"),
)  # fmt: skip
_DAYS: Final = (N_("Mon"), N_("Tue"), N_("Wed"), N_("Thu"), N_("Fri"), N_("Sat"), N_("Sun"))


def run(call: ActionCall) -> str:
    now = datetime.now(UTC)
    year, month = call.number("year", now.year, 9_998), call.number("month", now.month, 12)
    is_now = (year, month) == (now.year, now.month)
    return call.site.fragment(
        "calendar.html",
        name=_("{month} {year}", month=_(_MONTHS[month - 1]), year=year),
        days=[_(day) for day in _DAYS],
        weeks=calendar.Calendar().monthdayscalendar(year, month),
        today=now.day if is_now else 0,
    )
