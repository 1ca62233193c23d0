"""A call of a trigger's function within the worker, run slice by slice.

A function that returns an iterator of effects is cut into slices: after SLICE_EFFECTS effects, SLICE_S of time,
EFFECT_BYTES of effects or a Barrier the call rests until the effects are on disk.  Any other function is one slice.

Contributes and Tallies are buffered until the function ends or yields a Checkpoint or Barrier
(``contribution_buffer``), so that slices do not decide what a change contributes.

A function that takes a batch yields pairs of a change and an effect.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import perf_counter
from typing import Any, Final, NamedTuple, cast

from columnar.client import Connection
from columnar.model.effect import Barrier, Checkpoint, Effect
from columnar.triggers.api import (
    NO_AFTER,
    NO_BEFORE,
    NO_ROW,
    Change,
    ChangedCell,
    ChangeDraft,
    FailedChanges,
    Later,
    Message,
    TriggerFunction,
)
from columnar.triggers.contribution_buffer import BUFFERED, buffer_contribution_pairs, buffer_contributions
from columnar.triggers.frames import FRAME_BYTES, MESSAGE_PARTS
from columnar.triggers.lookup_client import lookup_rows_from
from columnar.triggers.obstacles import obstacle_in

SLICE_EFFECTS: Final = 500
SLICE_S: Final = 0.02
EFFECT_BYTES: Final = 4 * 1024 * 1024  # of the effects of one slice, except for its last
ONE_EFFECT_BYTES: Final = FRAME_BYTES // 4  # of one effect, which shares its frame with other effects of a slice
ERROR_BYTES: Final = 16 * 1024
_NOTHING: Final[Iterator[Any]] = iter(())
DONE: Final = "done"
WHAT: Final = 1  # places in an outcome
EFFECTS: Final = 2
OUTPUT: Final = 4
CHECKPOINT: Final = 5
USED_US: Final = 6
CPU_US: Final = 7
_KINDS: Final = {1: "put", 2: "delete", 3: "delete family", 4: "delete version"}


def _no_clock() -> float:
    return 0.0


class Function(NamedTuple):
    """A function that can be a trigger."""

    call: TriggerFunction
    wants_client: bool
    module: str = ""  # by which it is registered

    def loaded(self, _name: str) -> Function:
        """Return this function; passed to ``Call.run`` as ``load``."""
        return self


def function_of(call: TriggerFunction) -> Function:
    """Inspect a trigger's function.  Raises TypeError if it takes neither one nor two arguments, or is async."""
    if inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call):
        raise TypeError(f"{getattr(call, '__name__', call)} is no trigger: it is async; write def, and yield effects")
    wants_client = _takes(call, 2)
    if not wants_client and not _takes(call, 1):
        name = getattr(call, "__name__", call)
        raise TypeError(f"{name} is no trigger: write def {name}(change) or def {name}(change, client)")
    return Function(call, wants_client)


def _takes(call: TriggerFunction, count: int) -> bool:
    try:
        inspect.signature(call).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a built-in without a signature: it is called with two arguments
        return count == 2
    return True


class Target(NamedTuple):
    """The function of a call, and how the call counts and acts."""

    trigger: str
    function: str  # ``module:function``
    side_by_side: int
    owner: str  # as whom clients act; "" for the store itself


class _Targeted:
    __slots__ = ("target",)

    target: Target

    @property
    def trigger(self) -> str:
        return self.target.trigger

    @property
    def function(self) -> str:
        return self.target.function


class Call(_Targeted):
    """A call in the worker.  Owned by the thread that runs it; between two slices by no thread."""

    __slots__ = (
        "_connect",
        "_part",
        "argument",
        "begun_s",
        "effects",
        "has_next_slice",
        "id",
        "is_admitted",
        "is_batch",
        "is_begin_reported",
        "is_dropped",
        "size_bytes",
    )  # fmt: skip

    def __init__(self, parts: list[Any]) -> None:
        """``parts``: the fields of one call, as a "run" frame has them."""
        self.id, trigger, function, side_by_side, changes, progress, self.is_batch, owner = parts
        self.target = Target(trigger, function, side_by_side, owner)
        self._connect: Callable[[], Connection] | None = None  # of the thread that runs the slice
        self.argument: Any = (
            tuple([change_from(change, None, self._table) for change in changes])
            if self.is_batch
            else message_from(changes[0])
            if len(changes[0]) == MESSAGE_PARTS
            else change_from(changes[0], progress and progress[0], self._table)
        )
        self._part: int = progress[1] if progress else 0  # of the change's contributions, the first in this run
        self.effects: Iterator[Any] | None = None  # of a function that yields; set by its first slice
        self.begun_s = 0.0  # when this slice began; 0: its module is being imported
        self.size_bytes = 0  # of the effects of its last slice
        self.is_begin_reported = False  # the store knows that this slice began
        self.has_next_slice = False  # it has had a slice, and there is a next one
        self.is_admitted = False  # it counts already among the calls under way
        self.is_dropped = False  # the store wants no more effects: the next slice only ends the call

    def note_begin_reported(self) -> None:
        """Note that the store knows of the beginning of this slice."""
        self.is_begin_reported = True

    def drop_effects(self) -> None:
        """Note that the store wants no more effects of the call."""
        self.is_dropped = True

    def admit(self) -> None:
        """Count the call among those under way."""
        self.is_admitted = True

    def run(
        self, load: Callable[[str], Function], connect: Callable[[], Connection], clock: Callable[[], float] = _no_clock
    ) -> list[Any]:
        """Run one slice; return its outcome as in a "did" frame, without output.  Errors of user code are outcomes.

        ``clock`` returns the processor time that the thread has used; by default the outcome says 0.
        """
        taken = _BatchSlice(self.argument) if self.is_batch else _Slice(self._part)
        self._connect = connect
        what = "done"
        error: str | float | list[Any] | None = None
        self.begun_s, self.is_begin_reported = 0.0, False
        begun_s, computed_s = perf_counter(), clock()
        try:
            if self.effects is None:
                function = load(self.function)
                begun_s = self.begun_s = perf_counter()
                computed_s = clock()
                what_for = self.argument
                found = function.call(what_for, connect()) if function.wants_client else function.call(what_for)
                self.effects = _NOTHING if found is None else taken.buffered_effects(taken.effects_of(found))
            elif self.is_dropped:
                self.effects = _ended(self.effects)
            self.begun_s = begun_s
            if taken.fill(self.effects, begun_s + SLICE_S):
                what = "more"
        except BaseException as raised:  # noqa: BLE001 - user code: any exception, sys.exit too, is its outcome
            what, error = self._ended_by(raised)
        self.has_next_slice = what == "more"
        self.size_bytes = taken.size_bytes
        if error is not None:
            taken.keep_what_is_checked()
        used_us = int((perf_counter() - begun_s) * 1e6)
        cpu_us = int((clock() - computed_s) * 1e6)
        return [self.id, what, taken.effects, error, "", taken.checkpoint, used_us, cpu_us]

    def _ended_by(self, raised: BaseException) -> tuple[str, str | float | list[Any]]:
        """Return the outcome and its text.  An exception's class is user code: reading attributes may raise, too."""
        try:
            if self.effects is not None:
                _ended(self.effects)  # now, within the call's timeout: the function's cleanup may hang
            if isinstance(raised, Later):
                return _put_off(raised.seconds)
            if isinstance(raised, FailedChanges) and self.is_batch:
                return self._named(raised.failed)
            obstacle = obstacle_in(raised)
            return ("blocked", obstacle[-ERROR_BYTES:]) if obstacle else ("failed", _traceback_of(raised))
        except BaseException as fault:  # noqa: BLE001 - as above
            return "failed", _traceback_of(fault)

    def _named(self, failed: Any) -> tuple[str, str | list[Any]]:
        """Return the outcome for named changes.  ``failed`` is checked: a subclass may set anything."""
        count = len(self.argument)
        if not isinstance(failed, Mapping) or not failed:
            return "failed", f"FailedChanges names no change of the batch: {failed!r}"[:200]
        for at, why in failed.items():
            if type(at) is not int or not 0 <= at < count:
                return "failed", f"FailedChanges names the change at {at!r} of a batch of {count}"[:200]
            if type(why) is not str:
                return "failed", f"FailedChanges says {why!r} of the change at {at}, which is no text"[:200]
        return "named", [[at, why[-ERROR_BYTES:]] for at, why in failed.items()]

    def _table(self, name: bytes) -> Any:
        """Return a table of the connection that this slice may use."""
        assert self._connect is not None, "a change is looked at within a slice"
        return self._connect().table(name)


class Run(_Targeted):
    """Changes that the store sent together; each is a call of its own, and they run one after the other."""

    __slots__ = ("_at", "_changes", "_number", "has_next_slice", "is_admitted")

    def __init__(self, parts: list[Any]) -> None:
        """``parts``: the fields of one call, as a "run" frame has them."""
        self._number, trigger, function, side_by_side, self._changes, _, _, owner = parts
        self.target = Target(trigger, function, side_by_side, owner)
        self._at = 0  # place of the next change
        self.is_admitted = False  # as in ``Call``, like ``has_next_slice``
        self.has_next_slice = False

    def next_call(self) -> Call:
        """Return the call of the next change; call this only while changes are left."""
        at = self._at
        self._at = at + 1
        number = self._number + at
        trigger, function, side_by_side, owner = self.target
        return Call([number, trigger, function, side_by_side, [self._changes[at]], None, False, owner])

    def admit(self) -> None:
        """Count the run among the calls under way."""
        self.is_admitted = True

    def readmit(self) -> None:
        """Have the rest of the run admitted anew, as if it came now."""
        self.is_admitted = False

    @property
    def is_over(self) -> bool:
        return self._at >= len(self._changes)

    def calls(self) -> list[Call]:
        """Return the calls of all changes that are left."""
        return [self.next_call() for _ in self._changes[self._at :]]


def work_of(parts: list[Any]) -> Call | Run:
    """Return the call or the run that an element of a "run" frame describes."""
    return Run(parts) if len(parts[4]) > 1 and not parts[6] else Call(parts)


class _Slice:
    """The effects of one slice, and the place of its last checkpoint among them."""

    __slots__ = ("_checked", "_part", "checkpoint", "effects", "size_bytes")

    def __init__(self, part: int = 0) -> None:
        """``part`` is the first part of the change's contributions in this run."""
        self._part = part
        self.effects: list[Any] = []
        self.size_bytes = 0  # of the effects
        self.checkpoint: list[Any] | None = None  # state and part
        self._checked = 0  # number of effects before the checkpoint

    def fill(self, yielded: Iterator[Any], ends_s: float) -> bool:
        """Take effects until the slice is full; return whether more may follow.  Raises what user code raises."""
        effects = self.effects
        for effect in yielded:
            if type(effect) is Checkpoint:
                self.checkpoint, self._checked = [effect.state, effect.part], len(effects)
            elif type(effect) is Barrier:
                if effects:
                    return True
            elif effect is not BUFFERED:  # which only marks where the slice may end
                effects.append(self.effect_in(effect))
                self.size_bytes += _bounded(effect)
            if len(effects) >= SLICE_EFFECTS or self.size_bytes >= EFFECT_BYTES or perf_counter() >= ends_s:
                return True
        return False

    def buffered_effects(self, yielded: Iterator[Any]) -> Iterator[Any]:
        return buffer_contributions(yielded, self._part)

    def effects_of(self, found: Any) -> Iterator[Any]:
        """Iterate over the effects that a function returned: an iterable of effects, one effect, or None.

        Raises TypeError for anything else.
        """
        if found is None:
            return iter(())
        if isinstance(found, Effect):
            return iter((found,))
        if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
            raise _no_effects(found)
        return iter(found)

    def effect_in(self, yielded: Any) -> Effect:
        """Return the effect in a yielded object.  Raises TypeError if there is none."""
        if not isinstance(yielded, Effect):
            what = f"a trigger yields effects, as Put and Tally, not {yielded!r}"
            raise TypeError(f"{what[:160]} of type {type(yielded).__name__}")
        return yielded

    def keep_what_is_checked(self) -> None:
        """Drop the effects after the last checkpoint: the run failed, and the next run yields these effects again."""
        del self.effects[self._checked :]


class _BatchSlice(_Slice):
    """A slice of a batch: each effect is yielded with its change, and sent with the change's place."""

    __slots__ = ("_changes", "_places")

    def __init__(self, changes: tuple[Change, ...]) -> None:
        super().__init__()
        self._changes = changes
        self._places = {id(change): at for at, change in enumerate(changes)}

    def fill(self, yielded: Iterator[Any], ends_s: float) -> bool:
        effects = self.effects
        for pair in yielded:
            if type(pair) is Barrier:
                if effects:
                    return True
            elif pair is not BUFFERED:
                effects.append([self._place_of(pair), pair[1]])
                self.size_bytes += _bounded(pair[1])
            if len(effects) >= SLICE_EFFECTS or self.size_bytes >= EFFECT_BYTES or perf_counter() >= ends_s:
                return True
        return False

    def _place_of(self, pair: Any) -> int:
        if type(pair) is not tuple or len(pair) != 2 or not isinstance(pair[1], Effect):
            what = f"a trigger with a batch yields (change, effect), not {pair!r}"
            raise TypeError(f"{what[:160]} of type {type(pair).__name__}")
        at = self._places.get(id(pair[0]))
        if at is None:
            raise TypeError(f"an effect is yielded with a change of its batch, not with {pair[0]!r}"[:200])
        if type(pair[1]) is Checkpoint:
            raise TypeError("a batch has no checkpoint: its changes end one by one")
        if type(pair[1]) is Barrier:
            raise TypeError("a barrier is the whole batch's: yield it without a change")
        return at

    def effect_in(self, yielded: Any) -> Effect:
        if type(yielded) is Barrier:
            return yielded
        self._place_of(yielded)
        effect: Effect = yielded[1]
        return effect

    def buffered_effects(self, yielded: Iterator[Any]) -> Iterator[Any]:
        return buffer_contribution_pairs(yielded, self._changes)

    def effects_of(self, found: Any) -> Iterator[Any]:
        """Iterate over the pairs that a function returned; an item that is no pair is refused by ``fill``."""
        if isinstance(found, Effect):
            raise TypeError("a trigger with a batch returns pairs (change, effect), not an effect alone")
        return super().effects_of(found)


def _traceback_of(raised: BaseException) -> str:
    """Format the traceback with its causes, if all of them can be formatted: their classes are user code."""
    try:
        return "".join(traceback.format_exception(raised))[-ERROR_BYTES:]
    except BaseException as fault:  # noqa: BLE001 - as above
        return f"no traceback can be made of what was raised: {type(fault).__name__} while it was looked at"


def _put_off(seconds: Any) -> tuple[str, str | float]:
    """Return the outcome of ``Later``.  ``seconds`` is checked, because a subclass of ``Later`` may set anything."""
    if type(seconds) in (int, float) and 0 <= seconds <= Later.LONGEST_S:
        return "later", float(seconds)
    return "failed", f"a change is put off by 0 to {Later.LONGEST_S} s, not by {seconds!r}"[:200]


def _no_effects(found: Any) -> TypeError:
    what = f"a trigger returns effects, as Put and Tally, or nothing; not {found!r}"
    return TypeError(f"{what[:160]} of type {type(found).__name__}")


def _bounded(effect: Effect) -> int:
    """Return the effect's size.  Raises ValueError if the effect is over ONE_EFFECT_BYTES."""
    size_bytes: int = effect.size_bytes
    if size_bytes > ONE_EFFECT_BYTES:
        raise ValueError(
            f"one effect has {size_bytes} bytes, at most {ONE_EFFECT_BYTES} are taken as one step: yield several"
        )
    return size_bytes


def effects_of(found: Any, batch: tuple[Change, ...] | None = None) -> Iterator[Effect]:
    """Yield the effects that a function returned, checked as in a worker; ``batch`` is the batch it was called with.

    Raises TypeError for an object that is no effect, or names no change of the batch, and ValueError for an effect that
    is too large.
    """
    taken = _Slice() if batch is None else _BatchSlice(batch)
    for one in taken.effects_of(found):
        effect = taken.effect_in(one)
        _bounded(effect)
        yield effect


def pairs_of(found: Any, batch: tuple[Change, ...]) -> Iterator[Any]:
    """Yield the pairs and barriers that a function with a batch returned, checked as by ``effects_of``."""
    taken = _BatchSlice(batch)
    for pair in taken.effects_of(found):
        _bounded(taken.effect_in(pair))
        yield pair


def check_put_off(later: Later) -> None:
    """Raise ValueError if a worker would take ``later`` for a failure."""
    what, error = _put_off(later.seconds)
    if what != "later":
        raise ValueError(error)


def _ended(yielded: Iterator[Any]) -> Iterator[Any]:
    """Run the function's own cleanup, and return an empty iterator for the rest."""
    close = getattr(yielded, "close", None)
    if close is not None:
        close()
    return iter(())


def message_from(parts: list[Any]) -> Message:
    """Decode a message of a served queue."""
    queue, number, body, name, group, priority, attempt, pushed_ms, headers, error = parts
    return Message(queue, str(number), body, name, group, priority, attempt, pushed_ms, headers, error)


def change_from(
    parts: list[Any], progress: bytes | None = None, table_of: Callable[[bytes], Any] | None = None
) -> Change:
    """Decode a change; ``table_of`` returns a table of the client, to read further cells of lookups."""
    table, row, stamp, sequence, changes, now, before, attempt, is_backfill, timestamp, hops, after, lookups, *more = (
        parts
    )
    return ChangeDraft(
        table,
        row,
        stamp,
        sequence,
        tuple([ChangedCell(cast(Any, _KINDS[kind]), column, at, value) for kind, column, at, value in changes]),
        NO_ROW if now is None else now,
        NO_BEFORE if before is None else before,
        attempt,
        is_backfill,
        timestamp,
        progress or b"",
        hops,
        NO_AFTER if after is None else after,
        lookup_rows_from(lookups, table_of) if lookups else {},
        bool(more and more[0]),
    ).freeze()
