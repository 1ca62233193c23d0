"""(pure) Attributes of a column family under HBase's names, as the text that people write and read.

Each attribute is one line of ``FAMILY_ATTRIBUTES``: the conversion between its text and the field of
``Family``.  An empty text means the default.  ``inert_attributes`` lists HBase's attributes that have no effect here;
their values are kept as text.

Knows nothing of the effect of an attribute: docs/administration.md describes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from columnar.errors import IllegalArgument, NoSuchColumnFamily
from columnar.model.inert_attributes import FAMILY_INERT, attribute_name, check_count, is_inert, kept
from columnar.model.schema import (
    BLOOM_FILTERS,
    COMPRESSIONS,
    DURABILITIES,
    FOR_EVER,
    Family,
    Table,
    check_attribute_name,
    checked_attributes,
    checked_family,
    checked_table,
)
from columnar.model.written_amounts import bytes_written, seconds_written

_OTHER_COMPRESSIONS: Final = ("LZO", "BZIP2", "LZMA", "BROTLI")  # HBase offers them if their libraries are installed
OWN_COMPRESSION: Final = "LZ4"  # the default of our own administration; HBase's Thrift says NONE


@dataclass(frozen=True, slots=True)
class _Attribute:
    field: str
    parse: Callable[[str], Any]  # IllegalArgument
    show: Callable[[Any], str]
    says: str


def _one_of(names: tuple[str, ...]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.upper() not in names:
            raise IllegalArgument(f"is one of {', '.join(names)}, not '{text}'")
        return text.upper()

    return parse


def _compression(text: str) -> str:
    try:
        return _one_of(COMPRESSIONS)(text)
    except IllegalArgument as error:
        hint = "; ZSTD does their work" if text.upper() in _OTHER_COMPRESSIONS else ""
        raise IllegalArgument(f"{error.text}{hint}") from None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise IllegalArgument(f"takes a whole number, not '{text}'")
    return int(text)


def _seconds(text: str) -> int | None:
    if text.upper() == "FOREVER":
        return None
    seconds = seconds_written(text)
    if seconds <= 0:
        raise IllegalArgument(f"is a positive number of seconds or FOREVER, not '{text}'")
    return None if seconds >= FOR_EVER else seconds


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise IllegalArgument(f"is true or false, not '{text}'")
    return text.lower() == "true"


def _format_truth(value: bool) -> str:
    return "true" if value else "false"


def _format_seconds(value: int | None) -> str:
    return "FOREVER" if value is None else str(value)


def _format_number(value: int | None) -> str:
    return "" if value is None else str(value)


FAMILY_ATTRIBUTES: Final[Mapping[str, _Attribute]] = {
    "VERSIONS": _Attribute("max_versions", _number, str, "how many versions of a cell are kept"),
    "MIN_VERSIONS": _Attribute("min_versions", _number, str, "so many stay though their time to live is over"),
    "TTL": _Attribute("ttl_s", _seconds, _format_seconds, "seconds that a cell lives, or FOREVER"),
    "COMPRESSION": _Attribute("compression", _compression, str, ", ".join(COMPRESSIONS)),
    "BLOOMFILTER": _Attribute("bloom_filter", _one_of(BLOOM_FILTERS), str, ", ".join(BLOOM_FILTERS)),
    "IN_MEMORY": _Attribute("in_memory", _truth, _format_truth, "true: a cache that other families cannot use up"),
    "BLOCKCACHE": _Attribute("block_cache", _truth, _format_truth, "false: blocks are not kept in memory"),
    "BLOCKSIZE": _Attribute("block_size", bytes_written, _format_number, "bytes read from disk at a time"),
    "DURABILITY": _Attribute("durability", _one_of(DURABILITIES), str, "USE_DEFAULT: as the table's"),
}
OWN_DEFAULT: Final = Family("", compression=OWN_COMPRESSION)


def with_attributes(family: Family, given: Mapping[str, str]) -> Family:
    """Return ``family`` with the attributes ``given``; the other attributes keep their values.

    Raises IllegalArgument, with the reason, for an unknown attribute or an invalid text.
    """
    changes: dict[str, Any] = {}
    inert = dict(family.inert)
    for said, text in given.items():
        name = attribute_name(said)
        attribute = FAMILY_ATTRIBUTES.get(name)
        if attribute is None and not is_inert(FAMILY_INERT, name):
            raise IllegalArgument(
                f"family attribute {said} is none of {', '.join((*FAMILY_ATTRIBUTES, *FAMILY_INERT))}"
            )
        try:
            if attribute is None:
                inert[name] = kept(FAMILY_INERT, name, text)
            else:
                changes[attribute.field] = attribute.parse(text) if text else getattr(OWN_DEFAULT, attribute.field)
        except IllegalArgument as error:
            raise IllegalArgument(
                f"family {family.name}: {'' if attribute is None else name + ' '}{error.text}"
            ) from None
    spoken = {name.upper() for name in given}
    unsaid = tuple(one for one in family.unsaid if one not in spoken)
    remembered = tuple(sorted((name, text) for name, text in inert.items() if text))
    check_count(len(remembered), f"family {family.name}")
    return checked_family(replace(family, **changes, unsaid=unsaid, inert=remembered))


def whole(family: Family, before: Family) -> dict[str, str]:
    """Return the change that turns ``before`` into ``family``: all attributes, including those at their default."""
    settings = (name for name, _ in before.inert)
    return {**dict.fromkeys((*FAMILY_ATTRIBUTES, *FAMILY_INERT, *settings), ""), **attributes_of(family)}


def attributes_of(family: Family) -> dict[str, str]:
    """Return the attributes of the family as text, with the values in effect.

    Attributes whose value RocksDB chooses are left out, and inert attributes at their default.
    """
    acting = replace(
        family,
        block_cache=family.uses_block_cache,
        bloom_filter=family.bloom_filter if not family.uses_bloom_filter or family.bloom_filter != "NONE" else "ROW",
    )
    shown = {name: one.show(getattr(acting, one.field)) for name, one in FAMILY_ATTRIBUTES.items()}
    return {name: text for name, text in (*shown.items(), *family.inert) if text}


def merged_attributes(held: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the table attributes after the change ``given``.

    An empty text removes an attribute, and so does an inert attribute's default.
    """
    for name in given:
        check_attribute_name(attribute_name(name))
    changed = checked_attributes({name: text for name, text in given.items() if text})
    touched = {attribute_name(name) for name in given}
    return {name: text for name, text in held.items() if name not in touched} | changed


# --- changes of a table ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableChange:
    """An atomic change of a table: families to add, change and drop, and the table's attributes to set."""

    add: tuple[Family, ...] = ()
    change: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # family -> attribute -> text, "": default
    drop: frozenset[str] = frozenset()
    attributes: Mapping[str, str] = field(default_factory=dict)  # an empty text removes the attribute


def altered(table: Table, change: TableChange) -> Table:
    """Return the table after the change.  Raises IllegalArgument or NoSuchColumnFamily if the change is impossible."""
    held = {family.name: family for family in table.families}
    for name in (*change.drop, *change.change):
        if name not in held:
            raise NoSuchColumnFamily(name.encode("latin-1"), table.name)
    both = sorted(change.drop & change.change.keys())
    if both:
        raise IllegalArgument(f"family {both[0]} is to be changed and dropped at once")
    for name, given in change.change.items():
        held[name] = with_attributes(held[name], given)
    for name in change.drop:
        del held[name]
    number = table.number_to_give
    for family in change.add:
        if family.name in held:
            raise IllegalArgument(f"table {table.name} has a column family {family.name} already")
        held[family.name] = replace(checked_family(family), number=number, added=True)
        number += 1
    if not held:
        raise IllegalArgument(f"table {table.name} would be left without a column family; drop the table instead")
    attributes = merged_attributes(table.attributes, change.attributes)
    if table.takes_sends and attributes.get("SENDS") != "true":
        raise IllegalArgument(
            f"table {table.name}: SENDS stays once it is set, as messages may be on their way; a table that sends none "
            "pays nothing for it"
        )
    families = tuple(sorted(held.values(), key=lambda family: family.bytes_name))
    next_number = number if change.drop or change.add else table.next_number
    return checked_table(
        replace(
            table,
            families=families,
            attributes=attributes,
            next_number=next_number,
        )
    )


def expiry_changes(before: Table, after: Table) -> list[str]:
    """Return the families in which the change may make cells expire or reappear; triggers are not notified of that.

    Only families of both tables are compared, by TTL and MIN_VERSIONS.
    """
    held = {family.name: family for family in before.families}
    return [
        family.name
        for family in after.families
        if family.name in held
        and (family.ttl_s, family.min_versions) != (held[family.name].ttl_s, held[family.name].min_versions)
    ]
