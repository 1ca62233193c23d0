"""(pure) The table attribute THROTTLE: limits on the requests to a table per time, as HBase's ``set_quota`` sets.

    THROTTLE := limit ("," limit)*
    limit    := [("read" | "write") ":"] number unit "/" time
    unit     := "req" | "B" | "KB" | "MB" | "GB" | "TB" | "PB"       1,024 bytes are a KB; HBase's "K" is "KB"
    time     := "s" | "min" | "hour" | "day"                        HBase's "sec" is "s"

    1000req/s,10MB/s,read:500req/s,write:1GB/hour

A limit without "read:" or "write:" counts reads and writes together.  Each kind of limit may occur once.  Case and
blanks are ignored; ``canonical`` returns the text as it is stored.

Knows nothing of how limits are enforced (``operations.throttle``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from columnar.errors import IllegalArgument

Scope = Literal["", "read", "write"]  # the requests that a limit counts; empty: all

_UNITS: Final = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40, "PB": 1 << 50}
_UNIT_NAMES: Final = {"REQ": "req", "B": "B"} | {name[:width]: name for name in _UNITS for width in (1, 2)}
_TIMES: Final = {"s": 1, "min": 60, "hour": 3_600, "day": 86_400}
_TIME_NAMES: Final = {"sec": "s", "h": "hour", "d": "day"} | {name: name for name in _TIMES}
_LIMIT: Final = re.compile(r"(?:(read|write):)?(\d{1,15})([a-z]+)/([a-z]+)", re.ASCII | re.IGNORECASE)
FORM: Final = (
    "limits such as 1000req/s,10MB/s,read:500req/s,write:1GB/hour "
    "(req, B, KB, MB, GB, TB or PB per s, min, hour or day)"
)


@dataclass(frozen=True, slots=True)
class Limit:
    scope: Scope
    of_bytes: bool  # whether it limits bytes; otherwise requests
    amount: int  # requests or bytes; positive
    period_s: int
    text: str  # as it is stored

    @property
    def kind(self) -> tuple[Scope, bool]:
        return self.scope, self.of_bytes


def limits_of(text: str) -> tuple[Limit, ...]:
    """Parse the limits, in the order given.  Raises IllegalArgument, with the wrong limit and the correct form."""
    limits = tuple(_limit(part) for part in text.replace(" ", "").split(","))
    for number, limit in enumerate(limits):
        if limit.kind in [other.kind for other in limits[:number]]:
            raise IllegalArgument(f"table attribute THROTTLE takes each kind of limit once; {limit.text} is the second")
    return limits


def _limit(part: str) -> Limit:
    found = _LIMIT.fullmatch(part)
    unit = _UNIT_NAMES.get(found[3].upper()) if found else None
    time = _TIME_NAMES.get(found[4].lower()) if found else None
    if found is None or unit is None or time is None:
        raise IllegalArgument(f"table attribute THROTTLE takes {FORM}, not '{part}'")
    scope: Scope = "" if found[1] is None else "read" if found[1].lower() == "read" else "write"
    number = int(found[2])
    if not number:
        raise IllegalArgument(f"table attribute THROTTLE takes limits of 1 or more, not '{part}'")
    shown = f"{scope}:{number}{unit}/{time}" if scope else f"{number}{unit}/{time}"
    return Limit(scope, unit != "req", number * _UNITS.get(unit, 1), _TIMES[time], shown)


def canonical(limits: Sequence[Limit]) -> str:
    return ",".join(limit.text for limit in limits)
