"""(pure) The owner of a region: the incarnation of a server that may answer for it, at an epoch; its JSON.

An epoch numbers the owners of one region and only rises.  It is another number than the epoch of the region's change
log, which counts openings.

    server      the incarnation that may acknowledge for the region
    epoch       the owner refuses whatever is told or asked at another one
    generation  of the region's folder; it rises only after a fence by time, 0 on one machine
    source      the owner before, until it has said "closed" or is fenced; the new owner does not open before that
    behind      owners whose logs may hold acknowledged writes that the store lacks, ascending by epoch: whoever opens
                the region brings them in first

Invariant: epochs in ``behind`` and of ``source`` are below ``epoch``; at most one entry for each epoch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Incarnation:
    """A start of a server; its number was never given to that name before.  Written ``s2.17``."""

    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name}.{self.number}"


def incarnation_of(text: str) -> Incarnation:
    """ValueError for what ``str`` of no incarnation is."""
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
    """The owner of a new region: nothing is behind."""
    return Owner(server, epoch)


def moved(owner: Owner, server: Incarnation) -> Owner:
    """The next owner, which opens the region when ``owner`` has closed it; what was behind stays behind."""
    return Owner(server, owner.epoch + 1, owner.generation, owner.ownership_period, owner.unreplayed_logs)


def taken_from_dead(owner: Owner, server: Incarnation, *, in_log: bool) -> Owner:
    """The next owner after ``owner`` was fenced by ``waitpid``.

    ``in_log``: the dead owner's log names the region at the owner's epoch, so it may hold writes that the store lacks.
    A source that had not closed yet is the caller's to look at: it may be alive.
    """
    behind = (*owner.unreplayed_logs, owner.ownership_period) if in_log else owner.unreplayed_logs
    return Owner(server, owner.epoch + 1, owner.generation, None, behind)


def redirected(owner: Owner, server: Incarnation) -> Owner:
    """The next owner after ``owner`` never opened the region, for its source has not closed it yet."""
    return Owner(server, owner.epoch + 1, owner.generation, owner.source, owner.unreplayed_logs)


def renumbered(owner: Owner) -> Owner:
    """The source, which has not closed the region, keeps it at the next epoch: the move is called off.

    The source's log holds writes of both epochs.  Its earlier tenure stays behind until the source has closed the
    region or another server has opened it.
    """
    assert owner.source is not None, "only a move is called off"
    return Owner(owner.source.server, owner.epoch + 1, owner.generation, None, (*owner.unreplayed_logs, owner.source))


def source_closed(owner: Owner, *, is_behind: bool) -> Owner:
    """The source has closed the region.

    ``is_behind``: its last fsync failed, so its log may hold writes that the store lacks.  Otherwise the store has
    all that the source ever wrote: its tenures before a ``renumbered`` are not behind any more either.
    """
    assert owner.source is not None, "no source is waited for"
    return replace(owner, source=None, unreplayed_logs=_closed(owner.unreplayed_logs, owner.source, is_behind))


def source_fenced(owner: Owner, *, in_log: bool) -> Owner:
    """The source was fenced before it had closed the region.  ``in_log``: as for ``taken_from_dead``."""
    assert owner.source is not None, "no source is waited for"
    return replace(
        owner, source=None, unreplayed_logs=(*owner.unreplayed_logs, owner.source) if in_log else owner.unreplayed_logs
    )


def given_up(owner: Owner, server: Incarnation, *, is_behind: bool) -> Owner:
    """The next owner after ``owner`` has closed the region by itself.  ``is_behind``: as for ``source_closed``."""
    return Owner(
        server,
        owner.epoch + 1,
        owner.generation,
        None,
        _closed(owner.unreplayed_logs, owner.ownership_period, is_behind),
    )


def _closed(
    behind: tuple[OwnershipPeriod, ...], tenure: OwnershipPeriod, is_behind: bool
) -> tuple[OwnershipPeriod, ...]:
    if is_behind:
        return (*behind, tenure)
    return tuple(one for one in behind if one.server != tenure.server)


def settled(owner: Owner) -> Owner:
    """The owner has opened the region, with everything that was behind: nothing before it counts any more.

    Earlier tenures of the owner itself (``renumbered``) stay: its log still holds them.
    """
    return replace(
        owner, source=None, unreplayed_logs=tuple(one for one in owner.unreplayed_logs if one.server == owner.server)
    )


def find_unreplayed_logs(owner: Owner, is_in_log: Callable[[OwnershipPeriod], bool]) -> tuple[OwnershipPeriod, ...]:
    """The tenures whose logs may hold what the store lacks, when every incarnation is over.

    ``is_in_log``: whether the log of the tenure's server names the region at the tenure's epoch.
    """
    if owner.source is not None:
        owner = source_fenced(owner, in_log=is_in_log(owner.source))
    return taken_from_dead(owner, owner.server, in_log=is_in_log(owner.ownership_period)).unreplayed_logs


def is_named(owner: Owner, server: Incarnation) -> bool:
    """Whether the row names the incarnation: its log may hold something of the region."""
    sources = () if owner.source is None else (owner.source,)
    return server in [owner.server, *(tenure.server for tenure in (*sources, *owner.unreplayed_logs))]


def servers_to_replay(owner: Owner, server: Incarnation) -> list[Incarnation]:
    """The incarnations whose logs the owner, on ``server``, must read; its own it has."""
    return list(dict.fromkeys(tenure.server for tenure in owner.unreplayed_logs if tenure.server != server))


def to_json(owner: Owner) -> bytes:
    held = {
        "server": str(owner.server),
        "epoch": owner.epoch,
        "generation": owner.generation,
        "from": None if owner.source is None else _pair(owner.source),
        "behind": [_pair(tenure) for tenure in owner.unreplayed_logs],
    }
    return json.dumps(held, sort_keys=True).encode()


def from_json(data: bytes) -> Owner:
    held: dict[str, Any] = json.loads(data)
    source = held["from"]
    behind = tuple(_parse_ownership_period(pair) for pair in held["behind"])
    server = incarnation_of(held["server"])
    if not all(isinstance(held[name], int) for name in ("epoch", "generation")):
        raise ValueError("an owner's epoch and generation are numbers")
    return Owner(
        server, held["epoch"], held["generation"], None if source is None else _parse_ownership_period(source), behind
    )


def _pair(tenure: OwnershipPeriod) -> list[object]:
    return [str(tenure.server), tenure.epoch]


def _parse_ownership_period(pair: list[Any]) -> OwnershipPeriod:
    return OwnershipPeriod(incarnation_of(pair[0]), pair[1])


def names(owner: Owner | None, server: Incarnation) -> bool:
    """Whether the row names the incarnation."""
    if owner is None:
        return False
    sources = () if owner.source is None else (owner.source,)
    return server in [owner.server, *(tenure.server for tenure in (*sources, *owner.unreplayed_logs))]
