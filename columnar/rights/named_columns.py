"""(pure) The columns that a call names, and the same call with fewer columns.

A *part* is (right, family, qualifier): a right that a call needs, or is refused.  The family is None for the whole
table; the qualifier is None for the whole family.  An empty qualifier counts as the whole family, because several
methods read ``cf:`` so.

A *selection* is what a read of rows selects: its columns, none for whole rows, and a function that replaces them.  The
columns are replaced in the read's own list, or, for a method without such a list (``getRow``), by the attribute
COLUMNS_ATTRIBUTE, which ``thrift.reads`` obeys.  The attribute only takes columns away, so a client that sends it gains
nothing.

Knows nothing of users and grants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from columnar.errors import ColumnarError
from columnar.model.cell import split_column
from columnar.model.condition_text import column_tested, condition_of
from columnar.model.rights import READ, WRITE
from columnar.wire.idl import columnar
from columnar.wire.sent_puts import SentPuts

Part = tuple[int, bytes | None, bytes | None]
Parts = Callable[[Sequence[Any]], Iterable[Part]]  # of a call's arguments
Column = tuple[bytes, bytes | None]
Selection = tuple[list[Column], Callable[[list[Column]], None]]
Selections = Callable[[list[Any]], list[Selection]]  # of a call's arguments

WHOLE_TABLE: Final = (None, None)
COLUMNS_ATTRIBUTE: Final = b"columnar.columns"  # of ``columns_value``
_INCREMENT: Final = columnar.OperationKind.INCREMENT
_CONTRIBUTE: Final = columnar.OperationKind.CONTRIBUTE
_APPEND: Final = columnar.OperationKind.APPEND
_SEND: Final = columnar.OperationKind.SEND
_DELETES_OF_COLUMNS: Final = (0, 1)  # of Thrift 2's TDeleteType; the others delete the family of each column


def _part(right: int, column: bytes | None) -> Part:
    family, qualifier = split_column(column or b"")
    return right, family, qualifier or None


def _named(right: int, columns: Iterable[bytes | None] | None) -> list[Part]:
    return [_part(right, column) for column in columns or ()] or [(right, *WHOLE_TABLE)]


def writes_whole_table(_args: Sequence[Any]) -> list[Part]:
    return [(WRITE, *WHOLE_TABLE)]


# --- Thrift 1 ----------------------------------------------------------------------------------------


def column_at(at: int, *rights: int) -> Parts:
    """Return the parts of the one column that is argument ``at``."""
    return lambda args: [_part(right, args[at]) for right in rights]


def family_at(at: int) -> Parts:
    """Return the part of the family that is argument ``at``; whatever stands after a colon does not narrow it."""
    return lambda args: [(READ, split_column(args[at] or b"")[0], None)]


def mutated(args: Sequence[Any]) -> Iterator[Part]:
    """``mutateRow``: mutations of one row."""
    return _mutations(args[2])


def mutated_rows(args: Sequence[Any]) -> Iterator[Part]:
    for batch in args[1] or ():
        yield from _mutations(batch.mutations)


def _mutations(mutations: Any) -> Iterator[Part]:
    if isinstance(mutations, SentPuts):
        for column in mutations.columns:
            yield _part(WRITE, column)
    else:
        for one in mutations or ():
            yield _part(WRITE, one.column)


def incremented(args: Sequence[Any]) -> list[Part]:
    return [_part(WRITE, getattr(args[0], "column", None))]


def increments(args: Sequence[Any]) -> dict[bytes, list[Part]]:
    """Return the parts of ``incrementRows`` by table, as each increment names its own."""
    found: dict[bytes, list[Part]] = {}
    for one in args[0] or ():
        found.setdefault(one.table or b"", []).append(_part(WRITE, one.column))
    return found


def appended(args: Sequence[Any]) -> list[Part]:
    """``append``: its reply has the new values, so it reads too."""
    columns = getattr(args[0], "columns", None)
    return [*_named(WRITE, columns), *_named(READ, columns)]


def checked_put(args: Sequence[Any]) -> list[Part]:
    return [_part(READ, args[2]), _part(WRITE, getattr(args[4], "column", None))]


def _operations(operations: Any) -> Iterator[Part]:
    """Return the parts of RowOperations.  The replies to increments have the new values."""
    for one in operations or ():
        if one.kind == _SEND:  # needs a right on everything (``sending``)
            continue
        if one.kind == _CONTRIBUTE:  # the member decides which totals and ordered cells change: the call does not say
            yield WRITE, None, None
            continue
        yield _part(WRITE, one.column)
        if one.kind in (_INCREMENT, _APPEND):
            yield _part(READ, one.column)


def _checked(conditions: Any, operations: Any) -> Iterator[Part]:
    for condition in conditions or ():
        yield _part(READ, condition.column)
    yield from _operations(operations)


def checked_row(args: Sequence[Any]) -> Iterator[Part]:
    return _checked(args[2], args[3])


def checked_rows(args: Sequence[Any]) -> Iterator[Part]:
    for row in args[1] or ():
        yield from _checked(row.conditions, row.operations)


def mutated_group(args: Sequence[Any]) -> Iterator[Part]:
    """``columnarMutateGroup``: whether a read still holds tells of what it read."""
    for row in args[2] or ():
        yield from _checked(row.conditions, row.operations)
    for read in args[3] or ():
        yield from _named(READ, read.columns)


def _has_send(operations: Any) -> bool:
    return any(one.kind == _SEND for one in operations or ())


def row_sends(args: Sequence[Any]) -> bool:
    """Tell whether a ``columnarCheckAndMutate`` sends messages."""
    return _has_send(args[3])


def rows_send(args: Sequence[Any]) -> bool:
    return any(_has_send(row.operations) for row in args[1] or ())


def group_sends(args: Sequence[Any]) -> bool:
    return any(_has_send(row.operations) for row in args[2] or ())


# --- Thrift 2 ----------------------------------------------------------------------------------------


def _column2(right: int, one: Any) -> Part:
    return right, one.family or b"", one.qualifier or None


def _columns2(right: int, columns: Any) -> list[Part]:
    return [_column2(right, one) for one in columns or ()] or [(right, *WHOLE_TABLE)]


def put2(args: Sequence[Any]) -> list[Part]:
    return _columns2(WRITE, getattr(args[1], "columnValues", None))


def puts2(args: Sequence[Any]) -> Iterator[Part]:
    for put in args[1] or ():
        yield from _columns2(WRITE, put.columnValues)


def _deleted2(delete: Any) -> list[Part]:
    """Return the parts of a TDelete, whose type may make a family of each column."""
    parts = _columns2(WRITE, getattr(delete, "columns", None))
    if getattr(delete, "deleteType", None) in (None, *_DELETES_OF_COLUMNS):
        return parts
    return [(right, family, None) for right, family, _ in parts]


def delete2(args: Sequence[Any]) -> list[Part]:
    return _deleted2(args[1])


def deletes2(args: Sequence[Any]) -> Iterator[Part]:
    for delete in args[1] or ():
        yield from _deleted2(delete)


def counted2(args: Sequence[Any]) -> list[Part]:
    """``increment`` and ``append``: their replies have the new values, so they read too."""
    columns = getattr(args[1], "columns", None)
    return [*_columns2(WRITE, columns), *_columns2(READ, columns)]


def _mutations2(mutations: Any) -> Iterator[Part]:
    for one in getattr(mutations, "mutations", None) or ():
        if one.put is not None:
            yield from _columns2(WRITE, one.put.columnValues)
        if one.deleteSingle is not None:
            yield from _deleted2(one.deleteSingle)


def mutations2(args: Sequence[Any]) -> Iterator[Part]:
    return _mutations2(args[1])


def _condition2(args: Sequence[Any]) -> Part:
    return READ, args[2] or b"", args[3] or None


def checked_put2(args: Sequence[Any]) -> list[Part]:
    return [_condition2(args), *_columns2(WRITE, getattr(args[5], "columnValues", None))]


def checked_delete2(args: Sequence[Any]) -> list[Part]:
    return [_condition2(args), *_deleted2(args[5])]


def checked_mutations2(args: Sequence[Any]) -> list[Part]:
    return [_condition2(args), *_mutations2(args[6])]


# --- selections of reads -----------------------------------------------------------------------------


def _split(columns: Iterable[bytes | None] | None) -> list[Column]:
    split = [split_column(column or b"") for column in columns or ()]
    return [(family, qualifier or None) for family, qualifier in split]


def _written(columns: Iterable[Column]) -> list[bytes]:
    """Return the columns as Thrift 1 has them."""
    return [family if qualifier is None else b"%b:%b" % (family, qualifier) for family, qualifier in columns]


def list_at(at: int) -> Selections:
    """Return the selection of a method whose columns are argument ``at``."""

    def selections(args: list[Any]) -> list[Selection]:
        def replace(columns: list[Column]) -> None:
            args[at] = _written(columns)

        return [(_split(args[at]), replace)]

    return selections


def attribute_at(at: int) -> Selections:
    """Return the selection of a method of whole rows, whose attributes are argument ``at``."""

    def selections(args: list[Any]) -> list[Selection]:
        def replace(columns: list[Column]) -> None:
            args[at] = {**(args[at] or {}), COLUMNS_ATTRIBUTE: columns_value(_written(columns))}

        return [([], replace)]

    return selections


def of_scan(args: list[Any]) -> list[Selection]:
    """Return the selection of ``scannerOpenWithScan``; none without a scan, which the method refuses."""
    scan = args[1]
    if scan is None:
        return []

    def replace(columns: list[Column]) -> None:
        args[1] = _with_columns(scan, _written(columns))

    return [(_split(scan.columns), replace)]


def of_changes(args: list[Any]) -> list[Selection]:
    """Return the selections of ``columnarChanges``; none without a request, which the method refuses.

    A condition tells of the column that it tests, so that column is needed, too.
    """
    request = args[1]
    if request is None:
        return []
    tested: list[Selection] = []
    for text in request.where or ():
        try:
            column = column_tested(condition_of(text or ""))
        except ColumnarError:
            continue  # the method refuses it, with the fault
        tested.append((_split([column]), _keep_columns))

    def replace(columns: list[Column]) -> None:
        args[1] = _with_columns(request, _written(columns))

    return [(_split(request.columns), replace), *tested]


def _keep_columns(_columns: list[Column]) -> None:
    """Leave a selection of one column as it is: the user may read it, or the call is refused."""


def whole_table(_args: list[Any]) -> list[Selection]:
    """Return a selection of all columns, of a call that names none: a user with some of them may make it."""
    return [([], lambda _columns: None)]


def of_struct2(args: list[Any]) -> list[Selection]:
    """Return the selection of a TGet or TScan."""
    return [_selection2(args, 1)] if args[1] is not None else []


def of_structs2(args: list[Any]) -> list[Selection]:
    return [_selection2(args[1], at) for at in range(len(args[1] or ()))]


def _selection2(structs: list[Any], at: int) -> Selection:
    struct = structs[at]
    sent = {(one.family or b"", one.qualifier or None): one for one in struct.columns or ()}

    def replace(columns: list[Column]) -> None:
        from columnar.wire.idl2 import hbase2  # 2 MB that most stores do not need

        left = [sent.get(one) or hbase2.TColumn(family=one[0], qualifier=one[1]) for one in columns]
        structs[at] = _with_columns(struct, left)

    return list(sent), replace


def _with_columns(struct: Any, columns: list[Any]) -> Any:
    """Return a copy of the struct with these columns."""
    fields = {field[1]: getattr(struct, field[1]) for field in struct.thrift_spec.values()}
    return type(struct)(**{**fields, "columns": columns})


def columns_value(columns: list[bytes]) -> bytes:
    """Return the attribute's value: each column after its length, four bytes, big-endian."""
    return b"".join([len(column).to_bytes(4, "big") + column for column in columns])


def columns_from(attributes: Any) -> list[bytes] | None:
    """Return the columns that the attribute names; None without it.

    A value that is none of ours names the column ``""``, which no table has, so the read is refused.
    """
    value = attributes.get(COLUMNS_ATTRIBUTE) if attributes else None
    if value is None:
        return None
    columns, at = [], 0
    while at + 4 <= len(value):
        end = at + 4 + int.from_bytes(value[at : at + 4], "big")
        columns.append(value[at + 4 : end])
        at = end
    return columns if columns and at == len(value) else [b""]
