"""Incarnations of servers that are dead: which the catalogue and the data folder name, and what their logs hold.

A log with missing data is never taken for a shorter one.  It counts as one that names all that its server owned,
and has no seal: an opening of one of those regions reads the log again, and meets the damage, or the file that was
restored.

Functions that read logs block.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from columnar.errors import DamagedData, HostError
from columnar.model.owner import Incarnation, Owner, OwnershipPeriod, incarnation_of
from columnar.model.region_info import RegionInfo
from columnar.storage import server_folders
from columnar.storage.dead_logs import DeadLog, remedy_of
from columnar.storage.server_folders import Seal

if TYPE_CHECKING:
    from columnar.master.catalogue import Catalogue

_log = logging.getLogger(__name__)

Owned: TypeAlias = frozenset[tuple[str, int]]  # encoded regions and epochs


@dataclass(frozen=True, slots=True)
class DeadServerLog:
    """An incarnation that is over: the seal of its log, and the regions with epochs that the log names."""

    lengths: tuple[tuple[str, int], ...] | None  # None: unknown, the log is damaged
    named: Owned
    log: DeadLog | None  # None: it is damaged
    damage: str = ""  # the reason, and what to do
    opened: frozenset[int] = frozenset()  # regions that it was opening when it died, or had opened a moment before


def read_dead_server_log(data: str, server: Incarnation, seal: Seal | None, owned: Owned) -> DeadServerLog:
    """Read the log.  ``owned``: all that rows of the catalogue say the server owned.  HostError."""
    try:
        log = server_folders.dead_log(data, str(server), seal, is_named=bool(owned))
        return DeadServerLog(log.extent, log.named(), log)
    except DamagedData as error:
        return DeadServerLog(None, owned, None, error.text)


def read_dead_server_logs(catalogue: Catalogue, data: str) -> dict[Incarnation, DeadServerLog]:
    """Read the log of every incarnation of earlier starts.  HostError."""
    named = named_in(catalogue, data)
    return {
        one: read_dead_server_log(data, one, catalogue.ownership.seal_of(one), owned_by(catalogue, one))
        for one in named
    }


def named_in(catalogue: Catalogue, data: str) -> set[Incarnation]:
    """All incarnations of earlier starts: in rows, or with a folder."""
    named = set(catalogue.ownership.sealed)
    for row in catalogue.ownership.owners.values():
        named |= {row.server, *(period.server for period in row.unreplayed_logs)}
        if row.source is not None:
            named.add(row.source.server)
    for name in server_folders.incarnations(data):
        with suppress(ValueError):  # a folder of somebody else's
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
    """Sentences about owners in the catalogue that cannot be: a log has writes of the region by another server.

    A server writes when its row is on disk, and a later owner's row has a later epoch.  Without any row the folder was
    taken over by one process.  A damaged log says nothing.  HostError.
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
    """DamagedData: a region would be served without what a dead server's log has of it."""
    try:
        found = contradictions(catalogue, data)
    except HostError as error:
        _log.warning("nobody can tell whether owners in the catalogue are those of the logs: %s", error.text)
        found = [*catalogue.ownership.unread.values()]
    if found:
        raise DamagedData(f"{found[0]}; {remedy_of(data)}")
