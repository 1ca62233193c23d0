"""(pure) Translation between the structs of the wire and our values.

Knows nothing of regions; every refusal is a CallerError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from columnar.errors import CellTooBig, IllegalArgument, PutTooBig, RequestTooBig, abbreviate
from columnar.limits import CELL_BYTES, COLUMNS_PER_CALL, ROW_KEY_BYTES, ROW_OPERATIONS
from columnar.model.cell import checked_row, parse_column, split_column
from columnar.model.contribution import checked as checked_contribution
from columnar.model.lease import TOKEN_BYTES
from columnar.model.mutation import (
    Append,
    CompareOp,
    Condition,
    Contribute,
    Delete,
    Durability,
    Increment,
    Operation,
    Put,
    RowMutation,
)
from columnar.model.read import ALL_TIME, ReadSpec, ScanSpec, after_prefix, projection
from columnar.model.schema import FOR_EVER, Family, Table, checked_family_name
from columnar.model.send import Send
from columnar.operations.access import TableAccess
from columnar.wire.sent_puts import SHAPE_BYTES, Mutation, SentPuts

Columns = dict[bytes, tuple[bytes, bytes]]  # column as sent -> family, qualifier
PutColumns = tuple[tuple[bytes, bytes], ...]

_LATEST: Final = (1 << 63) - 1  # HConstants.LATEST_TIMESTAMP: "now"
_SURELY_SMALL: Final = CELL_BYTES - SHAPE_BYTES  # bytes of a value that fit with every column of ``SentPuts``
_SEND: Final = 5  # OperationKind.SEND
_TTL_ATTRIBUTE: Final = b"_ttl"
_RAW_ATTRIBUTE: Final = b"_raw_"
# Attributes by which HBase's clients restrict who may see a cell; if we ignored them, everybody would see it.
_SEEN_BY: Final = (b"VISIBILITY", b"acl")


def family_from_wire(descriptor: Any) -> Family:
    """Return the family of a ColumnDescriptor.

    As in HBase's gateway, a time to live of zero or less means for ever.
    """
    ttl = descriptor.timeToLive
    bloom_filter = "NONE" if descriptor.bloomFilterType is None else descriptor.bloomFilterType
    # "Off" is the IDL's default of a field that the client does not set: descriptions repeat it, but it has no effect
    # (model.schema).
    unsaid = ("BLOCKCACHE",) * (not descriptor.blockCacheEnabled) + ("BLOOMFILTER",) * (bloom_filter == "NONE")
    return Family(
        checked_family_name(descriptor.name or b""),
        max_versions=descriptor.maxVersions,
        ttl_s=None if ttl is None or ttl <= 0 or ttl >= FOR_EVER else ttl,
        compression="NONE" if descriptor.compression is None else descriptor.compression,
        bloom_filter=bloom_filter,
        in_memory=bool(descriptor.inMemory),
        block_cache=bool(descriptor.blockCacheEnabled),
        unsaid=unsaid,
    )


def family_to_wire(make: Any, family: Family) -> Any:
    return make(
        name=family.bytes_name + b":",
        maxVersions=family.max_versions,
        compression=family.compression,
        inMemory=family.in_memory,
        bloomFilterType=family.bloom_filter,
        bloomFilterVectorSize=0,
        bloomFilterNbHashes=0,
        blockCacheEnabled=family.block_cache,
        timeToLive=family.ttl_s if family.ttl_s is not None else FOR_EVER,
    )


def checked_timestamp(timestamp: int | None) -> int | None:
    """Return the timestamp; None, also for LATEST, means the region's clock.  A negative timestamp is refused."""
    if timestamp is None or timestamp == _LATEST:
        return None
    if timestamp < 0:
        raise IllegalArgument(f"timestamp {timestamp} is negative")
    return timestamp


def checked_value(value: bytes | None, column: bytes) -> bytes:
    """Return the value, if the cell is not too large; a missing value is an empty one (observed T6)."""
    value = value or b""
    if len(column) + len(value) > CELL_BYTES:
        raise CellTooBig(f"the cell {abbreviate(column)}", len(column) + len(value), CELL_BYTES)
    return value


def put_value(value: bytes | None, column: bytes) -> bytes:
    """Return the same as ``checked_value``; raises the error of a put."""
    value = value or b""
    if len(column) + len(value) > CELL_BYTES:
        raise PutTooBig(column, len(column) + len(value), CELL_BYTES)
    return value


def checked_operations(count: int, row: bytes) -> None:
    """Raise RequestTooBig if one row's step would have more operations than ROW_OPERATIONS."""
    if count > ROW_OPERATIONS:
        raise RequestTooBig(
            f"{count} operations on row {abbreviate(row)} as one step, at most {ROW_OPERATIONS} are allowed; nothing "
            "was stored, send them in several calls"
        )


def checked_bound(row: bytes | None) -> bytes:
    """Return the row where a scan begins or ends, checked; empty (also for None) at the table's beginning or end."""
    if row and len(row) > ROW_KEY_BYTES:
        raise IllegalArgument(f"row key has {len(row)} bytes, at most {ROW_KEY_BYTES} are allowed")
    return row or b""


def check_write_attributes(attributes: Mapping[bytes, bytes] | None) -> None:
    """Raise IllegalArgument if an attribute of a write would hide its cells, which this store does not support."""
    for name in _SEEN_BY if attributes else ():
        if name in (attributes or {}):
            raise IllegalArgument(
                f"attribute {name.decode()}: cells have neither visibility labels nor access lists here, and everybody "
                "would see this one; leave it out"
            )


def check_changing_attributes(attributes: Mapping[bytes, bytes] | None) -> None:
    """Check like ``check_write_attributes``, for calls whose cells get no time to live from an attribute."""
    check_write_attributes(attributes)
    if attributes and _TTL_ATTRIBUTE in attributes:
        raise IllegalArgument(
            "attribute _ttl: only a put gives its cell a time to live (ttlMs of a RowOperation); leave it out"
        )


def check_scan_attributes(attributes: Mapping[bytes, bytes] | None) -> None:
    """Raise IllegalArgument for a raw scan, which would show deleted cells: they are not kept."""
    if attributes and any(attributes.get(_RAW_ATTRIBUTE, b"")):
        raise IllegalArgument("attribute _raw_: deleted cells are not kept, so there is no raw scan; leave it out")


def ttl_of(attributes: Mapping[bytes, bytes] | None) -> int | None:
    """Return the cells' time to live in milliseconds from the attribute ``_ttl``, or None (observed row 26)."""
    check_write_attributes(attributes)
    data = (attributes or {}).get(_TTL_ATTRIBUTE)
    if data is None:
        return None
    if len(data) != 8:
        raise IllegalArgument(f"attribute _ttl takes eight bytes (milliseconds, big-endian), not {len(data)}")
    ttl_ms = int.from_bytes(data, "big", signed=True)
    if ttl_ms <= 0:
        raise IllegalArgument(f"attribute _ttl is a positive number of milliseconds, not {ttl_ms}")
    return ttl_ms


def operations(
    table: Table, row: bytes, mutations: Sequence[Mutation], timestamp: int | None, ttl_ms: int | None, known: Columns
) -> tuple[tuple[Operation, ...], Durability]:
    """Return the operations of a row's Mutations, in their order, and the durability that their writer waits for.

    ``known`` caches the columns of one call, because its rows mostly put the same columns.
    """
    if len(mutations) > ROW_OPERATIONS:
        checked_operations(len(mutations), row)
    found: list[Operation] = []
    durability = Durability.SYNC
    for mutation in mutations:
        column: bytes = mutation.column or b""
        if mutation.isDelete:
            family, qualifier = split_column(column)
            table.family(family)
            found.append(Delete(family, qualifier, timestamp))
        else:
            named = known.get(column)
            if named is None:
                named = known[column] = _put_column(table, column)
            found.append(Put(named[0], named[1], put_value(mutation.value, column), timestamp, ttl_ms))
        if mutation.writeToWAL is False:
            durability = Durability.ASYNC
    return tuple(found), durability


def put_columns(table: Table, row: bytes, sent: SentPuts, known: dict[tuple[bytes, ...], PutColumns]) -> PutColumns:
    """Return the checked columns of a row that has only puts; also checks the values.

    ``known`` caches a call's columns.
    """
    if len(sent.values) > ROW_OPERATIONS:
        checked_operations(len(sent.values), row)
    columns = known.get(sent.columns)
    if columns is None:
        columns = known[sent.columns] = tuple([_put_column(table, column) for column in sent.columns])
    for value in sent.values:
        if len(value) > _SURELY_SMALL:
            for column, each in zip(sent.columns, sent.values, strict=True):
                put_value(each, column)
            break
    return columns


def _put_column(table: Table, column: bytes) -> tuple[bytes, bytes]:
    family, qualifier = parse_column(column)
    table.family(family)
    if qualifier is None:
        raise IllegalArgument(
            f"a put needs family:qualifier, not the bare family {family.decode('latin-1')}; "
            f"write '{family.decode('latin-1')}:' for the empty qualifier"
        )
    return family, qualifier


def counter_column(table: Table, column: bytes | None) -> tuple[bytes, bytes]:
    """Return family and qualifier; a family alone means its empty qualifier (HBase's atomicIncrement)."""
    checked_value(None, column or b"")
    family, qualifier = parse_column(column or b"")
    table.family(family)
    return family, qualifier or b""


def full_column(table: Table, column: bytes | None) -> tuple[bytes, bytes]:
    family, qualifier = parse_column(column or b"")
    table.family(family)
    if qualifier is None:
        raise IllegalArgument(f"column {family.decode('latin-1')} has no qualifier; write family:qualifier")
    return family, qualifier


def condition_from_wire(table: Table, condition: Any) -> Condition:
    family, qualifier = full_column(table, condition.column)
    try:
        op = CompareOp(condition.op)
    except ValueError:
        raise IllegalArgument(f"comparison {condition.op} is none of {', '.join(o.name for o in CompareOp)}") from None
    value = condition.value or b""
    if op is CompareOp.FENCE and len(value) != TOKEN_BYTES:
        raise IllegalArgument(
            f"the condition FENCE on {abbreviate(condition.column)} takes the {TOKEN_BYTES} bytes of a lease's token, "
            f"not {len(value)}"
        )
    return Condition(family, qualifier, op, value)


def row_operation_from_wire(table: Table, operation: Any) -> Operation:
    """Translate one RowOperation of ``columnarCheckAndMutate``."""
    timestamp = checked_timestamp(operation.timestamp)
    family, qualifier = parse_column(operation.column or b"")
    table.family(family)
    if operation.kind == 1:
        return Delete(family, qualifier, timestamp)
    if qualifier is None:
        raise IllegalArgument(f"operation on {family.decode('latin-1')} has no qualifier; write family:qualifier")
    if operation.kind == 0:
        if operation.ttlMs is not None and operation.ttlMs <= 0:
            raise IllegalArgument(f"a time to live is positive, not {operation.ttlMs} ms")
        value = checked_value(operation.value, operation.column)
        return Put(family, qualifier, value, timestamp, operation.ttlMs)
    if operation.kind == 2:
        if operation.amount is None:
            raise IllegalArgument("an increment needs an amount")
        checked_value(None, operation.column)
        return Increment(family, qualifier, operation.amount)
    if operation.kind == 3:
        return Append(family, qualifier, checked_value(operation.value, operation.column))
    if operation.kind == 4:
        checked_value(None, operation.column)
        return _contribution_from_wire(table, family, qualifier, operation.contribution)
    raise IllegalArgument(
        f"operation kind {operation.kind} is none of PUT, DELETE, INCREMENT, APPEND, CONTRIBUTE, SEND"
    )


def change_from_wire(table: Table, sent: Any) -> tuple[tuple[Operation, ...], tuple[Send, ...]]:
    """Translate the RowOperations of one row, which may be missing: its operations, and the messages that it sends."""
    operations: list[Operation] = []
    sends: list[Any] = []
    for one in sent or ():
        if one.kind == _SEND:
            sends.append(one.send)
        else:
            operations.append(row_operation_from_wire(table, one))
    if not sends:
        return tuple(operations), ()
    from columnar.thrift.sends import sends_from_wire  # most stores send nothing

    return tuple(operations), sends_from_wire(table, operations, sends)


def row_mutation(table: Table, row: bytes | None, conditions: Any, operations: Any) -> RowMutation:
    """Translate conditions and operations of one row; both may be missing."""
    checked = tuple([condition_from_wire(table, one) for one in conditions or ()])
    checked_operations(len(operations or ()), row or b"")
    asked, sends = change_from_wire(table, operations)
    return RowMutation(checked_row(row), asked, checked, sends=sends)


def check_places(access: TableAccess, mutations: Iterable[RowMutation]) -> None:
    """Raise TableNotFound if a mutation sends messages and there are no queues yet."""
    for mutation in mutations:
        if mutation.sends:
            from columnar.thrift import sends  # most stores send nothing

            sends.check_places(access, (mutation,))
            return


def _contribution_from_wire(table: Table, family: bytes, source: bytes, said: Any) -> Contribute:
    if said is None or len(said.sequence or ()) != 3:
        raise IllegalArgument("a CONTRIBUTE says what it gives, as of a sequence of three numbers")
    origin, epoch, n = said.sequence
    given = sorted((said.amounts or {}).items())
    made = Contribute(
        family,
        source,
        (origin, epoch, n),
        None if said.withdrawn else tuple([amount for _, amount in given]),
        tuple([full_column(table, column) for column, _ in given]),
        said.orderFamily or b"",
        said.order,
        tuple(sorted((said.carry or {}).items())),
        bool(said.relative),
    )
    if made.order_family:
        table.family(made.order_family)
    return checked_contribution(made)


def read_spec(table: Table, columns: Sequence[bytes] | None, timestamp: int | None, max_versions: int = 1) -> ReadSpec:
    """Return the ReadSpec.  A timestamp reads older cells only: ``[0, timestamp)`` (observed row 2 of the gateway)."""
    if columns and len(columns) > COLUMNS_PER_CALL:
        raise RequestTooBig(f"{len(columns)} columns in one call, at most {COLUMNS_PER_CALL} are allowed")
    if timestamp is None or timestamp == _LATEST:
        time_range = ALL_TIME
    else:
        time_range = (0, max(0, timestamp))
        if timestamp < 0:
            raise IllegalArgument(f"timestamp {timestamp} is negative")
    return ReadSpec(projection(table, columns or []), time_range, max_versions)


def scan_spec(table: Table, scan: Any) -> ScanSpec:
    """Return the ScanSpec of a TScan.  ``caching`` is ignored, because each call states how many rows it wants."""
    return ScanSpec(
        start=checked_bound(scan.startRow),
        stop=checked_bound(scan.stopRow),
        read=read_spec(table, scan.columns, scan.timestamp),
        reversed=bool(scan.reversed),
        batch=max(0, scan.batchSize or 0),  # None, zero and less mean whole rows
        sort_columns=bool(scan.sortColumns),
        filter_string=scan.filterString,
    )


def prefix_spec(table: Table, prefix: bytes, columns: Sequence[bytes] | None) -> ScanSpec:
    return ScanSpec(start=checked_bound(prefix), stop=after_prefix(prefix), read=read_spec(table, columns, None))
