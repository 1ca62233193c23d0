"""(pure) What a check of a view found, and what a repair did.

    row      what a source row gives is not what its groups have of it
    group    a group's totals or order are at odds with its own members

Knows nothing of how it was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_FINDINGS: Final = 100  # findings of a report; more are counted


@dataclass(frozen=True, slots=True)
class Finding:
    kind: str  # row or group
    table: str  # of the row
    row: bytes
    text: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    view: str
    source_rows: int
    rejected: int  # of them, which cannot be read as the view says: they are in no group
    groups: int
    members: int
    findings: tuple[Finding, ...]  # the first SHOWN
    wrong: int  # all of them
    unsure: int  # rows that changed whenever they were looked at: nothing is said of them
    repaired: int
