"""Make one request of a lease to a compare-and-set store, and return the answer that its state machine expects.

This module connects ``lease`` and ``election``, which decide, with ``cas``, which does the I/O.  A request
blocks as long as the store's call does.

CasRefused and DamagedData are raised, not turned into answers: the operator must act, and a lease must not be renewed
by chance.  A node's record that cannot be read is logged; the node's last readable record counts, and its version.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from columnar.coordination.cas import CasOutcomeUnknown, CasStore, CasUnavailable, VersionConflict, Versioned
from columnar.coordination.election import LEADER, LEADER_FOLDER, STANDBYS
from columnar.coordination.lease import (
    Answer,
    CreateRecord,
    DeleteRecord,
    Done,
    Failed,
    Found,
    PollRecords,
    PutRecord,
    ReadRecord,
    Request,
    WasPolled,
    WasRead,
)
from columnar.coordination.node_record import (
    NODES,
    LeaderRecord,
    NodeRecord,
    decode_leader_record,
    decode_node_record,
    nonce_and_epoch,
)
from columnar.errors import ColumnarError, DamagedData

_log = logging.getLogger(__name__)

SYNCED_KEPT: Final = 4_096  # servers that no record names any more, whose synced lengths are known


class PolledRecords:
    """The records that the last good poll showed; each is decoded once per version.  Belongs to one thread."""

    def __init__(self) -> None:
        self.nodes: Mapping[str, NodeRecord] = {}  # by key; a new mapping for each poll
        self.leader: LeaderRecord | None = None  # as a poll with ``has_leader`` showed it last
        self.changes = 0  # rises if a poll shows anything new in ``nodes`` but logs and clocks
        self.is_whole = True  # ``nodes`` has each node that the poll showed
        self._versions: dict[str, int] = {}
        self._standbys: frozenset[str] = frozenset()
        # Synced lengths by the last record about each server; they stay when the record is gone.  Named last: last.
        self._synced: OrderedDict[str, tuple[tuple[str, int], ...]] = OrderedDict()
        self._full_at = SYNCED_KEPT  # the number of servers above which some are forgotten

    def take(self, found: Mapping[str, Versioned]) -> WasPolled:
        """Take the records of the nodes by their keys; returns the answer to the poll, without the leader."""
        nodes = {}
        has_change = self._versions.keys() != found.keys()
        for key, one in found.items():
            before = self.nodes.get(key)
            record = before if self._versions.get(key) == one.version else _decoded(key, one.value) or before
            has_change |= record is not before and _membership(record) != _membership(before)
            if record is not None:
                nodes[key] = record
                if record is not before:
                    self._note_logs(record)
        self._versions = {key: one.version for key, one in found.items()}
        self.nodes = nodes
        if len(self._synced) > self._full_at:
            self._forget_logs()
        self.is_whole = len(nodes) == len(found)
        self.changes += has_change
        if has_change:
            self._standbys = find_standbys(nodes.values())
        withdrawn = frozenset(key for key, one in nodes.items() if one.withdrawn)
        return WasPolled(self._versions, None, withdrawn, self._standbys)

    def _note_logs(self, record: NodeRecord) -> None:
        for server, segments in reversed(record.logs.items()):  # the living servers come first there
            self._synced[server] = segments
            self._synced.move_to_end(server)

    def _forget_logs(self) -> None:
        """Forget the servers that no record has named for longest, but SYNCED_KEPT of them.

        A server that a record names is never forgotten: its log may have to be sealed next, and a log is sealed only
        as long as it was synced.
        """
        named = {server for record in self.nodes.values() for server in record.logs}
        others = [server for server in self._synced if server not in named]
        for server in others[: max(0, len(others) - SYNCED_KEPT)]:
            del self._synced[server]
        self._full_at = len(named) + SYNCED_KEPT

    def synced_lengths(self, server: str) -> Mapping[int, int]:
        """Return the synced lengths of the server's segments by the last record about it.  For any thread."""
        return {int(name): length for name, length in self._synced.get(server, ())}

    def take_leader(self, found: Versioned | None) -> Found | None:
        if found is None:
            self.leader = None
            return None
        self.leader = record = decode_leader_record(found.value)
        return Found(found.version, record.nonce, record.epoch, record.vacated)


def make_request(
    store: CasStore,
    request: Request,
    compose: Callable[[], bytes],
    polled: PolledRecords,
    failed: Callable[[ColumnarError], None] = lambda _: None,
) -> Answer:
    """Make the request.

    ``compose`` returns the value of a record to write, which has the holder's nonce; ``polled`` takes the records of a
    poll; ``failed`` is called with the error if the service gave no answer.
    """
    try:
        match request:
            case CreateRecord(key):
                return Done(store.create_key(key, compose()))
            case PutRecord(key, version):
                return Done(store.put_key(key, compose(), version))
            case ReadRecord(key):
                return WasRead(_found(store.read_key(key)))
            case DeleteRecord(key, version, also):
                store.delete_key(key, version, also)
                return Done()
            case PollRecords(has_leader, has_holders):
                # The leader's record is listed, because a read would be a write to ZooKeeper.
                leader = polled.take_leader(store.list_keys(LEADER_FOLDER).get(LEADER)) if has_leader else None
                holders = polled.take(store.list_keys(NODES)) if has_holders else WasPolled({}, None)
                return replace(holders, leader=leader)
    except VersionConflict:
        return Failed.CONFLICT
    except CasUnavailable as error:
        failed(error)
        return Failed.UNAVAILABLE
    except CasOutcomeUnknown as error:
        failed(error)
        return Failed.UNKNOWN


def find_standbys(nodes: Iterable[NodeRecord]) -> frozenset[str]:
    """Return the keys of the STANDBYS nodes that have lived longest, of those that may lead."""
    may_lead = [one for one in nodes if not (one.never_leads or one.withdrawn)]
    return frozenset(one.key for one in sorted(may_lead, key=lambda one: one.incarnation)[:STANDBYS])


def _found(read: Versioned | None) -> Found | None:
    return None if read is None else Found(read.version, *nonce_and_epoch(read.value))


def _decoded(key: str, value: bytes) -> NodeRecord | None:
    try:
        return decode_node_record(value)
    except DamagedData as error:
        _log.error("%s: %s", key, error)
        return None


def _membership(record: NodeRecord | None) -> NodeRecord | None:
    return None if record is None else replace(record, logs={}, clock_ms=0, system_ms=0, cluster_ms=0)
