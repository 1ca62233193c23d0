"""The change log of one region: written in the batch of the cells, read by consumers from their cursors.

It lives in the region's own store, in the space ``log`` (records, by sequence) and in ``meta``
(the cursors).  Invariants:
    I1. A record is in the same batch as the cells it tells of (design D6): there is never one
        without the other.
    I2. Within one opening n rises by one with each mutation of the region; each opening has a new
        epoch, so sequences of one origin only ever grow.
    I3. A record is removed only when every consumer's cursor has passed it, and, where the table
        says CHANGE_LOG, not before that time.
    I4. Consumers see a record only after an fsync that covers it (``durable``).

Knows nothing of triggers: a consumer is a name with a cursor, whose bytes are its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from columnar.regions.change_record import ChangeRecord, Sequence, pack, pack_key, unpack, unpack_key
from columnar.storage.api import Batch, Store
from columnar.storage.layout import END_OF_COLUMN

LOG_SPACE: Final = "log"
META_SPACE: Final = "meta"
_EPOCH: Final = b"epoch"
_CURSOR: Final = b"cursor/"
TRIM_KEYS: Final = 10_000  # above it a range delete


class ChangeLog:
    def __init__(self, store: Store, origin: int) -> None:
        self._store = store
        self.origin = origin
        held = store.get(META_SPACE, _EPOCH)
        self.epoch = (int.from_bytes(held, "big") if held else 0) + 1
        batch = store.batch()
        batch.put(META_SPACE, _EPOCH, self.epoch.to_bytes(4, "big"))
        store.write(batch)  # no fsync: whatever of this epoch becomes durable follows it in the same log
        self.last_n = 0
        self.durable_n = 0
        self.bytes_logged = 0

    def next(self) -> Sequence:
        self.last_n += 1
        return Sequence(self.origin, self.epoch, self.last_n)

    @property
    def durable(self) -> Sequence:
        """The last sequence that consumers may see."""
        return Sequence(self.origin, self.epoch, self.durable_n)

    @property
    def written(self) -> Sequence:
        return Sequence(self.origin, self.epoch, self.last_n)

    def append(self, batch: Batch, sequence: Sequence, record: ChangeRecord) -> None:
        data = pack(record)
        self.bytes_logged += len(data)
        batch.put(LOG_SPACE, pack_key(sequence), data)

    def read(self, after: Sequence | None) -> Iterator[tuple[Sequence, ChangeRecord]]:
        """Durable records after ``after`` (None: from the oldest), in order.  Lazy."""
        start = pack_key(after) + END_OF_COLUMN if after is not None else b""
        last = pack_key(self.durable)
        for key, data in self._store.scan(LOG_SPACE, start, None):
            # Records of other origins were inherited whole: they are durable since the split.
            if key > last and unpack_key(key).origin == self.origin:
                return
            yield unpack_key(key), unpack(data)

    def cursors(self) -> dict[str, bytes]:
        """What each consumer last saved."""
        return {
            key[len(_CURSOR) :].decode(): value
            for key, value in self._store.scan(META_SPACE, _CURSOR, _CURSOR[:-1] + b"0")
        }

    def save_cursor(self, consumer: str, state: bytes) -> None:
        """Unsynced: after a crash a consumer may see again what it had passed, never miss anything."""
        batch = self._store.batch()
        batch.put(META_SPACE, _CURSOR + consumer.encode(), state)
        self._store.write(batch)

    def drop_cursor(self, consumer: str) -> None:
        batch = self._store.batch()
        batch.delete(META_SPACE, _CURSOR + consumer.encode())
        self._store.write(batch)

    def trim(self, through: Sequence) -> int:
        """Remove the records up to and including ``through``; the caller upholds I3.  Returns how many."""
        doomed: list[bytes] = []
        last = pack_key(through)
        for key, _ in self._store.scan(LOG_SPACE, b"", last + b"\x00"):
            doomed.append(key)
            if len(doomed) >= TRIM_KEYS:
                break
        if doomed:
            batch = self._store.batch()
            batch.delete_range(LOG_SPACE, doomed[0], doomed[-1] + b"\x00")
            self._store.write(batch)
        return len(doomed)
