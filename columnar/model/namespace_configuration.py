"""(pure) The configuration of a namespace: texts that its maker gives, and reads again.

The key ``hbase.namespace.quota.maxtables`` acts: it is the number of tables that the namespace takes.  HBase's bound
of regions is refused: a region splits when it is large, and no bound of a namespace stops it.  Every other key is kept.

Knows nothing of namespaces and their tables (``columnar.master``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from columnar.errors import IllegalArgument
from columnar.limits import INERT_TEXT_BYTES
from columnar.model.inert_attributes import check_count

MOST_TABLES: Final = "hbase.namespace.quota.maxtables"
_MOST_REGIONS: Final = "hbase.namespace.quota.maxregions"


def checked_configuration(given: Mapping[str, str]) -> dict[str, str]:
    """IllegalArgument names the key that is wrong."""
    check_count(len(given), "the configuration of a namespace")
    for key, text in given.items():
        if not key or not text:
            raise IllegalArgument(f"configuration '{key}' of a namespace: neither a key nor its value is empty")
        if len(key.encode()) > INERT_TEXT_BYTES or len(text.encode()) > INERT_TEXT_BYTES:
            raise IllegalArgument(f"configuration {key[:100]}: keys and values have at most {INERT_TEXT_BYTES} bytes")
        if key == _MOST_REGIONS:
            raise IllegalArgument(
                f"{key} is not kept here: regions split by their size; {MOST_TABLES} bounds the tables"
            )
        if key == MOST_TABLES and not (text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text) > 0):
            raise IllegalArgument(f"{key} takes a positive whole number, not '{text}'")
    return dict(sorted(given.items()))


def most_tables(configuration: Mapping[str, str]) -> int | None:
    """How many tables the namespace takes; None: any number."""
    text = configuration.get(MOST_TABLES)
    return int(text) if text is not None else None
