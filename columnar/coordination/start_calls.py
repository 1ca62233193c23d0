"""Calls of the coordination service outside the threads of lease and election.

The first node of a data folder writes into the service which folder that is, with an identity for the service, which
the folder repeats.  So two folders cannot use the same records, and two services cannot guard one folder.  A node whose
folder is empty asks before it begins a store there: a mount that is missing leaves an empty folder on the machine's own
disk.

A number is given only if the write that raised the counter to it has succeeded (N1 of ``api``).  A node does not start
while another one of its name renews its lease.  A node looks again when it has its lease.  If two nodes of a name start
at the same moment, the one that got its lease last sees the other, and ends; it may happen that both end.

The record of a mount stands from the beginning of the node's lease until nothing is left to be fenced at the file
system.  So a leader finds the nodes whose fence an earlier leader has not finished.

A node whose lease lasts longer or shorter than that of another node does not start: each node counts the other's lease
by its own times.  The node compares before it has a lease, and again when it has it.

A node whose clock differs much from those of the living nodes does not start (``clock_check``).
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import Final, TypeVar

from columnar.coordination.cas import CasOutcomeUnknown, CasRefused, CasStore, CasUnavailable, VersionConflict
from columnar.coordination.clock_check import check_clock
from columnar.coordination.lease import LeaseTimes
from columnar.coordination.node_record import (
    CLUSTER,
    MOUNTS,
    NODES,
    NUMBER,
    ClusterRecord,
    MountRecord,
    NodeRecord,
    decode_cluster_record,
    decode_mount_record,
    decode_node_record,
    decode_number,
    encode_number,
    encode_record,
)
from columnar.errors import DamagedData, HostError

_log = logging.getLogger(__name__)

START_S: Final = 5.0  # in which a start has its lease, or says why not
CALL_RETRY_S: Final = 0.05
ID_BYTES: Final = 16
ADVICE: Final = (
    "all nodes need the same addresses, and localhost is a different machine for each of them. If the service was set "
    "up anew, stop every node, then remove the file CLUSTER in the data folder; the next node writes it anew"
)
MOUNT_ADVICE: Final = (
    "is the shared folder mounted there, on this machine? If it is another cluster's folder, give each cluster a name "
    "of its own at the end of --coordination"
)
NAME_POLL_S: Final = 0.1
NAME_RENEWALS: Final = 2  # of a record that others renew: the last one of a dead node may still be under way
T = TypeVar("T")


class StartCalls:
    """The calls, for any thread but the loop's.  Each raises CasUnavailable after START_S, CasRefused, DamagedData."""

    def __init__(self, connect_store: Callable[[], CasStore], address: str) -> None:
        self._connect_store = connect_store
        self._address = address
        self._lock = threading.Lock()  # one call at a time uses a client

    def check_mounted(self, data: str, is_new: Callable[[], bool]) -> None:
        """Raise HostError if the service guards a data folder, and no store is at ``data``.  Writes nothing.

        ``is_new`` tells whether there is no store.  It is called again after the service has answered, because another
        node may have made the first store meanwhile.
        """
        found = self.call_store(lambda store: store.read_key(CLUSTER)) if is_new() else None
        if found is not None and is_new():
            guarded = decode_cluster_record(found.value).cluster_id
            raise HostError(
                f"{self._address} has the records of the cluster {guarded}, and {data} has no store: {MOUNT_ADVICE}"
            )

    def claim_folder(self, cluster_id: str, known_id: str, data: str) -> str:
        """Return the identity of the service, which guards the data folder ``cluster_id`` from now on.

        ``known_id`` is the identity that the folder names, or "" if it names none; ``data`` is its path, for messages.
        Raises HostError if the service guards another folder, or is not the one that the folder names; CasUnavailable
        after START_S without an answer, CasRefused, DamagedData.
        """
        return self.call_store(lambda store: self._claimed(store, cluster_id, known_id, data))

    def _claimed(self, store: CasStore, cluster_id: str, known_id: str, data: str) -> str:
        found = store.read_key(CLUSTER)
        if found is None:
            if known_id:
                raise HostError(
                    f"{self._address} knows nothing of this data folder, whose service has known it: the service has "
                    f"lost its data, or a different one answers at this address; {ADVICE}"
                )
            made = ClusterRecord(cluster_id, secrets.token_hex(ID_BYTES))
            store.create_key(CLUSTER, encode_record(made))
            return made.service_id
        record = decode_cluster_record(found.value)
        if record.cluster_id != cluster_id:
            raise HostError(
                f"{self._address} has the records of the cluster {record.cluster_id}, and the data folder {data} is "
                f"{cluster_id}: {MOUNT_ADVICE}"
            )
        if known_id and record.service_id != known_id:
            raise HostError(
                f"{self._address} is not the service that guards this data folder, though the address is the same; "
                f"{ADVICE}"
            )
        return record.service_id

    def next_number(self, floor: int) -> int:
        return self.call_store(lambda store: _raised_number(store, floor))

    def await_name(self, node: str, fence_s: float) -> frozenset[str]:
        """Return when no node of this name lives: the keys of records that dead ones have left.

        Raises HostError if a node of this name renews its lease.
        """
        return self.call_store(lambda store: _await_name(store, node, fence_s))

    def check_alone(self, node: str, known: frozenset[str]) -> None:
        """Raise HostError if a node of this name has joined whose record is not among the ``known``."""

        def check(store: CasStore) -> None:
            found = _records_of(store, node).keys() - known
            if found:
                raise HostError(
                    f"a node named {node} started at the same moment, as {min(found)}; start one of them again"
                )

        self.call_store(check)

    def check_leases(self, own: str, lease_ms: int, known: frozenset[str] = frozenset()) -> frozenset[str]:
        """Return the keys of other nodes' records with a lease of another length, which are all over.

        ``own`` is the key of this node's record, ``known`` those that an earlier call returned.  Blocks until the
        longest of these leases is over.  Raises HostError if a node that lives has such a lease.
        """
        return self.call_store(lambda store: _check_leases(store, own, lease_ms, known))

    def note_mount(self, record: MountRecord) -> None:
        """Write the record, whose key was never used before."""
        self.call_store(lambda store: _note_mount(store, record))

    def list_mounts(self) -> tuple[dict[str, MountRecord], dict[str, MountRecord]]:
        """Return the mounts of nodes that have a record of a lease, and all other mounts, by key.

        A damaged record is left out: its node has none.
        """
        return self.call_store(_list_mounts)

    def read_nodes(self) -> dict[str, NodeRecord]:
        """Return the records of all nodes, by their keys."""
        return self.call_store(
            lambda store: {key: decode_node_record(stored.value) for key, stored in store.list_keys(NODES).items()}
        )

    def forget_mount(self, key: str) -> None:
        self.call_store(lambda store: _forget_mount(store, key))

    def check_clock(self, fence_s: float) -> None:
        """Compare this machine's clock with those of the living nodes.  Raises HostError if it is wrong."""
        return self.call_store(lambda store: check_clock(store, fence_s))

    def call_store(self, call: Callable[[CasStore], T]) -> T:
        """Call the function with a client; again if it raised VersionConflict, CasUnavailable or CasOutcomeUnknown."""
        with self._lock:
            store = self._connect_store()
            try:
                return self._call_until_answered(store, call)
            finally:
                store.close()

    def _call_until_answered(self, store: CasStore, call: Callable[[CasStore], T]) -> T:
        until_s = monotonic() + START_S
        while True:
            try:
                return call(store)
            except VersionConflict:
                until_s = monotonic() + START_S  # the service answers; another node was faster
            except CasRefused as error:
                raise CasRefused(f"{self._address}: {error.text}") from error
            except (CasUnavailable, CasOutcomeUnknown) as error:
                if monotonic() > until_s:
                    raise CasUnavailable(f"{self._address}: {error.text}") from error
                sleep(CALL_RETRY_S)


def _raised_number(store: CasStore, floor: int) -> int:
    """Raise the counter by one write; only a write that succeeded gives its number (N1)."""
    found = store.read_key(NUMBER)
    number = max(floor, 0 if found is None else decode_number(found.value)) + 1
    if found is None:
        store.create_key(NUMBER, encode_number(number))
    else:
        store.put_key(NUMBER, encode_number(number), found.version)
    return number


def _await_name(store: CasStore, node: str, fence_s: float) -> frozenset[str]:
    """Watch the records of this name: one that stands still for ``fence_s`` is of a dead node (L2 of ``lease``)."""
    renewals, versions, still_since_s = 0, dict[str, int](), monotonic()
    while True:
        found = _records_of(store, node)
        if any(versions.get(key, version) != version for key, version in found.items()):
            renewals, still_since_s = renewals + 1, monotonic()
        if renewals >= NAME_RENEWALS:
            raise HostError(f"a node named {node} runs already; choose another name with --name, or stop that node")
        if not found or monotonic() - still_since_s > fence_s:
            return frozenset(found)
        versions = found
        sleep(NAME_POLL_S)


def _check_leases(store: CasStore, own: str, lease_ms: int, known: frozenset[str]) -> frozenset[str]:
    versions, still_since_s = dict[str, int](), monotonic()
    while True:
        found, fence_s = dict[str, int](), 0.0
        for key, stored in store.list_keys(NODES).items():
            other_ms = _lease_of(stored.value) if key != own and key not in known else 0
            if other_ms in (0, lease_ms):
                continue
            if versions.get(key, stored.version) != stored.version:
                raise HostError(
                    f"node {NodeRecord.of_key(key).node} has a lease of {other_ms / 1_000:g} s, and this one "
                    f"{lease_ms / 1_000:g} s: start all nodes with the same --lease. To change it, stop all nodes first"
                )
            found[key], fence_s = stored.version, max(fence_s, LeaseTimes.of_lease(other_ms).fence_ms / 1_000)
        if not found or monotonic() - still_since_s > fence_s:
            return known | found.keys()
        versions |= found
        sleep(NAME_POLL_S)


def _lease_of(value: bytes) -> int:
    """Return how long the lease of a record lasts; 0 if it was withdrawn, or does not say."""
    try:
        record = decode_node_record(value)
    except DamagedData:
        return 0  # its node is named to operators by who leads
    return 0 if record.withdrawn else record.lease_ms


def _records_of(store: CasStore, node: str) -> dict[str, int]:
    """Return the versions of the records of this name that are not withdrawn, by key."""
    return {
        key: stored.version
        for key, stored in store.list_keys(NODES).items()
        if key.startswith(f"{NODES}/{node}.") and not _is_withdrawn(stored.value)
    }


def _note_mount(store: CasStore, record: MountRecord) -> None:
    if store.read_key(record.key) is None:  # an earlier try of unknown outcome may have written it
        store.create_key(record.key, encode_record(record))


def _list_mounts(store: CasStore) -> tuple[dict[str, MountRecord], dict[str, MountRecord]]:
    """List the mounts, and then the leases, because a node writes its mount after its lease."""
    found = {}
    for key, stored in store.list_keys(MOUNTS).items():
        try:
            found[key] = decode_mount_record(stored.value)
        except DamagedData as error:
            _log.warning("%s: %s", key, error.text)
    leases = {key.partition("/")[2] for key in store.list_keys(NODES)}
    living = {key: record for key, record in found.items() if key.partition("/")[2] in leases}
    return living, {key: record for key, record in found.items() if key not in living}


def _forget_mount(store: CasStore, key: str) -> None:
    found = store.read_key(key)
    if found is not None:
        store.delete_key(key, found.version)


def _is_withdrawn(value: bytes) -> bool:
    try:
        return decode_node_record(value).withdrawn
    except DamagedData:
        return False  # its version tells whether somebody lives
