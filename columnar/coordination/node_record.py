"""The records of a cluster in the coordination service: each node's record, which is its lease, and the leader's.

    nodes/NAME.INCARNATION    written by a node with each renewal
    mounts/NAME.INCARNATION   written by a node that has its lease, before it has servers; deleted when nothing is
                              left to be fenced at the file system: by the node after its servers have ended, else by a
                              leader after the fence
    leader/leader             written by the leader with each renewal
    counters/incarnation      the last number that was given to a node or server; never deleted
    cluster/id                which data folder the service guards; written by the first node, never changed
    maintenance/lock          who may empty or end servers now; written by leaders (``maintenance_lock``), never deleted

A value is one JSON object, UTF-8, keys in this order, without spaces; an operator reads it with ``etcdctl get`` or
``zkCli.sh get``:

    node    format nonce node incarnation address servers logs clock_ms [system_ms] [cluster_ms] [zone] [never_leads]
            [lease_ms] [withdrawn]
    mount   format node incarnation address client
    leader  format nonce node epoch address [vacated] [web]
    counter format number
    cluster format cluster_id service_id
    maintenance format nonce holder what since_ms

    format       1.  A reader accepts any format that has the fields it needs, and ignores unknown fields, so that a
                 newer node can join an older leader while a cluster is upgraded
    nonce        16 random bytes in hexadecimal, which identify a holder of the lease
    servers      incarnations of the region servers that live on the node, as NAME.INCARNATION
    logs         for each server the segments of its log, as [number of eight digits, bytes synced]; of the living
                 servers, and of those that the node has reaped last (``server_page``)
    clock_ms     no server of the node had given a higher timestamp to a cell; 0: none was given
    system_ms    the machine's clock when the record was written; records of older programs lack it
    cluster_ms   the cluster's time then, by which the node's servers give timestamps; records of older programs lack it
    zone         the part of the site that may fail as a whole, as the node was told; missing if it was not told
    never_leads  true if the node leads in no case; otherwise the field is missing
    lease_ms     how long the node's lease lasts; records of older programs lack it.  All nodes have the same
    service_id   16 random bytes in hexadecimal, which ``CLUSTER`` in the data folder repeats.  So a service that lost
                 its data is noticed, and a different service at the same address
    client       the client of the file system by which the node has mounted the data folder, as the file system names
                 it (CephFS: client4151); empty if the file system has no such names
    holder       who has the maintenance lock, for people; empty, as the nonce: nobody
    what         the node that is emptied or ended, or an empty text
    since_ms     the leader's clock when the holder got the lock
    withdrawn    true in the last record of a node that has ended all its servers; otherwise the field is missing
    vacated      true in the last record of a leader that resigned; otherwise the field is missing
    web          the URL of the leader's pages; missing if it has none, or serves them at a port that the system chose

Golden bytes: tests/golden/node-records.txt; the page: docs/formats/coordination.md.

Knows nothing of leases and versions; ``lease`` decides by the nonce alone.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TypeAlias

from columnar.errors import DamagedData

FORMAT: Final = 1
NODES: Final = "nodes"
MOUNTS: Final = "mounts"
NUMBER: Final = "counters/incarnation"
CLUSTER: Final = "cluster/id"
MAINTENANCE: Final = "maintenance/lock"
_OMITTED: Final = {
    "web",
    "withdrawn",
    "vacated",
    "system_ms",
    "cluster_ms",
    "zone",
    "never_leads",
    "lease_ms",
}  # if they say nothing
Logs: TypeAlias = dict[str, tuple[tuple[str, int], ...]]


@dataclass(frozen=True, slots=True)
class NodeRecord:
    nonce: str
    node: str
    incarnation: int
    address: str  # HOST:PORT of the node's peer port
    servers: tuple[str, ...] = ()
    logs: Logs = field(default_factory=dict)
    clock_ms: int = 0
    system_ms: int = 0
    cluster_ms: int = 0
    zone: str = ""
    never_leads: bool = False
    lease_ms: int = 0  # 0: the record of an older program
    withdrawn: bool = False

    @classmethod
    def of_key(cls, key: str) -> NodeRecord:
        """Return a record that says only what its key says.  Raises ValueError for a key of another form."""
        name, _, incarnation = key.removeprefix(f"{NODES}/").rpartition(".")
        return cls("", name, int(incarnation), "")

    @property
    def key(self) -> str:
        return f"{NODES}/{self.node}.{self.incarnation}"


@dataclass(frozen=True, slots=True)
class MountRecord:
    """The access of a node to the data folder, which a storage fence takes away."""

    node: str
    incarnation: int
    address: str  # HOST:PORT of the node's peer port
    client: str = ""

    @property
    def key(self) -> str:
        return f"{MOUNTS}/{self.node}.{self.incarnation}"


@dataclass(frozen=True, slots=True)
class LeaderRecord:
    nonce: str
    node: str
    epoch: int
    address: str
    vacated: bool = False
    web: str = ""  # the URL of the leader's pages, if it has any


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    cluster_id: str
    service_id: str


@dataclass(frozen=True, slots=True)
class MaintenanceRecord:
    """The holder of the maintenance lock; without arguments a lock that nobody holds."""

    nonce: str = ""
    holder: str = ""
    what: str = ""
    since_ms: int = 0

    @property
    def is_free(self) -> bool:
        return not self.nonce


Record: TypeAlias = NodeRecord | MountRecord | LeaderRecord | ClusterRecord | MaintenanceRecord


def encode_record(record: Record) -> bytes:
    fields = {"format": FORMAT, **asdict(record)}
    for name in _OMITTED & fields.keys():
        if not fields[name]:
            del fields[name]  # as in the records of programs that do not know the field
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def decode_node_record(value: bytes) -> NodeRecord:
    """Decode the record of a node.  Raises DamagedData if the value is no such record."""
    found = _object(value)
    try:
        return NodeRecord(
            _text(found["nonce"]),
            _text(found["node"]),
            _number(found["incarnation"]),
            _text(found["address"]),
            tuple(_text(server) for server in found["servers"]),
            {
                _text(server): tuple((_text(name), _number(synced)) for name, synced in segments)
                for server, segments in found["logs"].items()
            },
            _number(found["clock_ms"]),
            _number(found.get("system_ms", 0)),
            _number(found.get("cluster_ms", 0)),
            _text(found.get("zone", "")),
            _flag(found, "never_leads"),
            _number(found.get("lease_ms", 0)),
            _flag(found, "withdrawn"),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(value) from error


def decode_mount_record(value: bytes) -> MountRecord:
    """Decode the record of a mount.  Raises DamagedData if the value is no such record."""
    found = _object(value)
    try:
        node, incarnation = _text(found["node"]), _number(found["incarnation"])
        return MountRecord(node, incarnation, _text(found["address"]), _text(found["client"]))
    except (KeyError, TypeError) as error:
        raise _damaged(value) from error


def decode_leader_record(value: bytes) -> LeaderRecord:
    """Decode the record of a leader.  Raises DamagedData if the value is no such record."""
    found = _object(value)
    try:
        nonce, node = _text(found["nonce"]), _text(found["node"])
        epoch, address = _number(found["epoch"]), _text(found["address"])
        return LeaderRecord(nonce, node, epoch, address, _flag(found, "vacated"), _text(found.get("web", "")))
    except (KeyError, TypeError) as error:
        raise _damaged(value) from error


def decode_cluster_record(value: bytes) -> ClusterRecord:
    """Decode the record of the data folder.  Raises DamagedData if the value is no such record."""
    found = _object(value)
    try:
        return ClusterRecord(_text(found["cluster_id"]), _text(found["service_id"]))
    except (KeyError, TypeError) as error:
        raise _damaged(value) from error


def encode_number(number: int) -> bytes:
    return json.dumps({"format": FORMAT, "number": number}, separators=(",", ":")).encode()


def decode_number(value: bytes) -> int:
    """Decode the counter.  Raises DamagedData if the value is none."""
    try:
        return _number(_object(value)["number"])
    except (KeyError, TypeError) as error:
        raise _damaged(value) from error


def decode_maintenance_record(value: bytes) -> MaintenanceRecord:
    """Decode the record of the maintenance lock.  Raises DamagedData if the value is no such record."""
    found = _object(value)
    try:
        nonce, holder, what = _text(found["nonce"]), _text(found["holder"]), _text(found["what"])
        return MaintenanceRecord(nonce, holder, what, _number(found["since_ms"]))
    except (KeyError, TypeError) as error:
        raise _damaged(value) from error


def nonce_and_epoch(value: bytes) -> tuple[str, int]:
    """Return nonce and epoch of a record, which leases and elections need; the epoch of a node's record is 0."""
    found = _object(value)
    try:
        return _text(found["nonce"]), _number(found.get("epoch", 0))
    except (KeyError, TypeError) as error:
        raise _damaged(value) from error


def _object(value: bytes) -> dict[str, Any]:
    try:
        found = json.loads(value)
    except ValueError as error:
        raise _damaged(value) from error
    if not isinstance(found, dict):
        raise _damaged(value)
    return found


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise TypeError(found)
    return found


def _number(found: object) -> int:
    if not isinstance(found, int) or isinstance(found, bool):
        raise TypeError(found)
    return found


def _flag(found: dict[str, Any], name: str) -> bool:
    value = found.get(name, False)
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def _damaged(value: bytes) -> DamagedData:
    return DamagedData(f"a record of the coordination service cannot be read: {value[:80]!r}")
