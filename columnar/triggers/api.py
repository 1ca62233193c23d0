"""The module that authors of triggers import.

A trigger is a function at the top level of a module that the operator allowed with ``--trigger-modules``.  It runs in
a worker process, at least once for each durable change that its registration requests.  The changes of a row are
delivered in order, changes of different rows in parallel.

    @on("pages", columns=["meta:tags"], before=True, writes=["tags"])
    def tags(change: Change):                         yields what the store is to write
        for tag in change.gone("meta:tags", split=","):
            yield Delete("tags", tag, [b"p:" + change.row])
        for tag in change.came("meta:tags", split=","):
            yield Put("tags", tag, {b"p:" + change.row: b""})

    def notify(change: Change, client: Connection):   writes or reads through ``client``; may yield, too

``on`` says which changes the function receives; ``columnar trigger sync MODULE`` registers the function.  The store
writes the effects that a function yields, in batches of its own, stamped with ``change.stamp``; the change is done when
all of them are on disk.  A yielded effect is some ten times cheaper than a write through ``client``.  A function that
yields much runs in slices, and other functions run between these.  After ``Checkpoint(state)`` a run that follows a
crash finds the state in ``change.progress``; ``Barrier()`` suspends the function until the effects yielded before are
on disk.  ``raise Later(seconds)`` postpones the change and counts no attempt.

To produce the same tables however often and however late it runs, a trigger
    * writes only cells whose qualifier (or row) names their source,
    * removes the cells that the row no longer implies (``gone``), as well as writing those that it implies now,
    * stamps its puts and deletes with ``change.stamp`` when it writes through ``client``,
    * writes into tables with the attribute DELETE_MARKERS, without which a Delete is refused,
    * sends messages by ``Send``, which a queue takes once, not through ``client``,
    * counts by ``Contribute`` (what the row contributes now) or ``Tally`` (what this change adds), not by increments.
``columnar.triggers.testing`` finds functions that break these rules.  ``docs/triggers.md`` is the page about all this.

The store gives ``change.stamp``, which rises with each change of a row.  Timestamps that clients give to cells need not
rise: each of ``change.changes`` has its own timestamp, and ``change.client_timestamp`` is the highest of them.
``after`` and ``before`` are what a reader saw, so a change that left the row as it was (a put older than the present
cell) has equal images.

A function that is registered with a batch takes a sequence of changes, those of a row in their order, and yields each
effect together with its change:

    def index(changes: Sequence[Change]):
        for change in changes:
            yield change, Put("index", change.row, {b"i:at": b"1"})

The effect bears the stamp of the change that it is yielded with, so it must be derived from that change and earlier
changes of the same row alone.  If the function raises, the batch is halved and tried again at once, until the failing
change is alone.  ``raise FailedChanges({place: why})`` names the failing changes; the other changes of the batch are
delivered again without them.  An attempt is counted only for a change that was alone or named.  A batch keeps no
checkpoint.

A function that serves a queue gets a ``Message`` instead of a change (docs/queues.md), and yields the same effects but
checkpoints.

A function that raises is run again after a pause.  After its last attempt the change is put into the table
``columnar:dead_letters``, together with the function's output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NoReturn, cast

from columnar.client import Connection
from columnar.limits import LONGEST_LATER_S
from columnar.model.effect import Barrier, Checkpoint, Contribute, Delete, Effect, Put, Send, Tally
from columnar.model.extract import Cell, EachColumn, EachPiece, Extractor, extractor_of
from columnar.model.number_cells import Unreadable
from columnar.triggers.declared import on
from columnar.triggers.lookup_client import Looked

__all__ = [
    "Barrier", "Change", "ChangedCell", "Checkpoint", "Connection", "Contribute", "Delete", "Effect", "FailedChanges",
    "Later", "Looked", "Message", "Put", "Send", "Tally", "TriggerFunction", "on",
]  # fmt: skip

Image = Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class ChangedCell:
    """A step of the mutation.  Increments and appends appear as puts of their results."""

    kind: Literal["put", "delete", "delete family", "delete version"]
    column: bytes  # ``family:qualifier``; the bare family for "delete family"
    timestamp: int  # milliseconds; deletes cover cells at or below it, "delete version" only the cell at it
    value: bytes = b""


@dataclass(frozen=True, slots=True)
class Change:
    table: bytes
    row: bytes
    timestamp: int  # milliseconds by the store; rises strictly with each change of a row: for all derived cells
    sequence: str  # opaque; names the change for ever
    changes: tuple[ChangedCell, ...]  # in their order; empty in a backfill or a retry of a dead letter
    now: Mapping[bytes, bytes]  # the row's cells in the trigger's families at the call: maybe newer than the change
    before: Mapping[bytes, bytes] = field(default_factory=dict)  # the columns of ``after``, before the change; without
    # ``on`` the touched cells alone; empty in a backfill
    attempt: int = 1
    is_backfill: bool = False  # the row was stored before the trigger, or is retried from the dead letters
    client_timestamp: int = 0  # the highest of the changed cells (backfill: the row's cells); a client may invent it
    progress: bytes = b""  # the state of an earlier run's last Checkpoint; empty if the run begins at the beginning
    hops: int = 0  # how many changes led to this one through yielded effects; 0 for a client's write
    after: Mapping[bytes, bytes] = field(default_factory=dict)  # the columns of ``columns``, ``where`` and ``look`` as
    # the change left them; in a backfill as they are
    looked: Mapping[str, Looked] = field(default_factory=dict)
    is_repeat: bool = False  # delivered again at an operator's request: a replay, or a retry as it was

    @property
    def stamp(self) -> int:
        """The timestamp that the store gave the change (``timestamp``)."""
        return self.timestamp

    def look(self, name: str) -> Looked:
        """Return the row of the lookup ``name`` in ``on(look=...)``.  Raises LookupError for an unknown name."""
        try:
            return self.looked[name]
        except KeyError:
            raise LookupError(
                f"there is no look '{name}': name it in @on(..., look={{'{name}': (table, key)}})"
            ) from None

    def came(self, of: bytes | str, split: bytes | str = b"") -> tuple[bytes, ...]:
        """Return the values of ``of`` that the row has since this change and had not before, ascending.

        ``of`` is a column (``b"f:author"``), whose value with ``split`` counts as pieces between separators; a family
        (``b"f:"``), whose qualifiers count; or text as a view's keys are written (``"day(f:time)"``).
        """
        return added(of, split, self.row, self.before, self.after)

    def gone(self, of: bytes | str, split: bytes | str = b"") -> tuple[bytes, ...]:
        """Return the values of ``of`` that the row had before this change and has no more, ascending."""
        return added(of, split, self.row, self.after, self.before)


class ChangeDraft:
    """A change whose fields can be set, until ``freeze``: the constructor of ``Change`` takes four times as long."""

    __slots__ = (
        "after",
        "attempt",
        "before",
        "changes",
        "client_timestamp",
        "hops",
        "is_backfill",
        "is_repeat",
        "looked",
        "now",
        "progress",
        "row",
        "sequence",
        "table",
        "timestamp",
    )  # fmt: skip

    def __init__(
        self, table: bytes, row: bytes, timestamp: int, sequence: str, changes: tuple[ChangedCell, ...], now: Image,
        before: Image, attempt: int, is_backfill: bool, client_timestamp: int, progress: bytes, hops: int, after: Image,
        looked: Mapping[str, Looked], is_repeat: bool,
    ) -> None:  # fmt: skip
        self.table = table
        self.row = row
        self.timestamp = timestamp
        self.sequence = sequence
        self.changes = changes
        self.now = now
        self.before = before
        self.attempt = attempt
        self.is_backfill = is_backfill
        self.client_timestamp = client_timestamp
        self.progress = progress
        self.hops = hops
        self.after = after
        self.looked = looked
        self.is_repeat = is_repeat

    def freeze(self) -> Change:
        """Turn this object into a ``Change`` without a copy.  Both classes have the same slots."""
        object.__setattr__(self, "__class__", Change)
        return cast(Change, cast(Any, self))


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a served queue (``connection.queues.serve``), which a function gets instead of a change.

    A message comes at least once.  A function finds out by ``id``, or by what it has written, that the work is done.
    """

    queue: bytes
    id: str  # the same at each attempt
    body: bytes
    name: bytes
    group: bytes
    priority: int
    attempt: int  # from 1
    pushed_ms: int
    headers: Mapping[bytes, bytes]
    error: bytes  # of the last attempt

    @property
    def stamp(self) -> int:
        """The timestamp of yielded puts and deletes: when the message was pushed, whenever the function runs."""
        return self.pushed_ms


class Later(Exception):
    """Raised by a function: run it again after ``seconds``.  No attempt is counted; the row waits meanwhile."""

    def __init__(self, seconds: float) -> None:
        """Raises ValueError unless ``seconds`` is between 0 and LONGEST_S."""
        if not 0 <= seconds <= self.LONGEST_S:
            raise ValueError(f"a change is put off by 0 to {self.LONGEST_S} s, not by {seconds}")
        super().__init__(seconds)
        self.seconds = float(seconds)

    LONGEST_S = LONGEST_LATER_S


class FailedChanges(Exception):
    """Raised by a function that takes a batch: names failed changes by place; the other changes are delivered again."""

    def __init__(self, failed: Mapping[int, str]) -> None:
        """Raises ValueError if no change is named or a place is negative, TypeError if a place is no int."""
        if not failed:
            raise ValueError("no change has failed: name at least one, or return")
        for at, why in failed.items():
            if type(at) is not int or type(why) is not str:
                raise TypeError(f"failed changes are named by their place, with a text: not {at!r}: {why!r}"[:200])
            if at < 0:
                raise ValueError(f"the place of a change in its batch is 0 or more, not {at}")
        super().__init__(dict(failed))
        self.failed = dict(failed)


class UnrequestedCells(Mapping[bytes, bytes]):
    """Cells that the registration does not request; every access to them raises an error that says so."""

    def __init__(self, problem: str) -> None:
        self._problem = problem

    def _refuse(self) -> NoReturn:
        raise LookupError(self._problem)

    def __getitem__(self, _column: bytes) -> NoReturn:
        self._refuse()

    def __iter__(self) -> Iterator[bytes]:
        self._refuse()

    def __len__(self) -> int:
        self._refuse()


NO_ROW = UnrequestedCells(
    "change.now is not read for this trigger: use change.after, register it with the row (@on(..., row=True)), or read "
    "it by a client"
)
NO_BEFORE = UnrequestedCells("change.before is not kept for this trigger: @on(..., before=True)")
NO_AFTER = UnrequestedCells("change.after is kept for triggers of @on alone, which columnar trigger sync registers")
# called with (change) or (change, client), for a batch with (changes) or (changes, client); returns None, or an
# iterator of effects
TriggerFunction = Callable[..., Any]


def added(of: bytes | str, split: bytes | str, row: bytes, old: Image, new: Image) -> tuple[bytes, ...]:
    """Return the keys that ``new`` has and ``old`` lacks, ascending.  Raises IllegalArgument if ``of`` is no key."""
    extractor = _extractor(of, split.encode() if isinstance(split, str) else split)
    return tuple(sorted(_keys(extractor, row, new) - _keys(extractor, row, old)))


@lru_cache(maxsize=256)
def _extractor(of: bytes | str, split: bytes) -> Extractor:
    column = of if isinstance(of, bytes) else b""
    if not column:
        extractor = extractor_of(str(of))
        if not split:
            return extractor
        if not isinstance(extractor, Cell):
            raise ValueError(f"only a column is split, not {of!r}")
        column = extractor.column
    family, _, qualifier = column.partition(b":")
    if split:
        return EachPiece(column, split)
    return Cell(column) if qualifier else EachColumn(family)


def _keys(extractor: Extractor, row: bytes, image: Image) -> set[bytes]:
    try:
        return set(extractor.parts(row, image))
    except Unreadable:
        return set()
