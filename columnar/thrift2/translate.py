"""(pure) Translation between the structs of the Thrift 2 service and our values.

Fields mean what they mean to a running HBase 2.6.1.  A timestamp on a column of a get or a scan is ignored.  A get's
``timestamp`` selects cells with exactly this timestamp.  A delete's ``timestamp`` is used only if the delete names no
columns.  For a delete of columns a missing qualifier means the empty qualifier; a delete of families ignores
qualifiers.

Knows nothing of regions; every refusal is a CallerError.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from columnar.errors import IllegalArgument, NotSent, RequestTooBig, abbreviate
from columnar.limits import COLUMNS_PER_CALL
from columnar.model import read
from columnar.model.cell import checked_row
from columnar.model.mutation import (
    Append,
    CompareOp,
    Condition,
    Delete,
    Durability,
    Increment,
    Operation,
    Put,
    RowMutation,
)
from columnar.model.read import ALL_TIME, ReadSpec, ScanSpec
from columnar.model.schema import Table
from columnar.thrift import translate

T = TypeVar("T")

DELETE_COLUMN, DELETE_COLUMNS, DELETE_FAMILY, DELETE_FAMILY_VERSION = range(4)
SKIP_WAL, ASYNC_WAL = 1, 2
# The method has the given value on the left: GREATER is true if the given value is greater than the stored value.
_TURNED: Final = {
    0: CompareOp.GREATER,
    1: CompareOp.GREATER_OR_EQUAL,
    2: CompareOp.EQUAL,
    3: CompareOp.NOT_EQUAL,
    4: CompareOp.LESS_OR_EQUAL,
    5: CompareOp.LESS,
}
_NOT_EQUAL: Final = 3
_PUT_TYPE: Final = 4  # Cell.Type.Put, as every TResult has it


def given(value: T | None, name: str) -> T:
    if value is None:
        raise NotSent(f"the required {name} was not sent")
    return value


def durability_of(wire: int | None) -> Durability:
    return Durability.ASYNC if wire in (SKIP_WAL, ASYNC_WAL) else Durability.SYNC


def column_name(table: Table, family: bytes | None, qualifier: bytes | None) -> tuple[bytes, bytes]:
    """Return family and qualifier, both checked; a missing qualifier means the empty qualifier."""
    name = given(family, "column family")
    table.family(name)
    return name, qualifier or b""


# --- reads -----------------------------------------------------------------------------------------


def _range(time_range: Any) -> tuple[int, int]:
    low, high = given(time_range.minStamp, "minStamp"), given(time_range.maxStamp, "maxStamp")
    if low < 0 or high < low:
        raise IllegalArgument(f"the time range {low} to {high} is none: it goes from 0 or more upwards")
    return low, high


def _read(table: Table, columns: Sequence[Any] | None, time_range: tuple[int, int], max_versions: int) -> ReadSpec:
    if columns and len(columns) > COLUMNS_PER_CALL:
        raise RequestTooBig(f"{len(columns)} columns in one call, at most {COLUMNS_PER_CALL} are allowed")
    names = []
    for one in columns or ():
        family = given(one.family, "column family")
        names.append(family if one.qualifier is None else b"%b:%b" % (family, one.qualifier))
    if max_versions <= 0:
        raise IllegalArgument(f"versions must be positive, not {max_versions}")
    return replace(translate.read_spec(table, names, None, max_versions), time_range=time_range)


def get_spec(table: Table, tget: Any) -> ReadSpec:
    _check_replica(tget)
    if tget.timestamp is not None:
        if tget.timestamp < 0:
            raise IllegalArgument(f"timestamp {tget.timestamp} is negative")
        time_range = (tget.timestamp, tget.timestamp + 1)
    else:
        time_range = ALL_TIME if tget.timeRange is None else _range(tget.timeRange)
    for name, count in (("storeLimit", tget.storeLimit), ("storeOffset", tget.storeOffset)):
        if count is not None and count < 0 and count != -1:
            raise IllegalArgument(f"{name} {count} is negative")
    return _read(table, tget.columns, time_range, 1 if tget.maxVersions is None else tget.maxVersions)


def filter_of(sent: Any) -> bytes | None:
    """Return the filter of a TGet or TScan as text, even if Java's client serialised it; None if there is none."""
    if sent.filterBytes is None:
        text: bytes | None = sent.filterString
        return text
    if sent.filterString is not None:
        raise IllegalArgument("filterString and filterBytes are two filters; send one, which may be a list of filters")
    from columnar.model.filter_protobufs import filter_string_of  # few clients send them

    return filter_string_of(sent.filterBytes)


def cut_of(tget: Any) -> tuple[int, int] | None:
    """Return (offset, limit) of each family's cells, from ``storeOffset`` and ``storeLimit``; None means all cells."""
    offset, limit = max(tget.storeOffset or 0, 0), tget.storeLimit
    if not offset and (limit is None or limit < 0):
        return None
    return offset, -1 if limit is None else limit


def cut_by_family(cells: Iterable[tuple[bytes, bytes, int]], tget: Any) -> list[tuple[bytes, bytes, int]]:
    cut = cut_of(tget)
    return list(cells) if cut is None else read.cut_by_family(cells, *cut)


def scan_spec(table: Table, tscan: Any) -> ScanSpec:
    """Return the ScanSpec.  ``caching``, ``cacheBlocks``, ``readType`` and replicas do not change results: ignored."""
    _check_replica(tscan)
    translate.check_scan_attributes(tscan.attributes)
    if tscan.batchSize is not None and tscan.batchSize < 0 and tscan.batchSize != -1:
        raise IllegalArgument(f"batchSize {tscan.batchSize} is negative")
    time_range = ALL_TIME if tscan.timeRange is None else _range(tscan.timeRange)
    spec = _read(table, tscan.columns, time_range, 1 if tscan.maxVersions is None else tscan.maxVersions)
    ranges = tuple((family, _range(one)) for family, one in (tscan.colFamTimeRangeMap or {}).items())
    return ScanSpec(
        start=translate.checked_bound(tscan.startRow),
        stop=translate.checked_bound(tscan.stopRow),
        read=replace(spec, family_ranges=ranges),
        reversed=bool(tscan.reversed),
        batch=max(tscan.batchSize or 0, 0),
        filter_string=filter_of(tscan),
        limit=max(tscan.limit or 0, 0),
    )


# --- writes ----------------------------------------------------------------------------------------


def _check_open(sent: Any) -> None:
    """Raise IllegalArgument if cells are to be visible to some users only, because everybody would see them."""
    if sent.cellVisibility is not None:
        raise IllegalArgument(
            "cellVisibility: cells have no visibility labels here, and everybody would see this one; leave it out"
        )


def _check_plain(one: Any) -> None:
    """Raise IllegalArgument for a TColumnValue that is not a plain value to put."""
    if one.tags:
        raise IllegalArgument("tags of a TColumnValue are not kept; leave them out")
    if one.type not in (None, _PUT_TYPE):
        raise IllegalArgument(f"type {one.type} of a TColumnValue is no put, which is {_PUT_TYPE}; deletes are TDelete")


def _check_replica(sent: Any) -> None:
    """Raise IllegalArgument if a region's replica is requested, because regions have none."""
    if sent.targetReplicaId is not None and sent.targetReplicaId > 0:
        raise IllegalArgument(f"targetReplicaId {sent.targetReplicaId}: regions have no replicas here; leave it out")


def put(table: Table, tput: Any) -> RowMutation:
    row = checked_row(given(tput, "TPut").row)
    _check_open(tput)
    ttl_ms = translate.ttl_of(tput.attributes) if tput.attributes else None
    default = translate.checked_timestamp(tput.timestamp)
    operations: list[Operation] = []
    translate.checked_operations(len(given(tput.columnValues, "columnValues")), row)
    for one in tput.columnValues:
        family, qualifier = column_name(table, one.family, given(one.qualifier, "qualifier"))
        if one.tags or one.type is not None:
            _check_plain(one)
        value = translate.checked_value(given(one.value, "value"), family + qualifier)
        stamp = default if one.timestamp is None else translate.checked_timestamp(one.timestamp)
        operations.append(Put(family, qualifier, value, stamp, ttl_ms))
    if not operations:
        raise IllegalArgument(f"the put of row {abbreviate(row)} names no column")
    return RowMutation(row, tuple(operations), (), durability_of(tput.durability))


def delete(table: Table, tdelete: Any) -> RowMutation:
    row = checked_row(given(tdelete, "TDelete").row)
    translate.check_write_attributes(tdelete.attributes)
    durability = durability_of(tdelete.durability)
    if not tdelete.columns:
        stamp = translate.checked_timestamp(tdelete.timestamp)
        whole = tuple(Delete(family.bytes_name, None, stamp) for family in table.families)
        return RowMutation(row, whole, (), durability)
    translate.checked_operations(len(tdelete.columns), row)
    kind = DELETE_COLUMNS if tdelete.deleteType is None else tdelete.deleteType
    return RowMutation(row, tuple(_delete(table, kind, one) for one in tdelete.columns), (), durability)


def _delete(table: Table, kind: int, column: Any) -> Delete:
    family, qualifier = column_name(table, column.family, column.qualifier)
    stamp = translate.checked_timestamp(column.timestamp)
    if kind in (DELETE_COLUMN, DELETE_COLUMNS):
        return Delete(family, qualifier, stamp, kind == DELETE_COLUMN)
    if kind == DELETE_FAMILY:
        return Delete(family, None, stamp)
    if kind != DELETE_FAMILY_VERSION:
        raise IllegalArgument(
            f"delete type {kind} is none of DELETE_COLUMN, _COLUMNS, _FAMILY, _FAMILY_VERSION (0 to 3)"
        )
    if stamp is None:
        raise IllegalArgument("DELETE_FAMILY_VERSION takes a timestamp on each column: the version that goes")
    return Delete(family, None, stamp, True)


def increment(table: Table, tincrement: Any) -> RowMutation:
    row = checked_row(given(tincrement, "TIncrement").row)
    _check_open(tincrement)
    translate.check_changing_attributes(tincrement.attributes)
    operations = []
    translate.checked_operations(len(given(tincrement.columns, "columns")), row)
    for one in tincrement.columns:
        family, qualifier = column_name(table, one.family, given(one.qualifier, "qualifier"))
        translate.checked_value(None, family + qualifier)
        operations.append(Increment(family, qualifier, 1 if one.amount is None else one.amount))
    return _changing(row, operations, tincrement)


def append(table: Table, tappend: Any) -> RowMutation:
    row = checked_row(given(tappend, "TAppend").row)
    _check_open(tappend)
    translate.check_changing_attributes(tappend.attributes)
    operations = []
    translate.checked_operations(len(given(tappend.columns, "columns")), row)
    for one in tappend.columns:
        family, qualifier = column_name(table, one.family, given(one.qualifier, "qualifier"))
        _check_plain(one)
        operations.append(Append(family, qualifier, translate.checked_value(one.value, family + qualifier)))
    return _changing(row, operations, tappend)


def _changing(row: bytes, operations: Sequence[Operation], asked: Any) -> RowMutation:
    if not operations:
        raise IllegalArgument(f"no column to change in row {abbreviate(row)}")
    return RowMutation(row, tuple(operations), (), durability_of(asked.durability))


def row_mutations(table: Table, asked: Any) -> RowMutation:
    """Return the puts and deletes of one row, in the given order, as one atomic step."""
    row = checked_row(given(asked, "TRowMutations").row)
    operations: list[Operation] = []
    durability = Durability.ASYNC
    for one in asked.mutations or ():
        if one.put is not None and one.deleteSingle is not None:
            raise IllegalArgument("a TMutation is a put or a delete, not both")
        if one.put is not None:
            part = put(table, one.put)
        elif one.deleteSingle is not None:
            part = delete(table, one.deleteSingle)
        else:
            raise IllegalArgument("a TMutation is a put or a delete")
        same_row(row, part.row)
        operations += part.operations
        translate.checked_operations(len(operations), row)
        durability = Durability.SYNC if part.durability is Durability.SYNC else durability
    if not operations:
        raise IllegalArgument(f"no mutations given for row {abbreviate(row)}")
    return RowMutation(row, tuple(operations), (), durability)


def same_row(row: bytes, other: bytes) -> None:
    if row != other:
        raise IllegalArgument(f"row {abbreviate(other)} of a mutation is not the row {abbreviate(row)} of the call")


def guarded(
    table: Table, row: bytes | None, column: tuple[bytes | None, bytes | None], op: int | None, value: Any, then: Any
) -> RowMutation:
    """Return ``then`` with the condition ``value`` OP the stored value; the row must be the same as that of ``then``.

    A missing ``value`` means an empty one.  An absent cell equals an empty value (observed row 23), and no comparison
    with any other value is true.
    """
    same_row(checked_row(row), then.row)
    family, qualifier = column_name(table, column[0], given(column[1], "qualifier"))
    turned = _TURNED.get(given(op, "compareOperator"))
    if turned is None:
        raise IllegalArgument(
            f"comparison {op} is none of LESS, LESS_OR_EQUAL, EQUAL, NOT_EQUAL, GREATER_OR_EQUAL, GREATER"
        )
    if not value:
        wanted = (
            [Condition(family, qualifier, CompareOp.GREATER, b"")]
            if op == _NOT_EQUAL
            else [Condition(family, qualifier, CompareOp.ABSENT_OR_EMPTY)]
        )
    else:
        wanted = [Condition(family, qualifier, CompareOp.EXISTS), Condition(family, qualifier, turned, value)]
    return RowMutation(row or b"", then.operations, tuple(wanted), then.durability)
