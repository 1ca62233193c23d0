"""(pure) Turns ``Contribute`` and ``Tally`` effects of a change into contributions to totals of rows.

The source of a contribution is the changed row, prefixed by the trigger's name, so that triggers that contribute to the
same row do not collide.

    source   := trigger 00 01 row          both escaped (``key_parts``), unless the effect names a source
    sequence    the sequence of the change
    part        the number of the part of its run (``contribution_buffer``)

A repeat of the change has the same sequence and part, and therefore adds nothing.

Invariants:
    I1. In each part a change contributes once from a source to a row; the worker has added up the yielded effects.
    I2. A second contribution in a part is refused.  In a batch, a tally of an earlier change of a row is refused after
        a tally of a later change of that row.  The refused contributions would be taken for repeats and be lost.  A
        change may not yield both a Tally and a Contribute for the same row and source: one would replace the other.
    I3. A run contributes to at most GIVEN_ROWS rows.
"""

from __future__ import annotations

from typing import Any, Final

from columnar.errors import IllegalArgument, abbreviate
from columnar.model.contribution import checked
from columnar.model.effect import CONTRIBUTE, GIVEN_ROWS, TALLY
from columnar.model.key_parts import joined
from columnar.model.mutation import Contribute, RowMutation
from columnar.model.schema import Table

KINDS: Final = (CONTRIBUTE, TALLY)
_Sequence = tuple[int, int, int]
Write = tuple[bytes, RowMutation]  # table and mutation
Key = tuple[bytes, bytes, bytes, bytes]  # table, row, family of the members, source
_Given = tuple[_Sequence, int, bool]  # sequence, part, is a tally


class Giver:
    """A run of a trigger's function, for one change or for a batch."""

    __slots__ = ("given", "trigger")

    def __init__(self, trigger: str) -> None:
        self.trigger = trigger.encode()
        self.given: dict[Key, _Given] = {}  # the latest contribution for each key


class ChangeContributions:
    """A change of a run, and its contributions."""

    __slots__ = ("_giver", "_row", "_sequence")

    def __init__(self, giver: Giver, row: bytes, sequence: _Sequence) -> None:
        self._giver = giver
        self._row = row
        self._sequence = sequence

    def add_contribution(self, effect: Any, writes: list[Write], hops: int = 0) -> None:
        """Append the contribution to ``writes``, as a mutation with ``hops``.  Raises IllegalArgument if refused."""
        key, said = self._contribution(effect)
        now, before = (said.sequence, said.part, said.relative), self._giver.given.get(key)
        if before is not None:
            _check_order(key, before, now)
        self._giver.given[key] = now if before is None else max(now, before)
        if len(self._giver.given) > GIVEN_ROWS:
            raise IllegalArgument(f"a function gives to at most {GIVEN_ROWS} rows in one run")
        writes.append((key[0], RowMutation(key[1], (said,), hops=hops)))

    def _contribution(self, effect: Any) -> tuple[Key, Contribute]:
        match effect:
            case [int(kind), bytes(table), bytes(row), (dict() | None) as amounts, bytes(members),
                  (bytes() | None) as source, dict(carry), (bytes() | None) as order,
                  bytes(ordered), int(part)] if kind in KINDS and row:  # fmt: skip
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
            part,
        )
        return (table, row, members, said.source), checked(said)


def _check_order(key: Key, before: _Given, now: _Given) -> None:
    """Raise IllegalArgument if I2 would be broken."""
    where = f"row {abbreviate(key[1])} of {abbreviate(key[0])}"
    if before[0] == now[0] and before[2] != now[2]:
        raise IllegalArgument(
            f"a change gives to {where} by a Tally and by a Contribute, which keep different books: name another "
            "source= in one of them"
        )
    if before[:2] == now[:2]:
        raise IllegalArgument(f"a change gave to {where} already in the same part of its run")
    if before > now and now[2]:
        raise IllegalArgument(
            f"a later change of the row tallied {where} already: yield the tallies of a batch in the order of its "
            "changes"
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


def check_families(row: bytes, said: Contribute, table: Table) -> None:
    """Raise IllegalArgument if the table lacks a family; the text says which, and how to add it."""
    there = {family.bytes_name for family in table.families}
    for family in said.families:
        if family not in there:
            name = abbreviate(family)
            what = "for members" if family == said.family else "for totals"
            if family == said.order_family:
                what = "for ordered cells"
            raise IllegalArgument(
                f"an effect gives to totals of row {abbreviate(row)} of {table.name}, which has no family {name} "
                f"{what}: columnar alter {table.name} --add {name}, or name another family in the effect"
            )
