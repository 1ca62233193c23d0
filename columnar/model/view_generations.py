"""(pure) Generations of a view: the tables NAME, NAME.2, NAME.3 ..., and which of them readers of NAME see.

    live    the generation that readers see: the table NAME, until a later generation is swapped in
    next    a generation above the live one and the kept one: it is being built, or waits for its swap
    kept    the previous live generation, which is maintained for KEPT_MS after the swap, so that a rollback is exact.
            The generation that was kept before that swap stays for LEFT_MS, so that its readers can finish

A swap is one write to the catalogue: the row ``alias/NAME`` names the live table, the kept table and the end of its
time.  Clients address the live generation as NAME, and each generation as NAME@1, NAME@2 ...

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
    kept: str = ""  # the table of the previous generation; empty: none is kept
    until_ms: int = 0  # the time until which ``kept`` is kept


def base_of(table: str) -> str:
    """Return the name of the view of which the table is a generation."""
    found = _GENERATION.fullmatch(table)
    return found[1] if found else table


def generation_of(table: str) -> int:
    found = _GENERATION.fullmatch(table)
    return int(found[2]) if found else 1


def table_of(name: str, generation: int) -> str:
    return name if generation == 1 else f"{name}.{generation}"


def live_of(name: str, swaps: Iterable[Swap]) -> str:
    """Return the table that readers of the view see; for NAME@2 the table of generation 2."""
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
    """Return, for each alias, the table that clients mean by it; ``tables`` are all generations of all views."""
    found = {f"{base_of(table)}@{generation_of(table)}": table for table in tables}
    return found | {one.name: one.live for one in swaps}


def without_tables(swaps: Iterable[Swap], gone: Iterable[str]) -> tuple[Swap, ...]:
    """Return the swaps after tables are dropped; a swap whose live table is dropped is left out."""
    doomed, left = set(gone), []
    for one in swaps:
        kept = "" if one.kept in doomed else one.kept
        if one.live not in doomed and (kept or one.live != one.name):
            left.append(Swap(one.name, one.live, kept, one.until_ms if kept else 0))
    return tuple(left)


def expired(tables: Iterable[str], swaps: Iterable[Swap], now_ms: int) -> list[str]:
    """Return the generations to drop, whose time is over.

    The last of them are kept generations, which a rollback can use until they are dropped.
    """
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
    """Decode a swap.  Raises DamagedData."""
    try:
        held: Mapping[str, Any] = json.loads(data)
        return Swap(name, str(held["table"]), str(held["kept"]), int(held["until_ms"]))
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedData(f"alias {name}: {error}") from error
