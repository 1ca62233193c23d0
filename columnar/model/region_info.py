"""(pure) The name and the row range of a region; its JSON in the catalogue."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RegionInfo:
    """Rows ``start <= row < end``; an empty ``end`` means to the last row."""

    table: str
    region_id: int  # unique for ever in one data folder; also the origin in the change log
    start: bytes = b""
    end: bytes = b""

    def contains_row(self, row: bytes) -> bool:
        return self.start <= row and (not self.end or row < self.end)

    @property
    def encoded(self) -> str:
        """The name of its folder, and HBase's short name: hex MD5 of ``table,start,id``."""
        return hashlib.md5(self._long, usedforsecurity=False).hexdigest()

    @property
    def _long(self) -> bytes:
        return b"%s,%s,%d" % (self.table.encode(), self.start, self.region_id)

    @property
    def name(self) -> bytes:
        """HBase's full name: ``table,start,id.encoded.``"""
        return b"%s.%s." % (self._long, self.encoded.encode())


def to_json(info: RegionInfo) -> bytes:
    return json.dumps(
        {
            "table": info.table,
            "region_id": info.region_id,
            "start": info.start.hex(),
            "end": info.end.hex(),
        },
        sort_keys=True,
    ).encode()


def from_json(data: bytes) -> RegionInfo:
    held: dict[str, Any] = json.loads(data)
    return RegionInfo(held["table"], held["region_id"], bytes.fromhex(held["start"]), bytes.fromhex(held["end"]))


def counted(regions: int) -> str:
    """``1 region``, ``2 regions``."""
    return f"{regions} region" if regions == 1 else f"{regions} regions"


def write_fault_text(regions: int, first: RegionInfo, why: str) -> str:
    """Return one line for all regions that cannot be written; ``why`` is the first one's."""
    return f"{counted(regions)} cannot be written; {first.encoded} of {first.table}: {why}"
