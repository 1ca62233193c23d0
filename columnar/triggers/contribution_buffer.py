"""(pure) Buffers a function's contributions to totals (``Contribute``, ``Tally``) until it ends or yields a mark.

    buffer_contributions(effects, part)         yields the effects, with BUFFERED in the place of a contribution;
                                                contributions come before Checkpoints, Barriers and at the end
    buffer_contribution_pairs(pairs, changes)   the same for a batch: contributions come at the end, in the order of
                                                the changes

A mark is a Checkpoint or a Barrier.  A mark that follows contributions ends a part of the run.  Parts are numbered from
0; a Checkpoint bears the number of the part that begins after it, and a later run of the change begins with that
number.

Invariants:
    I1. Contributions of one part, from one source to one row, are sent as one effect.  Tallies are added up.  A
        Contribute that contributes replaces one that withdraws, whichever came first; two Contributes that contribute
        different amounts are refused.
    I2. The function's yields alone decide what is sent, never time or where slices are cut.  A later run of the change
        with the same yields therefore sends the same contributions, and the sequence of the change with the number of
        the part identifies them as repeats.
    I3. A function that ends in an error or in ``Later`` sends no contribution that came after its last Checkpoint or
        Barrier.
    I4. At most GIVEN_ROWS contributions and GIVEN_BYTES of them are buffered.
    I5. A Checkpoint of an empty state, after which a later run begins at the beginning, ends no part and bears 0.

Knows nothing of slices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NoReturn

from columnar.errors import abbreviate
from columnar.model.contribution import TOTALS, wrapped
from columnar.model.effect import GIVEN_ROWS, Barrier, Checkpoint, Contribute, Effect, Parted, Tally

GIVEN_BYTES: Final = 64 * 1024 * 1024
BUFFERED: Final = object()  # yielded in the place of a contribution, so that a slice can end there
_CONTRIBUTION_TYPES: Final = (Contribute, Tally)
_ENDS: Final = (Checkpoint, Barrier)  # of a part
_BEGINNING: Final = Checkpoint(b"")
_Key = tuple[int, bytes, bytes, bytes, bytes | None]  # place of the change, table, row, family of the members, source


def buffer_contributions(effects: Iterator[Any], part: int = 0) -> Iterator[Any]:
    """Yield ``effects`` with their contributions buffered; ``part`` is the number of the run's first part.

    ``close`` ends ``effects``, too.  Raises what ``effects`` raises, and ValueError if I1 or I4 would be broken.
    """
    buffer = _ContributionBuffer()
    try:
        for effect in effects:
            if isinstance(effect, _CONTRIBUTION_TYPES):
                buffer.add_contribution(0, effect)
                yield BUFFERED
            elif isinstance(effect, _ENDS) and effect != _BEGINNING:
                taken = buffer.take_contributions()
                for _, contribution in taken:
                    yield contribution.in_part(part)
                part += bool(taken)
                yield effect.in_part(part) if isinstance(effect, Checkpoint) else effect
            else:
                yield effect
    except BaseException:  # also our ValueError: the function's own cleanup must run at once
        _close(effects)
        raise
    for _, contribution in buffer.take_contributions():
        yield contribution.in_part(part)


def buffer_contribution_pairs(pairs: Iterator[Any], changes: tuple[Any, ...]) -> Iterator[Any]:
    """Yield ``pairs`` of changes and effects with their contributions buffered.

    A malformed pair, or a pair of a foreign change, is passed on as it is: the slice raises the error.
    """
    buffer = _ContributionBuffer()
    places = {id(change): at for at, change in enumerate(changes)}
    try:
        for pair in pairs:
            at = places.get(id(pair[0])) if _is_contribution_pair(pair) else None
            if at is None:
                yield pair
            else:
                buffer.add_contribution(at, pair[1])
                yield BUFFERED
    except BaseException:  # as above
        _close(pairs)
        raise
    for at, contribution in buffer.take_contributions():
        yield changes[at], contribution


class _ContributionBuffer:
    """Contributions that are not sent yet, one for each change, row and source (I1)."""

    __slots__ = ("_contributions", "_size_bytes")

    def __init__(self) -> None:
        self._contributions: dict[_Key, Parted] = {}
        self._size_bytes = 0

    def add_contribution(self, place: int, contribution: Parted) -> None:
        key = (place, contribution[1], contribution[2], contribution[4], contribution[5])
        before = self._contributions.get(key)
        if before is not None:
            self._size_bytes -= before.size_bytes
            contribution = _together(before, contribution)
        self._contributions[key] = contribution
        self._size_bytes += contribution.size_bytes
        if len(self._contributions) > GIVEN_ROWS:
            raise ValueError(f"a function gives to at most {GIVEN_ROWS} rows in one run")
        if self._size_bytes > GIVEN_BYTES:
            raise ValueError(
                f"a function gives at most {GIVEN_BYTES} bytes before it ends or yields a Checkpoint: yield one "
                "now and then, or take smaller batches"
            )

    def take_contributions(self) -> list[tuple[int, Parted]]:
        """Remove all contributions; return (place, contribution) pairs, by place and in the order of first yields."""
        taken = sorted([(key[0], contribution) for key, contribution in self._contributions.items()], key=_place)
        self._contributions, self._size_bytes = {}, 0
        return taken


def _place(item: tuple[int, Parted]) -> int:
    return item[0]


def _is_contribution_pair(pair: Any) -> bool:
    return type(pair) is tuple and len(pair) == 2 and isinstance(pair[1], _CONTRIBUTION_TYPES)


def _together(one: Parted, two: Parted) -> Parted:
    if isinstance(one, Tally) and isinstance(two, Tally):
        amounts = dict(one[3])
        for total, amount in two[3].items():
            amounts[total] = wrapped(amounts.get(total, 0) + amount)
        if len(amounts) > TOTALS:
            _refuse(one, f"tallies of over {TOTALS} totals; spread them over more rows")
        return Tally(one[1], one[2], amounts, members=one[4], source=one[5])
    if isinstance(one, Tally) or isinstance(two, Tally):
        _refuse(one, "a Tally and a Contribute, which keep different books; name another source= in one of them")
    if one[3] is None or one == two:
        return two
    if two[3] is not None:
        _refuse(one, "two different Contributes; say all that it gives to the row in one of them")
    return one


def _refuse(contribution: Effect, what: str) -> NoReturn:
    raise ValueError(f"a change yields for row {abbreviate(contribution[2])} of {abbreviate(contribution[1])} {what}")


def _close(yielded: Iterator[Any]) -> None:
    """Run the function's own cleanup."""
    close = getattr(yielded, "close", None)
    if close is not None:
        close()
