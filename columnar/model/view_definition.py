"""(pure) The definition of a view: its sources, the data that it keeps from them, and its JSON in the catalogue.

    view      a table of the view's name, whose rows are groups, with the families v (totals), m (members), o (order)
    source    a table, and how its rows are grouped: keys, conditions, amounts, order, carried columns
    join      a view with two sources, whose keys have the same number of parts: a group holds members of both sources

    catalogue      vw/NAME -> {"version": 1, "name": ..., "sources": [{...}, {...}], "spread": 1}
    total columns  v:count   v:NAME of a sum   v:NAME.sum and v:NAME.count of an average; in a join after l. or r.

An average counts the rows that have its cell; a sum takes a missing cell as 0.

Knows nothing of regions, of the state of a view (building, live, replaced) and of its maintainer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from columnar.errors import DamagedData, IllegalArgument
from columnar.model.column_text import bytes_of
from columnar.model.schema import SYSTEM_NAMESPACE, Table, checked_family_name, checked_table_name, namespace_of

VERSION: Final = 1
TOTALS, MEMBERS, ORDERED = b"v", b"m", b"o"  # families of a view
COUNT: Final = "count"
LEFT, RIGHT = b"l", b"r"  # sides of a join: the first letter of their members and totals
KEY_PARTS: Final = 8
SPREAD: Final = 256
AMOUNTS: Final = 100  # of one source
INCLUDED: Final = 100
CONDITIONS: Final = 100
_TOTAL_NAME: Final = re.compile(r"[A-Za-z_][\w-]{0,99}", re.ASCII)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SLICE: Final = re.compile(r"row\[(-?\d{0,9}):(-?\d{0,9})\]", re.ASCII)
_GENERATION: Final = re.compile(r".*\.\d+")


@dataclass(frozen=True, slots=True)
class Source:
    table: str
    key: tuple[str, ...]  # ``model.extract``
    where: tuple[str, ...] = ()  # ``model.condition_text``; all must hold
    sums: Mapping[str, str] = field(default_factory=dict)  # name of the total -> ``model.number_cells``
    averages: Mapping[str, str] = field(default_factory=dict)
    order: str = ""  # ``model.number_cells``; lowest, highest and top-k use it
    include: tuple[str, ...] = ()  # columns that a member and its cell in the order carry
    families: tuple[str, ...] = ()  # a row with a cell in any of them exists, if the fields above name no column
    key_parts: int = 0  # parts in the keys of the source if it is a view; 0 for a table (``bound``)


@dataclass(frozen=True, slots=True)
class View:
    name: str
    source: Source
    join: Source | None = None
    spread: int = 1  # rows over which each group is spread; readers add them up

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.source,) if self.join is None else (self.source, self.join)

    @property
    def key_parts(self) -> int:
        """The number of parts in the keys of the view's own rows."""
        return len(self.source.key) + (self.spread > 1)


def total_columns(source: Source, side: bytes = b"") -> tuple[tuple[bytes, bytes], ...]:
    """Return family and qualifier of each total, in the order of a member's amounts."""
    names = [COUNT, *source.sums]
    for name in source.averages:
        names += [f"{name}.sum", f"{name}.count"]
    prefix = side + b"." if side else b""
    return tuple((TOTALS, prefix + name.encode()) for name in names)


# --- checks ------------------------------------------------------------------------------------------


def checked(view: View) -> View:
    """Return the view with its names in the stored form.  Raises IllegalArgument, with the fault and its remedy.

    A complete check also needs ``contributions.rules_of``, which parses the texts within a source.
    """
    name = _checked_name(view.name)
    if not 1 <= view.spread <= SPREAD:
        raise IllegalArgument(f"view {name}: spread is the number of rows of a group, 1 to {SPREAD}")
    if view.join is not None and view.spread > 1:
        raise IllegalArgument(f"view {name}: a join is not spread, for pairs are made within one row")
    if view.join is not None and len(view.join.key) != len(view.source.key):
        raise IllegalArgument(f"view {name}: the keys of the two sides of a join have the same number of parts")
    sources = [_checked_source(name, source) for source in view.sources]
    return View(name, sources[0], sources[1] if len(sources) > 1 else None, view.spread)


def _checked_name(given: str) -> str:
    name = checked_table_name(given.encode(errors="surrogateescape"))
    if namespace_of(name) == SYSTEM_NAMESPACE:
        raise IllegalArgument(
            f"view {name}: names of {SYSTEM_NAMESPACE}: are the store's own; choose another namespace"
        )
    if _GENERATION.fullmatch(name):
        raise IllegalArgument(f"view {name}: a dot and a number end the name of a rebuilt view; choose another end")
    return name


def _checked_source(view: str, source: Source) -> Source:
    table = checked_table_name(source.table.encode(errors="surrogateescape"))
    if table == view:
        raise IllegalArgument(f"view {view}: its source is another table, not the view itself")
    if namespace_of(table) == SYSTEM_NAMESPACE:
        raise IllegalArgument(f"view {view}: a table of the store's own, {table}, is no source")
    if not 1 <= len(source.key) <= KEY_PARTS:
        raise IllegalArgument(f"view {view}: a key has 1 to {KEY_PARTS} parts; name one, as key=('family:qualifier',)")
    for name in (*source.sums, *source.averages):
        _check_total_name(view, name)
    both = sorted(source.sums.keys() & source.averages.keys())
    if both:
        raise IllegalArgument(f"view {view}: {both[0]} is a sum and an average; give one of them another name")
    if len(source.sums) + len(source.averages) > AMOUNTS or len(source.include) > INCLUDED:
        raise IllegalArgument(f"view {view}: at most {AMOUNTS} sums and averages and {INCLUDED} included columns")
    if len(source.where) > CONDITIONS:
        raise IllegalArgument(f"view {view}: where has at most {CONDITIONS} conditions, not {len(source.where)}")
    for part in source.key:
        if _always_empty(part):
            raise IllegalArgument(f"view {view}: key '{part}' is empty for every row; a slice ends behind its start")
    twice = sorted({column for column in source.include if source.include.count(column) > 1})
    if twice:
        raise IllegalArgument(f"view {view}: {twice[0]} is included twice")
    for family in source.families:
        checked_family_name(bytes_of(family))
    return replace(source, table=table, families=tuple(family.removesuffix(":") for family in source.families))


def _always_empty(key: str) -> bool:
    """Tell whether the part is a slice of the row key that is empty for every row."""
    found = _SLICE.fullmatch(key.strip())
    if found is None:
        return False
    start, stop = found.groups()
    if not stop.strip("-0"):
        return bool(stop)
    return bool(start) and start.startswith("-") == stop.startswith("-") and int(start) >= int(stop)


def _check_total_name(view: str, name: str) -> None:
    if name == COUNT:
        raise IllegalArgument(f"view {view}: the total {COUNT} is kept of every group; give the sum another name")
    if not _TOTAL_NAME.fullmatch(name):
        raise IllegalArgument(
            f"view {view}: total '{name}': use up to 100 letters, digits, '_' and '-', a letter first"
        )


def bound(view: View, views: Mapping[str, View]) -> View:
    """Return the view with ``key_parts`` filled in for sources that are views."""

    def with_parts(source: Source) -> Source:
        other = views.get(source.table)
        return replace(source, key_parts=other.key_parts if other is not None else 0)

    return replace(view, source=with_parts(view.source), join=None if view.join is None else with_parts(view.join))


def check_families(view: str, table: Table, families: frozenset[bytes]) -> None:
    """Check that the families that a source reads exist and that their cells do not expire.

    Raises IllegalArgument or NoSuchColumnFamily.
    """
    for name in sorted(families):
        family = table.family(name)
        if family.ttl_s is not None:
            raise IllegalArgument(
                f"view {view}: cells of {table.name}, family {family.name}, expire after {family.ttl_s} s unheard, "
                "so no view can follow them; use a family without TTL"
            )


# --- JSON --------------------------------------------------------------------------------------------

_SEQUENCES: Final = frozenset({"key", "where", "include", "families"})
_PAIRS: Final = frozenset({"sums", "averages"})


def to_json(view: View) -> bytes:
    held = {
        "version": VERSION,
        "name": view.name,
        "sources": [_source_to_json(source) for source in view.sources],
        "spread": view.spread,
    }
    return json.dumps(held, sort_keys=True).encode()


def _source_to_json(source: Source) -> dict[str, Any]:
    held = {one.name: getattr(source, one.name) for one in fields(source)}
    held["sums"], held["averages"] = (list(map(list, each.items())) for each in (source.sums, source.averages))
    return {name: value for name, value in held.items() if value or name in ("table", "key")}


def from_json(data: bytes) -> View:
    """Decode a view.  Raises DamagedData if the bytes are no definition, or one of a newer version."""
    try:
        held: Any = json.loads(data)
        if not isinstance(held, dict):
            raise ValueError("it is no JSON object")
        version = _number(held, "version", "")
        if version != VERSION:
            raise DamagedData(f"view of version {version}; this program knows {VERSION}: upgrade")
        name, sources = _text(held, "name", ""), held.get("sources")
        if not isinstance(sources, list) or len(sources) not in (1, 2):
            raise ValueError(f"sources is a list of one source or two, not {_format_value(sources)}")
        _check_known(held, {"version", "name", "sources", "spread"}, f"view {name}")
        read = [_source_from_json(one, f"sources[{at}]") for at, one in enumerate(sources)]
        return View(name, read[0], read[1] if len(read) > 1 else None, _number(held, "spread", ""))
    except (ValueError, RecursionError) as error:
        raise DamagedData(f"definition of a view: {error}") from error


def _source_from_json(held: Any, place: str) -> Source:
    """Decode a source.  Raises ValueError with the name of the wrong field, after ``place``."""
    if not isinstance(held, dict):
        raise ValueError(f"{place} is an object with the fields of a source")
    known = {one.name for one in fields(Source)}
    _check_known(held, known, place)
    within = place + "."
    plain: dict[str, Any] = {"table": _text(held, "table", within), "key": _texts(held, "key", within)}
    for name in sorted(set(held) - set(plain)):
        if name in _SEQUENCES:
            plain[name] = _texts(held, name, within)
        elif name in _PAIRS:
            plain[name] = _pairs(held, name, within)
        elif name == "key_parts":
            plain[name] = _number(held, name, within)
            if plain[name] < 0:
                raise ValueError(f"{within}{name} is 0 or more, not {_format_value(plain[name])}")
        else:
            plain[name] = _text(held, name, within)
    return Source(**plain)


def _check_known(held: Mapping[str, Any], known: set[str], of: str) -> None:
    strange = ", ".join(sorted(set(held) - known))
    if strange:
        raise DamagedData(f"{of} has what is no field of this version ({strange[:60]!r}): correct it, or upgrade")


def _text(held: Mapping[str, Any], name: str, within: str) -> str:
    value = held.get(name)
    if not _is_text(value):
        raise ValueError(f"{within}{name} is a text, not {_format_value(value)}")
    return str(value)


def _texts(held: Mapping[str, Any], name: str, within: str) -> tuple[str, ...]:
    value = held.get(name)
    if not isinstance(value, list) or not all(map(_is_text, value)):
        raise ValueError(f"{within}{name} is a list of texts, not {_format_value(value)}")
    return tuple(value)


def _pairs(held: Mapping[str, Any], name: str, within: str) -> dict[str, str]:
    """Decode a list of pairs, which keeps the order of the mapping."""
    value = held.get(name)
    is_list = isinstance(value, list) and all(isinstance(one, list) and len(one) == 2 for one in value)
    if not is_list or not all(_is_text(text) for pair in value or () for text in pair):
        raise ValueError(
            f"{within}{name} is a list of pairs of texts, [[name, number], ...], not {_format_value(value)}"
        )
    found = dict(value or ())
    if len(found) < len(value or ()):
        raise ValueError(f"{within}{name} has a name twice: {_format_value(value)}")
    return found


def _number(held: Mapping[str, Any], name: str, within: str) -> int:
    value = held.get(name)
    if type(value) is not int:
        raise ValueError(f"{within}{name} is a whole number, not {_format_value(value)}")
    return value


def _is_text(value: Any) -> bool:
    """Tell whether the value is a text of complete characters: half a surrogate pair is no character."""
    return isinstance(value, str) and not _SURROGATE.search(value)


def _format_value(value: Any) -> str:
    return "left out" if value is None else repr(value)[:60]
