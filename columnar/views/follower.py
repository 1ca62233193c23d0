"""The follower of a view on one open region of a source: changes and rows become shares, which the applier writes.

    log -> open changes -> shares of each by ``contributions.difference`` -> batches -> applier -> done
    existing rows -> pieces (``backfill``) -> batches as of the piece's sequences -> applier

The order of changes does not matter, because each share bears its change's sequence.  So MAX_IN_FLIGHT changes may be
in flight at a time, a batch whose target is unavailable blocks no later batch, and a failed batch is retried after a
pause, without a limit of attempts.  Nothing is given up: a row that cannot be read contributes nothing, and is counted.
An unexpected exception is treated as any other error: the view's status shows it, and the view continues after the
pause.

Owned by the loop; the governor runs its work in steps.
"""

from __future__ import annotations

from asyncio import Future, get_running_loop
from collections.abc import Callable
from collections.abc import Sequence as Several
from time import monotonic
from typing import ClassVar, Final

from columnar.errors import ColumnarError, DamagedData, ProgramFault
from columnar.flows.applier import Applier, Job
from columnar.flows.delivery_state import DeliveryState
from columnar.flows.follower import Follower
from columnar.flows.follower_name import FollowerName
from columnar.flows.governed_follower import FollowerServices, GovernedFollower
from columnar.regions.log.change_record import ChangeRecord, Sequence, SequenceRange
from columnar.regions.region import Region
from columnar.regions.write.images import images_of, union
from columnar.views import progress as progresses
from columnar.views.backfill import Backfill
from columnar.views.contributions import Rules, difference
from columnar.views.progress import Progress
from columnar.views.share_writes import BATCH_RECORDS, ShareBatch

MAX_IN_FLIGHT: Final = 2 * BATCH_RECORDS  # a cursor has as many open numbers: some 30 KB, packed in 1 ms
LOOP: Final = "views"
ROOM_S: Final = 0.02  # until the next check of an applier that other followers have filled


class SentBatches:
    """The batches of a follower that the applier writes.  Each batch ends once, or never if the follower is dropped."""

    def __init__(self, applier: Applier, name: FollowerName, written: Callable[[ColumnarError | None], None]) -> None:
        """``written`` is called after each batch that the applier handled."""
        self._applier = applier
        self._name = name
        self._written = written
        self._jobs: set[Job] = set()
        self._is_dropped = False

    @property
    def has_batches(self) -> bool:
        return bool(self._jobs)

    def send_batch(self, batch: ShareBatch, ended: Callable[[ColumnarError | None], None]) -> None:
        writes = batch.writes()
        if not writes:
            ended(None)
            return
        jobs: list[Job] = []
        left = [ended]  # a later fault must not end the batch twice

        def on_applied(error: ColumnarError | None) -> None:
            self._jobs.difference_update(jobs)
            if not self._is_dropped:
                if left:
                    left[0](error)
                    left.clear()
                self._written(error)

        key, view = self._name.key, self._name.name
        jobs.append(self._applier.apply(writes, batch.size_bytes, on_applied, key, writer_view=view))
        self._jobs.update(jobs)

    def drop_all(self) -> None:
        self._is_dropped = True
        for job in self._jobs:
            self._applier.give_up(job)
        self._jobs.clear()


class ViewFollower(GovernedFollower):
    in_order: ClassVar[bool] = False
    loop: ClassVar[str] = LOOP

    def __init__(
        self,
        name: FollowerName,
        rules: tuple[Rules, ...],
        region: Region,
        state: DeliveryState,
        services: FollowerServices,
        applier: Applier,
    ) -> None:
        """``rules`` has the rules of each source of the view that is the region's table."""
        self.rules = rules
        self._images = union(one.images for one in rules)
        super().__init__(name, region, frozenset(self._images), state, services)
        self._applier = applier
        self._table = name.name.encode()
        self._sent = SentBatches(applier, name, self._written)
        progress = progresses.unpack(state.kept) if state.kept else Progress(region.info.region_id)
        self._backfill = Backfill(
            progress.in_region(region.info.region_id, region.info.start),
            region,
            rules,
            self._images,
            self._table,
            self.save_durably,
            self._sent.send_batch,
            lambda: self._retry.soon(),
        )
        self._batch = ShareBatch(self._table)
        self._taken: list[Sequence] = []  # of the changes in ``_batch``
        self._spoiled: list[Sequence] = []  # taken, but in no batch any more: to be put off
        self._counting: dict[Sequence, tuple[bytes, int]] = {}  # row, how many more rows are unreadable
        self._built: Future[None] | None = None

    @property
    def progress(self) -> Progress:
        return self._backfill.progress

    # --- flows.follower.Follower ---------------------------------------------------------------------

    def step(self) -> float | None:
        if not self._may_work():
            return None
        self._steps.soon()
        due_s = self.state.next_due_s()
        return None if due_s is None else max(0.0, due_s - get_running_loop().time())

    def pause_intake(self) -> None:
        self._hand_over()
        self._backfill.pause()

    def dropped(self) -> None:
        super().dropped()
        self._sent.drop_all()
        if self._built is not None and not self._built.done():
            self._built.set_result(None)

    def preparing(self) -> Future[None] | None:
        if self.is_prepared:
            return None
        if self._built is None:
            self._built = get_running_loop().create_future()
        return self._built

    @property
    def is_prepared(self) -> bool:
        return self.progress.is_backfilled

    @property
    def is_idle(self) -> bool:
        return super().is_idle and self._backfill.is_over

    @property
    def is_quiescent(self) -> bool:
        return not self.state.in_flight_count and not self._sent.has_batches

    def has_delivered(self, changes: SequenceRange) -> bool:
        return self.is_prepared and super().has_delivered(changes)

    def obstacle(self) -> str:
        return f"{self.name} is behind{self.failure}; columnar view list shows how far"

    def wants(self, record: ChangeRecord) -> bool:
        return record.only_for is None and self.progress.wants(record.row) and super().wants(record)

    def kept(self) -> bytes:
        return progresses.pack(self.progress)

    def carried(self, all_of_it: Several[Follower], region_id: int) -> bytes:
        parts = [one.progress for one in all_of_it if isinstance(one, ViewFollower)]
        return progresses.pack(progresses.merged(parts, region_id))

    # --- steps ---------------------------------------------------------------------------------------

    def _begin_work(self) -> None:
        self._put_off_spoiled()

    def _do_a_little(self) -> bool:
        if not self._applier.has_room(self.name.key):
            self._retry.after(ROOM_S)
            return False
        if not self._backfill.is_over:
            self._hand_over()  # when a piece begins, no taken change may wait for its batch to fill
            if self._backfill.step():
                return True
        if self._backfill.is_quiet:
            return False
        return self._take_change()

    def _after_work(self) -> None:
        """End a finished piece, and notify callers that wait for the backfill or for changes."""
        if self._backfill.end_piece(self.state.is_delivered_up_to):
            self.dirty = True
            if not self._backfill.is_over:
                self._services.step_follower(self)
        if self._built is not None and not self._built.done() and self.is_prepared:
            self._built.set_result(None)
        super()._after_work()

    # --- changes -------------------------------------------------------------------------------------

    def _take_change(self) -> bool:
        """Add the next change to the batch.

        Send the batch if it is full, at the end of the log, and at MAX_IN_FLIGHT.
        """
        state, now_s = self.state, get_running_loop().time()
        if state.in_flight_count >= MAX_IN_FLIGHT:
            self._hand_over()
            return False
        delivery, more = state.take(now_s), False
        if delivery is None:
            more = self.fill()
            delivery = state.take(now_s)
        if delivery is None:
            if not more:
                self._hand_over()
            return more or state.has_ready  # a batch without a share ends at once
        self._taken.append(delivery.sequence)
        self._add_change(delivery.sequence)
        if self._batch.is_full:
            self._hand_over()
        return True

    def _add_change(self, sequence: Sequence) -> None:
        self._batch.add_record()
        record = self.record_at(sequence)
        if record is None:  # deleted, which only a repair by hand does
            return
        images = images_of(record, self._images)
        if images is None:
            raise DamagedData(f"change {sequence.token} was logged without what {self.name} reads of it")
        rejected_more = 0
        for rules in self.rules:
            found = difference(rules, record.row, images.before, images.after)
            rejected_more += found.rejected_more
            for share in found.shares:
                self._batch.add_share(rules, share, sequence, record.hops)
        if rejected_more:
            self._counting[sequence] = (record.row, rejected_more)

    def _hand_over(self) -> None:
        taken, batch = self._taken, self._batch
        if taken:
            self._sent.send_batch(batch, lambda error: self._ended(taken, error))
            self._taken, self._batch = [], ShareBatch(self._table)  # not before: if sending fails, they are put off

    def _written(self, error: ColumnarError | None) -> None:
        """Handle the end of a batch: there is room for more, or the follower pauses."""
        self._after_work()
        if error is None:
            self._succeeded()
            self._services.step_follower(self)
        else:
            self._failed(error)

    def _ended(self, taken: list[Sequence], error: ColumnarError | None) -> None:
        """Mark the changes of a batch as done, or put them off.

        This method is called again after a fault, for the changes still in flight.
        """
        taken = self.state.still_in_flight(taken)
        if error is not None:
            self.state.put_off(taken, get_running_loop().time())
            for sequence in taken:
                self._counting.pop(sequence, None)
            return
        for sequence in taken:
            counted = self._counting.pop(sequence, None)
            if counted is not None:
                self._backfill.count(counted[0], sequence, counted[1])
            self.state.done(sequence)
        self.dirty = True
        now_s = monotonic()
        self._services.figures.of(self.name, now_s).delivery(now_s, len(taken))

    def _drop_work(self, error: ColumnarError) -> None:
        """Put off the taken changes."""
        self._spoiled += self._taken
        self._taken, self._batch = [], ShareBatch(self._table)
        self._put_off_spoiled(error)
        self._backfill.pause()

    def _put_off_spoiled(self, error: ColumnarError | None = None) -> None:
        if self._spoiled:
            self._ended(self._spoiled, error or ProgramFault(RuntimeError("a batch was given up")))
            self._spoiled = []
