"""(pure) The ownership that is passed to the opening of a region's store: the owner's epoch and the unreplayed logs.

    complete := epoch:u64 region                a pair in META_SPACE of the region's store; big-endian, ``region`` ASCII

``complete`` is the epoch of the last owner that replayed logs, or that began to write to a server's log.  The store has
every write that owners of lower epochs acknowledged.  Records of lower epochs are never replayed again, because they
would hide newer values.

The pair names its region, because the store of a new region may begin as a copy (a split, a clone), and each region
counts its own epochs.  A store without the pair, or with the pair of a different region, has complete = 0.

Invariants:
    I1. An opening replays exactly the unreplayed logs of epochs at or above ``complete``, in ascending order.
    I2. ``complete`` only rises: an owner at a lower epoch is refused.
    I3. The epoch of a sole owner is above all epochs of the dead logs that it replays, and not below ``complete``.

Knows nothing of stores, files and the content of records (``recovery``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from struct import Struct
from typing import Final

from columnar.errors import DamagedData

META_SPACE: Final = "meta"  # of every region's store
COMPLETE: Final = b"complete"
THIS_RUN: Final = "this run"  # the log that the process itself writes
_EPOCH: Final = Struct(">Q")


@dataclass(frozen=True, slots=True)
class LogPart:
    """Records of one epoch in a log; the log's name is the incarnation that wrote it, as ``s2.17``."""

    log: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Ownership:
    """The claim with which the owner of a region opens its store."""

    region: str  # encoded; a folder may have another name
    epoch: int
    unreplayed_logs: tuple[LogPart, ...] = ()
    is_sole: bool = False  # no other process can own regions of this folder, so the epoch rises above those found


def pack_complete(epoch: int, region: str) -> bytes:
    return _EPOCH.pack(epoch) + region.encode("ascii")


def complete_in(value: bytes | None, region: str) -> int:
    """Return the epoch in the pair's value, or 0 if there is no pair or it names a different region."""
    if value is None or value[_EPOCH.size :] != region.encode("ascii"):
        return 0
    found: tuple[int] = _EPOCH.unpack_from(value)
    return found[0]


def epoch_to_own(ownership: Ownership, complete: int) -> int:
    """Return the epoch of the store's next records.  Raises DamagedData if a later owner had the store (I2)."""
    if ownership.is_sole:
        epochs = [part.epoch + (part.log != THIS_RUN) for part in ownership.unreplayed_logs]
        return max(ownership.epoch, complete, *epochs)
    if complete > ownership.epoch:
        raise DamagedData(
            f"region {ownership.region} had an owner at epoch {complete}; nobody may open it at {ownership.epoch} "
            "any more. Put the newest copies of its folder and of the catalogue back"
        )
    return ownership.epoch


def logs_to_replay(ownership: Ownership, complete: int) -> list[tuple[str, frozenset[int]]]:
    """Return the logs to replay with their epochs, in the order of replay (I1)."""
    parts = sorted({part for part in ownership.unreplayed_logs if part.epoch >= complete}, key=_order)
    return [(log, frozenset(part.epoch for part in group)) for log, group in _by_log(parts)]


def _order(part: LogPart) -> tuple[int, bool, str]:
    return part.epoch, part.log == THIS_RUN, part.log  # records of this run are the latest


def _by_log(parts: Sequence[LogPart]) -> list[tuple[str, list[LogPart]]]:
    """Group successive parts of the same log: an owner at a new epoch continued with the same batch numbers."""
    return [(log, list(group)) for log, group in groupby(parts, key=lambda part: part.log)]
