"""(pure) A view computed from all rows of its sources: its expected contents when it has no lag.

Knows nothing of reading: rows come in as images, in any order, each row of a source once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from columnar.model.extract import Image
from columnar.model.key_parts import SEPARATOR, escaped
from columnar.views.contributions import Given, Rules, Share, contributions

_WRAP: Final = 1 << 64  # totals wrap as counters do


@dataclass(slots=True)
class Group:
    members: dict[bytes, Share] = field(default_factory=dict)  # by qualifier

    def totals(self, sides: Iterable[Rules]) -> dict[bytes, int]:
        """Return the totals by column.  A total of 0 is no cell."""
        found: dict[bytes, int] = {}
        for rules in sides:
            names = [family + b":" + qualifier for family, qualifier in rules.totals]
            for member, share in self.members.items():
                if member.startswith(rules.side):
                    for name, amount in zip(names, share.amounts or (), strict=True):
                        found[name] = _wrapped(found.get(name, 0) + amount)
        return {name: total for name, total in found.items() if total}

    def ordered(self) -> list[tuple[bytes, Share]]:
        """Return qualifiers and shares of the ordered family, the lowest first."""
        return sorted((order_qualifier(share), share) for share in self.members.values() if share.order is not None)


def order_qualifier(share: Share) -> bytes:
    """Return the qualifier of a member in the ordered family of its group."""
    assert share.order is not None, "only a member with an order stands in it"
    return escaped(share.order) + SEPARATOR + share.member


def _wrapped(total: int) -> int:
    return (total + _WRAP // 2) % _WRAP - _WRAP // 2


@dataclass(slots=True)
class Recomputed:
    groups: dict[bytes, Group] = field(default_factory=dict)
    rejected: list[tuple[bytes, str]] = field(default_factory=list)  # row, why


def recomputed(sides: Iterable[tuple[Rules, Iterable[tuple[bytes, Image]]]]) -> Recomputed:
    """Return the groups of all rows.  Keeps all in memory, so for small tables; ``shares_of`` streams."""
    found = Recomputed()
    for rules, rows in sides:
        for row, given in shares_of(rules, rows):
            if given.rejected:
                found.rejected.append((row, given.rejected))
            for group, share in given.shares.items():
                found.groups.setdefault(group, Group()).members[share.member] = share
    return found


def shares_of(rules: Rules, rows: Iterable[tuple[bytes, Image]]) -> Iterator[tuple[bytes, Given]]:
    """Yield the shares of each row."""
    return ((row, contributions(rules, row, image)) for row, image in rows)


def applied(groups: dict[bytes, Group], shares: Iterable[Share]) -> None:
    """Apply shares of one change, as the row operation does except for sequences; empty groups are removed."""
    for share in shares:
        group = groups.setdefault(share.group, Group())
        if share.amounts is None:
            group.members.pop(share.member, None)
        else:
            group.members[share.member] = share
        if not group.members:
            del groups[share.group]


def images_of(rows: Mapping[bytes, Image], rules: Rules) -> dict[bytes, dict[bytes, bytes]]:
    """Return rows cut down to the columns that a change record has for this source, to check that both agree."""
    wanted = rules.images
    found: dict[bytes, dict[bytes, bytes]] = {}
    for row, image in rows.items():
        kept = {}
        for column, value in image.items():
            family, _, qualifier = column.partition(b":")
            columns = wanted.get(family, frozenset())
            if columns is None or qualifier in columns:
                kept[column] = value
        found[row] = kept
    return found
