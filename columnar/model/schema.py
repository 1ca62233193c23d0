"""(pure) Tables and column families: their attributes, their names, and their JSON in the catalogue.

Defaults follow HBase 2.6 (reference: HColumnDescriptor); an absent time to live is "for ever".

Knows nothing of where a schema is kept (``columnar.master.catalogue``) or sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

from columnar.errors import IllegalArgument, NoSuchColumnFamily, shown
from columnar.limits import FAMILY_NAME_BYTES, TABLE_NAME_BYTES

Compression = Literal["NONE", "SNAPPY", "LZ4", "ZSTD"]
Durability = Literal["USE_DEFAULT", "SKIP_WAL", "ASYNC_WAL", "SYNC_WAL", "FSYNC_WAL"]
COMPRESSIONS: Final = ("NONE", "SNAPPY", "LZ4", "ZSTD")
BLOOM_FILTERS: Final = ("NONE", "ROW", "ROWCOL")
FOR_EVER: Final = 0x7FFFFFFF  # seconds; HConstants.FOREVER
SYSTEM_NAMESPACE: Final = "columnar"

_TABLE_NAME: Final = re.compile(r"(?:(?P<namespace>\w+):)?(?P<qualifier>[A-Za-z0-9_][\w.-]*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Family:
    """One column family.  ``number`` tells it from others in keys of older versions."""

    name: str  # latin-1 of the bytes
    number: int = 0
    max_versions: int = 1
    ttl_s: int | None = None
    compression: str = "NONE"
    bloom_filter: str = "ROW"
    in_memory: bool = False
    block_cache: bool = True

    @property
    def bytes_name(self) -> bytes:
        return self.name.encode("latin-1")

    @property
    def space(self) -> str:
        """The key space of its newest versions."""
        return "f:" + self.name


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    families: tuple[Family, ...]  # by name, ascending
    attributes: Mapping[str, str] = field(default_factory=dict)
    _by_name: Mapping[bytes, Family] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {family.bytes_name: family for family in self.families})

    def family(self, name: bytes) -> Family:
        family = self._by_name.get(name)
        if family is None:
            raise NoSuchColumnFamily(name, self.name)
        return family

    @property
    def delete_markers_ms(self) -> int | None:
        """How long a delete leaves a marker in place of its cell; None: deletes are physical (D5)."""
        text = self.attributes.get("DELETE_MARKERS")
        return int(text) if text else None

    @property
    def change_log_s(self) -> int | None:
        """Retention of the change log when nobody reads it; None: no log without a reader (D6)."""
        text = self.attributes.get("CHANGE_LOG")
        return int(text) if text else None

    @property
    def durability(self) -> str:
        return self.attributes.get("DURABILITY", "USE_DEFAULT")

    @property
    def is_system(self) -> bool:
        return self.name.startswith(SYSTEM_NAMESPACE + ":")


ATTRIBUTES: Final[Mapping[str, str]] = {
    "DELETE_MARKERS": "milliseconds that a delete leaves a marker; for tables that triggers write",
    "CHANGE_LOG": "seconds that changes are kept in the log of each region ahead of the first reader",
    "DURABILITY": "SYNC_WAL (default), ASYNC_WAL or SKIP_WAL",
}


def checked_table_name(name: bytes) -> str:
    """The name as text; IllegalArgument says which rule it breaks."""
    if len(name) > TABLE_NAME_BYTES:
        raise IllegalArgument(f"a table name has at most {TABLE_NAME_BYTES} bytes, not {len(name)}")
    try:
        text = name.decode("ascii")
    except UnicodeDecodeError:
        text = ""
    match = _TABLE_NAME.fullmatch(text)
    if match is None:
        raise IllegalArgument(
            f"table name '{shown(name)}': use letters, digits, '_', '-' and '.', not beginning with '-' or '.'"
        )
    return text.removeprefix("default:")


def checked_family_name(name: bytes) -> str:
    """A family's name, with or without the trailing colon that happybase sends."""
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
        raise IllegalArgument(f"column family '{shown(bare)}' {problem}")
    return bare.decode("latin-1")


def checked_family(family: Family) -> Family:
    if family.max_versions <= 0:
        raise IllegalArgument(f"family {family.name}: maximum versions must be positive, not {family.max_versions}")
    compression = family.compression.upper()
    if compression not in COMPRESSIONS:
        raise IllegalArgument(f"family {family.name}: compression {compression} is none of {', '.join(COMPRESSIONS)}")
    if family.bloom_filter not in BLOOM_FILTERS:
        raise IllegalArgument(
            f"family {family.name}: bloom filter {family.bloom_filter} is none of {', '.join(BLOOM_FILTERS)}"
        )
    return replace(family, compression=compression)


def make_table(name: str, families: list[Family], attributes: Mapping[str, str] | None = None) -> Table:
    """A checked schema, families sorted and numbered; IllegalArgument names what is wrong."""
    attributes = dict(attributes or {})
    for key, text in attributes.items():
        if key not in ATTRIBUTES:
            raise IllegalArgument(f"table attribute {key} is none of {', '.join(ATTRIBUTES)}")
        if key != "DURABILITY" and not (text.isascii() and text.isdigit()):
            raise IllegalArgument(f"table attribute {key} takes a whole number ({ATTRIBUTES[key]}), not '{text}'")
        if key == "DURABILITY" and text not in ("SYNC_WAL", "ASYNC_WAL", "SKIP_WAL", "USE_DEFAULT", "FSYNC_WAL"):
            raise IllegalArgument(f"table attribute DURABILITY is {ATTRIBUTES[key]}, not '{text}'")
    names = [family.name for family in families]
    twice = sorted({family for family in names if names.count(family) > 1})
    if twice:
        raise IllegalArgument(f"table {name} names the column family {twice[0]} twice")
    ordered = sorted((checked_family(family) for family in families), key=lambda family: family.bytes_name)
    return Table(name, tuple(replace(f, number=n) for n, f in enumerate(ordered, 1)), attributes)


def to_json(table: Table) -> bytes:
    return json.dumps(
        {"name": table.name, "families": [asdict(f) for f in table.families], "attributes": dict(table.attributes)},
        sort_keys=True,
    ).encode()


def from_json(data: bytes) -> Table:
    held: dict[str, Any] = json.loads(data)
    return Table(held["name"], tuple(Family(**family) for family in held["families"]), held["attributes"])
