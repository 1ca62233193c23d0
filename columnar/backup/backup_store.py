"""Backup stores: named objects in a folder or in a bucket of an S3-compatible store.

A name is a path of one or two parts, ``FORMAT`` or ``files/NAME``.  The implementations are ``folder_store``,
``s3_store`` and, for tests, a dictionary; all pass one contract suite.

Invariants:
    I1. An object exists whole or not at all, whatever is interrupted; a later object of its name replaces it at once.
    I2. After ``sync_objects`` every object that was put before survives a power cut.
    I3. A listing has every object that was put before it began.  S3 has promised this since 2020.

Knows nothing of what the objects hold.  All methods block, and raise HostError if the store cannot be used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from columnar.errors import DamagedData

PIECE_BYTES: Final = 1024 * 1024  # read and written at a time


class ObjectMissing(DamagedData):
    def __init__(self, address: str, name: str) -> None:
        super().__init__(f"{address}/{name} is missing")


class ObjectFacts(NamedTuple):
    name: str
    size_bytes: int
    modified_ms: int  # by the clock of the store


class BackupStore(Protocol):
    @property
    def address(self) -> str:
        """The store as a person names it, for messages; it has no secret."""

    def put_bytes(self, name: str, data: bytes) -> None:
        """Put a small object."""

    def put_pieces(self, name: str, pieces: Iterator[bytes], size_bytes: int) -> None:
        """Put an object of ``size_bytes`` in bounded memory.  If ``pieces`` raises, no object is put."""

    def sync_objects(self) -> None:
        """Wait until every object that was put is durable (I2)."""

    def read_bytes(self, name: str) -> bytes | None:
        """Return a small object, or None if it is missing."""

    def read_pieces(self, name: str) -> Iterator[bytes]:
        """Yield the object in pieces of PIECE_BYTES at most.  Raises ObjectMissing."""

    def list_objects(self, folder: str) -> Iterator[ObjectFacts]:
        """Yield the objects whose names begin with ``folder/``, or all if ``folder`` is empty, in any order."""

    def remove_objects(self, names: Sequence[str]) -> None:
        """Remove the objects durably; a missing one is no error."""

    def remove_unfinished(self) -> None:
        """Remove what interrupted ``put_pieces`` left.  Call it only while no other process puts objects."""


def named(folder: str, name: str) -> str:
    """Return the name of an object in ``folder``."""
    return f"{folder}/{name}"
