"""Administration from a client: tables, families, attributes, regions, namespaces.

Names are bytes or str as in happybase; families are given as ``{"name": {"versions": 3, "ttl": 86400}}``,
where each key is an attribute of a family by HBase's name, in either case (docs/administration.md), or
happybase's ``max_versions`` and ``time_to_live``.

``Admin`` speaks our extension: on a plain HBase every method raises NotColumnar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from columnar.client.errors import wrong_arguments
from columnar.model import region_info
from columnar.model.inert_attributes import attribute_name
from columnar.wire.idl import columnar

if TYPE_CHECKING:
    from columnar.client.connection import Connection

Name = bytes | str
Attributes = Mapping[str, object]
_HAPPYBASE_NAMES: Final = {
    "max_versions": "VERSIONS",
    "time_to_live": "TTL",
    "bloom_filter_type": "BLOOMFILTER",
    "block_cache_enabled": "BLOCKCACHE",
}


@dataclass(frozen=True, slots=True)
class FamilyDescription:
    name: bytes
    attributes: dict[str, str]  # every one, as it acts


@dataclass(frozen=True, slots=True)
class TableDescription:
    name: bytes
    enabled: bool
    families: tuple[FamilyDescription, ...]
    attributes: dict[str, str]
    regions: int
    triggers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegionStatus:
    """Reads, writes and the log are counted from the region's opening."""

    name: bytes
    encoded_name: str
    start_key: bytes
    end_key: bytes  # empty: to the last row
    region_id: int
    open: bool
    size_bytes: int
    reads: int
    writes: int
    log_records: int
    log_bytes: int


class Admin:
    """Each method blocks until the change is done, and on disk."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # --- tables ------------------------------------------------------------------------------------

    def tables(self) -> list[bytes]:
        return list(self._connection.call("getTableNames"))

    def exists(self, table: Name) -> bool:
        return bool(self._connection.call("columnarTableExists", _bytes(table)))

    def create_table(
        self,
        table: Name,
        families: Mapping[Any, Attributes | None],
        attributes: Attributes | None = None,
        *,
        splits: Sequence[Name] = (),
    ) -> None:
        """Create a table of ``len(splits) + 1`` regions; ``hex_splits`` and ``uniform_splits`` make split points."""
        self._connection.call(
            "columnarCreateTable",
            _bytes(table),
            [_options(name, given or {}) for name, given in families.items()],
            _texts(attributes or {}),
            [_bytes(split) for split in splits],
        )

    def describe(self, table: Name) -> TableDescription:
        found = self._connection.call("columnarDescribeTable", _bytes(table))
        return TableDescription(
            found.name,
            found.enabled,
            tuple(FamilyDescription(one.name, _read_texts(one.attributes)) for one in found.families),
            _read_texts(found.attributes),
            found.regions,
            tuple(_text(one) for one in found.triggers),
        )

    def alter_table(
        self,
        table: Name,
        *,
        add: Mapping[Any, Attributes | None] | None = None,
        change: Mapping[Any, Attributes] | None = None,
        drop: Iterable[Name] = (),
        attributes: Attributes | None = None,
    ) -> None:
        """Change the table while it serves: all of it or nothing.

        ``change`` touches only the attributes it names; None as a value, there and in ``attributes``,
        means the default.
        """
        self._connection.call(
            "columnarAlterTable",
            _bytes(table),
            columnar.TableChange(
                addFamilies=[_options(name, given or {}) for name, given in (add or {}).items()],
                changeFamilies=[_options(name, given) for name, given in (change or {}).items()],
                dropFamilies=[_bytes(name) for name in drop],
                attributes=_texts(attributes or {}),
            ),
        )

    def is_enabled(self, table: Name) -> bool:
        return bool(self._connection.call("isTableEnabled", _bytes(table)))

    def enable(self, table: Name) -> None:
        self._connection.call("enableTable", _bytes(table))

    def disable(self, table: Name) -> None:
        self._connection.call("disableTable", _bytes(table))

    def drop(self, table: Name, *, disable: bool = False) -> None:
        """Drop a table; with ``disable`` an enabled one too, in one step: if that is refused, the table stays enabled.

        Without it an enabled table is refused, as in HBase.
        """
        self._connection.call("columnarDropTable" if disable else "deleteTable", _bytes(table))

    def truncate(self, table: Name, *, preserve_splits: bool = False, enable: bool = False) -> int:
        """Remove all rows at once; how many regions they were in.

        ``enable``: a disabled table is enabled by the same step, as in HBase; else it stays disabled.
        Refused if somebody must hear of each row (a trigger, CHANGE_LOG, DELETE_MARKERS).
        """
        return int(self._connection.call("columnarTruncateTable", _bytes(table), preserve_splits, enable))

    def delete_rows(
        self,
        table: Name,
        start: Name = b"",
        stop: Name = b"",
        *,
        progress: Callable[[int], None] = lambda _: None,
    ) -> int | None:
        """Remove the rows from ``start`` to ``stop``, not with it; empty is the table's end.

        How many there were; None if the range went whole and nobody counted.  Repeat it after a failure.
        """
        row, counted = _bytes(start), None
        while True:
            deleted = self._connection.call("columnarDeleteRows", _bytes(table), row, _bytes(stop))
            if deleted.rows >= 0:
                counted = (counted or 0) + deleted.rows
                progress(counted)
            if deleted.done:
                return counted
            row = deleted.nextRow

    # --- regions -----------------------------------------------------------------------------------

    def regions(self, table: Name) -> list[RegionStatus]:
        return [
            RegionStatus(
                one.name,
                _text(one.encodedName),
                one.startKey,
                one.endKey,
                one.regionId,
                one.open,
                one.sizeBytes,
                one.reads,
                one.writes,
                one.logRecords,
                one.logBytes,
            )
            for one in self._connection.call("columnarRegions", _bytes(table))
        ]

    def flush(self, table_or_region: Name) -> None:
        """Write memory to files.  A region by its full or its encoded name."""
        self._connection.call("columnarFlush", _bytes(table_or_region))

    def compact(self, table_or_region: Name) -> None:
        """Merge files."""
        self._connection.call("columnarCompact", _bytes(table_or_region), False)

    def major_compact(self, table_or_region: Name) -> None:
        """Remove what no reader sees any more and write every file anew, compressed as the schema now says."""
        self._connection.call("columnarCompact", _bytes(table_or_region), True)

    # --- namespaces --------------------------------------------------------------------------------

    def create_namespace(self, name: Name, configuration: Attributes | None = None) -> None:
        self._connection.call("columnarCreateNamespace", _bytes(name), _configuration(configuration or {}))

    def alter_namespace(self, name: Name, change: Attributes) -> None:
        """Change only the keys that are named; None as a value removes a key."""
        self._connection.call("columnarAlterNamespace", _bytes(name), _configuration(change))

    def namespace_configuration(self, name: Name) -> dict[str, str]:
        return _read_texts(self._connection.call("columnarDescribeNamespace", _bytes(name)))

    def drop_namespace(self, name: Name) -> None:
        """Drop a namespace, which must be empty."""
        self._connection.call("columnarDropNamespace", _bytes(name))

    def namespaces(self) -> list[bytes]:
        return list(self._connection.call("columnarListNamespaces"))

    def namespace_tables(self, name: Name) -> list[bytes]:
        return list(self._connection.call("columnarListNamespaceTables", _bytes(name)))


def _bytes(name: Name) -> bytes:
    return name.encode() if isinstance(name, str) else bytes(name)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _texts(given: Attributes) -> dict[str, str]:
    """Return attributes as the wire has them: text, empty for the default."""
    return {_HAPPYBASE_NAMES.get(name, attribute_name(name)): _sent(value) for name, value in given.items()}


def _configuration(given: Attributes) -> dict[str, str]:
    return {name: _sent(value) for name, value in given.items()}


def _sent(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value)


def _read_texts(found: Mapping[Any, Any]) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in sorted(found.items())}


def _options(name: Name, given: Attributes) -> Any:
    return columnar.FamilyOptions(name=_bytes(name), attributes=_texts(given))


def hex_splits(ranges: int) -> list[bytes]:
    """Split keys that begin with lower-case hexadecimal digits, as an MD5 does: ``10000000``, ``20000000``, ..."""
    with wrong_arguments():
        return region_info.hex_splits(ranges)


def uniform_splits(ranges: int) -> list[bytes]:
    """Split keys whose first bytes take all values equally often: a hash as it is, a random number."""
    with wrong_arguments():
        return region_info.uniform_splits(ranges)


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
