"""Blocked triggers: how long their changes wait, when the trigger is suspended, and when it is scheduled again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from columnar.flows.delivery_state import DeliveryState
from columnar.flows.figures import Figures
from columnar.model.trigger_registration import Registration
from columnar.regions.log.change_record import Sequence
from columnar.triggers.delivery_source import NEVER, DeliverySource
from columnar.triggers.dispatcher_state import DispatcherState
from columnar.triggers.retry_state import IN_SERIES, LONGEST_BLOCK_PAUSE_S

WHY = "out is disabled"


class Blocked:
    """A trigger with many changes, of which some calls met an obstacle at the time 0."""

    def __init__(self, met: int) -> None:
        self.state = DispatcherState(Figures())
        self.source = DeliverySource(Registration("t", "table", "m:f", ("f",)), DeliveryState(None))
        for number in range(4 * IN_SERIES):
            self.source.state.read_change(Sequence(1, 1, number + 1), b"%d" % number)
        self.pool = self.state.pool_of("")
        self.pauses = [self.meet(0.0) for _ in range(met)]

    def meet(self, now_s: float) -> float:
        """One more call meets the obstacle; the pause of its change."""
        (delivery,) = self.source.take_call(now_s)
        self.state.retries.block(self.source, [delivery], WHY, now_s)
        self.state.queue(self.source, now_s)
        return max(at_s for at_s, _ in self.source.state._parked) - now_s

    def pass_time(self, now_s: float) -> None:
        while (due := self.state.take_due(now_s)) is not None:
            due[1]()

    @property
    def is_suspended(self) -> bool:
        return not self.pool.fair.waits(NEVER)


def test_a_blocked_trigger_says_why_and_is_scheduled_for_its_other_changes() -> None:
    blocked = Blocked(IN_SERIES - 1)
    assert blocked.state.obstacle("t") == WHY
    assert not blocked.is_suspended


def test_what_meets_an_obstacle_within_a_pause_comes_at_its_end_and_pauses_grow() -> None:
    blocked = Blocked(2)
    assert blocked.pauses == [0.1, 0.1]
    assert blocked.meet(0.05) == pytest.approx(0.05)
    assert blocked.meet(0.1) == pytest.approx(0.2)
    now_s = 0.3
    for _ in range(10):
        now_s += blocked.meet(now_s)
    assert blocked.meet(now_s) == pytest.approx(LONGEST_BLOCK_PAUSE_S)
    assert blocked.meet(now_s + 4 * LONGEST_BLOCK_PAUSE_S) == pytest.approx(0.1), "it is another obstacle"


@pytest.mark.parametrize(
    "end",
    [
        lambda blocked: blocked.pass_time(0.1),
        lambda blocked: blocked.state.retries.note_working("t"),
        lambda blocked: blocked.state.retries.forget_trigger("t"),
    ],
    ids=["pause", "worked", "removed"],
)
def test_a_suspended_trigger_is_scheduled_again(end: Callable[[Blocked], None]) -> None:
    blocked = Blocked(IN_SERIES)
    assert blocked.is_suspended
    assert blocked.state.timers.next_s() == pytest.approx(0.1)
    end(blocked)
    assert not blocked.is_suspended
    assert blocked.state.instructions.is_schedule_changed


def test_a_trigger_without_room_for_its_effects_stays_suspended_when_its_pause_is_over() -> None:
    blocked = Blocked(IN_SERIES)
    blocked.state.retries.fill_effects("t")
    blocked.pass_time(0.1)
    assert blocked.is_suspended
    blocked.state.retries.free_effects("t")
    assert not blocked.is_suspended


def test_the_end_of_a_pause_is_an_event_of_the_pool_of_its_trigger() -> None:
    """So an exception in it has that pool begin anew, which suspends no trigger whose pause is over."""
    state = DispatcherState(Figures())
    source = DeliverySource(Registration("t", "table", "m:f", ("f",), process="label"), DeliveryState(None))
    for number in range(IN_SERIES):
        source.state.read_change(Sequence(1, 1, number + 1), b"%d" % number)
    for _ in range(IN_SERIES):
        state.retries.block(source, source.take_call(0.0), WHY, 0.0)
    state.queue(source, 0.0)
    assert state.take_due(0.05) is None
    labels = [label for label, _ in iter(lambda: state.take_due(0.1), None)]
    assert set(labels) == {"label"}
    assert len(labels) >= 1
