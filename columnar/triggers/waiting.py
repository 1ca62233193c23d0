"""Waits until consumers have passed given points.  Costs what its own consumers do, whatever others do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from columnar.errors import IllegalArgument
from columnar.regions import change_record
from columnar.triggers.consumer import Consumer
from columnar.triggers.feeder import Feeder, Key

HasPassed = Callable[[Consumer], bool]
_Key = TypeVar("_Key")


async def until_passed(
    feeder: Feeder, targets: Mapping[Key, HasPassed], is_known: Callable[[str], bool], timeout_s: float
) -> bool:
    """True: each consumer has passed its target, or its trigger is removed; False: not in time.

    A consumer whose region is closed for the moment has not passed: it will be back, or others in its place.
    """

    wanted = {key: [has_passed] for key, has_passed in targets.items()}  # more than one where regions were merged

    def is_done(key: Key) -> bool:
        consumer = feeder.find(key)
        if consumer is None:
            return not is_known(key[0])
        return all(has_passed(consumer) for has_passed in wanted[key])

    missing = {key for key in wanted if not is_done(key)}
    if not missing:
        return True
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    unwatch: list[Callable[[], None]] = []

    def look(key: Key) -> None:
        if key in missing and is_done(key):
            missing.discard(key)
        if not missing and not done.done():
            done.set_result(None)

    def replaced(gone: frozenset[int], fresh: Sequence[int]) -> None:
        """What was waited for in a region is waited for in each of those that took its place."""
        heirs: set[Key] = set()
        for key in [key for key in missing if key[1] in gone]:
            missing.discard(key)
            for region_id in fresh:
                heir = (key[0], region_id)
                wanted.setdefault(heir, []).extend(wanted[key])
                heirs.add(heir)
        missing.update(heirs)
        unwatch.append(feeder.watch(tuple(heirs), look))
        for heir in heirs:
            look(heir)

    unwatch += [feeder.watch(tuple(missing), look), feeder.watch_regions(replaced)]
    try:
        await asyncio.wait_for(done, timeout_s)
        return True
    except TimeoutError:
        return False
    finally:
        for end in unwatch:
            end()


def checked_token(token: str) -> change_record.Sequence:
    """Up to where a client wants to wait; IllegalArgument for what we have not given."""
    try:
        return change_record.parse_token(token)
    except ValueError:
        raise IllegalArgument(f"'{token[:40]}' is no sequence of ours") from None


def held_while_it_runs(tasks: dict[_Key, asyncio.Task[None]], key: _Key, task: asyncio.Task[None]) -> None:
    """``tasks[key]`` until it ends, or another task has taken the place."""
    tasks[key] = task
    task.add_done_callback(lambda done: tasks.pop(key) if tasks.get(key) is done else None)
