"""(pure) Dates as MediaWiki's ``{{#time: format | date}}`` reads them, which are PHP's.

    2010-05-03 10:30, 3 May 2010, May 3, 2010, 5/3/2010, 3.5.2010, 20100503, @1272844800, 2010-W18
    now, today, noon, tomorrow, +1 day, 2 weeks ago, next month, last friday, first day of may 2010

Months are English, whatever the wiki's language.  The longest of the forms that fit is read at each place, as in PHP.
A date has DATE_CHARS_MAX characters at most.  All times are in UTC; it may have a number of hours behind it, or UTC.
Names of other zones, days of the year and "first monday of" are not known.

Knows nothing of formats.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final

from wikka_port.markup.mediawiki_values import ExpressionError

DATE_CHARS_MAX: Final = 100
_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)(?![a-z])"
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAME: Final = (
    r"(?:sun(?:day)?|mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?)"
    r"(?![a-z])"
)
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_UNIT: Final = r"(sec(?:ond)?s?|min(?:ute)?s?|hours?|days?|weeks?|fortnights?|months?|years?)(?![a-z])"
_SECONDS: Final = {"sec": 1, "min": 60, "hou": 3_600}
_DAYS_IN: Final = {"day": 1, "wee": 7, "for": 14}
_MONTHS_IN: Final = {"mon": 1, "yea": 12}  # by the first three letters
_ORDINALS: Final = (
    *("first", "second", "third", "fourth", "fifth", "sixth"),
    *("seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"),
)
_AMOUNTS: Final = {"next": 1, "last": -1, "previous": -1, "this": 0, **{w: n for n, w in enumerate(_ORDINALS, 1)}}
_YEAR: Final = r"(?P<y>[0-9]{1,4})(?![0-9:])"
_YEAR4: Final = r"(?P<y>[0-9]{4})(?![0-9:])"
_DAY: Final = r"(?P<d>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?(?![0-9:])"
_MONTH_NAME: Final = rf"(?P<m>{_MONTH})"
_NUMBER: Final = r"(?P<m>0?[1-9]|1[0-2])"
_GAP: Final = r"[ \t.,-]*+"
_FORMS: Final = {
    "blanks": (r"[ \t.,]++",),
    "date": (
        rf"{_YEAR4}-{_NUMBER}-{_DAY}",
        rf"{_YEAR4}/{_NUMBER}/{_DAY}",
        rf"{_YEAR4}-{_NUMBER}(?![0-9])",
        rf"{_NUMBER}/{_DAY}/{_YEAR}",
        rf"{_NUMBER}/{_DAY}",
        rf"{_DAY}[.\t-]{_NUMBER}[.-]{_YEAR4}",
        rf"{_DAY}\.{_NUMBER}\.(?P<y>[0-9]{{2}})(?![0-9:])",
        rf"{_DAY}{_GAP}{_MONTH_NAME}(?:{_GAP}{_YEAR})?",
        rf"{_MONTH_NAME}{_GAP}{_DAY}(?:{_GAP}{_YEAR4})?",
        rf"{_MONTH_NAME}{_GAP}{_YEAR4}",
        rf"{_YEAR4}{_GAP}{_MONTH_NAME}(?:{_GAP}{_DAY})?",
        r"(?P<y>[0-9]{4})(?P<m>0[1-9]|1[0-2])(?P<d>0[1-9]|[12][0-9]|3[01])(?![0-9])",
        r"(?P<y>[0-9]{4})(?P<m>0[1-9]|1[0-2])(?P<d>0[1-9]|[12][0-9]|3[01])"
        r"t?(?P<h>[01][0-9]|2[0-4]):?(?P<i>[0-5][0-9]):?(?P<s>[0-5][0-9])(?![0-9])",
    ),
    "month": (rf"(?P<name>{_MONTH})",),
    "clock": (
        r"t?(?P<h>[01]?[0-9]|2[0-4]):(?P<i>[0-5][0-9])(?::(?P<s>[0-5][0-9]|60)(?:[.,][0-9]{1,9})?)?(?![0-9:])",
        r"(?P<h>0?[1-9]|1[0-2])(?::(?P<i>[0-5][0-9])(?::(?P<s>[0-5][0-9]))?)?[ \t]*+(?P<half>[ap])\.?m\.?(?![a-z])",
    ),
    "four": (r"(?P<digits>[0-9]{4})(?![0-9:/-])",),
    "stamp": (r"@(?P<stamp>-?[0-9]{1,12})(?![0-9])",),
    "zone": (
        r"(?:z|utc|gmt)(?![a-z+-])",
        r"(?:utc|gmt)?(?P<sign>[+-])(?P<h>[0-9]{1,2}):?(?P<i>[0-5][0-9])?(?![0-9])",
    ),
    "later": (rf"(?P<sign>[+-]*+)[ \t]*+(?P<count>[0-9]{{1,7}})[ \t]*+(?P<unit>{_UNIT})",),
    "ago": (r"ago(?![a-z])",),
    "next": (rf"(?P<which>{'|'.join(_AMOUNTS)})[ \t]++(?P<unit>{_UNIT}|{_DAY_NAME})",),
    "edge": (r"(?P<edge>first|last) day of(?![a-z])",),
    "weekday": (rf"(?P<day>{_DAY_NAME})",),
    "word": (r"(?P<word>now|today|midnight|noon|tomorrow|yesterday)(?![a-z])",),
    "week": (r"(?P<y>[0-9]{4})-?w(?P<week>[0-5][0-9])(?:-?(?P<day>[0-7]))?(?![0-9])",),
}
_READERS: Final = tuple((kind, re.compile(form)) for kind, forms in _FORMS.items() for form in forms)
# What PHP reads and this module does not: names of zones, days of the year, and weekdays of a month.
_OTHER: Final = re.compile(
    r"(?:[a-y]|[ecmp][sd]t|h?a[kw]?[sd]t|ces?t|ees?t|wes?t|bst|ist|jst|kst|msk|ae[sd]t|ac[sd]t|nz[sd]t|sast|hst|of"
    r"|[0-9]{0,7}[ \t]*+weekdays?|[a-z]+/[a-z_/]+)(?![a-z])|[0-9]{4}\.?[0-9]{3}(?![0-9])"
)


def read_time(text: str, now: datetime) -> datetime | None:
    """Return the time that a text means, "" is ``now``; None if its form is not known here.

    Raises ExpressionError if it is no time.
    """
    text = text.strip().lower()
    if re.fullmatch(r"[0-9]{4}", text):
        text = f"00:00 {text}"  # a year, as MediaWiki decides; PHP would read a time of the day
    if len(text) > DATE_CHARS_MAX:
        raise ExpressionError("the date is too long")
    reading, position = _Reading(now), 0
    while position < len(text):
        found = [(kind, match) for kind, form in _READERS if (match := form.match(text, position))]
        kind, match = max(found, key=lambda one: one[1].end(), default=("", None))
        if match is None:
            if _OTHER.match(text, position):
                return None
            raise ExpressionError(f"{text[position:]!r} is no time")
        reading.take(kind, match)
        position = match.end()
    return reading.time()


class _Reading:
    """The parts of a date that have been read."""

    def __init__(self, now: datetime) -> None:
        self._day = [now.year, now.month, now.day]
        self._clock = [now.hour, now.minute, now.second]
        self._has_date = False  # of its own, not one beside now
        self._is_dated = self._is_timed = False  # whether the clock of now is not meant, and whether there is one
        self._zone = 0  # seconds to the East
        self._later = [0, 0, 0]  # months, days, seconds
        self._weekday: tuple[int, bool] | None = None  # its number, and whether it may be the day itself
        self._edge = ""  # "first" or "last" day of the month

    def take(self, kind: str, match: re.Match[str]) -> None:
        """Read one part.  Raises ExpressionError for a second date or time."""
        found = match.groupdict()
        if kind == "date" or (kind == "clock" and not self._is_timed):
            self._take_date(found)
        elif kind == "clock":
            raise ExpressionError("it has two times")
        elif kind == "four":
            self._take_four(found["digits"])
        elif kind == "week":
            self._take_week(found)
        elif kind in ("later", "next", "ago"):
            self._take_relative(kind, found)
        elif kind == "month":
            self._note_date()
            self._day[1] = _month_of(found["name"])
        elif kind == "stamp":
            self._take_stamp(int(found["stamp"]))
        elif kind == "zone" and found.get("sign"):
            seconds = int(found["h"]) * 3_600 + int(found["i"] or 0) * 60
            self._zone = seconds if found["sign"] == "+" else -seconds
        elif kind == "edge":
            self._edge = found["edge"]
        elif kind == "weekday":
            self._take_weekday(found["day"], may_be_today=True)
        elif kind == "word" and found["word"] != "now":
            self._clock, self._is_timed = [12 if found["word"] == "noon" else 0, 0, 0], found["word"] == "noon"
            self._is_dated = True
            self._later[1] += {"tomorrow": 1, "yesterday": -1}.get(found["word"], 0)

    def _take_date(self, found: Mapping[str, str | None]) -> None:
        if found.get("m"):
            self._note_date()
            year = found.get("y")
            self._day = [
                _year_of(year) if year else self._day[0],
                _month_of(found["m"] or ""),
                int(found["d"] or 1) if "d" in found else 1,
            ]
        if found.get("h"):
            hour = int(found["h"] or 0)
            if found.get("half"):
                hour = hour % 12 + (12 if found["half"] == "p" else 0)
            self._clock, self._is_timed = [hour, int(found.get("i") or 0), int(found.get("s") or 0)], True

    def _note_date(self) -> None:
        if self._has_date:
            raise ExpressionError("it has two dates")
        self._has_date = self._is_dated = True

    def _take_four(self, digits: str) -> None:
        """Read four digits: a time of the day, or a year behind one."""
        hour, minute = int(digits[:2]), int(digits[2:])
        if self._is_timed or self._is_dated or hour > 23 or minute > 59:
            self._day[0] = int(digits)
            self._is_dated = True
        else:
            self._clock, self._is_timed = [hour, minute, 0], True

    def _take_week(self, found: Mapping[str, str | None]) -> None:
        try:
            monday = date.fromisocalendar(int(found["y"] or 0), 1, 1)
            day = monday + timedelta(weeks=int(found["week"] or 0) - 1, days=int(found["day"] or 1) - 1)
        except (ValueError, OverflowError) as problem:
            raise ExpressionError("there is no such week") from problem
        self._note_date()
        self._day = [day.year, day.month, day.day]

    def _take_stamp(self, seconds: int) -> None:
        self._day, self._clock, self._is_timed, self._is_dated = [1970, 1, 1], [0, 0, 0], True, True
        self._zone = 0
        self._later[2] += seconds

    def _take_relative(self, kind: str, found: Mapping[str, str]) -> None:
        if kind == "ago":
            self._later = [-amount for amount in self._later]
            return
        amount = _AMOUNTS[found["which"]] if kind == "next" else int(found["count"])
        if kind == "later" and found["sign"].count("-") % 2:
            amount = -amount
        unit = found["unit"][:3]
        if kind == "next" and re.fullmatch(_DAY_NAME, found["unit"]):
            self._later[1] += (amount - 1 if amount > 0 else amount) * 7
            self._take_weekday(unit, may_be_today=found["which"] == "this")
        elif unit in _MONTHS_IN:
            self._later[0] += amount * _MONTHS_IN[unit]
        elif unit in _DAYS_IN:
            self._later[1] += amount * _DAYS_IN[unit]
        else:
            self._later[2] += amount * _SECONDS[unit]

    def _take_weekday(self, name: str, *, may_be_today: bool) -> None:
        self._weekday = (_DAYS.index(name[:3]), may_be_today)
        self._is_dated = True
        if not self._is_timed:
            self._clock = [0, 0, 0]

    def time(self) -> datetime:
        """Return the time.  Raises ExpressionError if it is none of the years 1 to 9999."""
        if self._is_dated and not self._is_timed:
            self._clock = [0, 0, 0]
        hour, minute, second = self._clock
        try:
            day = date(self._day[0], self._day[1], 1) + timedelta(days=self._day[2] - 1)
            if self._weekday is not None:
                day += timedelta(days=self._days_to(day, *self._weekday))
            months = day.year * 12 + day.month - 1 + self._later[0]
            first = date(months // 12, months % 12 + 1, 1)
            day = first + timedelta(days={"first": 0, "last": _length(first) - 1}.get(self._edge, day.day - 1))
            moment = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=self._later[1])
            return moment + timedelta(seconds=hour * 3_600 + minute * 60 + second + self._later[2] - self._zone)
        except (ValueError, OverflowError) as problem:
            raise ExpressionError("it is not in the years 1 to 9999") from problem

    def _days_to(self, day: date, number: int, may_be_today: bool) -> int:
        days = number - day.isoweekday() % 7
        if self._later[1] < 0:
            return days + 7 if days < 0 else days
        return days + 7 if days < 0 or (days == 0 and not may_be_today) else days


def _month_of(text: str) -> int:
    return int(text) if text.isdigit() else _MONTHS.index(text[:3]) + 1


def _year_of(text: str) -> int:
    """Return a year; one of two digits is between 1970 and 2069."""
    year = int(text)
    return year if len(text) > 2 else year + (2_000 if year < 70 else 1_900)


def _length(first: date) -> int:
    return monthrange(first.year, first.month)[1]
