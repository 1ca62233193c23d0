"""The store under a proof that speaks another protocol: one process or several servers, killed and started again."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

from tests.support.cluster_process import ClusterProcess, gone
from tests.support.standalone_store import StoreProcess

SUPERVISOR: Final = 0.15  # of the kills of a store with several servers
LEFT_S: Final = 10.0  # processes of a killed supervisor end within so long


def store_of(folder: Path, servers: int, *flags: str) -> StoreProcess:
    return StoreProcess(folder, *flags) if servers == 1 else ClusterProcess(folder, servers, *flags)


def kill_and_start(store: StoreProcess, rng: Random) -> str:
    """Kill the store, or one of its servers, and see that it is started again; return what was killed."""
    if not isinstance(store, ClusterProcess):
        store.kill()
        store.start()
        return "kills of the store"
    if rng.random() > SUPERVISOR:
        store.kill_server(rng.randrange(store.count))
        return "kills of a server"
    family = [pid for pid in store.family() if pid != store.pid]
    store.kill()
    assert gone(family, LEFT_S), "processes of a killed supervisor are left"
    store.start()
    return "kills of the supervisor"
