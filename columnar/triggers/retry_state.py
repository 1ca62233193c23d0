"""(pure) What becomes of the changes of a call: they are done, retried after a pause, or dead letters.

    done      the change is over
    later     the change is delivered again after the time that its call requested; no attempt is counted
    failed    an attempt is counted, and the change is delivered again after a growing pause; after the last one it
              becomes a dead letter
    blocked   the call met an obstacle that is no fault of the change (``obstacles``), for example a disabled table:
              the change is delivered again after a pause, uncounted, and the trigger's status gives the reason
    named     of a batch: the named changes have failed, the others are delivered again at once

A batch that fails, exceeds its timeout or was in a worker that died is halved: its changes are delivered again at once,
in smaller batches, and no attempt is counted.  In the end the failing change is alone, and only then its attempts are
counted.

A trigger that meets an obstacle is blocked: its changes are delivered again after a pause that grows from 0.1 s to
LONGEST_BLOCK_PAUSE_S.  All changes that meet an obstacle within one pause are delivered again at its end.  After
IN_SERIES successive calls that met an obstacle the trigger is also suspended until the end of the pause, since
thousands of changes would be called in vain.  A call that meets none ends the series: if a trigger writes to several
tables and one is disabled, changes for the others continue.

Invariant I1: a trigger is suspended in ``fair`` exactly while its effects have no room or its ``Block`` is suspended.

Knows nothing of workers and clocks: ``now_s`` is the loop's time, ``now_ms`` since 1970.
"""

from __future__ import annotations

import logging
from typing import Final

from columnar.errors import CallerError, ColumnarError, TableNotEnabled, TableReadOnly
from columnar.flows.delivery_state import Delivery, pause_s
from columnar.flows.figures import Figures
from columnar.flows.follower_name import trigger
from columnar.triggers.delivery_source import DeliverySource
from columnar.triggers.instructions import Instructions, Letter, Outcome, Timers
from columnar.triggers.pool_state import Pool

LONGEST_BLOCK_PAUSE_S: Final = 5.0  # the longest pause until a change that met an obstacle is called again
IN_SERIES: Final = 8


def is_obstacle(error: ColumnarError) -> bool:
    """Return whether an operation that met this error may succeed later, unchanged."""
    return not isinstance(error, CallerError) or isinstance(error, TableNotEnabled | TableReadOnly)


class Block:
    """Why a trigger is blocked, and until when."""

    def __init__(self, name: str) -> None:
        self.name = name  # of the trigger; constant
        self.why = ""  # empty: it is blocked no more
        self.ends_s = 0.0  # when the pause ends
        self.is_suspended = False
        self._in_series = 0  # calls that met an obstacle since one met none
        self._pauses = 0

    def meet(self, why: str, now_s: float) -> float:
        """Note that a call met an obstacle; return the seconds until its changes are delivered again."""
        if now_s >= self.ends_s:
            is_another = now_s > self.ends_s + 2 * LONGEST_BLOCK_PAUSE_S
            self._pauses = 1 if is_another else self._pauses + 1
            self.ends_s = now_s + min(LONGEST_BLOCK_PAUSE_S, pause_s(self._pauses))
        self.why = why
        self._in_series += 1
        return self.ends_s - now_s

    def may_suspend(self) -> bool:
        """Suspend the trigger after IN_SERIES calls that met an obstacle; return whether this call suspended it."""
        is_new = self._in_series >= IN_SERIES and not self.is_suspended
        self.is_suspended = self.is_suspended or is_new
        return is_new

    def is_planned_at(self, at_s: float) -> bool:
        return self.is_suspended and self.ends_s == at_s

    def resume(self) -> None:
        self.is_suspended = False

    def work(self) -> None:
        """Note that a call met no obstacle."""
        self.why, self._in_series = "", 0


class RetryState:
    def __init__(
        self, pools: dict[str, Pool], instructions: Instructions, figures: Figures, timers: Timers
    ) -> None:  # fmt: skip
        self.applying: dict[Outcome, None] = {}  # whose effects are being written
        self.full: set[str] = set()  # triggers whose effects have no room
        self.instructions = instructions
        self._pools = pools
        self._blocks: dict[str, Block] = {}  # also of triggers that are blocked no more
        self._figures = figures
        self._timers = timers

    # --- effects -------------------------------------------------------------------------------------

    def apply_effects(self, outcome: Outcome) -> None:
        self.applying[outcome] = None

    def give_up(self, outcome: Outcome) -> None:
        self.applying.pop(outcome, None)
        self.instructions.given_up.append(outcome)

    def finish(self, source: DeliverySource, deliveries: list[Delivery], now_s: float) -> None:
        count = len(deliveries)
        self._figures.of(trigger(source.registration.name), now_s).delivery(now_s, count)
        source.note_delivered(deliveries)
        self.note_moved(source, count)

    def note_moved(self, source: DeliverySource, delivered: int = 0) -> None:
        """Have the shell advance the source, whose state has changed, in the next loop iteration at the latest."""
        self.instructions.moved[source] = self.instructions.moved.get(source, 0) + delivered

    def wake_source(self, source: DeliverySource) -> None:
        """Wake a source whose pause is over."""
        source.wake()
        self.note_moved(source)

    def put_off(self, source: DeliverySource, deliveries: list[Delivery], until_s: float, due_ms: int = 0) -> None:
        """Deliver the changes again at ``until_s``; no attempt is counted.

        ``due_ms`` is that time if the function requested it by ``Later``; a restart keeps such a time.
        """
        source.acquit(deliveries)
        source.state.put_off([one.sequence for one in deliveries], until_s, due_ms)
        self.note_moved(source)

    def requeue_deliveries(self, source: DeliverySource, deliveries: list[Delivery]) -> None:
        source.requeue(deliveries)
        self.note_moved(source)

    def settle_unfinished(self, outcome: Outcome, now_s: float, now_ms: float) -> None:
        """Handle an outcome by which the worker reports that changes are not done."""
        source, deliveries = outcome.source, outcome.deliveries
        if outcome.what == "later":
            seconds = float(outcome.error)
            due_ms = max(1, round(now_ms + seconds * 1_000))
            self.put_off(source, deliveries, now_s + seconds, due_ms)
        elif outcome.what == "named":
            reasons = dict(outcome.error)
            named = [(deliveries[at], why) for at, why in reasons.items() if 0 <= at < len(deliveries)]
            self.name_failed(source, deliveries, named, outcome.output, now_s)
        else:
            source.acquit(deliveries)
            self.fail(source, deliveries, str(outcome.error), outcome.output, now_s)

    # --- obstacles -----------------------------------------------------------------------------------

    def block(
        self, source: DeliverySource, deliveries: list[Delivery], why: str, now_s: float, *, of_some: bool = False
    ) -> None:
        """Deliver the changes again later; no attempt is counted, and the trigger's status has the reason.

        ``of_some`` says that perhaps only some changes of a batch met the obstacle.  Then the batch is halved, so that
        the other changes can be done.
        """
        if of_some and len(deliveries) > 1 and source.registration.batch:
            source.acquit(deliveries)
            self._halve(source, deliveries, why)
            return
        name = source.registration.name
        source.state.note_error(why)
        self.instructions.failures.append((name, deliveries[0].attempt, why))
        block = self._blocks.get(name)
        if block is None:
            block = self._blocks[name] = Block(name)
        pause = block.meet(why, now_s)
        if block.may_suspend():
            self._suspend(name)
        if block.is_suspended:
            self._timers.plan(block.ends_s, block)
        self.put_off(source, deliveries, now_s + pause)

    def note_working(self, name: str) -> None:
        """Note that a call of the trigger met no obstacle."""
        block = self._blocks.get(name)
        if block is not None and block.why:
            block.work()
            self.end_suspension(block)

    def end_suspension(self, block: Block) -> None:
        if block.is_suspended:
            block.resume()
            self._resume_scheduling(block.name)

    def fill_effects(self, name: str) -> None:
        """Suspend the trigger until ``free_effects``, because there is no room for its effects."""
        if name not in self.full:
            self.full.add(name)
            self._suspend(name)

    def free_effects(self, name: str) -> None:
        self.full.discard(name)
        self._resume_scheduling(name)

    def why_blocked(self, name: str) -> str:
        """Return the obstacle that the trigger's calls meet; an empty text if the last call met none."""
        block = self._blocks.get(name)
        return block.why if block is not None else ""

    def is_suspended(self, name: str) -> bool:
        block = self._blocks.get(name)
        return name in self.full or (block is not None and block.is_suspended)

    def forget_trigger(self, name: str) -> None:
        """Forget a removed trigger."""
        self._blocks.pop(name, None)
        self.free_effects(name)

    def _suspend(self, name: str) -> None:
        for pool in self._pools.values():
            pool.fair.suspend_trigger(name)

    def _resume_scheduling(self, name: str) -> None:
        """Let the trigger be scheduled again, unless the second reason of I1 still suspends it."""
        if not self.is_suspended(name):
            for pool in self._pools.values():
                pool.fair.let_go(name)
            self.instructions.note_schedule()

    # --- failures ------------------------------------------------------------------------------------

    def fail(
        self, source: DeliverySource, deliveries: list[Delivery], error: str, output: str, now_s: float, *,
        is_last: bool = False,
    ) -> None:  # fmt: skip
        """Fail the deliveries; ``is_last`` says that further attempts would fail in the same way."""
        if len(deliveries) > 1:
            self._halve(source, deliveries, error)
        else:
            self.fail_one(source, deliveries[0], error, output, now_s, is_last=is_last)

    def fail_one(
        self, source: DeliverySource, delivery: Delivery, error: str, output: str, now_s: float, *,
        is_last: bool = False,
    ) -> None:  # fmt: skip
        registration = source.registration
        self._figures.of(trigger(registration.name), now_s).note_failed()
        self.instructions.failures.append((registration.name, delivery.attempt, error))
        if source.state.fail_change(delivery.sequence, error, now_s, 0 if is_last else registration.attempts):
            source.begin_letter(delivery.sequence)
            self.instructions.letters.append(Letter(source, delivery, error, output))
        self.note_moved(source)

    def _halve(self, source: DeliverySource, deliveries: list[Delivery], error: str) -> None:
        name, last = source.registration.name, error.strip().rpartition("\n")[2]
        count = len(deliveries)
        self.log_line(logging.INFO, f"trigger {name} failed with {count} changes: they come again in halves: {last}")
        source.state.note_error(error)
        source.state.halved([one.sequence for one in deliveries])
        source.make_due()
        self.note_moved(source)

    def name_failed(
        self, source: DeliverySource, deliveries: list[Delivery], named: list[tuple[Delivery, str]], output: str,
        now_s: float,
    ) -> None:  # fmt: skip
        """Fail the named changes of a batch, and deliver its other changes again at once."""
        source.acquit(deliveries)
        by_sequence = {one.sequence: one for one in deliveries}
        reasons = {delivery.sequence: why for delivery, why in named}
        for sequence, why in source.state.named(list(by_sequence), reasons):
            self.fail_one(source, by_sequence[sequence], why, output, now_s)
        source.make_due()
        self.note_moved(source)

    def end_letter(self, letter: Letter) -> None:
        """Note that the letter is on disk, so that the row's next change is delivered."""
        if letter.delivery.sequence in letter.source.in_letters:
            letter.source.end_letter(letter.delivery.sequence)
            self.note_moved(letter.source)

    def log_line(self, level: int, text: str) -> None:
        self.instructions.lines.append((level, text))
