"""(pure) The map of a table: its regions as a strip in the order of their keys.

    width    the region's size, with a least width so that none vanishes
    colour   its server, by the server's place in the list of all
    shade    its load beside that of the busiest region

Positions are percentages, so the strip is as wide as the page and its labels stay legible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from columnar.model.cluster_status_records import OPEN, RegionStatus

COLOURS: Final = 8  # of servers; the ninth has that of the first, and its name
_LEAST: Final = 0.25  # of the mean size: the width of an empty region
_LABEL_PERCENT: Final = 9.0  # a narrower region has no label
_PALEST: Final = 0.25


@dataclass(frozen=True, slots=True)
class Stretch:
    """A region on the strip."""

    region: RegionStatus
    left: float  # percent
    width: float
    colour: int  # 0: no server serves it; else 1 to COLOURS
    shade: float  # 0 to 1
    label: str  # empty if it has no room

    @property
    def middle(self) -> float:
        return self.left + self.width / 2


@dataclass(frozen=True, slots=True)
class Legend:
    server: str
    colour: int
    regions: int
    load: float


def colour_of(server: str, servers: Sequence[str]) -> int:
    return servers.index(server) % COLOURS + 1 if server in servers else 0


def strip_of(regions: Sequence[RegionStatus], servers: Sequence[str]) -> list[Stretch]:
    """``regions`` in the order of their keys; ``servers``: all names, in a lasting order."""
    if not regions:
        return []
    least = 1 + _LEAST * sum(one.size_bytes for one in regions) / len(regions)
    weights = [max(least, one.size_bytes) for one in regions]
    whole, busiest = sum(weights), max(one.load for one in regions)
    found, left = [], 0.0
    for look, weight in zip(regions, weights, strict=True):
        width = 100 * weight / whole
        shade = _PALEST + (1 - _PALEST) * (look.load / busiest if busiest > 0 else 0.0)
        label = (look.server or "nobody") if width >= _LABEL_PERCENT else ""
        if label and look.state != OPEN:
            label = look.state.lower()
        found.append(Stretch(look, left, width, colour_of(look.server, servers), shade, label))
        left += width
    return found


def legend_of(regions: Sequence[RegionStatus], servers: Sequence[str]) -> list[Legend]:
    """Servers that have some of the regions; last those without a server."""
    found = []
    for name in (*servers, ""):
        owned = [one for one in regions if one.server == name]
        if owned:
            found.append(Legend(name or "nobody", colour_of(name, servers), len(owned), sum(one.load for one in owned)))
    return found
