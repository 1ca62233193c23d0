"""(pure) The messages of one region's outbox: which of them goes where next, and which changes are carried out.

    taken      the sends of a change wait, each in the line of its target, in the order of the log
    batch      the first messages of a line; one batch of a line is in flight at a time
    ended      the batch is stored at its target; a change is out when all of its messages are
    failed     the line pauses, for a growing time, and then tries with its first message; other lines go on
    refused    the target never takes one of the messages: they go one by one, and the guilty one goes to REFUSED
    released   the region is about to be replaced: nothing new begins, and when no batch is in flight any more, all
               changes are given back

A batch that goes again stores nothing twice.  A message of a queue has a name: that of its sender, or else the sequence
of its change and its number there.  Records of a topic go in the order of sequence and number (I1), so a partition
leaves out what is not above the last one of this region.

A line that lags must not stop the others.  So it keeps stubs, which are read from the log again when they go: of a line
that pauses all messages are, and of any line those behind LINE_MESSAGES or LINE_BYTES.

Invariants:
    I1. The messages for one target go in the order of the log, also after failures, a release and a restart.
    I2. No message is given up but one that even REFUSED does not take without its headers (``give_up``).
    I3. More than OUTBOX_MESSAGES, OUTBOX_BYTES or OUTBOX_STUBS wait only while a single change has so much
        (``has_room``), or lines that lag have a batch in flight.
    I4. A message that is stored does not go again, unless the process ends first: the numbers of such messages are the
        progress of a change that has others left.

Knows nothing of queues, topics, logs and clocks: ``now_s`` is an argument, and ``read`` reads a change's record again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from columnar.flows.delivery_state import pause_s
from columnar.flows.send_bytes import add_stored, message_name
from columnar.model.send import Send
from columnar.regions.log.change_record import Sequence as LogSequence

OUTBOX_MESSAGES: Final = 2_048  # of one region, beside stubs
OUTBOX_BYTES: Final = 4 * 1024 * 1024
OUTBOX_STUBS: Final = 65_536  # of one region, some 100 bytes each
LINE_MESSAGES: Final = OUTBOX_MESSAGES // 4  # of one target, beside stubs: a slow one leaves room for others
LINE_BYTES: Final = OUTBOX_BYTES // 4
BATCH_MESSAGES: Final = 200
BATCH_BYTES: Final = 2 * 1024 * 1024  # less than an append to a topic may have, with what is added to records
REFUSED: Final = b"queue:refused-sends"
# These headers are of a message in REFUSED.
TARGET_HEADER, KEY_HEADER, NAME_HEADER, ERROR_HEADER = b"send-target", b"send-key", b"send-name", b"send-error"
ERROR_BYTES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message on its way."""

    sequence: LogSequence  # of its change
    number: int  # among the sends of its change
    name: bytes
    send: Send
    stamp_ms: int = 0  # of its change
    is_refused: bool = False  # by its target
    is_bare: bool = False  # without the headers that tell of the refusal, for which there is no room


class Stub(NamedTuple):
    """A message that is read again when it goes."""

    sequence: LogSequence
    number: int


# Returns the messages of a change, named; None if its record is gone.  May raise an error, and then the line pauses.
Read = Callable[[LogSequence], list[Outgoing] | None]


class _Line:
    """The messages for one target."""

    def __init__(self) -> None:
        self.waiting: deque[Outgoing | Stub] = deque()  # those in flight first
        self.stubs = 0  # among them
        self.size_bytes = 0  # of the others
        self.in_flight = 0  # messages of the batch
        self.paused_until_s = 0.0
        self.error = ""  # for which it pauses
        self._alone = 0  # so many messages go one by one
        self._failures = 0

    @property
    def messages(self) -> int:
        """The number of messages that are no stubs."""
        return len(self.waiting) - self.stubs

    @property
    def lags(self) -> bool:
        """Whether further messages are stubs."""
        return bool(self._failures or self.messages >= LINE_MESSAGES or self.size_bytes >= LINE_BYTES)

    def append(self, message: Outgoing | Stub) -> None:
        self.waiting.append(message)
        self._count(message, 1)

    def _count(self, message: Outgoing | Stub, sign: int) -> None:
        if type(message) is Stub:
            self.stubs += sign
        else:
            assert isinstance(message, Outgoing)
            self.size_bytes += sign * message.send.size_bytes

    def begin_batch(self, read: Read) -> tuple[list[Outgoing], list[Stub]]:
        """Return the messages of the next batch, in flight from now on, and those whose record is gone.

        The batch has at most BATCH_MESSAGES and BATCH_BYTES, but at least one; a line that paused has one.
        """
        most = 1 if self._alone or self._failures else BATCH_MESSAGES
        batch, gone = _read_first(self.waiting, most, read)
        for one in [self.waiting.popleft() for _ in range(len(batch) + len(gone))]:
            self._count(one, -1)
        for message in reversed(batch):
            self.waiting.appendleft(message)
            self._count(message, 1)
        self.in_flight = len(batch)
        return batch, gone

    def end_batch(self) -> list[Outgoing | Stub]:
        """Remove the messages of the batch, and return them."""
        gone = [self.waiting.popleft() for _ in range(self.in_flight)]
        for message in gone:
            self._count(message, -1)
        self._alone = max(0, self._alone - self.in_flight)
        self._failures = self.in_flight = 0
        self.error = ""
        return gone

    def pause(self, now_s: float, error: str) -> None:
        self.in_flight = 0
        self._failures += 1
        self.paused_until_s = now_s + pause_s(self._failures)
        self.error = error
        kept, self.waiting = self.waiting, deque()
        self.stubs = self.size_bytes = 0
        for one in kept:
            # The log does not have what a refusal made of a message.
            is_kept = isinstance(one, Stub) or one.is_refused
            self.append(one if is_kept else Stub(one.sequence, one.number))

    def split_batch(self) -> None:
        """Have the messages of the batch go one by one."""
        self._alone, self.in_flight = self.in_flight, 0

    def remove_waiting(self) -> None:
        """Remove the messages that are not in flight."""
        self._alone = 0
        for _ in range(len(self.waiting) - self.in_flight):
            self._count(self.waiting.pop(), -1)


class Stored(NamedTuple):
    """The changes that the end of a batch concerns."""

    out: list[LogSequence]  # changes of which no message is left, in order
    partly: list[tuple[LogSequence, bytes]]  # others, with their progress, the ``state`` of ``send_bytes``


def outgoing(sequence: LogSequence, sends: Sequence[Send], stamp_ms: int = 0) -> list[Outgoing]:
    """Return the messages of a change, named."""
    return [
        Outgoing(sequence, number, one.name or message_name(sequence, number), one, stamp_ms)
        for number, one in enumerate(sends)
    ]


class OutboxState:
    def __init__(self) -> None:
        self._lines: dict[bytes, _Line] = {}  # by target; empty lines are forgotten
        self._left: dict[LogSequence, int] = {}  # messages of each change that are not stored
        self._progress: dict[LogSequence, bytes] = {}  # of changes some of whose messages are stored
        self._messages = 0  # of all lines, beside stubs
        self._bytes = 0
        self._stubs = 0
        self.is_releasing = False  # all changes are given back as soon as no batch is in flight

    @property
    def has_room(self) -> bool:
        has_room = self._messages < OUTBOX_MESSAGES and self._bytes < OUTBOX_BYTES and self._stubs < OUTBOX_STUBS
        return has_room and not self.is_releasing

    @property
    def obstacles(self) -> list[tuple[bytes, str]]:
        """The targets whose lines pause, with the errors."""
        return [(target, line.error) for target, line in self._lines.items() if line.error]

    # --- events ------------------------------------------------------------------------------------

    def take_sends(
        self, sequence: LogSequence, sends: Sequence[Send], progress: bytes = b"", stamp_ms: int = 0
    ) -> bool:
        """Take the sends of a change; return whether one of them is left to be stored."""
        left = [one for one in outgoing(sequence, sends, stamp_ms) if one.number not in progress]
        if not left:
            return False
        self._left[sequence] = len(left)
        if progress:
            self._progress[sequence] = progress
        for message in left:
            self._add(message)
        return True

    def _add(self, message: Outgoing) -> None:
        target = REFUSED if message.is_refused else message.send.target
        line = self._lines.get(target)
        if line is None:
            line = self._lines[target] = _Line()
        self._count_line(line, -1)
        line.append(Stub(message.sequence, message.number) if line.lags and not message.is_refused else message)
        self._count_line(line, 1)

    def _count_line(self, line: _Line, sign: int) -> None:
        """Count what the line has; -1: no longer, as it is about to change."""
        self._messages += sign * line.messages
        self._bytes += sign * line.size_bytes
        self._stubs += sign * line.stubs

    def end_batch(self, target: bytes) -> Stored:
        """Note that the target's batch is stored."""
        return self._note_stored(self._removed(target))

    def _note_stored(self, messages: Sequence[Outgoing | Stub]) -> Stored:
        out: list[LogSequence] = []
        partly: dict[LogSequence, bytes] = {}
        for message in messages:
            sequence = message.sequence
            self._left[sequence] -= 1
            if self._left[sequence]:
                progress = add_stored(self._progress.get(sequence, b""), message.number)
                partly[sequence] = self._progress[sequence] = progress
            else:
                del self._left[sequence]
                self._progress.pop(sequence, None)
                partly.pop(sequence, None)
                out.append(sequence)
        return Stored(out, list(partly.items()))

    def fail_batch(self, target: bytes, now_s: float, error: str = "its target cannot be reached") -> None:
        """Note that the target cannot be reached now, or the record of its next message cannot be read."""
        line = self._lines[target]
        self._count_line(line, -1)
        line.pause(now_s, error)
        self._count_line(line, 1)

    def refuse_batch(self, target: bytes, error: str) -> Outgoing | None:
        """Note that the target does not take one of the batch's messages.

        Returns the message if it was alone: it goes to REFUSED now, or ``give_up`` is to be called if it is bare.
        """
        if self._lines[target].in_flight > 1:
            self._lines[target].split_batch()
            return None
        (message,) = self._removed(target)
        assert isinstance(message, Outgoing), "it is in flight"
        if not message.is_refused:
            # The sender's name may be there already, of another message.
            name = message_name(message.sequence, message.number)
            self._add(replace(message, name=name, send=_for_refused(message.send, error), is_refused=True))
        elif not message.is_bare:
            self._add(replace(message, send=message.send._replace(headers=()), is_bare=True))
        return message

    def give_up(self, message: Outgoing) -> Stored:
        """Treat a message that nothing takes as stored."""
        return self._note_stored([message])

    def _removed(self, target: bytes) -> list[Outgoing | Stub]:
        """Remove the messages of the target's batch, and return them."""
        line = self._lines[target]
        self._count_line(line, -1)
        gone = line.end_batch()
        self._count_line(line, 1)
        if not line.waiting:
            del self._lines[target]
        return gone

    def release(self) -> list[LogSequence]:
        """Forget all messages that are not in flight; return all changes, ascending, once no batch is in flight.

        Call it again after each event while ``is_releasing``.  The changes are given back together, so that whoever
        takes them again takes them in their order (I1).
        """
        for target, line in list(self._lines.items()):
            self._count_line(line, -1)
            line.remove_waiting()
            self._count_line(line, 1)
            if not line.waiting:
                del self._lines[target]
        self.is_releasing = bool(self._lines)
        if self.is_releasing:
            return []
        given_back = sorted(self._left)
        self._left.clear()
        self._progress.clear()
        return given_back

    # --- instructions ------------------------------------------------------------------------------

    def due_targets(self, now_s: float) -> list[bytes]:
        """Return the targets that may get a batch now."""
        if self.is_releasing:
            return []
        return [
            target
            for target, line in self._lines.items()
            if line.waiting and not line.in_flight and line.paused_until_s <= now_s
        ]

    def begin_batch(self, target: bytes, read: Read) -> tuple[list[Outgoing], Stored]:
        """Return a batch for a due target, in flight from now on, and the changes of messages whose record is gone.

        The batch is empty if no record is left.  An error of ``read`` leaves the line as it was: call ``fail_batch``.
        """
        line = self._lines[target]
        self._count_line(line, -1)
        try:
            batch, gone = line.begin_batch(read)
        finally:
            self._count_line(line, 1)
        if not line.waiting:
            del self._lines[target]
        return batch, self._note_stored(gone)

    def next_due_s(self) -> float | None:
        """Return when the first line that pauses goes on; None if none pauses."""
        paused = [one.paused_until_s for one in self._lines.values() if one.waiting and not one.in_flight]
        return min(paused, default=None)

    def check_invariants(self) -> None:
        """Check what the counts say, for tests."""
        waiting = [one for line in self._lines.values() for one in line.waiting]
        messages = [one for one in waiting if isinstance(one, Outgoing)]
        assert (self._messages, self._stubs) == (len(messages), len(waiting) - len(messages))
        assert self._bytes == sum(one.send.size_bytes for one in messages)
        left: dict[LogSequence, int] = {}
        for one in waiting:
            left[one.sequence] = left.get(one.sequence, 0) + 1
        assert self.is_releasing or left == self._left
        for target, line in self._lines.items():
            assert all(isinstance(one, Outgoing) for one in list(line.waiting)[: line.in_flight])
            if target != REFUSED:
                assert [one.sequence for one in line.waiting] == sorted(one.sequence for one in line.waiting), "I1"


def _read_first(waiting: Sequence[Outgoing | Stub], most: int, read: Read) -> tuple[list[Outgoing], list[Stub]]:
    """Return the first messages of a batch, and those among them whose record is gone."""
    batch: list[Outgoing] = []
    gone: list[Stub] = []
    size = 0
    last: tuple[LogSequence, list[Outgoing] | None] | None = None  # of the record that was read last
    for one in waiting:
        if len(batch) >= most:
            break
        if isinstance(one, Stub):
            if last is None or last[0] != one.sequence:
                last = (one.sequence, read(one.sequence))
            if last[1] is None:
                gone.append(one)
                continue
            one = last[1][one.number]
        size += one.send.size_bytes
        if batch and size > BATCH_BYTES:
            break
        batch.append(one)
    return batch, gone


def _for_refused(send: Send, error: str) -> Send:
    """Return the send for REFUSED: a plain message with headers that tell where it should have gone, and why not."""
    told = {
        TARGET_HEADER: send.target,
        ERROR_HEADER: error.encode()[:ERROR_BYTES],
        KEY_HEADER: send.key,
        NAME_HEADER: send.name,
    }
    kept = [one for one in send.headers if one[0] not in told]
    return Send(REFUSED, b"", b"", send.group, 0, 0, send.body, (*kept, *[one for one in told.items() if one[1]]))
