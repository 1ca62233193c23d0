"""python -m tests.support.traced_takeover ROOT: three owners of a region, one after the other, for a recording.

Each owner writes batches and notes each number in ``ROOT/acknowledged`` once it is on disk.  The first two do not close
their stores: they stand for owners that ended by time.
"""

from __future__ import annotations

import os
import sys

from columnar.storage.region_folders import RegionFolders
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_store import RocksStore
from tests.support.noted_bounds import note_bounds

REGION = "0123456789abcdef0123456789abcdef"
ACKNOWLEDGED = "acknowledged"


def key_of(number: int) -> bytes:
    return b"%06d" % number


class Owners:
    def __init__(self, root: str) -> None:
        self._root = root
        self._engine = RocksEngine(cache_bytes=1 << 20)
        self._generation = 0
        self.folders = RegionFolders(os.path.join(root, "regions"), self._engine)
        self.folders.use_generations(lambda _encoded: self._generation)
        self._number = 0
        self._acknowledged = os.open(
            os.path.join(root, ACKNOWLEDGED), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        )

    def next_owner(self, generation: int) -> RocksStore:
        self._generation = generation
        if generation:
            self.folders.take_over(REGION, generation, generation)
        else:
            self.folders.make([REGION])
        store = self._engine.open_store(self.folders.path(REGION), frozenset({"a"}))
        if generation:
            self.folders.remove_older(REGION, generation)
        return store

    def write(self, store: RocksStore, count: int) -> None:
        for _ in range(count):
            self._number += 1
            batch = store.batch()
            batch.put("a", key_of(self._number), b"value" * 20)
            store.write_batch(batch)
            if self._number % 3 == 0:
                store.sync()
                os.write(self._acknowledged, b"%d\n" % self._number)


def main(root: str) -> None:
    note_bounds()
    owners = Owners(root)
    held = []
    for generation in range(3):
        store = owners.next_owner(generation)
        held.append(store)
        owners.write(store, 7)
        store.files.flush()
        owners.write(store, 7)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
