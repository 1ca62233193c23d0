"""Trigger functions that yield, wait or end badly, for tests of a worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from columnar.model.effect import Barrier, Checkpoint, Effect, Put
from columnar.triggers.api import Change, Later
from columnar.triggers.slices import EFFECT_BYTES, SLICE_EFFECTS


def effects_of(module: dict[str, Any]) -> dict[str, Any]:
    """Return functions that yield, and the other functions of this module."""
    module["closed"] = closed = []

    def one(change: Change) -> Iterator[Effect]:
        yield Put("out", change.row, {b"f:a": b"1"})

    def many(change: Change) -> Iterator[Effect]:
        first = int(change.progress or b"0")
        try:
            for number in range(first, 3 * SLICE_EFFECTS):
                if number % SLICE_EFFECTS == 7:
                    yield Checkpoint(b"%d" % number)
                yield Put("out", b"%d" % number, {b"f:a": b"1"})
        finally:
            closed.append(change.row)

    def megabyte(change: Change) -> Iterator[Effect]:
        yield Put("out", change.row, {b"f:a": bytes(1 << 20)})

    def large(change: Change) -> Iterator[Effect]:
        for _ in range(3):
            yield Put("out", change.row, {b"f:a": bytes(EFFECT_BYTES)})

    def huge(change: Change) -> Iterator[Effect]:
        value = bytes(9 << 20)
        yield Put("out", change.row, {b"f:%d" % number: value for number in range(10)})

    def returns_numbers(_change: Change) -> list[int]:
        return [1, 2]

    def in_steps(change: Change) -> Iterator[Effect]:
        yield Barrier()
        yield Put("out", change.row, {b"f:a": b"1"})
        yield Barrier()
        yield Put("out", b"after", {b"f:a": b"1"})

    def wrong(change: Change) -> Iterator[Any]:
        yield Put("out", change.row, {b"f:a": b"1"})
        yield "text"

    def later(_change: Change) -> None:
        raise Later(2.5)

    def looks(change: Change) -> None:
        change.now.get(b"f:a")

    def none_of_it() -> None: ...

    return (
        {name: value for name, value in locals().items() if callable(value)}
        | effects_not_yielded()
        | waiting_functions(module)
        | effects_behind_checkpoints()
    )


def waiting_functions(module: dict[str, Any]) -> dict[str, Any]:
    """Return functions that set ``entered`` and wait until ``gate`` of the module is set."""
    entered = module["entered"] = threading.Semaphore(0)
    gate = module["gate"] = threading.Event()

    def waits(_change: Change) -> None:
        entered.release()
        gate.wait(20)

    def waits_with_client(_change: Change, _client: Any) -> None:
        waits(_change)

    return {"waits": waits, "waits_with_client": waits_with_client}


def effects_not_yielded() -> dict[str, Any]:
    """Return functions that return their effects, or are async."""

    def returns(change: Change) -> list[Effect]:
        return [Put("out", change.row, {b"f:a": b"1"})]

    def returns_a_tuple(change: Change) -> tuple[Effect, ...]:
        return (Put("out", change.row, {b"f:a": b"1"}),)

    async def awaits(change: Change) -> list[Effect]:
        return [Put("out", change.row, {b"f:a": b"1"})]

    async def awaits_and_yields(change: Change) -> Any:
        yield Put("out", change.row, {b"f:a": b"1"})

    return dict(locals())


def effects_behind_checkpoints() -> dict[str, Any]:
    """Return functions that end badly after a checkpoint."""

    def checks_and_is_put_off(change: Change) -> Iterator[Effect]:
        yield Put("out", change.row, {b"f:a": b"1"})
        yield Checkpoint(b"half")
        yield Put("out", b"after", {b"f:a": b"1"})
        raise Later(2.5)

    def checks_and_fails(change: Change) -> Iterator[Effect]:
        yield Put("out", change.row, {b"f:a": b"1"})
        yield Checkpoint(b"half")
        yield Put("out", b"after", {b"f:a": b"1"})
        raise ValueError("as told")

    return dict(locals())
