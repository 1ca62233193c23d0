"""(pure) Attributes of HBase's descriptors that change nothing here: the values that are accepted and stored.

HBase's clients write back every attribute that they have read, and schema scripts set what HBase needs for its files.
If no application can notice the effect of a value, the value is accepted, stored and described again; so are settings
of HBase's servers, whose names have a dot.  A value that promises a noticeable effect is refused by name, because
accepting it would break the promise silently.  An application's own key, which has a lower-case letter, is stored as
``METADATA.key``.

Knows nothing of attributes that have an effect: those of families are in ``attributes``, those of tables in ``schema``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from columnar.errors import IllegalArgument
from columnar.limits import INERT_ATTRIBUTES, INERT_TEXT_BYTES
from columnar.model.written_amounts import bytes_written

AS_THE_SERVER_SAYS: Final = "-1"  # HBase's clients write it for a number that was not set
_NAMES_LISTED: Final = 100
_METADATA: Final = "METADATA."


@dataclass(frozen=True, slots=True)
class Inert:
    default: str  # HBase's: what a descriptor without the attribute means
    canonical: Callable[[str], str | None]  # the text as it is stored, or None if it is refused
    form: str  # of the accepted texts
    unset: str = ""  # another text for the default


def _one_of(*names: str) -> Inert:
    """Return an attribute with these values, of which the first is the default."""
    upper = {name.upper(): name for name in names}
    shown = ", ".join(names[:-1]) + " or " + names[-1] if len(names) > 1 else names[0]
    return Inert(names[0], lambda text: upper.get(text.upper()), shown)


def _number(default: str) -> Inert:
    def canonical(text: str) -> str | None:
        return str(int(text)) if text.isascii() and text.isdigit() and len(text) <= 18 else None

    return Inert(default, canonical, "a whole number")


def _size(default: str) -> Inert:
    def canonical(text: str) -> str | None:
        try:
            return str(bytes_written(text))
        except IllegalArgument:
            return None

    return Inert(default, canonical, "a size, for example '128 MB'", AS_THE_SERVER_SAYS)


def _split_policy(text: str) -> str | None:
    """Accept policies that split a region by its size, as we do; other policies promise where the borders are."""
    by_size = ("SteppingSplitPolicy", "IncreasingToUpperBoundRegionSplitPolicy", "ConstantSizeRegionSplitPolicy")
    return text if text.removeprefix("org.apache.hadoop.hbase.regionserver.") in by_size else None


_OFF: Final = _one_of("false", "true")
_ON: Final = _one_of("true", "false")
_COMPACTED: Final = _one_of("", "NONE", "SNAPPY", "LZ4", "GZ", "ZSTD")
_TEXT: Final = Inert("", lambda text: text, "a text")

# An attribute with a single value accepts only HBase's default, which describes what this store does.
FAMILY_INERT: Final[Mapping[str, Inert]] = {
    "DATA_BLOCK_ENCODING": _one_of("NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"),
    "INDEX_BLOCK_ENCODING": _one_of("NONE", "PREFIX_TREE"),
    "KEEP_DELETED_CELLS": _one_of("FALSE"),
    "REPLICATION_SCOPE": _one_of("0"),
    "NEW_VERSION_BEHAVIOR": _one_of("false"),
    "DFS_REPLICATION": _one_of("0"),
    "CACHE_DATA_ON_WRITE": _OFF,
    "CACHE_INDEX_ON_WRITE": _OFF,
    "CACHE_BLOOMS_ON_WRITE": _OFF,
    "CACHE_DATA_IN_L1": _OFF,
    "EVICT_BLOCKS_ON_CLOSE": _OFF,
    "PREFETCH_BLOCKS_ON_OPEN": _OFF,
    "COMPRESS_TAGS": _ON,
    "ENCODE_ON_DISK": _ON,
    "COMPRESSION_COMPACT": _COMPACTED,
    "COMPRESSION_COMPACT_MAJOR": _COMPACTED,
    "COMPRESSION_COMPACT_MINOR": _COMPACTED,
    "IS_MOB": _OFF,
    "MOB_THRESHOLD": _size("102400"),
    "MOB_COMPACT_PARTITION_POLICY": _one_of("DAILY", "WEEKLY", "MONTHLY"),
    "IN_MEMORY_COMPACTION": _one_of("NONE", "BASIC", "EAGER", "ADAPTIVE"),
    "STORAGE_POLICY": _one_of("", "HOT", "WARM", "COLD", "ALL_SSD", "ONE_SSD"),
}
TABLE_INERT: Final[Mapping[str, Inert]] = {
    "IS_META": _one_of("false"),
    "IS_ROOT": _one_of("false"),
    "OWNER": _TEXT,
    "MEMSTORE_FLUSHSIZE": _size("134217728"),
    "FLUSH_POLICY": _TEXT,
    "SPLIT_POLICY": Inert("", _split_policy, "a policy that splits by size (ROW_GROUP keeps rows together)"),
    "PRIORITY": _number("0"),
    "REGION_REPLICATION": _one_of("1"),
    "REGION_MEMSTORE_REPLICATION": _ON,
    "SPLIT_ENABLED": _one_of("true"),
    "MERGE_ENABLED": _one_of("true"),
    "COMPACTION_ENABLED": _one_of("true"),
    "NORMALIZATION_ENABLED": _OFF,
    "NORMALIZER_TARGET_REGION_COUNT": _number(AS_THE_SERVER_SAYS),
    "NORMALIZER_TARGET_REGION_SIZE": _number(AS_THE_SERVER_SAYS),
    "NORMALIZER_TARGET_REGION_SIZE_MB": _number(AS_THE_SERVER_SAYS),
    "ERASURE_CODING_POLICY": _one_of("", "NULL"),
}


def attribute_name(said: str) -> str:
    """Return the attribute's name in upper case, as it is stored; names of settings stay as they are."""
    return said if is_setting(said) else said.upper()


def name_in_hbase(name: str) -> str:
    """Return the name under which HBase's clients know the attribute stored as ``name``."""
    return name.removeprefix(_METADATA)


def name_from_hbase(key: str, known: Collection[str]) -> str:
    """Return the name under which the descriptor's attribute ``key`` is stored here; names in ``known`` are kept."""
    if key in known or is_setting(key) or key.upper() == key or key.lower().startswith("coprocessor"):
        return key
    return _METADATA + key


def is_setting(name: str) -> bool:
    """Tell whether the name is a setting of HBase's servers or of an application: a name with a dot.

    An example is ``hbase.hstore.blockingStoreFiles``; nothing here reads settings.
    """
    return "." in name


def is_inert(known: Mapping[str, Inert], name: str) -> bool:
    return name in known or is_setting(name)


def kept(known: Mapping[str, Inert], name: str, text: str, said: str = "") -> str:
    """Return the text as it is stored; an empty text if it means the attribute's default.

    Error messages call the attribute ``said``, by default ``name``.  Raises IllegalArgument if the value is refused.
    """
    if len(name.encode()) > INERT_TEXT_BYTES or len(text.encode()) > INERT_TEXT_BYTES:
        raise IllegalArgument(
            f"attribute {name[:_NAMES_LISTED]}: names and values have at most {INERT_TEXT_BYTES} bytes"
        )
    if is_setting(name):
        return text
    inert, said = known[name], said or name
    canonical = inert.default if text in ("", inert.default, inert.unset) else inert.canonical(text)
    if canonical is None:
        raise IllegalArgument(
            f"{said} is none of the attributes that act here: {said} can only be {inert.form}, not '{text}'"
        )
    return "" if canonical == inert.default else canonical


def check_count(attributes: int, what: str) -> None:
    if attributes > INERT_ATTRIBUTES:
        raise IllegalArgument(f"{what} has at most {INERT_ATTRIBUTES} attributes that change nothing, not {attributes}")


# --- configurations of namespaces --------------------------------------------------------------------


MOST_TABLES: Final = "hbase.namespace.quota.maxtables"
MOST_REGIONS: Final = "hbase.namespace.quota.maxregions"


def checked_configuration(given: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration, sorted.  Raises IllegalArgument with the name of a wrong key."""
    check_count(len(given), "the configuration of a namespace")
    for key, text in given.items():
        if not key or not text:
            raise IllegalArgument(f"configuration '{key}' of a namespace: neither a key nor its value is empty")
        if len(key.encode()) > INERT_TEXT_BYTES or len(text.encode()) > INERT_TEXT_BYTES:
            raise IllegalArgument(f"configuration {key[:100]}: keys and values have at most {INERT_TEXT_BYTES} bytes")
        bounds = key in (MOST_TABLES, MOST_REGIONS)
        if bounds and not (text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text) > 0):
            raise IllegalArgument(f"{key} takes a positive whole number, not '{text}'")
    return dict(sorted(given.items()))


def bound(configuration: Mapping[str, str], key: str) -> int | None:
    """Return the bound that the configuration sets for ``key``, MOST_TABLES or MOST_REGIONS, or None for no bound."""
    text = configuration.get(key)
    return int(text) if text is not None else None
