"""(pure) Translation between table and family descriptors of the Thrift 2 service and our schema.

A descriptor's field is an attribute under a different name.  The field takes precedence over the map of attributes, and
``model.attributes`` defines the values.  A client that sends a descriptor back as received changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from columnar.errors import IllegalArgument, abbreviate
from columnar.model import inert_attributes as inert
from columnar.model.attributes import FAMILY_ATTRIBUTES, attributes_of, with_attributes
from columnar.model.inert_attributes import FAMILY_INERT, TABLE_INERT, is_setting, name_from_hbase, name_in_hbase
from columnar.model.schema import ATTRIBUTES, FOR_EVER, Family, Table, checked_family_name
from columnar.model.written_amounts import bytes_written
from columnar.thrift2.translate import given
from columnar.wire.idl2 import hbase2

_BLOOM_FILTERS: Final = ("NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH")
_COMPRESSIONS: Final = ("LZO", "GZ", "NONE", "SNAPPY", "LZ4", "BZIP2", "ZSTD")
_BLOCK_SIZE: Final = 65536  # HBase's default; clients that fill in all fields send it, so it means our default
_DURABILITIES: Final = ("USE_DEFAULT", "SKIP_WAL", "ASYNC_WAL", "SYNC_WAL", "FSYNC_WAL")
_ENCODINGS: Final = {0: "NONE", 2: "PREFIX", 3: "DIFF", 4: "FAST_DIFF", 7: "ROW_INDEX_V1"}
_KEEP_DELETED: Final = ("FALSE", "TRUE", "TTL")
_SEVERAL: Final[Mapping[str, tuple[str, Mapping[int, str]]]] = {  # fields whose numbers stand for names
    "bloomnFilterType": ("BLOOMFILTER", dict(enumerate(_BLOOM_FILTERS))),
    "compressionType": ("COMPRESSION", dict(enumerate(_COMPRESSIONS))),
    "dataBlockEncoding": ("DATA_BLOCK_ENCODING", _ENCODINGS),
    "keepDeletedCells": ("KEEP_DELETED_CELLS", dict(enumerate(_KEEP_DELETED))),
}
_NUMBERS: Final[Mapping[str, str]] = {
    "maxVersions": "VERSIONS",
    "minVersions": "MIN_VERSIONS",
    "blockSize": "BLOCKSIZE",
    "timeToLive": "TTL",
    "dfsReplication": "DFS_REPLICATION",
    "scope": "REPLICATION_SCOPE",
}
_FLAGS: Final[Mapping[str, str]] = {
    "blockCacheEnabled": "BLOCKCACHE",
    "inMemory": "IN_MEMORY",
    "cacheBloomsOnWrite": "CACHE_BLOOMS_ON_WRITE",
    "cacheDataOnWrite": "CACHE_DATA_ON_WRITE",
    "cacheIndexesOnWrite": "CACHE_INDEX_ON_WRITE",
    "compressTags": "COMPRESS_TAGS",
    "evictBlocksOnClose": "EVICT_BLOCKS_ON_CLOSE",
}
# HBase includes these attributes in every descriptor that it returns.
_ALWAYS_SAID: Final = ("DATA_BLOCK_ENCODING", "INDEX_BLOCK_ENCODING", "KEEP_DELETED_CELLS", "REPLICATION_SCOPE")


def table_name(wire: Any) -> bytes:
    """Return the whole name: ``qualifier``, or ``namespace:qualifier`` outside the default namespace."""
    name = given(given(wire, "table name").qualifier, "table name's qualifier")
    return name if wire.ns in (None, b"", b"default") else b"%b:%b" % (wire.ns, name)


def table_name_to_wire(name: str) -> Any:
    namespace, _, qualifier = name.rpartition(":")
    return hbase2.TTableName(ns=(namespace or "default").encode(), qualifier=qualifier.encode())


def family_from_wire(wire: Any) -> Family:
    """Return the family.

    Omitted fields have HBase's defaults: one version, no time to live, row Bloom filter, block cache.
    """
    name = checked_family_name(given(wire.name, "name of a column family"))
    what, known = f"family {name}", (*FAMILY_ATTRIBUTES, *FAMILY_INERT)
    sent = {**_texts(wire.attributes, what), **_configuration(wire.configuration, what)}
    said = {name_from_hbase(key, known): text for key, text in sent.items() if text}
    for field in (*_SEVERAL, *_NUMBERS, *_FLAGS):
        value = getattr(wire, field)
        if value is not None:
            attribute, text = _attribute_of(field, value)
            if attribute in FAMILY_INERT:
                _check_inert(f"family {name}: {field}", attribute, text)
            said[attribute] = text
    if "TTL" in said:
        said["TTL"] = _ever(said["TTL"])
    if "BLOCKSIZE" in said and bytes_written(said["BLOCKSIZE"]) == _BLOCK_SIZE:
        del said["BLOCKSIZE"]
    return with_attributes(Family(name), said)


def _attribute_of(field: str, value: Any) -> tuple[str, str]:
    if field in _NUMBERS:
        return _NUMBERS[field], str(value)
    if field in _FLAGS:
        return _FLAGS[field], str(bool(value)).lower()
    attribute, names = _SEVERAL[field]
    return attribute, names.get(value, str(value))


def _check_inert(said: str, attribute: str, text: str) -> None:
    """Raise IllegalArgument for a value that the attribute does not allow, with the client's name of the field."""
    inert.kept(FAMILY_INERT, attribute, text, said)


def _ever(text: str) -> str:
    """Return the TTL attribute for ``text``: a time to live of zero or less means for ever."""
    return "FOREVER" if text == "0" or text.startswith("-") else text


def _texts(attributes: Mapping[bytes, bytes] | None, what: str) -> dict[str, str]:
    try:
        return {key.decode(): value.decode() for key, value in (attributes or {}).items()}
    except UnicodeDecodeError:
        raise IllegalArgument(f"{what}: names and values of attributes are text") from None


def _configuration(sent: Mapping[Any, Any] | None, what: str) -> dict[str, str]:
    """Return the configuration as texts.  Raises IllegalArgument for broken UTF-8, which clients may send."""
    return _texts({_sent(key): _sent(value) for key, value in (sent or {}).items()}, what)


def _sent(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def family_to_wire(family: Family) -> Any:
    """Return a descriptor of the family's effective settings; HBase's other settings are in its configuration."""
    texts = {
        **{name: FAMILY_INERT[name].default for name in _ALWAYS_SAID},
        "BLOCKSIZE": str(_BLOCK_SIZE),
        **attributes_of(family),
    }
    texts["TTL"] = str(FOR_EVER if family.ttl_s is None else family.ttl_s)
    if family.durability == "USE_DEFAULT":
        del texts["DURABILITY"]
    fields: dict[str, Any] = {}
    for field, (attribute, names) in _SEVERAL.items():
        fields[field] = next(number for number, one in names.items() if one == _text_of(texts, attribute))
    fields |= {field: int(_text_of(texts, attribute)) for field, attribute in _NUMBERS.items()}
    fields |= {field: _text_of(texts, attribute) == "true" for field, attribute in _FLAGS.items()}
    attributes = {name_in_hbase(name): text for name, text in texts.items()}
    settings = {name: text for name, text in attributes.items() if is_setting(name)}
    return hbase2.TColumnFamilyDescriptor(
        name=family.bytes_name,
        attributes={name.encode(): text.encode() for name, text in attributes.items() if not is_setting(name)},
        configuration=settings or None,
        **fields,
    )


def _text_of(texts: Mapping[str, str], attribute: str) -> str:
    return texts[attribute] if attribute in texts else FAMILY_INERT[attribute].default


def table_from_wire(wire: Any) -> tuple[bytes, list[Family], dict[str, str]]:
    """Return (name, families, attributes); the schema itself checks their values."""
    name = table_name(given(wire, "TTableDescriptor").tableName)
    if not wire.columns:
        raise IllegalArgument(f"table {abbreviate(name)} needs at least one column family")
    sent, known = _texts(wire.attributes, f"table {abbreviate(name)}"), (*ATTRIBUTES, *TABLE_INERT)
    attributes = {name_from_hbase(key, known): text for key, text in sent.items() if text}
    if wire.durability is not None:
        attributes["DURABILITY"] = dict(enumerate(_DURABILITIES)).get(wire.durability, str(wire.durability))
    if attributes.get("DURABILITY") == "USE_DEFAULT":
        del attributes["DURABILITY"]
    return name, [family_from_wire(family) for family in wire.columns], attributes


def table_to_wire(table: Table) -> Any:
    return hbase2.TTableDescriptor(
        tableName=table_name_to_wire(table.name),
        columns=[family_to_wire(family) for family in table.families],
        attributes={name_in_hbase(key).encode(): text.encode() for key, text in table.attributes.items()},
        durability=_DURABILITIES.index(table.durability),
    )


def namespace_from_wire(wire: Any) -> tuple[bytes, dict[str, str]]:
    """Return (name, configuration)."""
    name: str = given(given(wire, "TNamespaceDescriptor").name, "namespace")
    return _sent(name), _configuration(wire.configuration, f"namespace {name}")


def namespace_to_wire(name: str, configuration: Mapping[str, str]) -> Any:
    return hbase2.TNamespaceDescriptor(name=name, configuration=dict(configuration))
