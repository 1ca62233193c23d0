"""(pure) Times as MediaWiki's ``{{#time: format | date}}`` writes them.

    formats   d D j l N w z W F m M n t L o Y y a A g G h H i s U c r e I O P T Z, those of PHP; xg: the month behind a
              day; xr: the next number in Roman ones; xn, xN: numbers as they are; xx: an x; "text" and \\x: as typed

All times are in UTC, those of ``{{#timel:}}`` and ``{{LOCALTIME}}``, too, since a dump does not have the site's zone.
Other calendars (xj, xi, xm, xk, xo, xt) and Hebrew numbers (xh) are not known.

Knows nothing of how dates are read (``mediawiki_dates``).
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from wikka_port.markup.mediawiki_months import names_in
from wikka_port.markup.mediawiki_values import ExpressionError
from wikka_port.markup.mediawiki_words import main_language

FORMAT_CHARS_MAX: Final = 500
_ROMAN_MAX: Final = 9_999
# Languages whose MediaWiki writes numbers with digits of their own.
_WITH_DIGITS: Final = (
    "acm anp apc ar arq ary arz as bgc bho blk bn bo bpy bqi ccp ckb dz fa glk gu hi hno kjp km kn ks ksw lo lrc luz"
    " lzh mag mni mnw mr my mzn ne new nod nqo or pi pnb ps rki sa sat"
)
_OWN_DIGITS: Final = frozenset(_WITH_DIGITS.split())
_VARIABLES: Final[Mapping[str, str]] = {  # behind CURRENT and LOCAL
    "YEAR": "Y",
    **dict.fromkeys(("MONTH", "MONTH2"), "m"),
    "MONTH1": "n",
    "MONTHNAME": "F",
    "MONTHNAMEGEN": "xg",
    "MONTHABBREV": "M",
    "DAY": "j",
    "DAY2": "d",
    "DAYNAME": "l",
    "DOW": "w",
    "WEEK": "W",
    "HOUR": "H",
    "TIME": "H:i",
    "TIMESTAMP": "xNYmdHis",
}
_OF_REVISION: Final = frozenset(("YEAR", "MONTH", "MONTH1", "DAY", "DAY2", "TIMESTAMP"))
_VARIABLE: Final = re.compile(r"(CURRENT|LOCAL|REVISION)([A-Z]{3,12}[12]?)")


def variable_of(name: str, now: datetime, language: str) -> str | None:
    """Return the value of a variable as CURRENTYEAR, or None if it is none of these or not known."""
    found = _VARIABLE.fullmatch(name)
    form = _VARIABLES.get(found[2]) if found else None
    if found is None or form is None or (found[1] == "REVISION" and found[2] not in _OF_REVISION):
        return None
    made = written_time(now, f"xN{form}" if found[1] == "REVISION" else form, language)
    return made.lstrip("0") if made is not None and found[2] == "WEEK" else made


# -- writing ------------------------------------------------------------------------------------

_NUMBERS: Final[Mapping[str, Callable[[datetime], str]]] = {
    "d": lambda time: f"{time.day:02}",
    "j": lambda time: str(time.day),
    "m": lambda time: f"{time.month:02}",
    "n": lambda time: str(time.month),
    "Y": lambda time: f"{time.year:04}",
    "y": lambda time: f"{time.year % 100:02}",
    "g": lambda time: str(time.hour % 12 or 12),
    "G": lambda time: str(time.hour),
    "h": lambda time: f"{time.hour % 12 or 12:02}",
    "H": lambda time: f"{time.hour:02}",
    "i": lambda time: f"{time.minute:02}",
    "s": lambda time: f"{time.second:02}",
    "w": lambda time: str(time.isoweekday() % 7),
    "N": lambda time: str(time.isoweekday()),
    "z": lambda time: str(time.timetuple().tm_yday - 1),
    "W": lambda time: f"{time.isocalendar()[1]:02}",
    "o": lambda time: f"{time.isocalendar()[0]:04}",
    "t": lambda time: str(monthrange(time.year, time.month)[1]),
    "L": lambda time: str(int(monthrange(time.year, 2)[1] == 29)),
    "U": lambda time: str(int(time.timestamp())),
    "I": lambda _time: "0",
    "Z": lambda _time: "0",
}
_TEXTS: Final[Mapping[str, Callable[[datetime], str]]] = {
    "xx": lambda _time: "x",
    "a": lambda time: "am" if time.hour < 12 else "pm",
    "A": lambda time: "AM" if time.hour < 12 else "PM",
    "e": lambda _time: "UTC",
    "T": lambda _time: "UTC",
    "O": lambda _time: "+0000",
    "P": lambda _time: "+00:00",
    "c": lambda time: f"{time.year:04}-{time:%m-%dT%H:%M:%S}+00:00",
    "r": lambda time: (
        f"{_english('weekday', time)}, {time.day:02} {_english('short', time)} {time.year:04} {time:%H:%M:%S} +0000"
    ),
}
_NAMES: Final = {"F": "month", "xg": "of", "M": "short", "l": "day", "D": "weekday"}
_CODE: Final = re.compile(r'x(?:[xnNrhg]|[ijkmot].)|"(?P<quoted>[^"]*+)"|\\(?P<typed>.)|.', re.DOTALL)


def _english(kind: str, time: datetime) -> str:
    return names_in("en", kind)[_place(kind, time)]


def _place(kind: str, time: datetime) -> int:
    return time.isoweekday() % 7 if kind in ("day", "weekday") else time.month - 1


def written_time(time: datetime, form: str, language: str) -> str | None:
    """Return a time by a format, or None if names or numbers of the language are not known.

    Raises ExpressionError if the format is over FORMAT_CHARS_MAX.
    """
    if len(form) > FORMAT_CHARS_MAX:
        raise ExpressionError("the format is too long")
    out: list[str] = []
    has_digits = main_language(language) not in _OWN_DIGITS
    is_raw = is_all_raw = is_roman = False  # of the next number, and of all
    for found in _CODE.finditer(form):
        code = found[0]
        if code in _NUMBERS:
            number = _NUMBERS[code](time)
            if not (has_digits or is_raw or is_all_raw or is_roman):
                return None
            out.append(_roman(int(number)) if is_roman and not (is_raw or is_all_raw) else number)
            is_raw = is_roman = False
        elif code in _NAMES:
            names = names_in(language, _NAMES[code])
            if not names:
                return None
            out.append(names[_place(_NAMES[code], time)])
        elif code in _TEXTS:
            out.append(_TEXTS[code](time))
        elif code in ("xn", "xN", "xr"):
            is_raw, is_all_raw, is_roman = is_raw or code == "xn", is_all_raw ^ (code == "xN"), code == "xr" or is_roman
        elif code.startswith("x") and len(code) > 1:  # another calendar, or Hebrew numbers
            return None
        else:
            out.append(next((part for part in (found["quoted"], found["typed"]) if part is not None), code))
    return "".join(out)


def _roman(number: int) -> str:
    if not 0 < number <= _ROMAN_MAX:
        return str(number)
    out = "M" * (number // 1_000)
    for one, five, ten, digit in (("C", "D", "M", 100), ("X", "L", "C", 10), ("I", "V", "X", 1)):
        place = number // digit % 10
        tail = one * (place % 5)
        out += {4: one + five, 9: one + ten}.get(place, (five if place >= 5 else "") + tail)
    return out


# -- dates in another form ----------------------------------------------------------------------

_DATE_CHARS_MAX: Final = 60
_ORDERS: Final = {"dmy": "{d} {m} {y}", "mdy": "{m} {d}, {y}", "ymd": "{y} {m} {d}", "iso 8601": ""}
_WITHOUT_YEAR: Final = {"dm": "{d} {m}", "md": "{m} {d}"}
_OTHER_ORDER: Final = {("mdy", "dm"): "md", ("dmy", "md"): "dm"}
_DAY: Final = r"(?P<d>[0-9]{1,2})"
_NAME: Final = r"(?P<m>[^\W\d_][^\d_,]{0,20}[^\W\d_]\.?)"
_YEAR: Final = r"(?P<y>[0-9]{1,4})"
_FORMS: Final = (
    ("dmy", re.compile(rf"{_DAY}[ _]{_NAME}(?: *, *| +){_YEAR}")),
    ("mdy", re.compile(rf"{_NAME}[ _]{_DAY}(?: *, *| +){_YEAR}")),
    ("ymd", re.compile(rf"{_YEAR}(?: *, *| +){_NAME}[ _]{_DAY}")),
    ("dm", re.compile(rf"{_DAY}[ _]{_NAME}")),
    ("md", re.compile(rf"{_NAME}[ _]{_DAY}")),
    ("iso", re.compile(r"(?P<y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})")),
)


def reformatted(text: str, order: str, language: str) -> str | None:
    """Return a date in another order ("dmy", "mdy", "ymd" or "ISO 8601"); other texts, and without an order, stay.

    None if the names of months in the language are not known.
    """
    names, short = names_in(language, "month"), names_in(language, "short")
    order = order.lower()
    if order not in _ORDERS or len(text) > _DATE_CHARS_MAX:
        return text
    if not names:
        return None
    numbers = {name.lower(): number for known in (short, names) for number, name in enumerate(known, 1)}
    for form, pattern in _FORMS:
        found = pattern.fullmatch(text)
        number = 0 if found is None else numbers.get(found["m"].lower(), int(found["m"]) if form == "iso" else 0)
        if found is None or not 1 <= number <= 12:
            continue
        if form in _WITHOUT_YEAR:
            wanted = _WITHOUT_YEAR[_OTHER_ORDER.get((order, form), form)]
            return wanted.format(d=found["d"], m=names[number - 1])
        year, day = found["y"], found["d"]
        if order == "iso 8601":
            return f"{int(year):04}-{number:02}-{int(day):02}"
        is_iso = form == "iso"
        return _ORDERS[order].format(
            d=int(day) if is_iso else day, m=names[number - 1], y=int(year) if is_iso else year
        )
    return text
