"""(pure) The owner of a region: the incarnation of a server that may serve the region at an epoch; its JSON.

An epoch numbers the owners of one region and only rises.  The epoch of the region's change log is a different number,
which counts openings.

    server      the incarnation that may acknowledge writes to the region
    epoch       the owner refuses requests at another epoch
    generation  number of the region's folder; it rises only after a fence by time, so on one machine it is 0.  Each
                epoch has one generation: an owner that was asked to open a folder never opens another at that epoch
    source      the previous owner, until it has reported the close or is fenced; the new owner opens only after that.
                "from" in the JSON
    unreplayed_logs   ownership periods whose logs may have acknowledged writes that the store lacks, ascending by
                epoch: an opening of the region replays them first.  "behind" in the JSON

Invariant: epochs in ``unreplayed_logs`` and of ``source`` are below ``epoch``; at most one entry for each epoch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Incarnation:
    """A start of a server.  No two starts under the same name have the same number.  Written ``s2.17``."""

    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name}.{self.number}"


def incarnation_of(text: str) -> Incarnation:
    """Parse the text of an incarnation, as ``s2.17``.  Raises ValueError for any other text."""
    name, dot, number = text.rpartition(".")
    if not (name and dot and number.isdigit() and number.isascii()):
        raise ValueError(f"'{text}' names no incarnation of a server, as s2.17 does")
    return Incarnation(name, int(number))


@dataclass(frozen=True, slots=True)
class OwnershipPeriod:
    """The ownership of a region by a server, at an epoch."""

    server: Incarnation
    epoch: int


@dataclass(frozen=True, slots=True)
class Owner:
    server: Incarnation
    epoch: int
    generation: int = 0
    source: OwnershipPeriod | None = None
    unreplayed_logs: tuple[OwnershipPeriod, ...] = ()

    @property
    def ownership_period(self) -> OwnershipPeriod:
        return OwnershipPeriod(self.server, self.epoch)


def first_owner(server: Incarnation, epoch: int = 1) -> Owner:
    """Return the owner of a new region: it has no unreplayed logs."""
    return Owner(server, epoch)


def moved(owner: Owner, server: Incarnation) -> Owner:
    """Return the next owner, which opens the region once ``owner`` has closed it; unreplayed logs stay unreplayed."""
    return Owner(server, owner.epoch + 1, owner.generation, owner.ownership_period, owner.unreplayed_logs)


def taken_from_dead(owner: Owner, server: Incarnation, *, in_log: bool, is_by_time: bool = False) -> Owner:
    """Return the next owner after ``owner`` was fenced.

    ``in_log`` says that the dead owner's log names the region at the owner's epoch, so the log may have writes that the
    store lacks.  ``is_by_time`` says that the owner's lease is over and nobody has reaped its process, which may write
    on into the region's folder: the next owner gets the next generation.  If ``owner`` has a source that has not closed
    the region, the caller must handle the source, which may be alive.
    """
    unreplayed_logs = (*owner.unreplayed_logs, owner.ownership_period) if in_log else owner.unreplayed_logs
    return Owner(server, owner.epoch + 1, owner.generation + is_by_time, None, unreplayed_logs)


def redirected(owner: Owner, server: Incarnation) -> Owner:
    """Return the next owner if ``owner`` never opened the region, because its source has not closed it yet."""
    return Owner(server, owner.epoch + 1, owner.generation, owner.source, owner.unreplayed_logs)


def renumbered(owner: Owner) -> Owner:
    """Return the owner after a move is called off: the source, which has not closed the region, at the next epoch.

    The source's log has writes of both epochs.  The log of the source's earlier ownership period stays unreplayed until
    the source has closed the region or a different server has opened it.
    """
    assert owner.source is not None, "only a move is called off"
    return Owner(owner.source.server, owner.epoch + 1, owner.generation, None, (*owner.unreplayed_logs, owner.source))


def source_closed(owner: Owner, *, is_behind: bool) -> Owner:
    """Return the owner after its source has closed the region.

    ``is_behind`` says that the source's last fsync failed, so its log may have writes that the store lacks.  Otherwise
    the store has every write of the source, and no log of the source's periods before a ``renumbered`` is unreplayed.
    """
    assert owner.source is not None, "no source is waited for"
    return replace(owner, source=None, unreplayed_logs=_closed(owner.unreplayed_logs, owner.source, is_behind))


def source_fenced(owner: Owner, *, in_log: bool, is_by_time: bool = False) -> Owner:
    """Return the owner after its source was fenced before the close.  The arguments are as in ``taken_from_dead``.

    With ``is_by_time`` the row has the next generation, and must get the next epoch before anybody is asked to open it.
    """
    assert owner.source is not None, "no source is waited for"
    return replace(
        owner,
        generation=owner.generation + is_by_time,
        source=None,
        unreplayed_logs=(*owner.unreplayed_logs, owner.source) if in_log else owner.unreplayed_logs,
    )


def given_up(owner: Owner, server: Incarnation, *, is_behind: bool) -> Owner:
    """Return the next owner after ``owner`` closed the region by itself.  ``is_behind`` is as in ``source_closed``."""
    return Owner(
        server,
        owner.epoch + 1,
        owner.generation,
        None,
        _closed(owner.unreplayed_logs, owner.ownership_period, is_behind),
    )


def _closed(
    unreplayed_logs: tuple[OwnershipPeriod, ...], period: OwnershipPeriod, is_behind: bool
) -> tuple[OwnershipPeriod, ...]:
    if is_behind:
        return (*unreplayed_logs, period)
    return tuple(one for one in unreplayed_logs if one.server != period.server)


def settled(owner: Owner) -> Owner:
    """Return the owner after it has replayed the unreplayed logs and opened the region: without these logs.

    Earlier ownership periods of the owner itself (``renumbered``) stay, because its log still has them.
    """
    return replace(
        owner, source=None, unreplayed_logs=tuple(one for one in owner.unreplayed_logs if one.server == owner.server)
    )


def find_unreplayed_logs(owner: Owner, is_in_log: Callable[[OwnershipPeriod], bool]) -> tuple[OwnershipPeriod, ...]:
    """Return the ownership periods whose logs may have writes that the store lacks, if every incarnation is dead.

    ``is_in_log`` tells whether the log of the period's server names the region at the period's epoch.
    """
    if owner.source is not None:
        owner = source_fenced(owner, in_log=is_in_log(owner.source))
    return taken_from_dead(owner, owner.server, in_log=is_in_log(owner.ownership_period)).unreplayed_logs


def is_named(owner: Owner, server: Incarnation) -> bool:
    """Tell whether the owner's row names the incarnation, whose log may then have records of the region."""
    sources = () if owner.source is None else (owner.source,)
    return server in [owner.server, *(period.server for period in (*sources, *owner.unreplayed_logs))]


def servers_to_replay(owner: Owner, server: Incarnation) -> list[Incarnation]:
    """Return the incarnations whose logs an owner on ``server`` must read; it has its own log already."""
    return list(dict.fromkeys(period.server for period in owner.unreplayed_logs if period.server != server))


def to_json(owner: Owner) -> bytes:
    fields = {
        "server": str(owner.server),
        "epoch": owner.epoch,
        "generation": owner.generation,
        "from": None if owner.source is None else _pair(owner.source),
        "behind": [_pair(period) for period in owner.unreplayed_logs],
    }
    return json.dumps(fields, sort_keys=True).encode()


def from_json(data: bytes) -> Owner:
    fields: dict[str, Any] = json.loads(data)
    source = fields["from"]
    unreplayed_logs = tuple(_parse_ownership_period(pair) for pair in fields["behind"])
    server = incarnation_of(fields["server"])
    if not all(isinstance(fields[name], int) for name in ("epoch", "generation")):
        raise ValueError("an owner's epoch and generation are numbers")
    return Owner(
        server,
        fields["epoch"],
        fields["generation"],
        None if source is None else _parse_ownership_period(source),
        unreplayed_logs,
    )


def _pair(period: OwnershipPeriod) -> list[object]:
    return [str(period.server), period.epoch]


def _parse_ownership_period(pair: list[Any]) -> OwnershipPeriod:
    return OwnershipPeriod(incarnation_of(pair[0]), pair[1])


def names(owner: Owner | None, server: Incarnation) -> bool:
    """Tell whether the owner's row names the incarnation; False without an owner."""
    if owner is None:
        return False
    sources = () if owner.source is None else (owner.source,)
    return server in [owner.server, *(period.server for period in (*sources, *owner.unreplayed_logs))]
