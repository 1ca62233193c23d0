"""(pure) Table and family descriptors of the Thrift 2 service to our schema and back.

A field of a descriptor beyond our schema is accepted with HBase's own default, as clients send it that
fill in everything, and refused by name with any other value: an attribute that is taken and not acted on
would be a promise broken in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from columnar.errors import IllegalArgument, shown
from columnar.model.schema import FOR_EVER, Family, Table, checked_family_name
from columnar.thrift2.translate import given
from columnar.wire.idl2 import hbase2

_BLOOM_FILTERS: Final = ("NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH")
_COMPRESSIONS: Final = ("LZO", "GZ", "NONE", "SNAPPY", "LZ4", "BZIP2", "ZSTD")
_BLOCK_SIZE: Final = 65536  # HBase's default; clients that fill everything in send it, so it stands for ours
_DURABILITIES: Final = ("USE_DEFAULT", "SKIP_WAL", "ASYNC_WAL", "SYNC_WAL", "FSYNC_WAL")
# Fields of families beside those of Family: the values of HBase, which change nothing here.
_DEFAULTS: Final[Mapping[str, object]] = {
    "dfsReplication": 0,
    "dataBlockEncoding": 0,
    "keepDeletedCells": 0,
    "scope": 0,
    "cacheBloomsOnWrite": False,
    "cacheDataOnWrite": False,
    "cacheIndexesOnWrite": False,
    "compressTags": True,
    "evictBlocksOnClose": False,
}
# HBase answers a descriptor with these in its attributes, so it may come back with them.
_TEXT_DEFAULTS: Final[Mapping[str, str]] = {
    "DATA_BLOCK_ENCODING": "NONE",
    "INDEX_BLOCK_ENCODING": "NONE",
    "KEEP_DELETED_CELLS": "FALSE",
    "REPLICATION_SCOPE": "0",
}
_TABLE_TEXT_DEFAULTS: Final[Mapping[str, str]] = {"IS_META": "false", "hbase.store.file-tracker.impl": "DEFAULT"}


def table_name(wire: Any) -> bytes:
    """The name as one: ``qualifier``, or ``namespace:qualifier`` outside the default one."""
    name = given(given(wire, "table name").qualifier, "table name's qualifier")
    return name if wire.ns in (None, b"", b"default") else b"%b:%b" % (wire.ns, name)


def table_name_to_wire(name: str) -> Any:
    namespace, _, qualifier = name.rpartition(":")
    return hbase2.TTableName(ns=(namespace or "default").encode(), qualifier=qualifier.encode())


def family_from_wire(wire: Any) -> Family:
    """Fields left out have HBase's defaults: one version, for ever, a Bloom filter of rows, the block cache."""
    name = checked_family_name(given(wire.name, "name of a column family"))
    said = _texts(wire.attributes, f"family {name}")
    for field, default in _DEFAULTS.items():
        value = getattr(wire, field)
        if value is not None and value != default:
            raise IllegalArgument(f"family {name}: {field} can only be {default} here, not {value}; leave it out")
    for key, text in said.items():
        if key in _TEXT_DEFAULTS and text.upper() != _TEXT_DEFAULTS[key]:
            raise IllegalArgument(f"family {name}: {key} can only be {_TEXT_DEFAULTS[key]} here, not {text}")
        if key not in _TEXT_DEFAULTS and key not in _FAMILY_TEXTS:
            raise IllegalArgument(f"family {name}: attribute {key} is not known; leave it out")
    if wire.configuration:
        raise IllegalArgument(f"family {name}: it has no configuration of its own; leave it out")
    versions = wire.maxVersions if wire.maxVersions is not None else _number(said, "VERSIONS", 1)
    block_size = wire.blockSize if wire.blockSize is not None else _number(said, "BLOCKSIZE", _BLOCK_SIZE)
    ttl = wire.timeToLive if wire.timeToLive is not None else _number(said, "TTL", FOR_EVER)
    return Family(
        name,
        max_versions=versions,
        ttl_s=None if ttl <= 0 or ttl >= FOR_EVER else ttl,
        compression=_named(_COMPRESSIONS, wire.compressionType, said.get("COMPRESSION", "NONE").upper()),
        bloom_filter=_named(_BLOOM_FILTERS, wire.bloomnFilterType, said.get("BLOOMFILTER", "ROW").upper()),
        in_memory=_flag(wire.inMemory, said.get("IN_MEMORY"), False),
        block_cache=_flag(wire.blockCacheEnabled, said.get("BLOCKCACHE"), True),
        min_versions=wire.minVersions if wire.minVersions is not None else _number(said, "MIN_VERSIONS", 0),
        block_size=None if block_size == _BLOCK_SIZE else block_size,
    )


_FAMILY_TEXTS: Final = (
    "VERSIONS",
    "MIN_VERSIONS",
    "BLOCKSIZE",
    "TTL",
    "COMPRESSION",
    "BLOOMFILTER",
    "IN_MEMORY",
    "BLOCKCACHE",
)


def _texts(attributes: Mapping[bytes, bytes] | None, what: str) -> dict[str, str]:
    try:
        return {key.decode(): value.decode() for key, value in (attributes or {}).items()}
    except UnicodeDecodeError:
        raise IllegalArgument(f"{what}: names and values of attributes are text") from None


def _number(said: Mapping[str, str], key: str, default: int) -> int:
    text = said.get(key, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 11):
        raise IllegalArgument(f"attribute {key} takes a whole number, not '{text}'")
    return int(text)


def _flag(field: bool | None, text: str | None, default: bool) -> bool:
    if field is not None:
        return field
    return default if text is None else text.lower() == "true"


def _named(names: tuple[str, ...], number: int | None, text: str) -> str:
    """The name that the schema is asked for, which says whether there is such a one here."""
    if number is None:
        return text
    return names[number] if 0 <= number < len(names) else str(number)


def family_to_wire(family: Family) -> Any:
    ttl = FOR_EVER if family.ttl_s is None else family.ttl_s
    texts = {
        **_TEXT_DEFAULTS,
        "VERSIONS": str(family.max_versions),
        "MIN_VERSIONS": str(family.min_versions),
        "BLOCKSIZE": str(family.block_size or _BLOCK_SIZE),
        "TTL": str(ttl),
        "COMPRESSION": family.compression,
        "BLOOMFILTER": family.bloom_filter,
        "IN_MEMORY": str(family.in_memory).lower(),
        "BLOCKCACHE": str(family.block_cache).lower(),
    }
    return hbase2.TColumnFamilyDescriptor(
        **_DEFAULTS,
        name=family.bytes_name,
        attributes={key.encode(): text.encode() for key, text in texts.items()},
        bloomnFilterType=_BLOOM_FILTERS.index(family.bloom_filter),
        compressionType=_COMPRESSIONS.index(family.compression),
        maxVersions=family.max_versions,
        minVersions=family.min_versions,
        blockSize=family.block_size or _BLOCK_SIZE,
        timeToLive=ttl,
        blockCacheEnabled=family.block_cache,
        inMemory=family.in_memory,
    )


def table_from_wire(wire: Any) -> tuple[bytes, list[Family], dict[str, str]]:
    """(name, families, attributes); the schema itself checks what each may be."""
    name = table_name(given(wire, "TTableDescriptor").tableName)
    if not wire.columns:
        raise IllegalArgument(f"table {shown(name)} needs at least one column family")
    attributes = _texts(wire.attributes, f"table {shown(name)}")
    for key, default in _TABLE_TEXT_DEFAULTS.items():
        if attributes.get(key, "") == default:
            del attributes[key]
    if wire.durability:
        attributes["DURABILITY"] = _named(_DURABILITIES, wire.durability, "")
    return name, [family_from_wire(family) for family in wire.columns], attributes


def table_to_wire(table: Table) -> Any:
    return hbase2.TTableDescriptor(
        tableName=table_name_to_wire(table.name),
        columns=[family_to_wire(family) for family in table.families],
        attributes={key.encode(): text.encode() for key, text in table.attributes.items()},
        durability=_DURABILITIES.index(table.durability),
    )
