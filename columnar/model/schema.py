"""(pure) Tables and column families: their attributes, their names, and their JSON in the catalogue.

Defaults follow HBase 2.6 (reference: HColumnDescriptor); an absent time to live is "for ever".

Invariants:
    I1. A family's number is given once in a table's life.  So cells that a dropped family left among the older
        versions never belong to a later family of the same name.
    I2. A key space is also given only once: a family added later gets a new key space, even under an old name.
    I3. The JSON has fields that were added after format version 1 only if they differ from their default.

Knows nothing of where a schema is kept (``columnar.master.catalogue``) or sent.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final

from columnar.errors import DamagedData, IllegalArgument, NoSuchColumnFamily, NotAllowed, abbreviate
from columnar.limits import FAMILIES, FAMILY_NAME_BYTES, KEPT_LOG_BYTES, TABLE_NAME_BYTES
from columnar.model import row_groups, throttle_limits
from columnar.model.inert_attributes import (
    AS_THE_SERVER_SAYS,
    TABLE_INERT,
    attribute_name,
    check_count,
    is_inert,
    kept,
)
from columnar.model.row_groups import RowGroups, groups_of
from columnar.model.written_amounts import bytes_written, seconds_written

COMPRESSIONS: Final = ("NONE", "SNAPPY", "LZ4", "GZ", "ZSTD")  # the weakest first
DURABILITIES: Final = ("USE_DEFAULT", "SKIP_WAL", "ASYNC_WAL", "SYNC_WAL", "FSYNC_WAL")
UNSYNCED: Final = frozenset({"SKIP_WAL", "ASYNC_WAL"})
BLOOM_FILTERS: Final = ("NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH")
FOR_EVER: Final = 0x7FFFFFFF  # seconds; HConstants.FOREVER
SYSTEM_NAMESPACE: Final = "columnar"
_NONE: Final = "''"  # an empty word, visible in an error message

DEFAULT_NAMESPACE: Final = "default"
_HIGHEST_NUMBER: Final = 0xFFFF  # two bytes in the keys of older versions


@dataclass(frozen=True, slots=True)
class Family:
    """A column family.  ``number`` identifies the family in keys of older versions."""

    name: str  # latin-1 of the bytes
    number: int = 0
    max_versions: int = 1
    ttl_s: int | None = None
    compression: str = "NONE"
    bloom_filter: str = "ROW"
    in_memory: bool = False
    block_cache: bool = True
    min_versions: int = 0  # versions that stay past the time to live
    block_size: int | None = None  # bytes; None: RocksDB's default
    durability: str = "USE_DEFAULT"  # USE_DEFAULT: the table's
    unsaid: tuple[str, ...] = ()  # BLOCKCACHE, BLOOMFILTER: off only because that is the default of HBase's IDL
    added: bool = False  # to an existing table
    inert: tuple[tuple[str, str], ...] = ()  # attributes that change nothing, by name (``inert_attributes``)

    @property
    def bytes_name(self) -> bytes:
        return self.name.encode("latin-1")

    @property
    def space(self) -> str:
        """The key space of the family's newest versions (I2), unique because no family name has a colon."""
        return f"f:{self.name}:{self.number}" if self.added else f"f:{self.name}"

    @property
    def uses_bloom_filter(self) -> bool:
        return self.bloom_filter != "NONE" or "BLOOMFILTER" in self.unsaid

    @property
    def uses_block_cache(self) -> bool:
        return self.block_cache or "BLOCKCACHE" in self.unsaid


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    families: tuple[Family, ...]  # by name, ascending
    attributes: Mapping[str, str] = field(default_factory=dict)
    next_number: int = 0  # of the next family; 0: one above the highest (I1)
    kept_by: str = ""  # the view that alone writes the table, or a system table's own name; empty: clients write it
    _by_name: Mapping[bytes, Family] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {family.bytes_name: family for family in self.families})

    @property
    def number_to_give(self) -> int:
        return max(self.next_number, 1 + max((family.number for family in self.families), default=0))

    def family(self, name: bytes) -> Family:
        family = self._by_name.get(name)
        if family is None:
            raise NoSuchColumnFamily(name, self.name)
        return family

    @property
    def delete_markers_ms(self) -> int | None:
        """How long a delete leaves a marker in place of its cell; None if deletes are physical (D5)."""
        text = self.attributes.get("DELETE_MARKERS")
        return int(text) if text else None

    @property
    def change_log_s(self) -> int | None:
        """Retention of the change log without a reader; None if there is no log without a reader (D6)."""
        text = self.attributes.get("CHANGE_LOG")
        return int(text) if text else None

    @property
    def change_log_bytes(self) -> int:
        """The most bytes of a region's change log that are kept for ``change_log_s``."""
        text = self.attributes.get("CHANGE_LOG_BYTES")
        return int(text) if text else KEPT_LOG_BYTES

    @property
    def logs_images(self) -> bool:
        """Whether the change log has the row's cells before and after each change, as long as there is CHANGE_LOG."""
        return self.change_log_s is not None and self.attributes.get("CHANGE_LOG_IMAGES") == "true"

    @property
    def takes_sends(self) -> bool:
        """Whether changes of the table's rows may send messages to queues and topics (``model.send``)."""
        return self.attributes.get("SENDS") == "true"

    @property
    def durability(self) -> str:
        return self.attributes.get("DURABILITY", "USE_DEFAULT")

    @property
    def is_read_only(self) -> bool:
        return self.attributes.get("READONLY") == "true"

    @property
    def max_filesize(self) -> int | None:
        """The size from which a region is split; None for the server's setting."""
        text = self.attributes.get("MAX_FILESIZE")
        return int(text) if text else None

    @property
    def row_groups(self) -> RowGroups | None:
        """The rule of rows that stay in one region and may be written together; None without ROW_GROUP."""
        text = self.attributes.get("ROW_GROUP")
        return groups_of(text) if text else None

    @property
    def throttle(self) -> str:
        """The request quotas of the table (``throttle_limits``); empty for no limit."""
        return self.attributes.get("THROTTLE", "")

    @property
    def unsynced_families(self) -> frozenset[bytes]:
        """Families whose writes wait for no fsync, by their own durability or the table's."""
        table = self.durability
        return frozenset(
            family.bytes_name
            for family in self.families
            if (table if family.durability == "USE_DEFAULT" else family.durability) in UNSYNCED
        )

    def check_written_by(self, keeper: str = "") -> None:
        """Raise NotAllowed if the table is a view that ``keeper``, the writing view or empty, does not maintain."""
        if self.kept_by and self.is_system:
            raise NotAllowed(f"{self.name} is written by the store alone, at the calls of its own methods")
        if self.kept_by and self.kept_by != keeper:
            raise NotAllowed(
                f"{self.name} is a view, which nobody but its maintainer writes: write the tables from which it "
                f"follows, or drop it (columnar view drop {self.kept_by})"
            )

    @property
    def is_system(self) -> bool:
        return self.name.startswith(SYSTEM_NAMESPACE + ":")

    @property
    def may_split(self) -> bool:
        """Whether the table may have several regions: of the system's own those whose rows have groups (queues)."""
        return not self.is_system or self.row_groups is not None


ATTRIBUTES: Final[Mapping[str, str]] = {
    "DELETE_MARKERS": "milliseconds that a delete leaves a marker; for tables that triggers write",
    "CHANGE_LOG": "seconds that changes are kept in the log of each region ahead of the first reader",
    "CHANGE_LOG_BYTES": "bytes of each region's log that CHANGE_LOG keeps at most",
    "CHANGE_LOG_IMAGES": "true: the log has the row before and after each change, for readers of CHANGE_LOG",
    "DURABILITY": "SYNC_WAL (default), ASYNC_WAL or SKIP_WAL",
    "READONLY": "true: writes are refused",
    "MAX_FILESIZE": "bytes from which a region of the table is split",
    "THROTTLE": throttle_limits.FORM,
    "ROW_GROUP": row_groups.FORM,
    "SENDS": "true: changes of rows may send messages to queues and topics; it stays once it is set",
}
_TRUTHS: Final = frozenset({"READONLY", "CHANGE_LOG_IMAGES", "SENDS"})
_AMOUNTS: Final = {"CHANGE_LOG": seconds_written, "CHANGE_LOG_BYTES": bytes_written, "MAX_FILESIZE": bytes_written}
BLOCK_SIZES: Final = (1_024, 4 * 1_048_576)


def checked_table_name(name: bytes) -> str:
    """Return the table's name as text.  Raises IllegalArgument, with the rule that is broken."""
    if len(name) > TABLE_NAME_BYTES:
        raise IllegalArgument(f"a table name has at most {TABLE_NAME_BYTES} bytes, not {len(name)}")
    text = name.decode(errors="replace")  # the replacement of broken bytes is no letter
    namespace, colon, qualifier = text.rpartition(":")
    if (colon and not _is_word(namespace)) or qualifier[:1] in (".", "-") or not _is_word(qualifier, also=".-"):
        raise IllegalArgument(
            f"table name '{abbreviate(name)}': use letters, digits, '_', '-' and '.', not beginning with '-' or '.'"
        )
    return text.removeprefix("default:")


def table_name_text(name: bytes) -> str:
    """Return the table's name as text; for broken UTF-8 a name that no table can have."""
    return name.decode(errors="replace").removeprefix("default:")


def _is_word(text: str, also: str = "") -> bool:
    """Tell whether the text is not empty and has only letters and digits of any alphabet, ``_``, and ``also``.

    This is the rule of TableName.isLegalTableQualifierName, which tests UTF-16 units: a character of two units is no
    letter.  Here marks are no letters: Java counts some of them as alphabetic (vowel signs), and unicodedata cannot
    tell which.
    """
    return bool(text) and all(c == "_" or c in also or _is_letter_or_digit(c) for c in text)


def _is_letter_or_digit(c: str) -> bool:
    return c <= "\uffff" and (c.isalpha() or c.isdecimal() or unicodedata.category(c) == "Nl")


def namespace_of(table: str) -> str:
    return table.rpartition(":")[0] or DEFAULT_NAMESPACE


def checked_namespace(name: bytes) -> str:
    text = name.decode(errors="replace")
    if not _is_word(text) or len(name) > TABLE_NAME_BYTES // 2:
        raise IllegalArgument(f"namespace '{abbreviate(name)}': use letters, digits and '_'")
    return text


def checked_family_name(name: bytes) -> str:
    """Return the family's name.  ``name`` may have a trailing colon, as happybase sends it.  Raises IllegalArgument."""
    bare = name.removesuffix(b":")
    problem = None
    if not bare:
        problem = "must not be empty"
    elif len(bare) > FAMILY_NAME_BYTES:
        problem = f"has {len(bare)} bytes, at most {FAMILY_NAME_BYTES} are allowed"
    elif bare.startswith(b"."):
        problem = "must not begin with '.'"
    elif any(byte < 32 or byte == 127 or byte in b":/\\" for byte in bare):
        problem = "must hold no control character, ':', '/' or '\\'"
    elif bare == b"recovered.edits":
        problem = "is reserved"
    if problem:
        raise IllegalArgument(f"column family '{abbreviate(bare)}' {problem}")
    return bare.decode("latin-1")


def checked_family(family: Family) -> Family:
    if family.max_versions <= 0:
        raise IllegalArgument(f"family {family.name}: maximum versions must be positive, not {family.max_versions}")
    compression = family.compression.upper()
    if compression not in COMPRESSIONS:
        raise IllegalArgument(
            f"family {family.name}: compression {compression or _NONE} is none of {', '.join(COMPRESSIONS)}"
        )
    if family.bloom_filter not in BLOOM_FILTERS:
        raise IllegalArgument(
            f"family {family.name}: bloom filter {family.bloom_filter or _NONE} is none of {', '.join(BLOOM_FILTERS)}"
        )
    if not 0 <= family.min_versions <= family.max_versions:
        raise IllegalArgument(
            f"family {family.name}: MIN_VERSIONS is 0 to VERSIONS, which is {family.max_versions}, "
            f"not {family.min_versions}"
        )
    if family.block_size is not None and not BLOCK_SIZES[0] <= family.block_size <= BLOCK_SIZES[1]:
        raise IllegalArgument(
            f"family {family.name}: BLOCKSIZE is {BLOCK_SIZES[0]} to {BLOCK_SIZES[1]} bytes, not {family.block_size}"
        )
    if family.durability not in DURABILITIES:
        raise IllegalArgument(f"family {family.name}: DURABILITY is one of {', '.join(DURABILITIES)}")
    return replace(family, compression=compression)


def check_attribute_name(name: str) -> None:
    """Raise IllegalArgument if no attribute of a table has the name."""
    if name.lower().startswith("coprocessor"):
        raise IllegalArgument(
            f"table attribute {name}: no code of HBase runs here; triggers do its work (docs/triggers.md)"
        )
    if name not in ATTRIBUTES and not is_inert(TABLE_INERT, name):
        raise IllegalArgument(f"table attribute {name} is none of {', '.join((*ATTRIBUTES, *TABLE_INERT))}")


def checked_attributes(given: Mapping[str, str]) -> dict[str, str]:
    """Return the table attributes as they are stored.  Raises IllegalArgument with the name of a wrong one."""
    checked = {}
    inert = 0
    for said, text in given.items():
        key = attribute_name(said)
        check_attribute_name(key)
        if key == "MAX_FILESIZE" and text == AS_THE_SERVER_SAYS:
            continue
        if key in ATTRIBUTES:
            checked[key] = _checked_attribute(key, text)
        elif inert_text := _inert(key, text):
            checked[key] = inert_text
            inert += 1
    check_count(inert, "a table")
    return checked


def _inert(key: str, text: str) -> str:
    try:
        return kept(TABLE_INERT, key, text)
    except IllegalArgument as error:
        raise IllegalArgument(f"table attribute {error.text}") from None


def _checked_attribute(key: str, text: str) -> str:
    if key == "DELETE_MARKERS" and not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise IllegalArgument(f"table attribute {key} takes a whole number ({ATTRIBUTES[key]}), not '{text}'")
    if key in _AMOUNTS:
        try:
            return str(_AMOUNTS[key](text))
        except IllegalArgument as error:
            raise IllegalArgument(f"table attribute {key} ({ATTRIBUTES[key]}) {error.text}") from None
    if key == "DURABILITY" and text not in DURABILITIES:
        raise IllegalArgument(f"table attribute DURABILITY is {ATTRIBUTES[key]}, not '{text}'")
    if key in _TRUTHS and text.lower() not in ("true", "false"):
        raise IllegalArgument(f"table attribute {key} is true or false, not '{text}'")
    if key == "THROTTLE":
        return throttle_limits.canonical(throttle_limits.limits_of(text))
    if key == "ROW_GROUP":
        try:
            return str(groups_of(text))
        except IllegalArgument as error:
            raise IllegalArgument(f"table attribute ROW_GROUP {error.text}") from None
    return text.lower() if key in _TRUTHS else text


def checked_table(table: Table) -> Table:
    """Check the rules about more than one attribute."""
    if len(table.families) > FAMILIES:
        raise IllegalArgument(f"table {table.name} would have {len(table.families)} families, at most {FAMILIES} go")
    if any(family.number > _HIGHEST_NUMBER for family in table.families):
        raise IllegalArgument(f"table {table.name} has had {_HIGHEST_NUMBER} families and takes no more: copy it")
    if table.delete_markers_ms is not None and any(family.max_versions > 1 for family in table.families):
        raise IllegalArgument(f"table {table.name}: DELETE_MARKERS needs families that keep one version")
    return table


def make_table(name: str, families: list[Family], attributes: Mapping[str, str] | None = None) -> Table:
    """Return a checked schema, its families sorted and numbered.  Raises IllegalArgument with the fault."""
    checked = checked_attributes(attributes or {})
    names = [family.name for family in families]
    twice = sorted({family for family in names if names.count(family) > 1})
    if twice:
        raise IllegalArgument(f"table {name} names the column family {twice[0]} twice")
    ordered = sorted((checked_family(family) for family in families), key=lambda family: family.bytes_name)
    return Table(name, tuple(replace(f, number=n) for n, f in enumerate(ordered, 1)), checked)


_FIRST_FIELDS: Final = frozenset(
    {"name", "number", "max_versions", "ttl_s", "compression", "bloom_filter", "in_memory", "block_cache"}
)
_DEFAULT: Final = Family("")


def to_json(table: Table) -> bytes:
    held: dict[str, Any] = {
        "name": table.name,
        "families": [_family_to_json(family) for family in table.families],
        "attributes": dict(table.attributes),
    }
    if table.next_number:
        held["next_number"] = table.next_number
    if table.kept_by:
        held["kept_by"] = table.kept_by
    return json.dumps(held, sort_keys=True).encode()


def _family_to_json(family: Family) -> dict[str, Any]:
    return {
        name: value
        for name, value in asdict(family).items()
        if name in _FIRST_FIELDS or value != getattr(_DEFAULT, name)
    }


def from_json(data: bytes) -> Table:
    """Decode a table.  Raises DamagedData if a family has fields that this version does not know."""
    held: dict[str, Any] = json.loads(data)
    known = {one.name for one in fields(Family)}
    strange = {name for family in held["families"] for name in family if name not in known}
    if strange:
        raise DamagedData(
            f"table {held['name']} was changed by a newer version ({', '.join(sorted(strange))}): upgrade"
        )
    families = tuple(_family_from_json(family) for family in held["families"])
    return Table(held["name"], families, held["attributes"], held.get("next_number", 0), held.get("kept_by", ""))


def _family_from_json(held: Mapping[str, Any]) -> Family:
    inert = tuple((name, text) for name, text in held.get("inert", ()))
    return Family(**{**held, "unsaid": tuple(held.get("unsaid", ())), "inert": inert})
