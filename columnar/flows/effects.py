"""(pure) Turns effects of triggers into mutations of rows, stamped by the change that caused them.

Every effect of a change has the change's own stamp, which rises with each change of a row, and its contributions to
totals have the change's sequence (``effect_contributions``).  So a repeated or late run changes nothing that a newer
run wrote, and an effect whose outcome is unknown may be written again.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final

from columnar.errors import IllegalArgument, PutTooBig, RequestTooBig, abbreviate
from columnar.flows.effect_contributions import KINDS as GIVING
from columnar.flows.effect_contributions import ChangeContributions, check_families
from columnar.flows.effect_contributions import Write as Write
from columnar.limits import CELL_BYTES, ROW_OPERATIONS
from columnar.model.cell import checked_row
from columnar.model.effect import DELETE, PUT, SEND
from columnar.model.mutation import Contribute, Delete, Operation, Put, RowMutation
from columnar.model.schema import Table
from columnar.model.send import QUEUE, Send, target_of

WRITE_BYTES: Final = 200  # of a mutation's objects in memory
OPERATION_BYTES: Final = 200
SEND_PARTS: Final = 8
_SEQUENCES: Final = (list, tuple)  # not ``list | tuple``: compiled code would create that type for each effect
_COLUMNS: Final = (dict, list)
_ALL_FAMILIES: Final = b""  # all families of the table, whose schema is not known when effects are decoded


def writes_of(
    effects: list[Any],
    stamp: int,
    hops: int = 0,
    make_contributions: Callable[[], ChangeContributions] | None = None,
    name_sender: Callable[[], bytes] = bytes,
) -> list[Write]:
    """Return the mutations, in order.  Raises IllegalArgument or RequestTooBig for an effect that cannot be written.

    An effect may write only what a client may send, since a client could not read or remove anything else.

    ``hops`` is the number of hops of the change; ``make_contributions`` is called if effects contribute to totals.
    ``name_sender`` returns the name of trigger and change, for the messages that effects send: a write that sends one
    names its queue in the place of a table, and has no operations.
    """
    writes: list[Write] = []
    contributions: ChangeContributions | None = None
    for effect in effects:
        if make_contributions is not None and isinstance(effect, list) and effect and effect[0] in GIVING:
            contributions = contributions or make_contributions()
            contributions.add_contribution(effect, writes, hops + 1)
        elif isinstance(effect, _SEQUENCES) and len(effect) == SEND_PARTS and effect[0] == SEND:
            writes.append(_send_of(effect, name_sender(), hops + 1))
        else:
            writes.append(_write_of(effect, stamp, hops + 1))
    for _, mutation in writes:
        checked_row(mutation.row)
    return writes


def size_of(writes: list[Write]) -> int:
    """Return the bytes of rows and values, plus an estimate for the objects that hold them."""
    size = 0
    for _, mutation in writes:
        size += len(mutation.row) + WRITE_BYTES + OPERATION_BYTES * len(mutation.operations)
        for send in mutation.sends:
            size += send.size_bytes
        for operation in mutation.operations:
            if isinstance(operation, Put):
                size += len(operation.value)
            else:
                size += getattr(operation, "size_bytes", 0)
    return size


def _send_of(effect: Any, sender: bytes, hops: int) -> Write:
    """Decode an effect that sends a message; a repeated run names the message as the first one did."""
    _, target, body, name, group, priority, delay_ms, headers = effect
    texts = (target, body, name, group)
    if not all(isinstance(one, bytes) for one in texts) or not isinstance(headers, dict):
        raise IllegalArgument(f"an effect that is none: {str(effect)[:100]}")
    kind, queue = target_of(target)
    if kind != QUEUE or not queue:
        raise IllegalArgument(f"a trigger's Send goes to queue:NAME, not to {abbreviate(target)}")
    sent = tuple(sorted(headers.items()))
    if not name:
        digest = blake2b(repr((texts, priority, delay_ms, sent)).encode(), digest_size=16).hexdigest()
        name = b"send-%b-%b" % (blake2b(sender, digest_size=16).hexdigest().encode(), digest.encode())
    send = Send(target, b"", name, group, delay_ms, priority, body, sent)
    return target, RowMutation(target, (), hops=hops, sends=(send,))


def _write_of(effect: Any, stamp: int, hops: int) -> Write:
    """Decode one effect, without ``match``, which takes twice as long: every effect of every change comes here."""
    if isinstance(effect, _SEQUENCES) and len(effect) == 4:
        kind, table, row, what = effect
        if isinstance(table, bytes) and isinstance(row, bytes) and row:
            if isinstance(what, _COLUMNS) and len(what) > ROW_OPERATIONS:
                raise RequestTooBig(
                    f"an effect names {len(what)} columns of row {abbreviate(row)}, at most {ROW_OPERATIONS} are "
                    "written as one step: yield several"
                )
            if kind == PUT and isinstance(what, dict) and what:
                puts = tuple([_put(column, value, stamp) for column, value in what.items()])
                return table, RowMutation(row, puts, hops=hops)
            if kind == DELETE and isinstance(what, list) and what:
                return table, RowMutation(row, tuple([_delete(column, stamp) for column in what]), hops=hops)
            if kind == DELETE and what is None:
                whole = Delete(_ALL_FAMILIES, None, stamp)  # ``for_table`` spells it out
                return table, RowMutation(row, (whole,), hops=hops)
    raise IllegalArgument(f"an effect that is none: {str(effect)[:100]}")


def for_table(mutation: RowMutation, table: Table) -> RowMutation:
    """Return the mutation as this table takes it.

    Raises IllegalArgument if the mutation deletes and the table has no DELETE_MARKERS, or if the mutation contributes
    to totals and the table lacks a family for them.
    """
    first = mutation.operations[0]
    if isinstance(first, Contribute):
        check_families(mutation.row, first, table)
    if not isinstance(first, Delete):  # an effect's operations are of one kind
        return mutation
    if table.delete_markers_ms is None:
        raise IllegalArgument(
            f"an effect deletes in row {abbreviate(mutation.row)} of {table.name}, which has no DELETE_MARKERS, so "
            f"that a late put would bring it back: columnar alter {table.name} --set DELETE_MARKERS=3600000"
        )
    if first.family != _ALL_FAMILIES:
        return mutation
    stamp = first.timestamp
    deletes: tuple[Operation, ...] = tuple([Delete(family.bytes_name, None, stamp) for family in table.families])
    return RowMutation(mutation.row, deletes, hops=mutation.hops)


def _put(column: Any, value: Any, stamp: int) -> Put:
    family, qualifier = _parts(column)
    if not isinstance(value, bytes) or qualifier is None:
        raise IllegalArgument(f"an effect puts into {column!r}, which is no column"[:200])
    if len(column) + len(value) > CELL_BYTES:
        raise PutTooBig(column, len(column) + len(value), CELL_BYTES)
    return Put(family, qualifier, value, stamp)


def _delete(column: Any, stamp: int) -> Delete:
    family, qualifier = _parts(column)
    return Delete(family, qualifier, stamp)


def _parts(column: Any) -> tuple[bytes, bytes | None]:
    if not isinstance(column, bytes):
        raise IllegalArgument(f"an effect names the column {column!r}, which is not bytes"[:200])
    family, colon, qualifier = column.partition(b":")
    if not family:
        raise IllegalArgument(f"an effect names the column {abbreviate(column)}; a column is written family:qualifier")
    return family, qualifier if colon else None
