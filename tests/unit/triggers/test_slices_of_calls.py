"""A call is cut after so many effects, bytes or so much time, with a batch as without one, and begins where it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from columnar.model.effect import Barrier, Put
from columnar.triggers import slices
from columnar.triggers.slices import SLICE_EFFECTS, Call, Function
from tests.unit.triggers.test_worker import CHANGE

BATCHED = pytest.mark.parametrize("is_batch", [False, True])


def slices_of(is_batch: bool, steps: list[int | None]) -> list[list[bytes]]:
    """The rows of each slice; ``steps``: an effect of so many bytes, or None for a Barrier."""

    def yields(argument: Any) -> Iterator[Any]:
        for number, size in enumerate(steps):
            if size is None:
                yield Barrier()
                continue
            effect = Put("out", b"%d" % number, {b"f:a": bytes(size)})
            yield (argument[number % 2], effect) if is_batch else effect

    changes = [CHANGE, [CHANGE[0], b"s", *CHANGE[2:]]] if is_batch else [CHANGE]
    call = Call([1, "t", "m:f", 64, changes, None, is_batch, ""])
    found: list[list[bytes]] = []
    while True:
        _, what, effects, error, *_ = call.run(lambda _: Function(yields, False), lambda: None)  # type: ignore[arg-type,return-value]
        assert error is None
        if is_batch:
            assert [at for at, _ in effects] == [int(one[2]) % 2 for _, one in effects]
        found.append([one[1][2] if is_batch else one[2] for one in effects])
        if what == "done":
            return found
        assert what == "more"


def named(*ranges: range) -> list[list[bytes]]:
    return [[b"%d" % n for n in one] for one in ranges]


@pytest.fixture(autouse=True)
def _no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "perf_counter", lambda: 0.0)


@BATCHED
def test_a_slice_has_so_many_effects(is_batch: bool) -> None:
    count = SLICE_EFFECTS
    assert slices_of(is_batch, [1] * (2 * count + 1)) == named(
        range(count), range(count, 2 * count), range(2 * count, 2 * count + 1)
    )
    assert slices_of(is_batch, [1] * (count - 1)) == named(range(count - 1))


@BATCHED
def test_a_slice_ends_with_the_effect_that_fills_its_bytes(is_batch: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    size = Put("out", b"0", {b"f:a": bytes(100)}).size_bytes
    monkeypatch.setattr(slices, "EFFECT_BYTES", 2 * size)
    assert slices_of(is_batch, [100] * 5) == named(range(2), range(2, 4), range(4, 5))
    assert slices_of(is_batch, [10, 500, 10]) == named(range(2), range(2, 3))
    assert slices_of(is_batch, [500, 10, 10]) == named(range(1), range(1, 3))


@BATCHED
def test_a_slice_whose_time_is_over_ends_with_one_effect_at_least(
    is_batch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    assert slices_of(is_batch, [1] * 3) == [[b"0"], [b"1"], [b"2"], []]


@BATCHED
def test_a_barrier_ends_a_slice_that_has_effects_wherever_it_comes(is_batch: bool) -> None:
    assert slices_of(is_batch, [None, 1, 1]) == [[b"1", b"2"]]
    assert slices_of(is_batch, [1, None, None, 1]) == [[b"0"], [b"3"]]
    assert slices_of(is_batch, [1, 1, None]) == [[b"0", b"1"], []]
