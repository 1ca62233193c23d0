"""(pure) The progress of one trigger in the log of one region: events in, instructions out.

A change is open from when it is read from the log until it is done or given up.  The changes of a row are taken one at
a time, in the order of the log; rows are delivered concurrently.  A row whose change failed is parked: none of the
row's changes is taken until its pause is over.  Other rows continue.

A batch (``take_batch``) is several changes that are delivered together; a row's changes in it are its oldest ones, in
order.  A batch that failed is halved: its changes are delivered again at once, in batches of half its size, until one
change fails alone.

Events: ``read_change``, ``passed``, ``done``, ``fail_change``, ``requeue_changes``, ``put_off``, ``halved``,
``named``, ``came_to``, ``gave``, ``given_up``, ``fail_follower``, ``end_failures``.
Instructions: the changes that ``take`` and ``take_batch`` return are to be delivered.  A change for which
``fail_change`` returns True is to be written to the dead letters and then reported by ``given_up``.

Invariants:
    I1. Every change up to ``read_to`` that is not open has been delivered or given up.
    I2. The changes of a row that are in flight are its oldest open ones, all of one delivery.
    I3. At most ``bound`` changes are open.  At the bound no more is read, and the log holds the rest.

``delivery_cursor.Cursor`` is the durable part.  After a restart the open changes are delivered again, with the attempts
that they had, and then the changes after ``read_to``.

Knows nothing of processes, sockets, logs and clocks: ``now_s`` is an argument.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from columnar.flows.delivery_cursor import Cursor, Progress
from columnar.regions.log.change_record import Sequence, SequenceRange

OPEN_CHANGES: Final = 4_096  # of one trigger in one region
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 60.0
_DOUBLINGS: Final = 16  # more than the longest pause needs, and no overflow of a float


def pause_s(attempts: int) -> float:
    """Return the pause after ``attempts`` failures: 0.1, 0.2, 0.4 ... at most 60 s."""
    return float(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(attempts - 1, _DOUBLINGS)))


class Delivery(NamedTuple):
    sequence: Sequence
    row: bytes
    attempt: int  # from 1
    progress: bytes = b""  # the state of the change's last checkpoint
    part: int = 0  # as in ``Progress``


class _Open:
    __slots__ = ("attempts", "due_ms", "gave", "most", "part", "progress", "row")

    def __init__(self, row: bytes, attempts: int, progress: bytes, part: int, due_ms: int) -> None:
        self.row = row
        self.attempts = attempts
        self.progress = progress
        self.part = part
        self.due_ms = due_ms  # since 1970, when it requested to be delivered again; 0: it did not
        self.gave = False  # a run for it contributed to totals and did not succeed
        self.most = 0  # size of the largest batch that it may be in, after its batch failed; 0: any size

    def deliver(self, sequence: Sequence) -> Delivery:
        """Begin and return a delivery."""
        self.due_ms = 0
        return Delivery(sequence, self.row, self.attempts + 1, self.progress, self.part)

    def fail(self) -> None:
        """Count an attempt."""
        self.attempts += 1

    def put_off(self, due_ms: int) -> None:
        self.due_ms = due_ms

    def come_to(self, progress: bytes, part: int) -> None:
        """Note that the effects of the change up to this checkpoint are on disk."""
        self.progress, self.part = progress, part

    def note_given(self) -> None:
        """Note that a run for the change contributed to totals and did not succeed."""
        self.gave = True

    def bound_batch(self, most: int) -> None:
        """Deliver the change in batches of at most ``most`` changes from now on."""
        self.most = most


class DeliveryState:
    def __init__(self, read_to: Sequence | None, *, bound: int = OPEN_CHANGES) -> None:
        self.read_to = read_to
        self._bound = bound
        self._open: dict[Sequence, _Open] = {}  # ascending, as they were read
        self._rows: dict[bytes, list[Sequence]] = {}  # lists: nearly all have one change
        self._ready: deque[bytes] = deque()  # rows whose oldest change may be taken
        self._parked: list[tuple[float, bytes]] = []  # heap: when the pause ends
        self._in_flight: set[Sequence] = set()
        self.last_error = ""
        self._failures = 0  # of the follower, in a row
        self.kept = b""  # of the cursor that this state was restored from: for the follower's kind

    # --- events ------------------------------------------------------------------------------------

    def read_change(
        self,
        sequence: Sequence,
        row: bytes,
        attempts: int = 0,
        progress: bytes = b"",
        part: int = 0,
        due: tuple[float, int] | None = None,
    ) -> None:
        """Open a change that was read from the log.

        ``due`` is the time at which the change requested to be delivered: in seconds of ``now_s``, and ms since 1970.
        """
        self._open[sequence] = _Open(row, attempts, progress, part, 0 if due is None else due[1])
        waiting = self._rows.get(row)
        if waiting is None:
            self._rows[row] = [sequence]
            if due is not None:
                heapq.heappush(self._parked, (due[0], row))
            else:
                self._ready.append(row)
        else:
            waiting.append(sequence)
        if self.read_to is None or sequence > self.read_to:
            self.read_to = sequence

    def passed(self, sequence: Sequence) -> None:
        """Note that the log was read up to ``sequence``; records not given to ``read_change`` need no delivery."""
        if self.read_to is None or sequence > self.read_to:
            self.read_to = sequence

    def done(self, sequence: Sequence) -> None:
        self._in_flight.discard(sequence)
        self._end(sequence)

    def given_up(self, sequence: Sequence) -> None:
        """Close the change, which is in the dead letters."""
        self.done(sequence)

    def fail_change(self, sequence: Sequence, error: str, now_s: float, attempts_allowed: int) -> bool:
        """Count a failure; return whether no attempt is left.

        Then the caller writes the change to the dead letters and calls ``given_up``.
        """
        change = self._open[sequence]
        change.fail()
        self.last_error = error
        if change.attempts >= attempts_allowed:
            return True  # it stays in flight until it is in the dead letters
        self._in_flight.discard(sequence)
        heapq.heappush(self._parked, (now_s + pause_s(change.attempts), change.row))
        return False

    def fail_follower(self, error: str) -> float:
        """Note that the follower cannot read its region, or write; return the pause until it retries.

        No attempt of a change is counted.  Pauses grow as the pauses of a change do, until ``end_failures``.
        """
        self._failures += 1
        self.last_error = error
        return pause_s(self._failures)

    def end_failures(self) -> None:
        """Note that the follower works again."""
        self._failures = 0

    def note_error(self, error: str) -> None:
        """Show the error in the follower's status; no attempt of a change is counted."""
        self.last_error = error

    def put_off(self, sequences: list[Sequence], until_s: float, due_ms: int = 0) -> None:
        """Park the changes of a delivery until ``until_s``; no attempt is counted.

        ``due_ms`` is that time if the changes' function requested it; a restart keeps such a time.
        """
        for sequence in sequences:
            self._open[sequence].put_off(due_ms)
        self._in_flight.difference_update(sequences)
        for row in self._rows_not_in_flight(sequences):
            heapq.heappush(self._parked, (until_s, row))

    def halved(self, sequences: list[Sequence]) -> None:
        """Requeue a batch in which some unknown change failed: all are delivered again at once, in smaller batches."""
        for sequence in sequences:
            self._open[sequence].bound_batch(max(1, len(sequences) // 2))
        self.requeue_changes(sequences, at_once=True)

    def named(self, sequences: list[Sequence], names: dict[Sequence, str]) -> list[tuple[Sequence, str]]:
        """Handle a batch that failed because of the changes ``names``; return those to report by ``fail_change``.

        The other changes are delivered again at once.  A named change that is not the oldest of its row is also
        delivered again instead of returned.  Every named change is delivered alone from now on.
        """
        guilty = [sequence for sequence in names if self._rows[self._open[sequence].row][0] == sequence]
        for sequence in names:
            self._open[sequence].bound_batch(1)
        self.requeue_changes([sequence for sequence in sequences if sequence not in guilty], at_once=True)
        return [(sequence, names[sequence]) for sequence in guilty]

    def came_to(self, sequence: Sequence, progress: bytes, part: int = 0) -> None:
        """Note that the effects of the change up to this checkpoint are on disk."""
        self._open[sequence].come_to(progress, part)

    def gave(self, sequence: Sequence) -> None:
        """Note that a run for the change contributed to totals, or may have, and did not succeed."""
        self._open[sequence].note_given()

    def requeue_changes(self, sequences: list[Sequence], *, at_once: bool = False) -> None:
        """Deliver changes of one delivery again, with no attempt counted; ``at_once``: before all other changes."""
        self._in_flight.difference_update(sequences)
        rows = self._rows_not_in_flight(sequences)
        if at_once:
            self._ready.extendleft(reversed(rows))
        else:
            self._ready.extend(rows)

    def _rows_not_in_flight(self, sequences: list[Sequence]) -> list[bytes]:
        """Return the rows of ``sequences``, except those whose oldest change is in flight."""
        rows = dict.fromkeys([self._open[sequence].row for sequence in sequences])
        return [row for row in rows if self._rows[row][0] not in self._in_flight]

    def _end(self, sequence: Sequence) -> None:
        row = self._open.pop(sequence).row
        waiting = self._rows[row]
        assert waiting[0] == sequence, "I2"
        if len(waiting) > 1:
            del waiting[0]
            if waiting[0] not in self._in_flight:  # otherwise it is in the same batch
                self._ready.append(row)
        else:
            del self._rows[row]

    # --- instructions ------------------------------------------------------------------------------

    def take(self, now_s: float) -> Delivery | None:
        """Return the next change to deliver, which is in flight from now on; None if none may be taken."""
        if self._parked:
            self._wake(now_s)
        if not self._ready:
            return None
        row = self._ready.popleft()
        sequence = self._rows[row][0]
        self._in_flight.add(sequence)
        return self._open[sequence].deliver(sequence)

    def _wake(self, now_s: float) -> None:
        while self._parked and self._parked[0][0] <= now_s:
            self._ready.append(heapq.heappop(self._parked)[1])

    def take_batch(self, now_s: float, most: int) -> list[Delivery]:
        """Return the next changes to deliver together, at most ``most``; the changes of a row are in order."""
        self._wake(now_s)
        found: list[Delivery] = []
        while self._ready:
            row, before = self._ready[0], len(found)
            for sequence in self._rows[row]:
                change = self._open[sequence]
                bound = min(most, change.most or most)
                if len(found) >= bound:
                    break
                most = bound
                found.append(change.deliver(sequence))
            if len(found) == before:
                break
            self._ready.popleft()
        self._in_flight.update([delivery.sequence for delivery in found])
        return found

    def next_due_s(self) -> float | None:
        """Return when the first pause of a parked row ends; None if no row is parked."""
        return self._parked[0][0] if self._parked else None

    # --- status ------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """The number of changes that may still be read (I3)."""
        return self._bound - len(self._open)

    @property
    def has_ready(self) -> bool:
        return bool(self._ready)

    @property
    def ready_count(self) -> int:
        """The number of rows with a change that may be taken now."""
        return len(self._ready)

    @property
    def waiting_count(self) -> int:
        """The approximate number of changes that may be taken now, or once earlier changes of their rows are done."""
        return len(self._open) - len(self._in_flight) - len(self._parked)

    @property
    def open_count(self) -> int:
        return len(self._open)

    @property
    def in_flight_count(self) -> int:
        return len(self._in_flight)

    @property
    def parked_count(self) -> int:
        return len(self._parked)

    def in_flight(self) -> list[Sequence]:
        """Return the changes that were taken and have not been reported, ascending."""
        return sorted(self._in_flight)

    def still_in_flight(self, sequences: Iterable[Sequence]) -> list[Sequence]:
        """Return those of ``sequences`` that were taken and have not been reported."""
        return [sequence for sequence in sequences if sequence in self._in_flight]

    def attempts_of(self, sequence: Sequence) -> int:
        return self._open[sequence].attempts

    def has_given(self, sequence: Sequence) -> bool:
        """Return whether an unsuccessful run contributed to totals, as far as is known since the process began."""
        change = self._open[sequence]
        return change.gave or change.part > 0

    def oldest_open(self) -> Sequence | None:
        return next(iter(self._open), None)

    def is_delivered(self, changes: SequenceRange) -> bool:
        """Return whether each of these changes, if it was for this trigger at all, is done or given up."""
        first, last = changes
        if self.read_to is None or last > self.read_to:
            return False
        if first == last:
            return first not in self._open
        for one in self._open:  # in order
            if one > last:
                return True
            if one >= first:
                return False
        return True

    def is_delivered_up_to(self, sequence: Sequence) -> bool:
        """Return whether every change up to ``sequence`` is done or given up."""
        oldest = self.oldest_open()
        return self.read_to is not None and sequence <= self.read_to and (oldest is None or oldest > sequence)

    def cursor(self) -> Cursor:
        return Cursor(
            self.read_to,
            tuple([(sequence, change.attempts) for sequence, change in self._open.items()]),
            tuple(
                [
                    Progress(sequence, change.progress, change.part)
                    for sequence, change in self._open.items()
                    if change.progress
                ]
            ),
            due=tuple([(sequence, change.due_ms) for sequence, change in self._open.items() if change.due_ms]),
        )

    def check_invariants(self) -> None:
        """Check the invariants, for tests."""
        assert len(self._open) <= self._bound
        assert list(self._open) == sorted(self._open)
        assert {s for waiting in self._rows.values() for s in waiting} == set(self._open)
        assert all(list(waiting) == sorted(waiting) for waiting in self._rows.values())
        for waiting in self._rows.values():
            flags = [sequence in self._in_flight for sequence in waiting]
            assert flags == sorted(flags, reverse=True), "I2"
        resting = [*self._ready, *(row for _, row in self._parked)]
        at_rest = {row for row, waiting in self._rows.items() if waiting[0] not in self._in_flight}
        assert len(resting) == len(set(resting))
        assert set(resting) == at_rest
