"""Incarnations of servers that are over: which the catalogue and the data folder name, and what their logs hold.

A log that misses something is never taken for a shorter one.  It counts as one that names all that its server owned,
and has no seal: whoever opens one of those regions looks at the log anew, and meets the damage, or the file that was
put back.

Functions that read logs block.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from columnar.errors import DamagedData
from columnar.model.owner import Incarnation, incarnation_of
from columnar.storage import server_folders
from columnar.storage.dead_logs import DeadLog
from columnar.storage.server_folders import Seal

if TYPE_CHECKING:
    from columnar.master.catalogue import Catalogue

Owned: TypeAlias = frozenset[tuple[str, int]]  # encoded regions and epochs


@dataclass(frozen=True, slots=True)
class Past:
    """An incarnation that is over: the seal of its log, and the regions with epochs that the log names."""

    lengths: tuple[tuple[str, int], ...] | None  # None: nobody knows, the log is damaged
    named: Owned
    log: DeadLog | None  # None: it is damaged
    damage: str = ""  # the reason, and what to do
    opened: frozenset[int] = frozenset()  # regions that it was opening when it died, or had opened a moment before


def past_of(data: str, server: Incarnation, seal: Seal | None, owned: Owned) -> Past:
    """Read the log.  ``owned``: all that rows of the catalogue say the server owned.  HostError."""
    try:
        log = server_folders.dead_log(data, str(server), seal, is_named=bool(owned))
        return Past(log.extent, log.named(), log)
    except DamagedData as error:
        return Past(None, owned, None, error.text)


def pasts_in(catalogue: Catalogue, data: str) -> dict[Incarnation, Past]:
    """Every incarnation of earlier starts.  HostError."""
    return {
        one: past_of(data, one, catalogue.seal_of(one), owned_by(catalogue, one)) for one in named_in(catalogue, data)
    }


def named_in(catalogue: Catalogue, data: str) -> set[Incarnation]:
    """All incarnations of earlier starts: in rows, or with a folder."""
    named = set(catalogue.sealed)
    for row in catalogue.owners.values():
        named |= {row.server, *(tenure.server for tenure in row.behind)}
        if row.source is not None:
            named.add(row.source.server)
    for name in server_folders.incarnations(data):
        with suppress(ValueError):  # a folder of somebody else's
            named.add(incarnation_of(name))
    return named


def owned_by(catalogue: Catalogue, server: Incarnation) -> Owned:
    found = []
    for entry in catalogue.tables.values():
        for info in entry.regions:
            row = catalogue.owners.get(info.region_id)
            if row is not None:
                tenures = [row.tenure, *row.behind, *([row.source] if row.source is not None else [])]
                found += [(info.encoded, tenure.epoch) for tenure in tenures if tenure.server == server]
    return frozenset(found)
