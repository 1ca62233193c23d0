"""One zombie: an owner that is stopped while it writes, whose folder is taken over, and that is woken.

Laws, of the next owner's store, when it is opened, and once more when it is opened after the zombie has run for a time:

    Z1  it has every batch that the zombie had synced before it was stopped
    Z2  it has the batches 1 to n for some n, each whole
    Z3  it has no batch that the zombie began after the takeover
    Z4  it has every batch that the next owner synced
"""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from columnar.errors import ColumnarError
from columnar.storage import region_takeover
from columnar.storage.durable_files import size_of_file
from columnar.storage.file_copies import LOG_FILE
from columnar.storage.region_folders import RegionFolders
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_store import RocksStore
from tests.crash.zombies.owner import COUNTERS, SPACES, key_of

REGION: Final = "0123456789abcdef0123456789abcdef"
OWN: Final = b"next owner %06d"  # keys of the next owner, above all of the zombie
BEGUN: Final = 20  # batches before the stop, at least
WOKEN: Final = 40  # batches after the wake-up, at least
WAIT_S: Final = 30.0


@dataclass(slots=True)
class Outcome:
    seed: int
    wakes_before: bool  # before the next owner has opened the folder
    faults: list[str] = field(default_factory=list)
    acknowledged: int = 0  # before the stop
    woken: int = 0  # batches that the zombie began after it was woken


class Zombie:
    """The process of the first owner."""

    def __init__(self, path: str, counters: Path, seed: int) -> None:
        counters.write_bytes(bytes(COUNTERS.size))
        with counters.open("r+b") as file:
            self._counters = mmap.mmap(file.fileno(), COUNTERS.size)
        command = [sys.executable, "-m", "tests.crash.zombies.owner", path, str(counters), str(seed)]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    @property
    def started(self) -> int:
        return int(COUNTERS.unpack_from(self._counters)[0])

    @property
    def synced(self) -> int:
        return int(COUNTERS.unpack_from(self._counters)[1])

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until the zombie has got so far.  Raises TimeoutError, also if it has ended."""
        until_s = time.monotonic() + WAIT_S
        while not is_so():
            if self._process.poll() is not None or time.monotonic() > until_s:
                raise TimeoutError(f"the owner has come to batch {self.started} only")
            time.sleep(0.002)

    def stop(self) -> None:
        """Stop the process; on return none of its threads runs."""
        os.kill(self._process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def wake(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._counters.close()


@contextmanager
def linked_logs() -> Iterator[None]:
    """Have takeovers link logs, as the law forbids."""
    copy = region_takeover.copy_whole

    def link_logs(source: str, target: str) -> None:
        size_of_file(source)
        if source.endswith(LOG_FILE):
            os.link(source, target)
        else:
            copy(source, target)

    region_takeover.copy_whole = link_logs
    try:
        yield
    finally:
        region_takeover.copy_whole = copy


def run_trial(folder: Path, seed: int, other: Path | None = None, counters: Path | None = None) -> Outcome:
    """Run one trial in the empty ``folder``; ``other`` is the same folder through another mount, for the next owner.

    ``counters`` is a file that can be mapped, by default in ``folder``.
    """
    rng = Random(seed)
    outcome = Outcome(seed, wakes_before=rng.random() < 0.5)
    regions, theirs = folder / "regions", (other or folder) / "regions"
    (regions / REGION).mkdir(parents=True)
    zombie = Zombie(str(regions / REGION), counters or folder / "counters", seed)
    try:
        zombie.until(lambda: zombie.synced >= BEGUN)
        time.sleep(rng.uniform(0, 0.2))  # somewhere in a flush, a compaction, a write, an fsync
        zombie.stop()
        outcome.acknowledged, begun = zombie.synced, zombie.started
        engine = RocksEngine(cache_bytes=1 << 20)
        folders = RegionFolders(str(theirs), engine)
        folders.use_generations(lambda _encoded: 1)
        folders.take_over(REGION, 1, 2)
        if outcome.wakes_before:
            _wake(zombie, begun)
        _serve(engine, folders, zombie, begun, outcome)
        outcome.woken = zombie.started - begun
    except ColumnarError as error:
        outcome.faults.append(f"{type(error).__name__}: {error.text}")
    finally:
        zombie.close()
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _wake(zombie: Zombie, begun: int) -> None:
    zombie.wake()
    zombie.until(lambda: zombie.started >= begun + WOKEN)


def _serve(engine: RocksEngine, folders: RegionFolders, zombie: Zombie, begun: int, outcome: Outcome) -> None:
    store = engine.open_store(folders.path(REGION), frozenset(SPACES))
    _check(store, begun, 0, outcome, "opened")
    if not outcome.wakes_before:
        _wake(zombie, begun)
    own = 0
    while own < 100:
        own += 1
        batch = store.batch()
        batch.put(SPACES[0], OWN % own, b"value")
        store.write_batch(batch)
        store.sync()
        if own % 40 == 0:
            store.files.flush()
    folders.remove_older(REGION, 1)
    zombie.until(lambda: zombie.started >= begun + 2 * WOKEN)
    store.close()
    store = engine.open_store(folders.path(REGION), frozenset(SPACES))
    _check(store, begun, own, outcome, "opened again")
    store.close()


def _check(store: RocksStore, begun: int, own: int, outcome: Outcome, when: str) -> None:
    found = {space: [key for key, _ in store.scan(space, b"0", b"9" * 13)] for space in SPACES}
    keys = found[SPACES[0]]
    if found[SPACES[1]] != keys:
        outcome.faults.append(f"Z2, {when}: a batch is not whole")
    if keys != [key_of(number + 1) for number in range(len(keys))]:
        outcome.faults.append(f"Z2, {when}: a batch is missing amid others")
    if len(keys) < outcome.acknowledged:
        lost = outcome.acknowledged - len(keys)
        outcome.faults.append(f"Z1, {when}: {lost} acknowledged batches are lost")
    if len(keys) > begun:
        outcome.faults.append(f"Z3, {when}: {len(keys) - begun} batches of the zombie are in the next owner's store")
    written = [key for key, _ in store.scan(SPACES[0], OWN % 0, OWN % 999_999)]
    if written != [OWN % (number + 1) for number in range(own)]:
        outcome.faults.append(f"Z4, {when}: the next owner's own batches are {len(written)}, not {own}")
