"""(pure) Do the regions of a table cover all rows, each once?"""

from __future__ import annotations

from typing import NamedTuple

from columnar.model.region_info import RegionInfo


class Hole(NamedTuple):
    start: bytes
    end: bytes  # empty: to the last row


class Overlap(NamedTuple):
    left: RegionInfo
    right: RegionInfo


def faults_of(regions: list[RegionInfo]) -> list[Hole | Overlap]:
    """Return holes and overlaps in the order of rows.  No region at all is one hole."""
    found: list[Hole | Overlap] = []
    covered_to: bytes | None = b""  # rows below it are covered; None: all are
    widest: RegionInfo | None = None  # the region that reaches there
    for info in sorted(regions, key=lambda info: (info.start, info.region_id)):
        if covered_to is None or info.start < covered_to:
            assert widest is not None, "something reaches that far"
            found.append(Overlap(widest, info))
        elif info.start > covered_to:
            found.append(Hole(covered_to, info.start))
        end = info.end or None
        if covered_to is not None and (end is None or end > covered_to):
            covered_to, widest = end, info
    if covered_to is not None:
        found.append(Hole(covered_to, b""))
    return found
