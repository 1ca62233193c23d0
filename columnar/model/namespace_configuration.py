"""(pure) The configuration of a namespace: texts that its maker gives, and reads again.

Two keys act: ``hbase.namespace.quota.maxtables`` and ``hbase.namespace.quota.maxregions`` are the numbers of tables and
of regions that the namespace takes.  Every other key is kept.

Knows nothing of namespaces and their tables (``columnar.master``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from columnar.errors import IllegalArgument
from columnar.limits import INERT_TEXT_BYTES
from columnar.model.inert_attributes import check_count

MOST_TABLES: Final = "hbase.namespace.quota.maxtables"
MOST_REGIONS: Final = "hbase.namespace.quota.maxregions"


def checked_configuration(given: Mapping[str, str]) -> dict[str, str]:
    """IllegalArgument names the key that is wrong."""
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
    """MOST_TABLES or MOST_REGIONS; None: any number."""
    text = configuration.get(key)
    return int(text) if text is not None else None
