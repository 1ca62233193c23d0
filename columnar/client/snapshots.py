"""Snapshots of tables by a client, and the staging folders that commands on the server's machine use."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from columnar.errors import HostError

if TYPE_CHECKING:
    from columnar.client.connection import Connection


@dataclass(frozen=True, slots=True)
class Snapshot:
    name: str
    table: bytes
    created_ms: int
    regions: int
    size_bytes: int  # of the snapshot's files, which it may share with the table and with other snapshots


@dataclass(frozen=True, slots=True)
class StagedFolder:
    token: str
    path: str


class SnapshotAdministration:
    """Methods on snapshots, for a class that has a ``_connection``.  Each blocks until its effect is on disk."""

    _connection: Connection

    def take_snapshot(self, name: str, table: bytes) -> Snapshot:
        """Take a snapshot while the table serves.

        Each row is consistent; different rows may be of different moments.
        """
        return _snapshot(self._connection.call("columnarSnapshotTake", name, table))

    def list_snapshots(self) -> list[Snapshot]:
        return [_snapshot(one) for one in self._connection.call("columnarSnapshotList")]

    def clone_snapshot(self, name: str, table: bytes) -> None:
        """Create a table with the snapshot's schema and rows, without triggers."""
        self._connection.call("columnarSnapshotClone", name, table)

    def restore_snapshot(self, name: str) -> None:
        """Restore the table to the snapshot, which discards later writes.  Refused if triggers follow the table."""
        self._connection.call("columnarSnapshotRestore", name)

    def delete_snapshot(self, name: str) -> None:
        self._connection.call("columnarSnapshotDelete", name)

    @contextmanager
    def staged(self, what: str, table: bytes = b"") -> Iterator[StagedFolder]:
        """Yield a folder on the server that is reserved for us until the block ends.

        ``what`` is its content: ``copy`` (of a table), ``everything`` or ``empty``.  Raises HostError if the server
        runs on a different machine, or its folder belongs to a different user.
        """
        answer = self._connection.call("columnarStage", what, table)
        folder = StagedFolder(_text(answer.token), _text(answer.folder))
        try:
            try:
                lock = open(os.path.join(folder.path, "LOCK"), "ab")  # noqa: SIM115 - held to the end
            except OSError as error:
                raise HostError(
                    f"cannot use the server's folder {folder.path}: {error.strerror}; "
                    "run this on the server's machine, as the user who runs it; of a cluster's nodes it is the machine "
                    "of the one that leads ('columnar nodes')"
                ) from error
            with lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not os.path.exists(lock.name):  # a new leader has removed it before it was locked
                    raise HostError(f"the server's folder {folder.path} is gone: another node leads now; begin again")
                yield folder
        finally:
            self._connection.call("columnarStageRelease", folder.token)

    def adopt_staged(self, folder: StagedFolder, table: bytes) -> None:
        """Create a table from the regions in ``folder``."""
        self._connection.call("columnarStageAdopt", folder.token, table)


class Snapshots(SnapshotAdministration):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _snapshot(wire: Any) -> Snapshot:
    return Snapshot(_text(wire.name), wire.table, wire.createdMs, wire.regions, wire.sizeBytes)
