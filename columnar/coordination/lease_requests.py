"""Make one request of a lease to a compare-and-set store, and return the answer that its state machine expects.

This module connects ``lease`` and ``election``, which decide, with ``cas``, which does the I/O.  A request
blocks as long as the store's call does.

CasRefused and DamagedData are raised, not turned into answers: the operator must act, and a lease must not be renewed
by chance.
"""

from __future__ import annotations

from collections.abc import Callable

from columnar.coordination.cas import CasOutcomeUnknown, CasStore, CasUnavailable, VersionConflict, Versioned
from columnar.coordination.election import LEADER, LEADER_FOLDER
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
from columnar.coordination.node_record import NODES, nonce_and_epoch


def make_request(store: CasStore, request: Request, compose: Callable[[], bytes]) -> Answer:
    """Make the request; ``compose`` returns the value of a record to write, which has the holder's nonce."""
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
            case PollRecords(has_leader):
                # The leader's record is listed, because a read would be a write to ZooKeeper.
                leader = store.list_keys(LEADER_FOLDER).get(LEADER) if has_leader else None
                return WasPolled({key: one.version for key, one in store.list_keys(NODES).items()}, _found(leader))
    except VersionConflict:
        return Failed.CONFLICT
    except CasUnavailable:
        return Failed.UNAVAILABLE
    except CasOutcomeUnknown:
        return Failed.UNKNOWN


def _found(read: Versioned | None) -> Found | None:
    return None if read is None else Found(read.version, *nonce_and_epoch(read.value))
