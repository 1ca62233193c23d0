"""(pure) The requests by which a gateway checks a view against its sources, and repairs it, at their regions' owners.

Each request is for the region that holds a row.  A walk continues at ``next_row`` until that is None; it requests
digests (``views.digests``) or, if it names buckets, the entries in them.  An owner that does not have the region
answers so (``is_not_local``, None among snapshots), and nothing was done there.

Knows nothing of links and regions, nor of the comparison (``columnar.views``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from columnar.model.mutation import RowWrite
from columnar.model.region_messages import Message

Entry = tuple[bytes, bytes, bytes]  # group, member, hash of what the member gives


@dataclass(frozen=True, slots=True)
class SourceFound:
    next_row: bytes | None = None  # where the walk continues; None: it is at its end
    digest: bytes = b""
    rows: int = 0
    rejected: int = 0  # rows that cannot be read: they give nothing
    entries: tuple[tuple[bytes, tuple[Entry, ...]], ...] = ()  # by row
    is_not_local: bool = False


@dataclass(frozen=True, slots=True)
class SourcePart(Message[SourceFound]):
    """Answer what rows of a source give, from ``start`` on."""

    view: str
    side: int  # of the view's sources
    start: bytes
    buckets: bytes = b""  # ``digests.Buckets``; empty: a digest of all is requested
    is_summed: bool = False  # a digest of the entries in ``buckets``, not their list


@dataclass(frozen=True, slots=True)
class GroupsFound:
    next_row: bytes | None = None  # None: the walk is at its end
    after: bytes = b""  # the member after which it continues there
    digest: bytes = b""
    groups: int = 0
    members: int = 0
    wrong: tuple[tuple[bytes, str], ...] = ()  # groups that are at odds with their own members, and in what
    entries: tuple[Entry, ...] = ()
    is_not_local: bool = False


@dataclass(frozen=True, slots=True)
class GroupsPart(Message[GroupsFound]):
    """Request the contents of members, from group ``start`` on; without buckets each group is checked within itself."""

    view: str
    start: bytes
    after: bytes = b""
    buckets: bytes = b""
    is_summed: bool = False


@dataclass(frozen=True, slots=True)
class EntriesSnapshot:
    """A source row and what it gives, or a member and what it holds, at one moment."""

    print: bytes = b""  # of the cells: different after each change, even if the values are the same
    entries: tuple[Entry, ...] = ()


EntriesSnapshots = tuple[EntriesSnapshot | None, ...]  # None: it is another server's


@dataclass(frozen=True, slots=True)
class ReadSourceRows(Message[EntriesSnapshots]):
    view: str
    side: int
    rows: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ReadGroupMembers(Message[EntriesSnapshots]):
    view: str
    members: tuple[tuple[bytes, bytes], ...]  # group, member


@dataclass(frozen=True, slots=True)
class Said:
    sequence: tuple[int, int, int] = (0, 0, 0)  # above all that the region had
    writes: tuple[RowWrite, ...] = ()  # the row's contributions as of it, one write for each group
    is_not_local: bool = False


@dataclass(frozen=True, slots=True)
class SayAgain(Message[Said]):
    """Number a source row as it is now, as a change of it would be, and say what it gives."""

    view: str
    side: int
    row: bytes


@dataclass(frozen=True, slots=True)
class RepairResult:
    totals: int = 0  # cells that were set right
    ordered: int = 0
    is_not_local: bool = False


@dataclass(frozen=True, slots=True)
class RepairGroup(Message[RepairResult]):
    """Correct the totals and the order of a group from its members; or only remove ``members`` from it.

    A member is removed if its cell still has the print with which it was seen.
    """

    view: str
    group: bytes
    members: tuple[tuple[bytes, bytes], ...] = ()  # member, print


KINDS: Final[tuple[type[Message[Any]], ...]] = (
    SourcePart, GroupsPart, ReadSourceRows, ReadGroupMembers, SayAgain, RepairGroup,
)  # fmt: skip
