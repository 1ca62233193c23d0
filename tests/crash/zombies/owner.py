"""python -m tests.crash.zombies.owner: an owner of a region, which writes until it is killed, whatever happens to it.

    COUNTERS := started:u64 synced:u64            little-endian, mapped: exact also while this process is stopped

Batch n puts the key n into two spaces.  ``started`` is n before batch n is written, ``synced`` is n once it is on disk,
that is, once a server would acknowledge it.  A second thread flushes and compacts at random moments.
"""

from __future__ import annotations

import mmap
import sys
import threading
import time
from random import Random
from struct import Struct
from typing import Final

from columnar.errors import ColumnarError
from columnar.storage.api import Batch, StoreBusy
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_store import RocksStore

SPACES: Final = ("a", "b")
COUNTERS: Final = Struct("<QQ")
REFUSED_S: Final = 0.001  # pause after a refused write: the process shall write again and again, not burn
_BUFFERS: Final = 256 * 1024  # small, so that RocksDB flushes by itself too


def key_of(number: int) -> bytes:
    return b"%012d" % number


def write_until_killed(path: str, counters: mmap.mmap, rng: Random) -> None:
    store = RocksEngine(cache_bytes=1 << 20, write_buffers_bytes=_BUFFERS).open_store(path, frozenset(SPACES))
    threading.Thread(target=_flush_until_killed, args=(store, Random(rng.random())), daemon=True).start()
    synced = number = 0
    while True:
        number += 1
        COUNTERS.pack_into(counters, 0, number, synced)
        batch, value = store.batch(), rng.randbytes(rng.choice((10, 200, 4_000)))
        for space in SPACES:
            batch.put(space, key_of(number), value)
        try:
            _write(store, batch)
            if rng.random() < 0.5:
                store.sync()
                synced = number
                COUNTERS.pack_into(counters, 0, number, synced)
        except ColumnarError:
            time.sleep(REFUSED_S)


def _write(store: RocksStore, batch: Batch) -> None:
    """Write the batch, after a pause while the engine is busy: batches are written in order, without a gap."""
    while True:
        try:
            store.write_batch(batch)
            return
        except StoreBusy:
            time.sleep(REFUSED_S)


def _flush_until_killed(store: RocksStore, rng: Random) -> None:
    while True:
        time.sleep(rng.uniform(0, 0.03))
        try:
            if rng.random() < 0.7:
                store.files.flush()
            else:
                store.files.compact(everything=True)
        except ColumnarError:
            time.sleep(REFUSED_S)


if __name__ == "__main__":
    with open(sys.argv[2], "r+b") as file:
        write_until_killed(sys.argv[1], mmap.mmap(file.fileno(), COUNTERS.size), Random(int(sys.argv[3])))
