"""(pure) Executes plans: after each event the planner runs, its instructions become transitions, and rows are written.

    end_event   plan, carry the instructions out, send the write that is due, return all outputs of the event
    begin       let the planner run from now on

The planner runs once more after a plan that prefers a new server for a region, so that moves to that server begin at
once.

Invariant: a write goes out only if the catalogue takes writes, and then contains every row and setting that waits.

Knows nothing of the events themselves: ``cluster_state`` and ``table_regions`` change the state first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from columnar.master.instructions import (
    DECISIONS_KEPT,
    Close,
    Decision,
    Fence,
    Give,
    Instruction,
    Merge,
    Output,
    Plan,
    Prefer,
    Reason,
    Split,
    Wake,
)
from columnar.master.owner_ledger import OwnerLedger
from columnar.master.placement import Current, Desired
from columnar.master.plan_draft import Chance
from columnar.master.requests import Requests, regions_changed
from columnar.master.transitions import Transitions

PLAN_INTERVAL_MS: Final = 1_000  # between two plans without an event
Planner: TypeAlias = Callable[[Desired, Current, int, Chance], Plan]


class PlanExecutor:
    def __init__(
        self,
        desired: Desired,
        current: Current,
        ledger: OwnerLedger,
        transitions: Transitions,
        requests: Requests,
        planner: Planner,
        rng: Chance,
    ) -> None:
        self.decisions: deque[Decision] = deque(maxlen=DECISIONS_KEPT)
        self.decisions_made = 0  # since the start
        self.remarks: tuple[str, ...] = ()  # what cannot be done
        self.has_begun = False
        self._desired = desired
        self._current = current
        self._ledger = ledger
        self._transitions = transitions
        self._requests = requests
        self._plan = planner
        self._rng = rng
        self._balance_remarks: tuple[str, ...] = ()  # of the last round of balance, which are valid until the next
        self._is_write_due = False
        self._wake_at_ms: int | None = None

    def begin(self) -> None:
        self.has_begun = True

    def write_unsent(self) -> None:
        """Make a write due for rows that are not on disk, even if no region waits for them."""
        self._is_write_due = self._is_write_due or self._ledger.has_unsent

    def end_event(self, now_ms: int) -> list[Output]:
        """Plan, send the write that is due, and return all outputs of the event."""
        wake_at_ms = now_ms + PLAN_INTERVAL_MS
        for _ in range(2):  # moves to servers that balance prefers begin at once
            if not self.has_begun:
                break
            made = self._plan(self._desired, self._current, now_ms, self._rng)
            if made.has_balanced:
                self._current.balance.round_planned(now_ms)
            self._note_remarks(made)
            wake_at_ms = min(wake_at_ms, made.wake_at_ms or wake_at_ms)
            for instruction in made.instructions:
                self._carry_out(instruction, now_ms)
            if not any(isinstance(one, Prefer) for one in made.instructions):
                break
        self._requests.answer_ended_requests(now_ms)
        if self._has_write() and self.has_begun and now_ms >= self._current.catalogue.unwritable_until_ms:
            self._send_write()
        if self._wake_at_ms is None or not now_ms < self._wake_at_ms <= wake_at_ms:
            self._wake_at_ms = wake_at_ms
            self._transitions.outputs.append(Wake(wake_at_ms))
        return self._transitions.take_outputs()

    def _note_remarks(self, made: Plan) -> None:
        """Show the remarks of this plan; a plan without any shows those of the last round of balance."""
        if made.has_balanced:
            self._balance_remarks = made.remarks
        elif made.remarks:
            self._balance_remarks = ()  # regions are without an owner: another balance is to come
        self.remarks = made.remarks or self._balance_remarks

    def _has_write(self) -> bool:
        is_setting_due = self._requests.operator_settings_to_write is not None
        return self._is_write_due or self._transitions.is_urgent or is_setting_due

    def _send_write(self) -> None:
        write = self._ledger.take_write(self._current.info_of, self._requests.operator_settings_to_write)
        self._requests.sent(write.number)
        self._is_write_due = False
        self._transitions.write_sent()
        self._transitions.outputs.append(write)

    def record_decision(self, what: Instruction | Fence, now_ms: int) -> None:
        self.decisions.append(Decision(now_ms, what))
        self.decisions_made += 1

    def _carry_out(self, instruction: Instruction, now_ms: int) -> None:
        self.record_decision(instruction, now_ms)
        if isinstance(instruction, Give):
            self._give(instruction, now_ms)
        elif isinstance(instruction, Prefer):
            place = self._current.places[instruction.region]
            self._current.set_ideal(place, instruction.server, instruction.why)
        elif isinstance(instruction, Close):
            self._transitions.close(self._current.places[instruction.region], instruction.why, now_ms)
        elif isinstance(instruction, Split | Merge):
            self._requests.change_begun(instruction)
            regions = regions_changed(instruction)
            for region in regions:
                partner = next((one for one in regions if one != region), None)
                self._current.begin_change(self._current.places[region], partner, now_ms)
            self._transitions.outputs.append(instruction)

    def _give(self, give: Give, now_ms: int) -> None:
        place = self._current.places[give.region]
        server = self._current.servers[give.server].incarnation
        assert server is not None, "it is up"
        by_hand = self._requests.is_by_hand(give)
        place.note_choice(give.server, now_ms, by_hand=by_hand)
        # Otherwise a region that was tried would go home at once, perhaps to a server that cannot open it.
        is_chosen = give.reason in (Reason.FAILURE, Reason.ASSIGNED)
        if by_hand or is_chosen or place.ideal is None:
            self._current.set_ideal(place, give.server, "")
        elif give.server == place.ideal:
            place.came_home()
        self._transitions.give(place, server, give.why, give.reason, now_ms)
