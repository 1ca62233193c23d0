"""Administration by a client: tables, families, attributes, regions, namespaces.

As in happybase, names are bytes or str.  Families are passed as ``{"name": {"versions": 3, "ttl": 86400}}``.  Each key
is HBase's name of a family attribute, in upper or lower case (docs/administration.md), or happybase's ``max_versions``
or ``time_to_live``.

``Admin`` uses our extension: with a plain HBase every method raises NotColumnar.
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
    from columnar.model.reader_groups import GroupStatus

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
    attributes: dict[str, str]  # all attributes, with their effective values


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
    """The status of a region; reads, writes and log are counted since the region was opened."""

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
    """Administration over a connection.  Each method blocks until the change is done and on disk."""

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
        """Alter the table while it serves requests: all changes are made, or none.

        ``change`` affects only the attributes that it names.  None as a value in ``change`` or ``attributes`` means the
        default.
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
        """Drop a disabled table; with ``disable`` also an enabled table, which stays enabled if the drop is refused.

        Disable and drop are one step.  Without ``disable`` the drop of an enabled table is refused, as in HBase.
        """
        self._connection.call("columnarDropTable" if disable else "deleteTable", _bytes(table))

    def truncate(self, table: Name, *, preserve_splits: bool = False, enable: bool = False) -> int:
        """Remove all rows of the table.  Returns the number of regions in which the rows were.

        With ``enable`` the same step also enables a disabled table, as in HBase; else the table stays disabled.
        Refused if each removed row would have to be logged (for a trigger, CHANGE_LOG, DELETE_MARKERS).
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
        """Remove the rows from ``start`` up to ``stop``, exclusive; an empty bound is the table's beginning or end.

        Returns the number of removed rows, or None if the range was removed as a whole, without counting.  After a
        failure, call it again.
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
        """Write the memtables of a table or region to files.  A region is named by its full or its encoded name."""
        self._connection.call("columnarFlush", _bytes(table_or_region))

    def compact(self, table_or_region: Name) -> None:
        """Merge the files of a table or region."""
        self._connection.call("columnarCompact", _bytes(table_or_region), False)

    def major_compact(self, table_or_region: Name) -> None:
        """Rewrite all files, without cells that no reader can see, and with the schema's present compression."""
        self._connection.call("columnarCompact", _bytes(table_or_region), True)

    # --- namespaces --------------------------------------------------------------------------------

    def reader_groups(self, table: Name) -> list[GroupStatus]:
        """Return the groups of readers of the table's changes: members, ranges of rows, and how old commits are."""
        from columnar.client.group_changes import list_groups

        return list_groups(self._connection, _bytes(table))

    def drop_reader_group(self, table: Name, group: str) -> bool:
        """Forget a group of readers with its positions; return False if there is none."""
        return bool(self._connection.call("columnarDropReaderGroup", _bytes(table), group))

    def create_namespace(self, name: Name, configuration: Attributes | None = None) -> None:
        self._connection.call("columnarCreateNamespace", _bytes(name), _configuration(configuration or {}))

    def alter_namespace(self, name: Name, change: Attributes) -> None:
        """Set the named keys and keep all others.  None as a value removes a key."""
        self._connection.call("columnarAlterNamespace", _bytes(name), _configuration(change))

    def namespace_configuration(self, name: Name) -> dict[str, str]:
        return _read_texts(self._connection.call("columnarDescribeNamespace", _bytes(name)))

    def drop_namespace(self, name: Name) -> None:
        """Drop a namespace; it must be empty."""
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
    """Return the attributes as texts for the wire; an empty text means the default."""
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
    """Return split points for keys that begin with hexadecimal digits, like an MD5: ``10000000``, ``20000000``, ..."""
    with wrong_arguments():
        return region_info.hex_splits(ranges)


def uniform_splits(ranges: int) -> list[bytes]:
    """Return split points for keys whose first bytes are evenly distributed: a binary hash or a random number."""
    with wrong_arguments():
        return region_info.uniform_splits(ranges)


class _Caller(Protocol):
    def call(self, method: str, *args: Any) -> Any: ...


class RegionAdmin:
    """The administration of regions; ``connection`` is a ``columnar.client.Connection``."""

    def __init__(self, connection: _Caller) -> None:
        self._connection = connection

    def split(self, table_or_region: bytes, row: bytes = b"") -> list[bytes]:
        """Split a region at ``row``, or in the middle of its bytes.  Returns the names of both halves once these serve.

        A region is named by its full or its encoded name.  If a table is named, the region that contains ``row`` is
        split, or the table's largest region if ``row`` is empty.
        """
        return [bytes(name) for name in self._connection.call("columnarSplit", table_or_region, row)]

    def merge(self, region: bytes, other: bytes) -> bytes:
        """Merge two neighbouring regions, given in any order.  Returns the name of the new region once it serves."""
        return bytes(self._connection.call("columnarMerge", region, other))
