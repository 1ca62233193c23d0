"""Splits and merges from a client."""

from __future__ import annotations

from typing import Any, Protocol


class _Caller(Protocol):
    def call(self, method: str, *args: Any) -> Any: ...


class RegionAdmin:
    """The part of an administration that is about regions; ``connection`` is a ``columnar.client.Connection``."""

    def __init__(self, connection: _Caller) -> None:
        self._connection = connection

    def split(self, table_or_region: bytes, row: bytes = b"") -> list[bytes]:
        """Split a region at ``row``, or in the middle of its bytes; return the names of the two, which serve by then.

        A region is named by its full or its encoded name.  For a table it is the region that contains ``row``, or
        without one the largest.
        """
        return [bytes(name) for name in self._connection.call("columnarSplit", table_or_region, row)]

    def merge(self, region: bytes, other: bytes) -> bytes:
        """Merge two neighbours, in any order; return the name of the new region, which serves by then."""
        return bytes(self._connection.call("columnarMerge", region, other))
