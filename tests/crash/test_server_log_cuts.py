"""The server log against power cuts: stores under one committer are cut, opened anew and compared with dictionaries.

A cut leaves any part of the unsynced writes, in each store's own log and in the server log.  COLUMNAR_SEED repeats a
run.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from columnar.storage import commit, server_log_files
from columnar.storage.commit import Committer
from columnar.storage.ownership import Ownership
from columnar.storage.recovery import recovering
from columnar.storage.region_folders import RegionFolders
from columnar.storage.rocks_opening import SyncedBound
from columnar.storage.rocks_store import RocksStore
from columnar.storage.server_log_files import begin_run
from tests.support.logged_stores import EngineAtRest, copied
from tests.support.seeds import seed

SEED = seed(1604)
STEPS = 60
CUTS = 12
SPACES = frozenset({"a", "b"})
KEYS = [b"k%d" % number for number in range(6)]

State = dict[tuple[str, bytes], bytes]


class Sizes:
    """The synced lengths of files, which a cut does not reduce."""

    def __init__(self) -> None:
        self.synced: dict[str, int] = {}


class Server:
    """Stores by name, with their acknowledged writes and the writes under way."""

    def __init__(self, root: Path, rng: random.Random, sizes: Sizes) -> None:
        self.root, self.rng = root, rng
        self.regions = root / "regions"
        self.regions.mkdir(parents=True, exist_ok=True)
        self.engine = EngineAtRest(cache_bytes=1 << 20)
        self.log, self.logs = begin_run(str(root / "server-log"))
        self.engine.server_log, self.engine.dead_logs = self.log, self.logs
        self.epoch = 1 + max(
            (part.epoch for name in self.logs.left for part in self.logs.unreplayed_parts(name)), default=0
        )
        for _ in recovering(self.engine, self.logs, RegionFolders(str(self.regions), self.engine), self.epoch):
            pass
        self.log.prepare()
        self.committer = Committer(asyncio.get_running_loop(), threads=2, log=self.log)
        self.stores: dict[str, RocksStore] = {}
        self.states: dict[str, list[State]] = {}  # after each batch; the first is acknowledged, maybe more
        self.made = 0
        self.sizes = sizes

    def open(self, name: str) -> None:
        behind = self.logs.unreplayed_parts(name) + self.log.unreplayed_parts(name)
        ownership = Ownership(name, self.epoch, behind, is_sole=True)
        self.stores[name] = self.engine.open_store(str(self.regions / name), SPACES, None, ownership)

    def make(self) -> None:
        self.made += 1
        name = f"r{self.made}"
        self.open(name)
        self.states[name] = [{}]

    def pairs(self, name: str) -> State:
        store = self.stores[name]
        return {
            (space, key): value
            for space in sorted(SPACES & store.spaces)
            for key, value in store.scan(space, b"", None)
        }

    async def write(self, name: str) -> None:
        """Write a batch of some kind; return when it is acknowledged."""
        rng, store = self.rng, self.stores[name]
        state = dict(self.states[name][-1])
        batch = store.batch(rng.choice((1, 1, 1, 1, 20)))
        for _ in range(rng.randint(1, 3)):
            space, key = rng.choice(sorted(SPACES)), rng.choice(KEYS)
            kind = rng.random()
            if kind < 0.7:
                value = rng.randbytes(rng.choice((3, 100, 100, 5_000)))
                batch.put(space, key, value)
                state[space, key] = value
            elif kind < 0.9:
                batch.delete(space, key)
                state.pop((space, key), None)
            else:
                batch.delete_range(space, key, KEYS[-1])
                for other in [one for one in state if one[0] == space and key <= one[1] < KEYS[-1]]:
                    del state[other]
        states = self.states[name]
        states.append(state)
        if rng.random() < 0.2:
            store.write_batch(batch)
        else:
            store.gather(batch)
        if rng.random() < 0.2:
            self.pairs(name)  # a scan hands over what was gathered
        number = len(states)
        await self.committer.durable(store)
        self.acknowledged(states, number)

    def acknowledged(self, states: list[State], number: int) -> None:
        """Note the first ``number`` states as acknowledged: a cut can leave none before the last of them."""
        for state in states[: number - 1]:
            state["gone", b""] = b""

    def files(self, name: str) -> None:
        """Flush, close or otherwise change a store's files beside writing."""
        store, chance = self.stores[name], self.rng.random()
        if chance < 0.4:
            store.files.flush()
        elif chance < 0.6:
            store.files.compact(everything=True)
        elif chance < 0.8:
            self.split(name)
        elif self.committer.is_idle(store):
            self.committer.forget_store(store)
            store.close()
            self.open(name)

    def split(self, name: str) -> None:
        """Make a copy under a name of its own, which has its parent's mark, as a daughter's store begins."""
        self.made += 1
        twin = f"r{self.made}"
        self.stores[name].files.checkpoint(str(self.regions / twin))
        self.open(twin)
        self.states[twin] = [dict(self.states[name][-1])]

    def ingest(self, name: str) -> None:
        self.made += 1
        path = str(self.root / f"in-{self.made}.sst")
        file = self.engine.sorted_file(path)
        file.put_pair(KEYS[0], b"ingested")
        file.finish()
        self.stores[name].files.ingest({"a": [path]})
        for state in self.states[name]:  # it lasts, whatever a cut takes back of what was written before
            state["a", KEYS[0]] = b"ingested"

    def empty_space(self, name: str) -> None:
        """Drop a space and make it anew under its name, after which no older pair may come back."""
        store = self.stores[name]
        store.drop_space("b")
        store.add_space("b")
        for state in self.states[name]:
            for key in [key for key in state if key[0] == "b"]:
                del state[key]

    def cut(self, target: Path) -> dict[str, list[State]]:
        """Copy the disk as a cut may leave it to ``target``; return the possible states of each store."""
        copied(self.root, target)
        newest = {path.parent: path for path in sorted(target.rglob("*.log"))}  # those before, the engine syncs itself
        for path in [*newest.values(), *target.rglob("*.segment")]:
            size, there = self.sizes.synced.get(str(self.root / path.relative_to(target)), 0), path.stat().st_size
            os.truncate(path, self.rng.choice((size, self.rng.randint(min(size, there), there), there)))
        return {
            name: [dict(state) for state in states if ("gone", b"") not in state]
            for name, states in self.states.items()
        }

    def close(self) -> None:
        self.committer.close()
        for store in self.stores.values():
            store.close()
        self.log.close()


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> Sizes:
    sizes = Sizes()
    sync, force, raise_to = RocksStore.sync, server_log_files.force, SyncedBound.raise_to
    before: dict[str, dict[str, int]] = {}
    reached: dict[str, int] = {}

    def sync_and_note(store: RocksStore) -> None:
        reached[store._path] = store._db.latest_sequence_number()  # first: the loop writes on beside this
        logs = [os.path.join(store._path, name) for name in os.listdir(store._path) if name.endswith(".log")]
        before[store._path] = {path: os.path.getsize(path) for path in logs}
        sync(store)

    def note_and_raise(bound: SyncedBound, sequence: int) -> None:
        """Check before noting a bound: a cut between the two would leave less data than the bound says."""
        sizes.synced.update(before.get(bound._path, {}))
        raise_to(bound, min(sequence, reached.get(bound._path, 0)))

    def force_and_note(file: int) -> None:
        size = os.fstat(file).st_size
        force(file)
        sizes.synced[os.readlink(f"/proc/self/fd/{file}")] = size

    monkeypatch.setattr(RocksStore, "sync", sync_and_note)
    monkeypatch.setattr(SyncedBound, "raise_to", note_and_raise)
    monkeypatch.setattr(server_log_files, "force", force_and_note)
    monkeypatch.setattr(commit, "SHARED_FROM", 0)
    monkeypatch.setattr(server_log_files, "SEGMENT_BYTES", 20_000)
    return sizes


async def act(server: Server, look: Callable[[], None]) -> None:
    rng, running = server.rng, set[asyncio.Task[None]]()
    for _ in range(STEPS):
        name = rng.choice(sorted(server.stores))
        chance = rng.random()
        if chance < 0.85:
            running.add(asyncio.ensure_future(server.write(name)))
            for _ in range(rng.choice((0, 0, 1, 5))):
                await asyncio.sleep(0)
        elif chance < 0.93:
            server.files(name)
        elif chance < 0.96:
            server.ingest(name)
        else:
            server.empty_space(name)
        if rng.random() < CUTS / STEPS:
            look()
        if len(running) > 20:
            await asyncio.gather(*running)
            running.clear()
    await asyncio.gather(*running)
    look()


@pytest.mark.parametrize("run", range(3))
def test_what_was_acknowledged_is_there_after_a_cut(tmp_path: Path, sizes: Sizes, run: int) -> None:
    print(f"COLUMNAR_SEED={SEED}")
    rng = random.Random(SEED + run)
    cuts: list[tuple[Path, dict[str, list[State]]]] = []

    async def record() -> None:
        server = Server(tmp_path / "data", rng, sizes)
        for _ in range(3):
            server.make()

        def look() -> None:
            target = tmp_path / f"cut-{len(cuts)}"
            cuts.append((target, server.cut(target)))

        await act(server, look)
        assert server.committer.syncs > 0
        server.close()

    async def check(root: Path, possible: dict[str, list[State]]) -> None:
        server = Server(root, rng, Sizes())
        for name, states in possible.items():
            server.open(name)
            assert server.pairs(name) in states, (
                f"{root.name}: {name} holds what it never held since its last acknowledged write"
            )
        server.close()

    asyncio.run(record())
    for root, possible in cuts:
        asyncio.run(check(root, possible))
        assert not list(root.rglob("*.segment")), "the log was brought in, and is still there"
