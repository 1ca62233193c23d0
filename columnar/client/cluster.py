"""A cluster from a client: servers, where regions are and why, and what a person has done about it.

``ClusterAdmin`` speaks our extension.  A store that is one process answers what it can show, and refuses what needs
another server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class _Caller(Protocol):
    def call(self, method: str, *args: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class ServerStatus:
    name: str
    state: str  # starting, up, fencing, down
    incarnation: int  # of its start; 0: it was never started
    drained: bool
    state_ms: int  # how long it has been so; -1: nobody knows
    regions: int
    load: float
    requests_per_s: float
    moves: int
    version: str
    address: str  # of its own port
    pid: int
    connections: int
    notes: tuple[str, ...]
    last_lines: tuple[str, ...] = ()  # of the log of its start that died last, the newest last


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    servers: tuple[ServerStatus, ...]
    regions: int
    unassigned: int  # without an owner, though they should have one
    transitions: int
    balancer: bool
    auto_split: bool
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegionLocation:
    name: bytes
    encoded_name: str
    start_key: bytes
    end_key: bytes  # empty: to the last row
    region_id: int
    table: bytes
    server: str  # empty: nobody owns it
    incarnation: int
    host: str
    port: int  # 0: not known
    state: str  # OPENING, OPEN, CLOSING, SPLITTING, MERGING, OFFLINE, FAILED_OPEN
    state_ms: int
    epoch: int
    coming_from: str
    home: str
    why: str
    load: float
    reads_per_s: float
    writes_per_s: float
    deliveries_per_s: float
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Transition:
    kind: str  # open, move, close, split, merge; waiting: for a server; failed: until a person assigns it
    name: bytes
    encoded_name: str
    table: bytes
    state: str
    from_server: str
    to_server: str
    state_ms: int
    why: str


@dataclass(frozen=True, slots=True)
class Decision:
    ago_ms: int
    kind: str  # give, prefer, close, split, merge, fence
    regions: tuple[str, ...]  # encoded names, or ids of those that are gone
    server: str
    why: str
    text: str
    at_ms: int = 0  # of the Unix epoch; 0: an older server has not said


@dataclass(frozen=True, slots=True)
class RowLocation:
    region: RegionLocation
    server: ServerStatus | None
    remarks: tuple[str, ...]  # why a request may wait
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class RegionMove:
    name: bytes
    encoded_name: str
    table: bytes
    from_server: str
    to_server: str
    why: str


@dataclass(frozen=True, slots=True)
class ClusterChange:
    text: str
    done: bool  # False: a dry run
    moves: tuple[RegionMove, ...]
    remarks: tuple[str, ...]
    regions_left: int


class ClusterAdmin:
    """``connection`` is a ``columnar.client.Connection``; regions are named by their full or encoded names."""

    def __init__(self, connection: _Caller) -> None:
        self._connection = connection

    # --- status ------------------------------------------------------------------------------------

    def servers(self) -> ClusterStatus:
        found = self._connection.call("columnarServers")
        servers = tuple(_server(one) for one in found.servers)
        remarks = _texts(found.remarks)
        return ClusterStatus(
            servers, found.regions, found.unassigned, found.transitions, found.balancer, found.autoSplit, remarks
        )

    def locations(self, table: bytes) -> list[RegionLocation]:
        return [_location(one) for one in self._connection.call("columnarLocations", table)]

    def locate(self, table: bytes, row: bytes) -> RowLocation:
        found = self._connection.call("columnarLocate", table, row)
        server = _server(found.server) if found.server is not None else None
        decisions = tuple(_decision(one) for one in found.decisions)
        return RowLocation(_location(found.region), server, _texts(found.remarks), decisions)

    def transitions(self) -> list[Transition]:
        """Return the transitions, the longest first."""
        return [
            Transition(
                _text(one.kind),
                one.name,
                _text(one.encodedName),
                one.table,
                _text(one.state),
                _text(one.fromServer),
                _text(one.toServer),
                one.stateMs,
                _text(one.why),
            )
            for one in self._connection.call("columnarTransitions")
        ]

    def decisions(self) -> list[Decision]:
        """Return the last 200 decisions, newest first."""
        return [_decision(one) for one in self._connection.call("columnarDecisions")]

    # --- changes: each returns when it is done -----------------------------------------------------

    def move(self, region: bytes, server: str = "", *, dry_run: bool = False) -> ClusterChange:
        """Move a region; if ``server`` is empty the master chooses."""
        return self._change("columnarMove", region, server, dry_run)

    def assign(self, region: bytes, *, dry_run: bool = False) -> ClusterChange:
        return self._change("columnarAssign", region, dry_run)

    def unassign(self, region: bytes, *, dry_run: bool = False) -> ClusterChange:
        """Close the region until it is assigned."""
        return self._change("columnarUnassign", region, dry_run)

    def drain(self, server: str, *, wait_s: float = 0.0, dry_run: bool = False) -> ClusterChange:
        """Keep the server empty.  Return when it is, or after ``wait_s`` with what it still has."""
        return self._change("columnarDrain", server, True, round(wait_s * 1_000), dry_run)

    def undrain(self, server: str, *, dry_run: bool = False) -> ClusterChange:
        return self._change("columnarDrain", server, False, 0, dry_run)

    def balance(self, *, dry_run: bool = False) -> ClusterChange:
        return self._change("columnarBalance", dry_run)

    def switch(self, what: str, on: bool, *, dry_run: bool = False) -> ClusterChange:
        """Switch ``what``: balancer or auto-split."""
        return self._change("columnarSwitch", what, on, dry_run)

    # --- over the private socket of a supervisor, or with a client certificate ---------------------

    def restart(self, server: str, *, dry_run: bool = False) -> ClusterChange:
        return self._change("columnarRestart", server, dry_run)

    def stop(self, server: str, *, dry_run: bool = False) -> ClusterChange:
        return self._change("columnarStop", server, dry_run)

    def fence(self, server: str, *, dry_run: bool = False) -> ClusterChange:
        return self._change("columnarFence", server, dry_run)

    def _change(self, method: str, *args: Any) -> ClusterChange:
        found = self._connection.call(method, *args)
        moves = tuple(
            RegionMove(
                one.name, _text(one.encodedName), one.table, _text(one.fromServer), _text(one.toServer), _text(one.why)
            )
            for one in found.moves
        )
        return ClusterChange(_text(found.text), found.done, moves, _texts(found.remarks), found.regionsLeft)


def _server(one: Any) -> ServerStatus:
    return ServerStatus(
        _text(one.name),
        _text(one.state),
        one.incarnation,
        one.drained,
        one.stateMs,
        one.regions,
        one.load,
        one.requestsPerSecond,
        one.moves,
        _text(one.version),
        _text(one.address),
        one.pid,
        one.connections,
        _texts(one.notes),
        _texts(one.lastLines or ()),
    )


def _location(one: Any) -> RegionLocation:
    return RegionLocation(
        one.name,
        _text(one.encodedName),
        one.startKey,
        one.endKey,
        one.regionId,
        one.table,
        _text(one.server),
        one.incarnation,
        _text(one.host),
        one.port,
        _text(one.state),
        one.stateMs,
        one.epoch,
        _text(one.comingFrom),
        _text(one.home),
        _text(one.why),
        one.load,
        one.readsPerSecond,
        one.writesPerSecond,
        one.deliveriesPerSecond,
        one.sizeBytes,
    )


def _decision(one: Any) -> Decision:
    server, why, text = _text(one.server), _text(one.why), _text(one.text)
    return Decision(one.agoMs, _text(one.kind), _texts(one.regions), server, why, text, one.atMs or 0)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(map(_text, values))
