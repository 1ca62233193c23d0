"""``{{calendar year="2026" month="11"}}``: a month as a table.

A call without either shows the present month, with links to the months before and after it: ``?year=2026&month=10``
of the page's address.
"""

from __future__ import annotations

import calendar
from datetime import UTC, datetime
from typing import Final

from wikka_port.actions.call import ActionCall
from wikka_port.texts import N_, _
from wikka_port.urls import page_path

YEAR_MAX: Final = 9_998  # what Python's calendar can show whole

_MONTHS: Final = (
    N_("January"), N_("February"), N_("March"), N_("April"), N_("May"), N_("June"),
    N_("July"), N_("August"), N_("September"), N_("October"), N_("November"), N_("December"),
)  # fmt: skip
_DAYS: Final = (N_("Mon"), N_("Tue"), N_("Wed"), N_("Thu"), N_("Fri"), N_("Sat"), N_("Sun"))


def run(call: ActionCall) -> str:
    now = datetime.now(UTC)
    year, month = call.number("year", now.year, YEAR_MAX), call.number("month", now.month, 12)
    follows_address = call.query_parameters is not None and not any(
        call.arguments.get(key, "").strip() for key in ("year", "month")
    )
    if follows_address:
        year = call.query_number("year", 1, YEAR_MAX) or year
        month = call.query_number("month", 1, 12) or month
    is_now = (year, month) == (now.year, now.month)
    return call.site.fragment(
        "calendar.html",
        name=_name(year, month),
        days=[_(day) for day in _DAYS],
        weeks=calendar.Calendar().monthdayscalendar(year, month),
        today=now.day if is_now else 0,
        before=_link(call, year, month - 1) if follows_address else None,
        present=_link(call, now.year, now.month) if follows_address and not is_now else None,
        after=_link(call, year, month + 1) if follows_address else None,
    )


def _name(year: int, month: int) -> str:
    return _("{month} {year}", month=_(_MONTHS[month - 1]), year=year)


def _link(call: ActionCall, year: int, month: int) -> tuple[str, str] | None:
    """Return the address and the name of a month, which may be the 0th or 13th of a year; None beyond the calendar."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    if not 1 <= year <= YEAR_MAX:
        return None
    return page_path(call.outermost_page, year=year, month=month), _name(year, month)
