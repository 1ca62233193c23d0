"""(pure) Effects: the writes that a trigger's function yields to the store.

Authors import effects from ``columnar.triggers.api``.  An effect is a tuple whose first element is its kind, because
``triggers.frames`` sends it in that form without unpacking.

    [PUT, table, row, {column: value}]
    [DELETE, table, row, [column, ...] | nil]
    [CHECKPOINT, state, part]       handled by the worker
    [BARRIER]                       handled by the worker; ends the slice
    [CONTRIBUTE, table, row, {total: amount} | nil, members, source | nil, {column: value}, order | nil, ordered, part]
    [TALLY, table, row, {total: amount}, members, source | nil, {}, nil, "", part]
    [SEND, target, body, name, group, priority, delay in ms, {header: value}]

A column is ``family:qualifier``; a delete may also name a bare family, and without columns it removes the whole row.
The part of an effect is 0 when an author makes the effect; the worker then numbers the parts of a change's
contributions (``triggers.contribution_buffer``).
Effects are constant.  The types of arguments are checked when an effect is made, so that the traceback points to the
author's line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

PUT: Final = 1
DELETE: Final = 2
CHECKPOINT: Final = 3
BARRIER: Final = 0
CONTRIBUTE: Final = 4
TALLY: Final = 5
SEND: Final = 6
CHECKPOINT_BYTES: Final = 4 * 1024
GIVEN_ROWS: Final = 100_000  # to which one run of a function may give by Contribute and Tally


class Effect(tuple[Any, ...]):
    __slots__ = ()

    @property
    def size_bytes(self) -> int:
        """The size of the row key, the columns and the values together."""
        raise NotImplementedError


class Parted(Effect):
    """An effect whose last element is the number of its part of the run."""

    __slots__ = ()

    @property
    def part(self) -> int:
        part: int = self[-1]
        return part

    def in_part(self, part: int) -> Self:
        return self if part == self[-1] else tuple.__new__(type(self), (*self[:-1], part))


class _OfRow(Effect):
    __slots__ = ()

    @property
    def table(self) -> bytes:
        table: bytes = self[1]
        return table

    @property
    def row(self) -> bytes:
        row: bytes = self[2]
        return row


class Put(_OfRow):
    """Write the cells, stamped with the change's own timestamp."""

    __slots__ = ()

    def __new__(cls, table: str | bytes, row: bytes, cells: Mapping[bytes, bytes]) -> Self:
        """Make the effect.  Raises TypeError or ValueError, with the fault in the arguments."""
        held = dict(cells)
        if not held:
            raise ValueError("a Put without cells writes nothing: yield none")
        for column, value in held.items():
            if type(column) is not bytes or type(value) is not bytes:
                raise TypeError(f"cells of a Put are bytes, not {column!r}: {value!r}"[:200])
        return tuple.__new__(cls, (PUT, _table(table), _row(row), held))

    @property
    def cells(self) -> Mapping[bytes, bytes]:
        cells: Mapping[bytes, bytes] = self[3]
        return cells

    @property
    def size_bytes(self) -> int:
        size = len(self[2])
        for column, value in self[3].items():  # twice as fast as two sums of lengths, mostly of one
            size += len(column) + len(value)
        return size


class Delete(_OfRow):
    """Remove the cells at or below the change's own timestamp in ``columns``, or in the whole row if that is None."""

    __slots__ = ()

    def __new__(cls, table: str | bytes, row: bytes, columns: Iterable[bytes] | None = None) -> Self:
        """Make the effect.  Raises TypeError or ValueError, with the fault in the arguments."""
        if isinstance(columns, bytes | str):
            raise TypeError(f"columns of a Delete are a list of bytes, not {columns!r}"[:200])
        held = None if columns is None else list(columns)
        if held is not None and not held:
            raise ValueError("a Delete of no columns removes nothing; without columns it removes the row")
        for column in held or ():
            if type(column) is not bytes:
                raise TypeError(f"columns of a Delete are bytes, not {column!r}"[:200])
        return tuple.__new__(cls, (DELETE, _table(table), _row(row), held))

    @property
    def columns(self) -> list[bytes] | None:
        """The columns to remove; None means the whole row."""
        columns: list[bytes] | None = self[3]
        return columns

    @property
    def size_bytes(self) -> int:
        return len(self[2]) + sum(map(len, self[3] or ()))


class Contribute(Parted):
    """Set the amounts that the changed row contributes to totals of ``row``; None withdraws the contribution.

    The totals are exact however often and late the function runs: the table keeps each source's amounts in the family
    ``members``, and a later change replaces them.  With ``order`` the source also has a cell in the family ``ordered``,
    sorted by the order's bytes, with the value ``carry``.  By default the source is the trigger's name followed by the
    changed row; ``source`` replaces that.
    """

    __slots__ = ()

    def __new__(
        cls,
        table: str | bytes,
        row: bytes,
        amounts: Mapping[bytes, int] | None,
        carry: Mapping[bytes, bytes] | None = None,
        *,
        order: bytes | None = None,
        members: str | bytes = b"m",
        ordered: str | bytes = b"o",
        source: bytes | None = None,
    ) -> Self:
        """Make the effect.  Raises TypeError or ValueError, with the fault in the arguments."""
        held = dict(carry or {})
        for column, value in held.items():
            if type(column) is not bytes or type(value) is not bytes:
                raise TypeError(f"a Contribute carries bytes by columns, not {column!r}: {value!r}"[:200])
        if order is not None and type(order) is not bytes:
            raise TypeError(f"the order of a Contribute is bytes, not {order!r}"[:200])
        if amounts is None and (held or order is not None):
            raise ValueError("a Contribute of None gives nothing, and so carries nothing")
        given = None if amounts is None else _amounts(amounts)
        return tuple.__new__(
            cls,
            (
                CONTRIBUTE, _table(table), _row(row), given, _family(members), _source(source), held, order,
                _family(ordered), 0,
            ),
        )  # fmt: skip

    @property
    def size_bytes(self) -> int:
        return _given_bytes(self) + sum(map(len, self[6])) + sum(map(len, self[6].values())) + len(self[7] or b"")


class Tally(Parted):
    """Add these amounts to totals of ``row``, once for this change however often the function runs.

    Several tallies of one change into one row add up, before a Checkpoint and after it.  Contributions are written when
    the function ends well or yields a Checkpoint or a Barrier.  ``members`` and ``source`` are as in ``Contribute``.
    """

    __slots__ = ()

    def __new__(
        cls,
        table: str | bytes,
        row: bytes,
        amounts: Mapping[bytes, int],
        *,
        members: str | bytes = b"m",
        source: bytes | None = None,
    ) -> Self:
        """Make the effect.  Raises TypeError or ValueError, with the fault in the arguments."""
        given = _amounts(amounts)
        parts: tuple[Any, ...] = (
            TALLY,
            _table(table),
            _row(row),
            given,
            _family(members),
            _source(source),
            {},
            None,
            b"",
            0,
        )
        return tuple.__new__(cls, parts)

    @property
    def size_bytes(self) -> int:
        return _given_bytes(self)


class Send(Effect):
    """Push a message to a queue: ``target`` is ``queue:NAME``.

    However often the function runs for a change, the queue takes the message once: without a ``name`` the trigger, the
    change and the message itself name it.  So two equal messages of one change are one; names tell them apart.
    """

    __slots__ = ()

    def __new__(
        cls,
        target: str | bytes,
        body: bytes,
        *,
        name: str | bytes = b"",
        group: str | bytes = b"",
        priority: int = 0,
        delay_ms: int = 0,
        headers: Mapping[bytes, bytes] | None = None,
    ) -> Self:
        """Make the effect.  Raises TypeError or ValueError, with the fault in the arguments."""
        told = _table(target)
        if not told.startswith(b"queue:") or told == b"queue:":
            raise ValueError(f"a trigger's Send goes to queue:NAME, not to {target!r}"[:200])
        if type(body) is not bytes:
            raise TypeError(f"the body of a Send is bytes, not {body!r}"[:200])
        if type(priority) is not int or type(delay_ms) is not int:
            raise TypeError(f"priority and delay of a Send are whole numbers, not {priority!r} and {delay_ms!r}"[:200])
        held = dict(headers or {})
        for key, value in held.items():
            if type(key) is not bytes or type(value) is not bytes:
                raise TypeError(f"headers of a Send are bytes, not {key!r}: {value!r}"[:200])
        return tuple.__new__(cls, (SEND, told, body, _table(name), _table(group), priority, delay_ms, held))

    @property
    def target(self) -> bytes:
        target: bytes = self[1]
        return target

    @property
    def body(self) -> bytes:
        body: bytes = self[2]
        return body

    @property
    def size_bytes(self) -> int:
        return len(self[1]) + len(self[2]) + len(self[3]) + sum(map(len, self[7])) + sum(map(len, self[7].values()))


class Checkpoint(Parted):
    """Record progress: if the function runs again, it receives this state as ``Change.progress``.

    The effects yielded before are not repeated.  An empty state counts as none: the function starts from its beginning.
    """

    __slots__ = ()

    def __new__(cls, state: bytes) -> Self:
        """Make the effect.  Raises TypeError if the state is not bytes, ValueError if it is too long."""
        if type(state) is not bytes:
            raise TypeError(f"the state of a Checkpoint is bytes, not {type(state).__name__}")
        if len(state) > CHECKPOINT_BYTES:
            raise ValueError(f"the state of a Checkpoint is {len(state)} bytes; the bound is {CHECKPOINT_BYTES}")
        return tuple.__new__(cls, (CHECKPOINT, state, 0))

    @property
    def state(self) -> bytes:
        state: bytes = self[1]
        return state

    @property
    def size_bytes(self) -> int:
        return len(self.state)


class Barrier(Effect):
    """Continue once every effect yielded before is on disk: later effects may rely on that, whatever crashes.

    Effects between two barriers may become durable in any order, because each region has its own log.
    A barrier costs a slice: a message in each direction and an fsync.
    In a batch, a barrier names no change and counts for all of them.  Contributions to totals are still sent at the
    batch's end, because a later run may have different changes in its batch, and barriers at different places.
    """

    __slots__ = ()

    def __new__(cls) -> Self:
        return tuple.__new__(cls, (BARRIER,))

    @property
    def size_bytes(self) -> int:
        return 0


def _amounts(amounts: Mapping[bytes, int]) -> dict[bytes, int]:
    held = dict(amounts)
    if not held:
        raise ValueError("amounts name at least one total, as {b'n:edits': 1}; None, in a Contribute, gives nothing")
    for column, amount in held.items():
        if type(column) is not bytes or not column.partition(b":")[0] or b":" not in column:
            raise ValueError(f"a total is a column, b'family:qualifier', not {column!r}"[:200])
        if type(amount) is not int:
            raise TypeError(f"an amount is a whole number, not {amount!r}"[:200])
        if not -(1 << 63) <= amount < 1 << 63:
            raise ValueError(f"an amount has 64 bits, with its sign; {amount} has more"[:200])
    return held


def _family(name: object) -> bytes:
    held = name.encode() if isinstance(name, str) else name
    if type(held) is not bytes or not held or b":" in held:
        raise ValueError(f"a family is a name without a colon, not {name!r}"[:200])
    return held


def _source(source: object) -> bytes | None:
    if source is None or (type(source) is bytes and source):
        return source
    raise ValueError(f"a source is bytes, and not empty; {source!r} is none"[:200])


def _given_bytes(effect: tuple[Any, ...]) -> int:
    return len(effect[2]) + sum(map(len, effect[3] or ())) + 8 * len(effect[3] or ()) + len(effect[5] or b"")


def _table(name: object) -> bytes:
    if isinstance(name, str):
        return name.encode()
    if type(name) is bytes:
        return name
    raise TypeError(f"a table is named by text or bytes, not {name!r}"[:200])


def _row(row: object) -> bytes:
    if type(row) is not bytes:
        raise TypeError(f"a row key is bytes, not {row!r}"[:200])
    if not row:
        raise ValueError("a row key is not empty")
    return row
