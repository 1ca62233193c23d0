"""(pure) Generations of a view: the tables NAME, NAME.2, NAME.3 ..., and which of them readers of NAME see.

    live    the generation that readers see: the table NAME, until another one is swapped in
    next    a generation above the live one and the kept one: it is built, or waits for its swap
    kept    the live one before the last swap, which is kept up until KEPT_MS are over, so that a rollback is exact;
            the one that was kept before that swap is there for LEFT_MS more, so that its readers come to their end

A swap is one write of the catalogue: the row ``alias/NAME`` names the live table, the kept one and until when.  Clients
mean the live generation by NAME, and each generation by NAME@1, NAME@2 ...

Knows nothing of who carries a swap out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from columnar.errors import DamagedData

KEPT_MS: Final = 3_600_000
LEFT_MS: Final = 60_000  # readers remember for some seconds which generation they read (``client.views.REMEMBERED_S``)
_GENERATION: Final = re.compile(r"(.*)\.(\d{1,9})", re.S | re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,9}", re.ASCII)

Role = Literal["live", "next", "kept"]


@dataclass(frozen=True, slots=True)
class Swap:
    name: str  # of the view
    live: str  # its table
    kept: str = ""  # the table of the generation before; empty: none is kept
    until_ms: int = 0  # of ``kept``


def base_of(table: str) -> str:
    """The view of which a table is a generation."""
    found = _GENERATION.fullmatch(table)
    return found[1] if found else table


def generation_of(table: str) -> int:
    found = _GENERATION.fullmatch(table)
    return int(found[2]) if found else 1


def table_of(name: str, generation: int) -> str:
    return name if generation == 1 else f"{name}.{generation}"


def live_of(name: str, swaps: Iterable[Swap]) -> str:
    """The table that readers of the view see; of NAME@2 that of the generation."""
    base, at, number = name.partition("@")
    if at and _NUMBER.fullmatch(number):
        return table_of(base, int(number))
    return next((one.live for one in swaps if one.name == name), name)


def role_of(table: str, swaps: Iterable[Swap]) -> Role:
    base = base_of(table)
    swap = next((one for one in swaps if one.name == base), Swap(base, base))
    if table == swap.live:
        return "live"
    highest = max(generation_of(swap.live), generation_of(swap.kept) if swap.kept else 0)
    return "next" if generation_of(table) > highest else "kept"


def aliases_of(tables: Iterable[str], swaps: Iterable[Swap]) -> dict[str, str]:
    """The tables that clients mean, by name.  ``tables``: of all generations of all views."""
    found = {f"{base_of(table)}@{generation_of(table)}": table for table in tables}
    return found | {one.name: one.live for one in swaps}


def without_tables(swaps: Iterable[Swap], gone: Iterable[str]) -> tuple[Swap, ...]:
    """The swaps that are left when tables go; one whose live table goes names nothing any more."""
    doomed, left = set(gone), []
    for one in swaps:
        kept = "" if one.kept in doomed else one.kept
        if one.live not in doomed and (kept or one.live != one.name):
            left.append(Swap(one.name, one.live, kept, one.until_ms if kept else 0))
    return tuple(left)


def expired(tables: Iterable[str], swaps: Iterable[Swap], now_ms: int) -> list[str]:
    """Return the generations that no reader can see again; those that a rollback may still use are the last."""
    held = {one.name: one for one in swaps}
    left, kept = list[str](), list[str]()
    for table in tables:
        swap = held.get(base_of(table))
        if swap is None or role_of(table, (swap,)) != "kept":
            continue
        if table == swap.kept and now_ms >= swap.until_ms:
            kept.append(table)
        if table != swap.kept and now_ms >= swap.until_ms - KEPT_MS + LEFT_MS:
            left.append(table)
    return left + kept


# --- the row -----------------------------------------------------------------------------------------


def to_json(swap: Swap) -> bytes:
    return json.dumps({"table": swap.live, "kept": swap.kept, "until_ms": swap.until_ms}, sort_keys=True).encode()


def from_json(name: str, data: bytes) -> Swap:
    """DamagedData."""
    try:
        held: Mapping[str, Any] = json.loads(data)
        return Swap(name, str(held["table"]), str(held["kept"]), int(held["until_ms"]))
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedData(f"alias {name}: {error}") from error
