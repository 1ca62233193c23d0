"""(pure) Parses times and sizes as people and HBase's ``describe`` write them.

    time   ``86400``  ``7d``  ``1 DAY 2 HOURS``  ``86400 SECONDS (1 DAY)``
    size   ``65536``  ``64k``  ``10 GB 20 MB``  ``65536 B (64KB)``  ``64 KB (65536B)``

If an amount is given twice, both must be equal (reference: PrettyPrinter).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from columnar.errors import IllegalArgument

_SECONDS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("d", "day", "days"), 86_400),
    **dict.fromkeys(("h", "hour", "hours"), 3_600),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1),
}
_BYTES: Final[Mapping[str, int]] = {
    "b": 1,
    **{unit + end: 1 << shift for unit, shift in (("k", 10), ("m", 20), ("g", 30), ("t", 40)) for end in ("", "b")},
}
_PARTS: Final = re.compile(r"(?:\d{1,18}\s*[a-z]+\s*)+", re.ASCII)
_PART: Final = re.compile(r"(\d+)\s*([a-z]+)", re.ASCII)
_WRITTEN: Final = re.compile(r"\s*([^()]+?)\s*(?:\(\s*([^()]+?)\s*\))?\s*", re.ASCII)
_PLAIN: Final = re.compile(r"\d{1,18}", re.ASCII)
_CHARACTERS: Final = 100  # no text of a time or a size is longer


class TwoAmounts(IllegalArgument):
    """The text is well formed, but the amount in its brackets differs from the first."""


def seconds_written(text: str) -> int:
    """Return the time in seconds.  Raises IllegalArgument if the text is no time, or has two different ones."""
    return _amount(text, _SECONDS, "a number of seconds, or days, hours and minutes, for example '7 DAYS'")


def bytes_written(text: str) -> int:
    """Return the size in bytes.  Raises IllegalArgument if the text is no size, or has two different ones."""
    return _amount(text, _BYTES, "a whole number of bytes, or one with KB, MB or GB, for example '64 KB'")


def _amount(text: str, units: Mapping[str, int], form: str) -> int:
    found = _WRITTEN.fullmatch(text.lower()) if len(text) <= _CHARACTERS else None
    amounts = [_sum(part, units) for part in found.groups() if part is not None] if found is not None else [None]
    if amounts[0] is None or amounts[-1] is None:
        raise IllegalArgument(f"takes {form}, not '{text[:_CHARACTERS]}'")
    if amounts[0] != amounts[-1]:
        raise TwoAmounts(f"says two different amounts: '{text}'")
    return amounts[0]


def _sum(text: str, units: Mapping[str, int]) -> int | None:
    if _PLAIN.fullmatch(text):
        return int(text)
    if not _PARTS.fullmatch(text):
        return None
    parts = _PART.findall(text)
    return sum(int(number) * units[unit] for number, unit in parts) if all(unit in units for _, unit in parts) else None
