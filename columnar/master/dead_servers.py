"""Dead incarnations of servers that the catalogue or the data folder names, and the contents of their logs.

A log with missing data is never taken for a shorter log.  It counts as a log that has no seal and names every region
of its server.  The opening of such a region reads the log again, and finds the damage, or the file that was restored.

Functions that read logs block.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from columnar.errors import DamagedData, HostError
from columnar.model.owner import Incarnation, Owner, OwnershipPeriod, incarnation_of
from columnar.model.region_info import RegionInfo
from columnar.storage import server_folders
from columnar.storage.dead_logs import NO_LENGTHS, DeadLog, remedy_of
from columnar.storage.server_folders import Seal

if TYPE_CHECKING:
    from columnar.master.catalogue import Catalogue

_log = logging.getLogger(__name__)

Owned: TypeAlias = frozenset[tuple[str, int]]  # encoded regions and epochs


@dataclass(frozen=True, slots=True)
class DeadServerLog:
    """The log of a dead incarnation: its seal, and the regions with epochs that it names."""

    lengths: tuple[tuple[str, int], ...] | None  # None: unknown, the log is damaged
    named: Owned
    log: DeadLog | None  # None: it is damaged
    damage: str = ""  # the reason, and what to do
    opened: frozenset[int] = frozenset()  # regions that it was opening when it died, or had opened a moment before


def read_dead_server_log(
    data: str, server: Incarnation, seal: Seal | None, owned: Owned, synced: Mapping[int, int] = NO_LENGTHS
) -> DeadServerLog:
    """Read the log.  ``owned``: all that the server owned according to the catalogue.  Raises HostError.

    ``synced`` has the lengths that the server had synced by its node's record.
    """
    try:
        log = server_folders.dead_log(data, str(server), seal, synced, is_named=bool(owned))
        return DeadServerLog(log.extent, log.named(), log)
    except DamagedData as error:
        return DeadServerLog(None, owned, None, error.text)


def read_dead_server_logs(catalogue: Catalogue, data: str) -> dict[Incarnation, DeadServerLog]:
    """Read the log of every incarnation of earlier starts.  Raises HostError."""
    named = named_in(catalogue, data)
    return {
        one: read_dead_server_log(data, one, catalogue.ownership.seal_of(one), owned_by(catalogue, one))
        for one in named
    }


def named_in(catalogue: Catalogue, data: str) -> set[Incarnation]:
    """Return all incarnations of earlier starts that a row names or that have a folder."""
    named = set(catalogue.ownership.sealed)
    for row in catalogue.ownership.owners.values():
        named |= {row.server, *(period.server for period in row.unreplayed_logs)}
        if row.source is not None:
            named.add(row.source.server)
    for name in server_folders.incarnations(data):
        with suppress(ValueError):  # a folder that is not a server's
            named.add(incarnation_of(name))
    return named


def owned_by(catalogue: Catalogue, server: Incarnation) -> Owned:
    found = []
    for info, row in _rows_in(catalogue):
        if row is not None:
            periods = [row.ownership_period, *row.unreplayed_logs, *([row.source] if row.source is not None else [])]
            found += [(info.encoded, period.epoch) for period in periods if period.server == server]
    return frozenset(found)


def _rows_in(catalogue: Catalogue) -> Iterator[tuple[RegionInfo, Owner | None]]:
    for entry in catalogue.tables.values():
        for info in entry.regions:
            yield info, catalogue.ownership.owners.get(info.region_id)


def contradictions(catalogue: Catalogue, data: str) -> list[str]:
    """Describe each owner in the catalogue that cannot be right, as a log has later writes by a different server.

    A server writes to a region only after its owner row is on disk, and the row of a later owner has a later epoch.
    A catalogue without any owner is not checked against logs: one process has taken over the folder.  A damaged log
    is skipped.  Raises HostError.
    """
    found = [*catalogue.ownership.unread.values()]
    if not catalogue.ownership.owners or not server_folders.have_logs(data):
        return found
    rows = {info.encoded: row for info, row in _rows_in(catalogue)}
    for server, dead_log in sorted(read_dead_server_logs(catalogue, data).items()):
        for region, epoch in sorted(dead_log.named) if dead_log.log is not None else ():
            if region in rows and (wrong := _is_wrong(rows[region], OwnershipPeriod(server, epoch))):
                found.append(f"the log of server {server} has writes of region {region} at epoch {epoch}, and {wrong}")
    return found


def _is_wrong(row: Owner | None, period: OwnershipPeriod) -> str:
    if row is None:
        return "the catalogue has no owner of the region"
    if row.epoch < period.epoch or (row.epoch == period.epoch and row.server != period.server):
        return f"the catalogue has {row.server} at epoch {row.epoch} as its owner"
    return ""


def check_owners(catalogue: Catalogue, data: str) -> None:
    """Raise DamagedData if a region would be served without the writes that a dead server's log has of it."""
    try:
        found = contradictions(catalogue, data)
    except HostError as error:
        _log.warning("nobody can tell whether owners in the catalogue are those of the logs: %s", error.text)
        found = [*catalogue.ownership.unread.values()]
    if found:
        raise DamagedData(f"{found[0]}; {remedy_of(data)}")
