"""(pure) The name and the row range of a region; its JSON in the catalogue."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

from columnar.errors import IllegalArgument


@dataclass(frozen=True, slots=True)
class RegionInfo:
    """A region, which has the rows ``start <= row < end``; an empty ``end`` is the table's end."""

    table: str
    region_id: int  # unique for ever in one data folder; also the origin in the change log
    start: bytes = b""
    end: bytes = b""

    def contains_row(self, row: bytes) -> bool:
        return self.start <= row and (not self.end or row < self.end)

    @property
    def encoded(self) -> str:
        """The name of the region's folder, HBase's short name: the MD5 of ``table,start,id`` in hexadecimal."""
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
    """Return the number with its noun: ``1 region``, ``2 regions``."""
    return f"{regions} region" if regions == 1 else f"{regions} regions"


def write_fault_text(regions: int, first: RegionInfo, why: str) -> str:
    """Return one line about all regions that cannot be written; ``why`` is the reason of the ``first`` of them."""
    return f"{counted(regions)} cannot be written; {first.encoded} of {first.table}: {why}"


# --- split points of a new table ---------------------------------------------------------------------


MOST_RANGES: Final = 10_000
_HEX_DIGITS: Final = 8
_DECIMAL_DIGITS: Final = 8
_UNIFORM_BYTES: Final = 8


def hex_splits(ranges: int) -> list[bytes]:
    """Return split points for keys that begin with lower-case hexadecimal digits, such as an MD5.

    For 16 ranges they are ``10000000``, ``20000000``, ...
    """
    return [b"%08x" % point for point in _points(ranges, 16**_HEX_DIGITS)]


def decimal_splits(ranges: int) -> list[bytes]:
    """Return split points for keys that begin with decimal digits, such as a number with leading zeros.

    For 10 ranges they are ``10000000``, ``20000000``, ...
    """
    return [b"%08d" % point for point in _points(ranges, 10**_DECIMAL_DIGITS)]


def uniform_splits(ranges: int) -> list[bytes]:
    """Return split points for keys whose first bytes take all values equally often: binary hashes, random numbers."""
    return [point.to_bytes(_UNIFORM_BYTES, "big") for point in _points(ranges, 256**_UNIFORM_BYTES)]


def _points(ranges: int, size: int) -> list[int]:
    if not 1 <= ranges <= MOST_RANGES:
        raise IllegalArgument(f"a table begins with 1 to {MOST_RANGES} regions, not {ranges}")
    return [size * number // ranges for number in range(1, ranges)]
