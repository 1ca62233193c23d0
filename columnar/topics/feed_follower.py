"""The follower of a feed on one open region of its table: changes and rows become records, which go to a topic.

    log -> open changes -> messages of each (``model.debezium``) -> one batch -> topic -> done
    existing rows -> pieces (``feed_progress``) -> one batch -> topic -> the changes up to the piece -> the next piece

A follower sends one batch at a time, and sends a batch that failed again as it is, after a pause, before anything else.
So the records of a row keep their order, and the topic leaves out what it has already (``feed_batch``).  A feed
promises nothing: it slows no writer.  If the log has lost its next change, it begins again with the rows as they are.

A batch whose outcome is unknown when its region is split or merged may come again, as the successors are other
producers.

Owned by the loop; the governor runs its work in steps.
"""

from __future__ import annotations

from asyncio import Future, get_running_loop
from collections.abc import Callable
from collections.abc import Sequence as Several
from time import monotonic
from typing import ClassVar, Final

from columnar.errors import ColumnarError, ProgramFault
from columnar.flows.delivery_cursor import unpack_cursor
from columnar.flows.delivery_state import DeliveryState
from columnar.flows.follower import Follower, Lag
from columnar.flows.follower_name import FollowerName
from columnar.flows.governed_follower import FollowerServices, GovernedFollower
from columnar.model.feeds import Feed
from columnar.regions.log.change_record import ChangeRecord, Images, Sequence
from columnar.regions.region import Region
from columnar.runtime.faults import FAULTS, UNEXPECTED
from columnar.topics import feed_progress as progresses
from columnar.topics.feed_batch import Part
from columnar.topics.feed_messages import FeedMessages
from columnar.topics.feed_progress import FeedProgress

LOOP: Final = "feeds"
OPEN_FEED_CHANGES: Final = 1_024  # of a feed in a region
DURABLE_S: Final = 0.02  # until the next look whether what was read is on disk

Append = Callable[[str, list[Part]], Future[None]]  # topic, records


class FeedFollower(GovernedFollower):
    in_order: ClassVar[bool] = False
    loop: ClassVar[str] = LOOP

    def __init__(
        self,
        name: FollowerName,
        feed: Feed,
        images: Images,
        region: Region,
        state: DeliveryState,
        services: FollowerServices,
        append: Append,
    ) -> None:
        super().__init__(name, region, frozenset(images), state, services)
        self._feed = feed
        self._append = append
        self._messages = FeedMessages(feed, images, region)
        self.progress = _progress_of(state, feed)
        self.leaves_out = self._is_in_piece
        self._batch = self._messages.make_batch(self.progress)
        self._is_sending = False
        self._is_checked = False  # the log has what the cursor needs

    # --- flows.follower.Follower ---------------------------------------------------------------------

    def step(self) -> float | None:
        if self._may_work():
            self._steps.soon()
        return None

    def pause_intake(self) -> None:
        if not self._is_sending:
            self._give_up_batch()

    @property
    def is_prepared(self) -> bool:
        return self._batch.before.has_all(self.state.read_to)  # rows that are being sent do not count yet

    @property
    def is_quiescent(self) -> bool:
        return not self.state.in_flight_count and not self._is_sending

    def wants(self, record: ChangeRecord) -> bool:
        return (
            record.only_for is None
            and self.progress.wants(record.row)
            and super().wants(record)
            and self._messages.touches(record)
        )

    def _is_in_piece(self, sequence: Sequence, record: ChangeRecord) -> bool:
        return self.progress.has(record.row, sequence)

    def kept(self) -> bytes:
        return progresses.pack(self._batch.before)  # rows on their way to the topic are read again

    def carried(self, all_of_it: Several[Follower], region_id: int) -> bytes:
        is_whole = all(one.is_prepared for one in all_of_it)
        return progresses.pack(FeedProgress(None if is_whole else b""))

    # --- steps ---------------------------------------------------------------------------------------

    def _may_work(self) -> bool:
        return not self._is_sending and super()._may_work()

    def _begin_work(self) -> None:
        self._check_log()

    def _do_a_little(self) -> bool:
        if self._batch.is_full:
            self._send_batch()
            return False
        if self._batch.is_empty and self.progress.may_continue(self.state.read_to):
            self._read_rows()
            return True
        if self._take_change():
            return True
        if not self._batch.is_empty:
            self._send_batch()
            return False
        return self.progress.may_continue(self.state.read_to)

    # --- the reach of the log ------------------------------------------------------------------------

    def _check_log(self) -> None:
        """Begin again with the rows if the log lost a change that the feed has not sent."""
        trimmed = self.region.log.retention.trimmed_to()
        if trimmed is not None and self._is_lost(trimmed):
            self._begin_again()
        self._is_checked = True

    def _is_lost(self, trimmed: Sequence) -> bool:
        log, read_to = self.region.log, self.state.read_to
        if read_to is not None and trimmed > read_to:
            return True
        oldest = self.state.oldest_open()
        if self._is_checked:
            return oldest is not None and log.record_at(oldest) is None
        saved = log.cursors.cursor(self.name.key)  # the state has no change whose record is gone
        return saved is not None and any(log.record_at(one) is None for one, _ in unpack_cursor(saved).open)

    def _begin_again(self) -> None:
        place = self.region.info.encoded
        text = f"the change log of region {place} did not reach back to the last change in topic {self._feed.topic}"
        self._log.warning(
            "%s: %s; it begins again with the rows as they are, without those deleted since", self.name, text
        )
        self.state = DeliveryState(self.region.log.durable, bound=OPEN_FEED_CHANGES)
        self.lag = Lag(self.state, self.region.log)
        self.at_hand.clear()
        self.progress = FeedProgress(b"")
        self._batch = self._messages.make_batch(self.progress)
        self.state.note_error(f"{text}: the rows are sent again")
        self.dirty = True

    # --- changes -------------------------------------------------------------------------------------

    def _take_change(self) -> bool:
        """Add the next change to the batch; return whether there may be more to take."""
        state, now_s = self.state, get_running_loop().time()
        delivery, more = state.take(now_s), False
        if delivery is None:
            more = self.fill()
            delivery = state.take(now_s)
        if delivery is None:
            return more
        sequence = delivery.sequence
        try:
            self._add_change(sequence)
        except UNEXPECTED as fault:
            state.requeue_changes([sequence], at_once=True)
            if self._batch.is_empty or not isinstance(fault, ColumnarError):
                raise
            self._batch.end_batch()  # what came before is sent first
        return True

    def _add_change(self, sequence: Sequence) -> None:
        record = self.record_at(sequence)
        if record is not None:
            self._messages.add_change(self._batch, sequence, record)
        else:  # deleted, which only a repair by hand does
            self._batch.add_change(sequence, b"", (), 0)

    def _read_rows(self) -> None:
        """Read the next piece as the batch, which is sent when all that was read is on disk."""
        assert self.progress.done is not None
        try:
            piece = self._messages.read_rows(self._batch, self.progress.done)
        except UNEXPECTED:
            self._drop_batch()
            raise
        self.progress = piece
        self._batch.end_batch()

    # --- the batch -----------------------------------------------------------------------------------

    def _send_batch(self) -> None:
        """Send the batch; with rows, when what was read is on disk."""
        self._batch.end_batch()
        fence, log = self.progress.fence, self.region.log
        if not self._batch.taken and fence is not None and fence > log.durable:
            self._retry.after(DURABLE_S)
            return
        self._is_sending = True
        appended = self._append(self._feed.topic, self._batch.producer_parts())
        appended.add_done_callback(self._appended)

    def _appended(self, appended: Future[None]) -> None:
        if not self._is_there:
            if not appended.cancelled():
                appended.exception()  # the region's next follower meets it itself
            return
        self._is_sending = False
        fault = None if appended.cancelled() else appended.exception()
        if fault is None and not appended.cancelled():
            self._batch_ended()
        elif isinstance(fault, ColumnarError):
            self._failed(fault)
        else:
            error = fault or RuntimeError("an append was cancelled")
            FAULTS.met(LOOP, error)
            self._failed(ProgramFault(error))
        if self._services.is_intake_paused(self):
            self._give_up_batch()
        self._services.progressed(self)
        self._services.step_follower(self)

    def _batch_ended(self) -> None:
        batch, now_s = self._batch, monotonic()
        for sequence in batch.taken:
            self.state.done(sequence)
        self._batch = self._messages.make_batch(self.progress)
        self.dirty = True
        self._succeeded()
        if self.progress.done is None:  # until then it may say that the rows are sent again
            self.state.note_error("")
        self._services.figures.of(self.name, now_s).delivery(now_s, len(batch.taken) + batch.rows)

    def _give_up_batch(self) -> None:
        """Return what is in the batch to where it came from."""
        taken = self.state.still_in_flight(self._batch.taken)
        if taken:
            self.state.requeue_changes(taken, at_once=True)
        self._drop_batch()

    def _drop_batch(self) -> None:
        self.progress = self._batch.before
        self._batch = self._messages.make_batch(self.progress)


def _progress_of(state: DeliveryState, feed: Feed) -> FeedProgress:
    if state.kept:
        return progresses.unpack(state.kept)
    return FeedProgress(None if feed.start == "now" else b"")
