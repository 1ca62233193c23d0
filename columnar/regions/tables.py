"""The tables that a server knows: schema, state, and the region of each row."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from columnar.errors import IllegalArgument, TableNotEnabled, TableNotFound, abbreviate
from columnar.model.read import ReadSpec
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table

GENERATION: Final = b"@"  # in the alias of a view's generation, before its number; no table's name has it
READ_SPECS: Final = 256  # different column lists remembered per table


@dataclass(slots=True)
class ServedTable:
    """Owned by the loop.  ``regions`` are ascending and cover all rows without hole or overlap."""

    schema: Table
    enabled: bool
    regions: list[RegionInfo]
    starts: list[bytes] = field(init=False)
    specs: dict[tuple[object, ...], ReadSpec] = field(default_factory=dict)  # of recent reads; at most READ_SPECS
    is_throttled: bool = field(init=False)  # the table has quotas
    throttle: Any = field(init=False)  # state of ``operations.throttle``; None: not made yet

    def __post_init__(self) -> None:
        self.is_throttled = bool(self.schema.throttle)
        self.throttle = None
        self.starts = [info.start for info in self.regions]
        assert self.starts[0] == b"", "the first region begins at the first row"

    def keep_throttle(self, throttle: Any) -> None:
        """Keep the state of ``operations.throttle`` with this table."""
        self.throttle = throttle

    def holding(self, row: bytes) -> RegionInfo:
        """Return the region that contains the row.  O(log regions)."""
        return self.regions[bisect_right(self.starts, row) - 1]

    def replace_regions(self, regions: list[RegionInfo]) -> None:
        """Replace the regions in place: a caller that keeps this table across an await finds the present regions."""
        self.regions = regions
        self.starts = [info.start for info in regions]

    def below(self, row: bytes | None) -> RegionInfo:
        """Return the region with the last row before ``row``, or the last region if ``row`` is None."""
        if row is None:
            return self.regions[-1]
        return self.regions[max(0, bisect_left(self.starts, row) - 1)]


class Tables:
    """The tables, by name.  Lookups raise the errors that HBase's clients know.

    A client may name a table by an alias, which takes precedence over a table of the same name (``meant`` and
    ``meant_now``).  All other callers name tables by their own names.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, ServedTable] = {}
        self._by_wire_name: dict[bytes, ServedTable] = {}
        self._aliases: Mapping[str, str] = {}
        self._by_client_name: dict[bytes, ServedTable] = {}  # ``_by_wire_name``, and aliases of existing tables

    def install(self, served: ServedTable) -> None:
        known = self._by_name.get(served.schema.name)
        if known is not None and known.schema.throttle == served.schema.throttle:
            served.keep_throttle(known.throttle)  # an alter that leaves the quotas keeps their state
        self._by_name[served.schema.name] = served
        self._by_wire_name[served.schema.name.encode()] = served
        self._name_again()

    def remove(self, name: str) -> ServedTable | None:
        self._by_wire_name.pop(name.encode(), None)
        removed = self._by_name.pop(name, None)
        self._name_again()
        return removed

    def name_also(self, aliases: Mapping[str, str]) -> None:
        """Set the aliases (alias -> name) by which clients may name tables, in place of all earlier aliases."""
        self._aliases = dict(aliases)
        self._name_again()

    def _name_again(self) -> None:
        also = {alias.encode(): self._by_name[name] for alias, name in self._aliases.items() if name in self._by_name}
        self._by_client_name = {**self._by_wire_name, **also} if also else self._by_wire_name

    def serves(self, info: RegionInfo) -> bool:
        """Tell whether ``info`` is a region of its table now: it may have been split, merged or dropped."""
        served = self._by_name.get(info.table)
        return served is not None and served.holding(info.start) == info

    def all(self) -> list[ServedTable]:
        return [self._by_name[name] for name in sorted(self._by_name)]

    def names(self) -> list[tuple[bytes, ServedTable]]:
        """Return the names of tables and the aliases, ascending, but no alias of a generation (``GENERATION``)."""
        return sorted((one for one in self._by_client_name.items() if GENERATION not in one[0]), key=itemgetter(0))

    def named(self, name: str) -> ServedTable | None:
        return self._by_name.get(name)

    def find(self, name: bytes | None) -> ServedTable | None:
        """Return the table or None.  ``name`` may be None, as a client may leave any field of a call out."""
        if name is None:
            return None
        return self._by_wire_name.get(name) or self._by_wire_name.get(name.removeprefix(b"default:"))

    def meant(self, name: bytes | None) -> ServedTable | None:
        """Return the table that a client means by ``name``, or None."""
        if name is None:
            return None
        return self._by_client_name.get(name) or self._by_client_name.get(name.removeprefix(b"default:"))

    def known(self, name: bytes | None) -> ServedTable:
        """Return the table.  Raises TableNotFound, or IllegalArgument if the name is empty or None."""
        return _there(self.find(name), name)

    def meant_known(self, name: bytes | None) -> ServedTable:
        """Return the table that a client means by ``name``.  Raises as ``known`` does."""
        return _there(self.meant(name), name)

    def enabled(self, name: bytes | None) -> ServedTable:
        """Return the table if requests may use it now.  Raises as ``known`` does, or TableNotEnabled."""
        served = self._by_wire_name.get(name) if name is not None else None
        if served is None:
            served = self.known(name)
        if not served.enabled:
            raise TableNotEnabled(served.schema.name)
        return served

    def meant_now(self, name: bytes | None) -> ServedTable:
        """Return the table that a client means by ``name``.  Raises as ``enabled`` does."""
        served = self._by_client_name.get(name) if name is not None else None
        if served is None:
            served = self.meant_known(name)
        if not served.enabled:
            raise TableNotEnabled(served.schema.name)
        return served


def _there(served: ServedTable | None, name: bytes | None) -> ServedTable:
    if not name:
        raise IllegalArgument("table name is empty")
    if served is None:
        raise TableNotFound(abbreviate(name))
    return served
