"""Commits go on after an exception at any of their calls: every writer hears, and one store is closed by it at most."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from columnar.errors import OutcomeUnknown
from columnar.runtime.immediate_future import ImmediateFuture
from columnar.storage import commit, shared_rounds
from columnar.storage.commit import Committer
from columnar.storage.memory import MemoryEngine
from tests.support.injected_faults import Calls, survived
from tests.support.logged_stores import LoggedStores

STORES, ROUNDS = 3, 6


async def _outcomes(wanted: list[ImmediateFuture]) -> list[bool]:
    """Whether each was acknowledged."""
    found = await asyncio.gather(*map(asyncio.shield, wanted), return_exceptions=True)
    assert all(one is None or isinstance(one, OutcomeUnknown) for one in found), found
    return [one is None for one in found]


async def each_by_itself(calls: Calls) -> None:
    committer = Committer(asyncio.get_running_loop(), threads=2)
    engine = MemoryEngine()
    stores = [engine.open_store(f"s{number}", frozenset({"a"})) for number in range(STORES)]
    with calls.armed():
        for _ in range(ROUNDS):
            await _outcomes([committer.durable(store) for store in stores for _ in range(2)])
    acknowledged = await _outcomes([committer.durable(store) for store in stores])
    assert acknowledged.count(False) <= 1, "one store is broken"
    assert all(map(committer.is_idle, stores))
    committer.close()


def test_commits_survive_an_exception_at_each_of_their_calls(expected_faults: Callable[[], dict[str, int]]) -> None:
    assert survived(each_by_itself, commit) > 5
    assert expected_faults()


def test_rounds_of_the_servers_log_survive_an_exception_at_each_of_their_calls(
    tmp_path: Path, expected_faults: Callable[[], dict[str, int]]
) -> None:
    runs = 0

    async def shared(calls: Calls) -> None:
        nonlocal runs
        runs += 1
        root = tmp_path / str(runs)
        root.mkdir()
        stores = LoggedStores(root)
        with calls.armed():
            for number in range(ROUNDS):
                puts = (stores.put(at, b"%d" % number) for at in range(STORES))
                found = await asyncio.gather(*puts, return_exceptions=True)
                assert all(one is None or isinstance(one, OutcomeUnknown) for one in found), found
        found = await asyncio.gather(*(stores.put(at, b"x") for at in range(STORES)), return_exceptions=True)
        assert sum(one is not None for one in found) <= 1, "one store is broken"
        assert all(map(stores.committer.is_idle, stores.stores))
        stores.close()

    assert survived(shared, shared_rounds) > 20
    assert expected_faults()
