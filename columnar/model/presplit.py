"""(pure) Split points for a new table whose keys are known to be spread evenly.

``n`` ranges need ``n - 1`` points; points are as those of HBase's HexStringSplit, DecimalStringSplit and UniformSplit.
"""

from __future__ import annotations

from typing import Final

from columnar.errors import IllegalArgument

MOST_RANGES: Final = 10_000
_HEX_DIGITS: Final = 8
_DECIMAL_DIGITS: Final = 8
_UNIFORM_BYTES: Final = 8


def hex_splits(ranges: int) -> list[bytes]:
    """For keys that begin with lower-case hexadecimal digits, as an MD5 does: ``10000000``, ``20000000``, ..."""
    return [b"%08x" % point for point in _points(ranges, 16**_HEX_DIGITS)]


def decimal_splits(ranges: int) -> list[bytes]:
    """For keys that begin with decimal digits, as a number with leading zeros does: ``10000000``, ``20000000``, ..."""
    return [b"%08d" % point for point in _points(ranges, 10**_DECIMAL_DIGITS)]


def uniform_splits(ranges: int) -> list[bytes]:
    """For keys whose first bytes take all values equally often: a hash as it is, a random number."""
    return [point.to_bytes(_UNIFORM_BYTES, "big") for point in _points(ranges, 256**_UNIFORM_BYTES)]


def _points(ranges: int, size: int) -> list[int]:
    if not 1 <= ranges <= MOST_RANGES:
        raise IllegalArgument(f"a table begins with 1 to {MOST_RANGES} regions, not {ranges}")
    return [size * number // ranges for number in range(1, ranges)]
