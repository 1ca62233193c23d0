"""(pure) Attributes of a column family by HBase's names, as text: what a person gives and is shown.

Each attribute is one line of ``FAMILY_ATTRIBUTES``: how its text becomes the field of ``Family`` and
back.  An empty text means the default.

Knows nothing of what an attribute does: that stands where it is done, and in docs/administration.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from columnar.errors import IllegalArgument
from columnar.model.schema import (
    BLOOM_FILTERS,
    COMPRESSIONS,
    DURABILITIES,
    FOR_EVER,
    Family,
    checked_attributes,
    checked_family,
)

OWN_COMPRESSION: Final = "LZ4"  # where our own administration is told nothing; HBase's Thrift says NONE


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


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise IllegalArgument(f"takes a whole number, not '{text}'")
    return int(text)


def _seconds(text: str) -> int | None:
    if text.upper() == "FOREVER":
        return None
    seconds = _number(text)
    if seconds <= 0:
        raise IllegalArgument(f"is a positive number of seconds or FOREVER, not '{text}'")
    return None if seconds >= FOR_EVER else seconds


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise IllegalArgument(f"is true or false, not '{text}'")
    return text.lower() == "true"


def _shown_truth(value: bool) -> str:
    return "true" if value else "false"


def _shown_seconds(value: int | None) -> str:
    return "FOREVER" if value is None else str(value)


def _shown_number(value: int | None) -> str:
    return "" if value is None else str(value)


FAMILY_ATTRIBUTES: Final[Mapping[str, _Attribute]] = {
    "VERSIONS": _Attribute("max_versions", _number, str, "how many versions of a cell are kept"),
    "MIN_VERSIONS": _Attribute("min_versions", _number, str, "so many stay though their time to live is over"),
    "TTL": _Attribute("ttl_s", _seconds, _shown_seconds, "seconds that a cell lives, or FOREVER"),
    "COMPRESSION": _Attribute("compression", _one_of(COMPRESSIONS), str, ", ".join(COMPRESSIONS)),
    "BLOOMFILTER": _Attribute("bloom_filter", _one_of(BLOOM_FILTERS), str, ", ".join(BLOOM_FILTERS)),
    "IN_MEMORY": _Attribute("in_memory", _truth, _shown_truth, "true: a cache that other families cannot use up"),
    "BLOCKCACHE": _Attribute("block_cache", _truth, _shown_truth, "false: blocks are not kept in memory"),
    "BLOCKSIZE": _Attribute("block_size", _number, _shown_number, "bytes read from disk at a time"),
    "DURABILITY": _Attribute("durability", _one_of(DURABILITIES), str, "USE_DEFAULT: as the table's"),
}
OWN_DEFAULT: Final = Family("", compression=OWN_COMPRESSION)


def with_attributes(family: Family, given: Mapping[str, str]) -> Family:
    """``family`` with these attributes; what is not named stays.  IllegalArgument names what is wrong."""
    changes: dict[str, Any] = {}
    for name, text in given.items():
        attribute = FAMILY_ATTRIBUTES.get(name.upper())
        if attribute is None:
            raise IllegalArgument(f"family attribute {name} is none of {', '.join(FAMILY_ATTRIBUTES)}")
        try:
            changes[attribute.field] = attribute.parse(text) if text else getattr(OWN_DEFAULT, attribute.field)
        except IllegalArgument as error:
            raise IllegalArgument(f"family {family.name}: {name.upper()} {error.text}") from None
    said = {name.upper() for name in given}
    return checked_family(replace(family, **changes, unsaid=tuple(one for one in family.unsaid if one not in said)))


def attributes_of(family: Family) -> dict[str, str]:
    """Every attribute as text, as it acts; one that the engine chooses is left out."""
    acting = replace(
        family,
        block_cache=family.uses_block_cache,
        bloom_filter=family.bloom_filter if not family.uses_bloom_filter or family.bloom_filter != "NONE" else "ROW",
    )
    shown = {name: one.show(getattr(acting, one.field)) for name, one in FAMILY_ATTRIBUTES.items()}
    return {name: text for name, text in shown.items() if text}


_NO_NUMBERS: Final = frozenset({"READONLY", "DURABILITY", "THROTTLE"})  # attributes of tables


def merged_attributes(held: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Table attributes after a change; an empty text takes one away."""
    gone = {name for name, text in given.items() if not text}
    checked_attributes(dict.fromkeys(gone - _NO_NUMBERS, "0"))  # of unknown names it complains
    changed = checked_attributes({name: text for name, text in given.items() if text})
    return {name: text for name, text in {**held, **changed}.items() if name not in gone}
