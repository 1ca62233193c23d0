"""The maintenance lock over each coordination store: memory, etcd and ZooKeeper, with leaders side by side."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from columnar.coordination.cas import CasUnavailable
from columnar.coordination.cas_memory import CasMemory
from columnar.coordination.maintenance_lock import FREE, Acquire, MaintenanceLock, MemoryCalls, Release, StoreCalls
from columnar.coordination.start_calls import StartCalls
from tests.support.coordination_services import Service, running

ROUNDS = 12
SERVICES = ["etcd", "zookeeper"]


@contextmanager
def store_calls(kind: str, folder: Path) -> Iterator[tuple[StoreCalls, StoreCalls, Service | None]]:
    """Yield the calls of two leaders, and the service if it is one."""
    if kind == "memory":
        store = CasMemory()
        yield MemoryCalls(store), MemoryCalls(store), None
        return
    with running(kind, folder, is_quick=True) as service:
        one, other = (StartCalls(lambda: service.connect("columnar", 2.0), kind) for _ in range(2))
        yield one.call_store, other.call_store, service


@pytest.mark.parametrize("kind", ["memory", *SERVICES])
def test_one_holder_at_a_time_at_two_leaders(kind: str, tmp_path: Path) -> None:
    with store_calls(kind, tmp_path) as (one, other, _):
        locks = MaintenanceLock(one), MaintenanceLock(other)
        for number in range(ROUNDS):
            calls = [Acquire(f"{number:016x}{n:016x}", f"holder {n}", "n1") for n in range(2)]
            with ThreadPoolExecutor(2) as threads:
                states = list(threads.map(MaintenanceLock.acquire_lock, locks, calls))
            assert states[0].record == states[1].record, "both hear of the same holder"
            holder = states[0].record
            assert holder.nonce in (calls[0].nonce, calls[1].nonce)
            assert locks[1].release_lock(Release(holder.nonce)).record == holder
            assert locks[0].read_lock().record == FREE


@pytest.mark.parametrize("kind", SERVICES)
def test_the_lock_outlives_leader_and_service(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("columnar.coordination.start_calls.START_S", 0.5)
    with store_calls(kind, tmp_path) as (one, other, service):
        assert service is not None
        call = Acquire("ab" * 16, "holder", "")
        MaintenanceLock(one).acquire_lock(call)
        service.servers[0].kill()
        with pytest.raises(CasUnavailable):
            MaintenanceLock(other).read_lock()
        service.servers[0].start()
        service.wait()
        monkeypatch.undo()
        assert MaintenanceLock(other).acquire_lock(Acquire("cd" * 16, "", "")).record.nonce == call.nonce
