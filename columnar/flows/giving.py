"""(pure) What a change gives to totals: ``Contribute`` and ``Tally`` effects as contributions of rows.

The source of a contribution is the changed row, behind the trigger's name: triggers that give to one row do not meet.

    source   := trigger 00 01 row          both escaped (``key_parts``), unless the effect names one
    sequence    that of the change, so a repeat of the change adds nothing

Invariants:
    I1. Effects of one change in one slice that give from one source to one row are one contribution: tallies add up; of
        Contributes the one that gives replaces the one that withdraws, whichever came first.  Two that give differently
        are refused.
    I2. A later slice of the change that gives there again is refused: its sequence is the same, so it would be taken
        for a repeat and be lost.  So is a tally of an earlier change of the row, in a batch, after a later one's.
    I3. A run gives to at most GIVEN_ROWS rows.

A run that begins behind a checkpoint does not know what the run before it gave.  A function that breaks I2 across a
checkpoint is refused in every run that is not cut off, so its author hears of it.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from columnar.errors import IllegalArgument, shown
from columnar.model.contribution import checked, wrapped
from columnar.model.effect import CONTRIBUTE, TALLY
from columnar.model.key_parts import joined
from columnar.model.mutation import Contribute, RowMutation
from columnar.model.schema import Table

GIVEN_ROWS: Final = 100_000
KINDS: Final = (CONTRIBUTE, TALLY)
_Sequence = tuple[int, int, int]
Write = tuple[bytes, RowMutation]  # table and mutation
Key = tuple[bytes, bytes, bytes, bytes]  # table, row, family of the members, source


class Giver:
    """A run of a trigger's function: of one change, or of a batch."""

    __slots__ = ("given", "trigger")

    def __init__(self, trigger: str) -> None:
        self.trigger = trigger.encode()
        self.given: dict[Key, _Sequence] = {}  # by slices that are over: the latest change that gave


class Giving:
    """A change of the run, and the contributions that it makes in one slice."""

    __slots__ = ("_giver", "_places", "_row", "_sequence")

    def __init__(self, giver: Giver, row: bytes, sequence: _Sequence) -> None:
        self._giver = giver
        self._row = row
        self._sequence = sequence
        self._places: dict[Key, int] = {}

    def add(self, effect: Any, writes: list[Write]) -> None:
        """Append the contribution, or add it to that of an effect before (I1).  IllegalArgument: it is refused."""
        key, said = self._contribution(effect)
        at = self._places.get(key)
        if at is not None:
            held = writes[at][1].operations[0]
            assert isinstance(held, Contribute), "remembered as one"
            writes[at] = (key[0], RowMutation(key[1], (_together(key, held, said),)))
            return
        before = self._giver.given.get(key)
        if before is not None and (before == said.sequence or (before > said.sequence and said.relative)):
            _refuse_late(key, before == said.sequence)
        self._giver.given[key] = max(said.sequence, before or said.sequence)
        if len(self._giver.given) > GIVEN_ROWS:
            raise IllegalArgument(f"a function gives to at most {GIVEN_ROWS} rows in one run")
        self._places[key] = len(writes)
        writes.append((key[0], RowMutation(key[1], (said,))))

    def _contribution(self, effect: Any) -> tuple[Key, Contribute]:
        match effect:
            case [int(kind), bytes(table), bytes(row), (dict() | None) as amounts, bytes(members),
                  (bytes() | None) as source, dict(carry), (bytes() | None) as order,
                  bytes(ordered)] if kind in KINDS and row:  # fmt: skip
                pass
            case _:
                raise IllegalArgument(f"an effect that is none: {str(effect)[:100]}")
        totals = sorted((amounts or {}).items(), key=_by_column)
        said = Contribute(
            members,
            joined((self._giver.trigger, self._row)) if source is None else source,
            self._sequence,
            None if amounts is None else tuple([_number(amount) for _, amount in totals]),
            tuple([_column(column) for column, _ in totals]),
            ordered if order is not None else b"",
            order,
            tuple(sorted(carry.items())),
            kind == TALLY,
        )
        return (table, row, members, said.source), checked(said)


def _refuse_late(key: Key, is_repeat: bool) -> NoReturn:
    table, row = shown(key[0]), shown(key[1])
    if is_repeat:
        raise IllegalArgument(
            f"the change gave to row {row} of {table} in an earlier slice, and would be taken for a repeat now: add up "
            "what one change gives to a row and yield it once, or name another source="
        )
    raise IllegalArgument(
        f"a later change of the row tallied row {row} of {table} already: yield the tallies of a batch in the order of "
        "its changes"
    )


def _by_column(item: tuple[Any, Any]) -> Any:
    return item[0] if isinstance(item[0], bytes) else b""


def _number(amount: Any) -> int:
    if type(amount) is not int:
        raise IllegalArgument(f"an effect gives the amount {amount!r}, which is no whole number"[:200])
    return amount


def _column(column: Any) -> tuple[bytes, bytes]:
    if isinstance(column, bytes):
        family, colon, qualifier = column.partition(b":")
        if family and colon:
            return family, qualifier
    raise IllegalArgument(f"an effect names the total {column!r}; a total is a column, family:qualifier"[:200])


def _together(key: Key, one: Contribute, two: Contribute) -> Contribute:
    """Both are of one change, from one source to one row (I1)."""
    if one.relative and two.relative:
        amounts = dict(zip(one.totals, one.amounts or (), strict=True))
        for total, amount in zip(two.totals, two.amounts or (), strict=True):
            amounts[total] = wrapped(amounts.get(total, 0) + amount)
        totals = sorted(amounts)
        given = tuple([amounts[total] for total in totals])
        return Contribute(one.family, one.source, one.sequence, given, tuple(totals), relative=True)
    if one.relative or two.relative:
        _refuse(key, "a Tally and a Contribute, which keep different books; name another source= in one of them")
    if one.amounts is None or one == two:
        return two
    if two.amounts is not None:
        _refuse(key, "two different Contributes; say all that it gives to the row in one of them")
    return one


def _refuse(key: Key, what: str) -> NoReturn:
    table, row = key[:2]
    raise IllegalArgument(f"a change yields for row {shown(row)} of {shown(table)} {what}")


def check_families(row: bytes, said: Contribute, table: Table) -> None:
    """IllegalArgument: what the table lacks, and how it gets it."""
    there = {family.bytes_name for family in table.families}
    for family in said.families:
        if family not in there:
            name = shown(family)
            what = "for members" if family == said.family else "for totals"
            if family == said.order_family:
                what = "for ordered cells"
            raise IllegalArgument(
                f"an effect gives to totals of row {shown(row)} of {table.name}, which has no family {name} {what}: "
                f"columnar alter {table.name} --add {name}, or name another family in the effect"
            )
