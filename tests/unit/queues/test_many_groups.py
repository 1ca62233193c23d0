"""More groups than memory has room for: each message is given out once, and no pop misses one that is ready."""

from __future__ import annotations

import random

import pytest

from columnar.queues import desk, queue_state
from tests.support.queue_house import Queues, queues

STEPS = 300


@pytest.mark.parametrize("seed", range(12))
def test_each_message_of_many_groups_is_given_out_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (desk, queue_state):
        monkeypatch.setattr(module, "QUEUE_CACHED", 6)
    monkeypatch.setattr(desk, "OPENING_SUBQUEUES", 2)
    rng = random.Random(seed)

    @queues
    async def held(house: Queues) -> None:
        await house.configure(fifo=rng.random() < 0.3)
        ready, sent = set[bytes](), 0
        for _ in range(STEPS):
            kind = rng.random()
            if kind < 0.5:
                group = b"g%d" % rng.randrange(rng.choice((3, 60)))
                bodies = [b"%d" % (sent + number) for number in range(rng.choice((1, 1, 4)))]
                sent += len(bodies)
                await house.push(*bodies, group=group)
                ready.update(bodies)
            elif kind < 0.98:
                found = await house.pop(rng.choice((1, 3)))
                assert found or not ready, "a pop misses what is ready"
                assert {one.body for one in found} <= ready, "a message comes again"
                ready -= {one.body for one in found}
                assert await house.settle(found) == [True] * len(found) if found else True
            else:
                house.begin_again()
            for one in house.desks.usable_desks():
                one.state.check_invariants()
        assert (await house.stats()).messages == len(ready)
        while ready:
            found = await house.pop(5)
            assert found, "a pop misses what is ready"
            ready -= {one.body for one in found}
            await house.settle(found)

    held()
