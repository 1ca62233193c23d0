"""The gate: who waits is notified when the lease holds, once, or when it has waited for too long; one timer for all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps

import pytest

from columnar.coordination import lease_gate
from columnar.coordination.lease_gate import OPENED_AT_ONCE, LeaseGate


class Scene:
    def __init__(self) -> None:
        self.is_valid = False
        self.failure: Exception | None = None
        self.gate = LeaseGate(self._holds, wait_s=0.05)
        self.heard: list[str] = []

    def _holds(self) -> bool:
        if self.failure is not None:
            raise self.failure
        return self.is_valid

    def owner(self, name: str, then: Callable[[], None] = lambda: None) -> Owner:
        return Owner(self, name, then)

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - the gate has a timer
            await asyncio.sleep(0.001)


class Owner:
    def __init__(self, scene: Scene, name: str, then: Callable[[], None]) -> None:
        self._scene, self._name, self._then = scene, name, then

    def gate_opened(self) -> None:
        self._scene.heard.append(f"{self._name} opened")
        self._then()

    def gate_expired(self) -> None:
        self._scene.heard.append(f"{self._name} expired")
        self._then()


def at_gate(test: Callable[[Scene], Awaitable[None]]) -> Callable[[pytest.MonkeyPatch], None]:
    @wraps(test)
    def run(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lease_gate, "RETRY_S", 0.001)

        async def main() -> None:
            async with asyncio.timeout(20):
                await test(Scene())

        asyncio.run(main())

    del run.__wrapped__  # type: ignore[attr-defined]
    return run


@at_gate
async def test_owners_are_notified_in_their_order_when_the_lease_holds(scene: Scene) -> None:
    names = [f"n{n}" for n in range(3 * OPENED_AT_ONCE)]
    for name in names:
        scene.gate.wait(scene.owner(name))
    scene.is_valid = True
    await scene.until(lambda: not scene.gate.waiting_count)
    assert scene.heard == [f"{name} opened" for name in names]
    assert scene.gate._timer is None


@at_gate
async def test_many_owners_expire_together(scene: Scene) -> None:
    for n in range(3 * OPENED_AT_ONCE):
        scene.gate.wait(scene.owner(f"n{n}"))
    await scene.until(lambda: not scene.gate.waiting_count)
    assert scene.heard == [f"n{n} expired" for n in range(3 * OPENED_AT_ONCE)]
    assert scene.gate._timer is None


@at_gate
async def test_an_owner_that_is_forgotten_hears_nothing(scene: Scene) -> None:
    first, last = scene.owner("first", lambda: scene.gate.forget(last)), scene.owner("last")
    gone = scene.owner("gone")
    for owner in (first, gone, last):
        scene.gate.wait(owner)
    scene.gate.forget(gone)
    scene.gate.forget(gone)
    scene.is_valid = True
    await scene.until(lambda: not scene.gate.waiting_count)
    assert scene.heard == ["first opened"], "its end was the end of the last"


@at_gate
async def test_an_owner_that_waits_again_waits_from_then_on(scene: Scene) -> None:
    owner = scene.owner("a", lambda: scene.gate.wait(owner))
    scene.gate.wait(owner)
    scene.gate.wait(owner)
    assert scene.gate.waiting_count == 1
    began = asyncio.get_running_loop().time()
    await scene.until(lambda: len(scene.heard) == 3)
    assert asyncio.get_running_loop().time() - began >= 3 * 0.05
    assert scene.gate.waiting_count == 1


@at_gate
async def test_a_lease_that_is_short_notifies_nobody_twice(scene: Scene) -> None:
    scene.gate.wait(scene.owner("a", lambda: setattr(scene, "is_valid", False)))
    scene.gate.wait(scene.owner("b"))
    scene.is_valid = True
    await scene.until(lambda: not scene.gate.waiting_count)
    assert scene.heard == ["a opened", "b opened"], "b asks the gate itself, and waits again"


def test_faults_of_owners_and_of_the_lease_end_no_wait(
    monkeypatch: pytest.MonkeyPatch, expected_faults: Callable[[], dict[str, int]]
) -> None:
    @at_gate
    async def test(scene: Scene) -> None:
        def fails() -> None:
            raise KeyError("mine")

        scene.failure = OSError("no page")
        scene.gate.wait(scene.owner("a", fails))
        scene.gate.wait(scene.owner("b"))
        await asyncio.sleep(0.01)
        scene.failure, scene.is_valid = None, True
        await scene.until(lambda: not scene.gate.waiting_count)
        assert scene.heard == ["a opened", "b opened"]

    test(monkeypatch)
    assert expected_faults().keys() == {"the gate of the lease"}
