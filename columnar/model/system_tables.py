"""(pure) The tables that the system keeps for itself, beside the catalogue; the master makes them.

A table is in the list here, because the parts of the program that use the tables do not know each other.
"""

from __future__ import annotations

from typing import Final

from columnar.model.lease import LEASE_FAMILY, LEASES_TABLE
from columnar.model.schema import Family

DEAD_LETTERS_TABLE: Final = "columnar:dead_letters"  # ``triggers.dead_letters``
GROUPS_TABLE: Final = "columnar:groups"  # ``streams.group_bytes``
SYSTEM_TABLES: Final[tuple[tuple[str, Family], ...]] = (
    (DEAD_LETTERS_TABLE, Family("info")),
    (GROUPS_TABLE, Family("info")),
    (LEASES_TABLE, Family(LEASE_FAMILY)),
)
