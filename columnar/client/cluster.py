"""Cluster administration by a client: servers, places of regions with the reasons, and instructions of operators.

``ClusterAdmin`` uses our extension.  A standalone store returns what it can show, and refuses requests that need a
second server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any, Protocol, TypeVar, get_args, get_origin, get_type_hints

R = TypeVar("R")


class StoreCaller(Protocol):
    def call(self, method: str, *args: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class ServerStatus:
    name: str
    state: str  # starting, up, fencing, down
    incarnation: int  # number of its start; 0 if it was never started
    drained: bool
    state_ms: int  # time in this state; -1 if unknown
    regions: int
    load: float
    requests_per_s: float
    moves: int
    version: str
    address: str  # of the server's own port
    pid: int
    connections: int
    notes: tuple[str, ...]
    last_lines: tuple[str, ...] = ()  # last log lines of its process that died last, newest last


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    servers: tuple[ServerStatus, ...]
    regions: int
    unassigned: int  # regions that should have an owner and have none
    transitions: int
    balancer: bool
    auto_split: bool
    remarks: tuple[str, ...]
    zones: Mapping[str, str] = field(default_factory=dict)  # by server, of those whose nodes have one
    nodes: Mapping[str, str] = field(default_factory=dict)  # by server, the node that had it last; empty on one machine
    living_nodes: tuple[str, ...] = ()  # the leader first; empty on one machine


@dataclass(frozen=True, slots=True)
class RegionLocation:
    name: bytes
    encoded_name: str
    start_key: bytes
    end_key: bytes  # empty: no upper bound
    region_id: int
    table: bytes
    server: str  # empty: the region has no owner
    incarnation: int
    host: str
    port: int  # 0 if unknown
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
    kind: str  # open, move, close, split, merge; waiting (for a server); failed (until an operator assigns the region)
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
    regions: tuple[str, ...]  # encoded names, or ids of regions that no longer exist
    server: str
    why: str
    text: str
    at_ms: int = 0  # since the Unix epoch; 0 from older servers


@dataclass(frozen=True, slots=True)
class RowLocation:
    region: RegionLocation
    server: ServerStatus | None
    remarks: tuple[str, ...]  # reasons why a request may wait
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
    done: bool  # False after a dry run
    moves: tuple[RegionMove, ...]
    remarks: tuple[str, ...]
    regions_left: int
    resigning: bool = False  # the drained node leads, and resigns when it is empty


@dataclass(frozen=True, slots=True)
class MaintenanceStatus:
    """The holder of the maintenance lock, who may empty or end servers."""

    holder: str  # empty: nobody
    what: str  # the node that is emptied or ended; empty: no single one
    age_ms: int
    silent_ms: int  # since the leader has seen a renewal
    own: bool  # the caller is the holder


class ClusterAdmin:
    """The administration of a cluster over a ``columnar.client.Connection``.

    Regions are named by their full or encoded names.
    """

    def __init__(self, connection: StoreCaller) -> None:
        self._connection = connection

    # --- status ------------------------------------------------------------------------------------

    def servers(self) -> ClusterStatus:
        return record_of(ClusterStatus, self._connection.call("columnarServers"))

    def locations(self, table: bytes) -> list[RegionLocation]:
        return [record_of(RegionLocation, one) for one in self._connection.call("columnarLocations", table)]

    def locate(self, table: bytes, row: bytes) -> RowLocation:
        return record_of(RowLocation, self._connection.call("columnarLocate", table, row))

    def transitions(self) -> list[Transition]:
        """Return the transitions of regions, the longest-running first."""
        return [record_of(Transition, one) for one in self._connection.call("columnarTransitions")]

    def decisions(self) -> list[Decision]:
        """Return the last 200 decisions, newest first."""
        return [record_of(Decision, one) for one in self._connection.call("columnarDecisions")]

    # --- changes: each call returns when the change is done ----------------------------------------

    def move(self, region: bytes, server: str = "", *, dry_run: bool = False) -> ClusterChange:
        """Move a region; if ``server`` is empty, the master chooses the server."""
        return self._change("columnarMove", region, server, dry_run)

    def assign(self, region: bytes, *, dry_run: bool = False) -> ClusterChange:
        return self._change("columnarAssign", region, dry_run)

    def unassign(self, region: bytes, *, dry_run: bool = False) -> ClusterChange:
        """Close the region until it is assigned again."""
        return self._change("columnarUnassign", region, dry_run)

    def drain(self, server: str, *, wait_s: float = 0.0, dry_run: bool = False) -> ClusterChange:
        """Move all regions off the server, and assign it no others.

        Returns when the server is empty, or after ``wait_s``.
        """
        return self._change("columnarDrain", server, True, round(wait_s * 1_000), dry_run)

    def undrain(self, server: str, *, dry_run: bool = False) -> ClusterChange:
        return self._change("columnarDrain", server, False, 0, dry_run)

    def drain_node(
        self, node: str, *, until_restart: bool = False, wait_s: float = 0.0, dry_run: bool = False
    ) -> ClusterChange:
        """Drain all servers of a node, each ``until_restart`` or until ``undrain_node``; a node that leads resigns.

        Returns when the node is empty, or after ``wait_s``.  A node that leads and is empty already may resign before
        its answer is out: the call then raises StoreIOError (``CallTimeoutException``), and may be repeated.
        """
        return self._change("columnarDrainNode", node, True, until_restart, round(wait_s * 1_000), dry_run)

    def undrain_node(self, node: str, *, dry_run: bool = False) -> ClusterChange:
        return self._change("columnarDrainNode", node, False, False, 0, dry_run)

    def balance(self, *, dry_run: bool = False) -> ClusterChange:
        return self._change("columnarBalance", dry_run)

    def switch(self, what: str, on: bool, *, dry_run: bool = False) -> ClusterChange:
        """Switch ``what``, the balancer or auto-split, on or off."""
        return self._change("columnarSwitch", what, on, dry_run)

    # --- the maintenance lock, which a holder renews every ten seconds -----------------------------

    def maintenance(self) -> MaintenanceStatus:
        return record_of(MaintenanceStatus, self._connection.call("columnarMaintenance"))

    def acquire_maintenance(
        self, nonce: str, holder: str, what: str = "", *, renews: bool = False
    ) -> MaintenanceStatus:
        """Acquire the lock unless another one holds it, or only renew it; returns who holds it then.

        ``nonce``: 32 hexadecimal digits, drawn anew for each holding.  A holder that has not renewed for a minute may
        lose the lock.
        """
        call = self._connection.call
        return record_of(MaintenanceStatus, call("columnarAcquireMaintenance", nonce, holder, what, renews))

    def release_maintenance(self, nonce: str = "") -> MaintenanceStatus:
        """End the holding of this nonce, or anybody's; returns who held the lock before."""
        return record_of(MaintenanceStatus, self._connection.call("columnarReleaseMaintenance", nonce))

    def log_levels(self, *changes: str) -> dict[str, str]:
        """Change levels of loggers in all processes, until they restart or read their settings; return those in force.

        A change is LOGGER=LEVEL, and LOGGER=default takes the logger's own level away.
        """
        found = self._connection.call("columnarLogLevels", list(changes))
        return {process.decode(): levels.decode() for process, levels in found.items()}

    # --- over the private socket of a supervisor, or with a client certificate ---------------------

    def restart(self, server: str, *, dry_run: bool = False) -> ClusterChange:
        return self._change("columnarRestart", server, dry_run)

    def stop(self, server: str, *, dry_run: bool = False) -> ClusterChange:
        return self._change("columnarStop", server, dry_run)

    def fence(self, server: str, *, dry_run: bool = False) -> ClusterChange:
        return self._change("columnarFence", server, dry_run)

    def _change(self, method: str, *args: Any) -> ClusterChange:
        return record_of(ClusterChange, self._connection.call(method, *args))


def record_of(kind: type[R], struct: Any) -> R:
    """Make a record of the struct's fields, which have the record's names in the IDL's spelling."""
    hints = get_type_hints(kind)
    values = {name: _value(hint, getattr(struct, _idl_name(name))) for name, hint in hints.items()}
    return kind(**{name: value for name, value in values.items() if value is not None or hints[name] is not int})


def _idl_name(name: str) -> str:
    first, *more = name.removesuffix("_s").split("_")
    return first + "".join(map(str.capitalize, more)) + ("Second" if name.endswith("_per_s") else "")


def _value(hint: Any, sent: Any) -> Any:
    if hint is str:
        return sent.decode() if isinstance(sent, bytes) else str(sent)
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], one) for one in sent or ())
    if get_origin(hint) is Mapping:
        key, value = get_args(hint)
        return {_value(key, one): _value(value, other) for one, other in (sent or {}).items()}
    records = [one for one in (hint, *get_args(hint)) if is_dataclass(one)]
    return record_of(records[0], sent) if records and sent is not None else sent  # type: ignore[arg-type]  # a class
