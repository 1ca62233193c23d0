"""(pure) Groups of readers of a change stream: their bounds and names, and what an operator sees of them.

Knows nothing of logs, links and clients.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from columnar.errors import IllegalArgument

GROUP_LEASE_MS: Final = 30_000  # of a member, from a pull on; a range that is to move is released as late
GROUP_WAIT_MS: Final = GROUP_LEASE_MS // 2  # the longest wait of a pull: then the lease still lasts for its changes
GROUP_MEMBERS: Final = 1_000
GROUP_RANGES: Final = 4_096
GROUPS_OF_TABLE: Final = 100
NAME_CHARACTERS: Final = 128  # of a group, or a member
_NAME: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_CHARACTERS - 1}}}")


@dataclass(frozen=True, slots=True)
class MemberStatus:
    name: str
    left_ms: int  # of its lease; negative: expired, and nobody needed its ranges so far
    ranges: int


@dataclass(frozen=True, slots=True)
class RangeStatus:
    start: bytes
    stop: bytes  # empty: to the last row
    owner: str  # empty: nobody
    epoch: int
    age_ms: int  # since the last moment at which all that was handed out of the range was committed
    moves: bool


@dataclass(frozen=True, slots=True)
class GroupStatus:
    name: str
    members: tuple[MemberStatus, ...]
    ranges: tuple[RangeStatus, ...]


def checked_name(name: str, what: str) -> str:
    """Return the name.  Raises IllegalArgument; ``what`` is ``group`` or ``member``."""
    if not _NAME.fullmatch(name):
        raise IllegalArgument(
            f"the name of a {what} has 1 to {NAME_CHARACTERS} letters, digits, dots, hyphens and underscores, and "
            f"begins with a letter or digit; not {name[:NAME_CHARACTERS]!r}"
        )
    return name
