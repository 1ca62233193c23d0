"""Split points of a new table, for ``Admin.create_table``."""

from __future__ import annotations

from columnar.client.errors import wrong_arguments
from columnar.model import presplit


def hex_splits(ranges: int) -> list[bytes]:
    """Split keys that begin with lower-case hexadecimal digits, as an MD5 does: ``10000000``, ``20000000``, ..."""
    with wrong_arguments():
        return presplit.hex_splits(ranges)


def uniform_splits(ranges: int) -> list[bytes]:
    """Split keys whose first bytes take all values equally often: a hash as it is, a random number."""
    with wrong_arguments():
        return presplit.uniform_splits(ranges)
