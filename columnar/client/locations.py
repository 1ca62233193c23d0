"""(pure) A client's copy of which server owns which region of which table.

The copy is a guess: a server that does not own a row refuses the call and names the owner (``moved``), and any server
can forward the call.  A table is asked for again once its copy is KEPT_S old, or once it proved wrong and could not be
corrected, at most every RETRY_S.

Invariants (``check_invariants``):
    L1. The regions of a table are ascending from the first row, and each ends where the next one begins.
    L2. At most MOST_TABLES tables are kept; the table that was asked for first is dropped.

Knows nothing of connections and of the clock: times are arguments, in seconds of any clock that only rises.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from columnar.client.addresses import Address
from columnar.model.region_location import Location, NewOwner

KEPT_S: Final = 60.0
RETRY_S: Final = 0.1
MOST_TABLES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Piece:
    """Neighbouring regions of one owner."""

    owner: Address | None  # None: any server
    end: bytes  # exclusive; empty: the last row


class _Table:
    __slots__ = ("ends", "epochs", "is_wrong", "owners", "requested_s", "starts")

    def __init__(self, locations: Sequence[Location], owners: list[Address | None], now_s: float) -> None:
        self.starts = [one.start for one in locations]
        self.ends = [one.end for one in locations]
        self.epochs = [one.epoch for one in locations]
        self.owners = owners
        self.requested_s = now_s
        self.is_wrong = False

    def at(self, row: bytes) -> int:
        return bisect_right(self.starts, row) - 1

    def note_wrong(self) -> None:
        self.is_wrong = True

    def correct(self, row: bytes, owner: Address, epoch: int) -> None:
        """Replace the owner of the row's region, unless the epoch is not news; then the whole copy is wrong."""
        at = self.at(row)
        if epoch > self.epochs[at]:
            self.epochs[at] = epoch
            self.owners[at] = owner
        else:
            self.is_wrong = True

    def forget(self, server: Address) -> None:
        if server in self.owners:
            self.owners = [None if owner == server else owner for owner in self.owners]
            self.is_wrong = True


class Locations:
    def __init__(self) -> None:
        self._tables: dict[bytes, _Table] = {}

    # --- what servers say --------------------------------------------------------------------------

    def store_locations(self, table: bytes, locations: Sequence[Location], any_host: str, now_s: float) -> None:
        """Take the answer to ``columnarRegionOwners``.

        ``any_host`` replaces a host that is no address to connect to, as 0.0.0.0: the host of the server that answered.
        Locations that do not cover the table are taken as "any server".
        """
        if not _covers(locations):
            locations = [Location(b"", b"", "", 0, "", 0, 0)]
        self._tables.pop(table, None)
        while len(self._tables) >= MOST_TABLES:
            del self._tables[next(iter(self._tables))]
        self._tables[table] = _Table(locations, [_address(one, any_host) for one in locations], now_s)

    def no_answer(self, table: bytes, now_s: float) -> None:
        """Note that nobody could answer; the table's rows go to any server until it is asked for again."""
        self.store_locations(table, [], "", now_s)
        self._tables[table].note_wrong()

    def moved(self, table: bytes, row: bytes, owner: NewOwner, any_host: str) -> None:
        """Take a refusal that names the row's owner.  A refusal that is older than the copy makes the copy wrong."""
        found = self._tables.get(table)
        if found is not None:
            found.correct(row, Address(_reachable(owner.host, any_host), owner.port), owner.epoch)

    def left(self, server: Address) -> None:
        """Note that the server does not answer: its rows go to any server until their tables are requested again."""
        for table in self._tables.values():
            table.forget(server)

    # --- lookups -----------------------------------------------------------------------------------

    def is_outdated(self, table: bytes, now_s: float) -> bool:
        """Return whether the table is to be asked for before its owners are looked up."""
        found = self._tables.get(table)
        if found is None:
            return True
        return now_s - found.requested_s >= (RETRY_S if found.is_wrong else KEPT_S)

    def owner(self, table: bytes, row: bytes) -> Address | None:
        """Return the owner of the row; None if any server may be called.  O(log regions)."""
        found = self._tables.get(table)
        return found.owners[found.at(row)] if found is not None else None

    def cut(self, table: bytes, rows: Sequence[bytes]) -> dict[Address | None, list[int]]:
        """Return the places in ``rows`` by the owner, ascending; None: any server."""
        cut: dict[Address | None, list[int]] = {}
        for place, row in enumerate(rows):
            cut.setdefault(self.owner(table, row), []).append(place)
        return cut

    def piece(self, table: bytes, row: bytes) -> Piece:
        """Return the row's region and the regions after it, as far as they have the same owner."""
        found = self._tables.get(table)
        if found is None:
            return Piece(None, b"")
        at = found.at(row)
        owner = found.owners[at]
        while at + 1 < len(found.owners) and found.owners[at + 1] == owner:
            at += 1
        return Piece(owner, found.ends[at])

    def last_owner(self, table: bytes) -> Address | None:
        """Return the owner of the table's last region."""
        found = self._tables.get(table)
        return found.owners[-1] if found is not None else None

    def check_invariants(self) -> None:
        """Assert L1 and L2."""
        assert len(self._tables) <= MOST_TABLES, "L2"
        for table in self._tables.values():
            assert table.starts[0] == b"", "L1"
            assert table.ends[-1] == b"", "L1"
            assert all(left < right for left, right in pairwise(table.starts)), "L1"
            assert table.starts[1:] == table.ends[:-1], "L1"


def _covers(locations: Sequence[Location]) -> bool:
    if not locations or locations[0].start or locations[-1].end:
        return False
    return all(left.end and left.end == right.start > left.start for left, right in pairwise(locations))


def _address(location: Location, any_host: str) -> Address | None:
    return Address(_reachable(location.host, any_host), location.port) if location.server else None


def _reachable(host: str, any_host: str) -> str:
    return any_host if host in ("", "0.0.0.0", "::") else host  # noqa: S104 - compared, not bound
