"""(pure) Filters that HBase's Java client has serialised, converted to strings of the filter language.

    Filter     := name:string(1) serialized:bytes(2)            a Java class, and a message of that class
    Comparator := name:string(1) serialized:bytes(2)
    FilterList := operator(1: 1 all, 2 one) Filter(2)*           lists have filters, SKIP and WHILE have one

Numbers in brackets are the field numbers in Filter.proto and Comparator.proto of HBase 2.6.  A message has protobuf's
wire format; unknown fields are ignored, as protobuf does.  The filter language cannot express some classes and some of
their fields: these are refused by name.

Invariant: ``filter_language`` parses a string made by this module into the serialised filter, or refuses the string
with the reason.

Knows nothing of the effect of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn

from columnar.errors import IllegalArgument, abbreviate
from columnar.limits import FILTER_BYTES, FILTER_DEPTH

Value = int | bytes
Fields = Mapping[int, Sequence[Value]]

_FILTERS: Final = "org.apache.hadoop.hbase.filter."
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_BYTES: Final = 10
_OPERATORS: Final = (b"<", b"<=", b"=", b"!=", b">=", b">")
_NO_OP: Final = 6
_ALL, _ONE = 1, 2
_EVERYTHING: Final = b"FamilyFilter(>=, 'binary:')"  # a list without filters lets every cell pass
_CASE_INSENSITIVE, _MULTILINE, _LITERAL, _DOTALL = 2, 8, 16, 32  # flags of java.util.regex.Pattern
_FLAGS: Final = _CASE_INSENSITIVE | _MULTILINE | _LITERAL | _DOTALL


def filter_string_of(data: bytes) -> bytes:
    """Return the filter string.  Raises IllegalArgument if the filter is unreadable or cannot be expressed."""
    if len(data) > FILTER_BYTES:
        _refuse(f"it has {len(data)} bytes, over the limit of {FILTER_BYTES}")
    return _filter(data, 0)


def _refuse(why: str) -> NoReturn:
    raise IllegalArgument(f"filterBytes: {why}; write it as filterString")


def _no_form(what: str, remedy: str = "scan with bounds, or filter in the program") -> NoReturn:
    """Refuse a filter that the filter language cannot express either."""
    raise IllegalArgument(f"filterBytes: {what} has no form in the filter language; {remedy}")


# --- protobuf ----------------------------------------------------------------------------------------


def _fields(data: bytes) -> dict[int, list[Value]]:
    found: dict[int, list[Value]] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind, value = tag & 7, b""
        if kind == _VARINT:
            number, at = _varint(data, at)
            found.setdefault(tag >> 3, []).append(number)
            continue
        if kind == _BYTES:
            length, at = _varint(data, at)
        elif kind in (_FIXED32, _FIXED64):
            length = 4 if kind == _FIXED32 else 8
        else:
            _refuse(f"it is no protobuf message: wire type {kind}")
        value, at = data[at : at + length], at + length
        if len(value) < length:
            _refuse("it is no protobuf message: it ends too soon")
        found.setdefault(tag >> 3, []).append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return (number, position after the number); the number has 64 bits in two's complement."""
    number = 0
    for n in range(_VARINT_BYTES):
        if at + n >= len(data):
            _refuse("it is no protobuf message: it ends too soon")
        byte = data[at + n]
        number |= (byte & 0x7F) << 7 * n
        if byte < 0x80:
            number &= (1 << 64) - 1
            return (number - (1 << 64) if number >> 63 else number), at + n + 1
    return _refuse("it is no protobuf message: a number has more than 64 bits")


def _bytes(fields: Fields, number: int) -> bytes | None:
    value = fields.get(number, (None,))[-1]
    if isinstance(value, int):
        _refuse(f"field {number} is a number where bytes are expected")
    return value


def _number(fields: Fields, number: int) -> int | None:
    value = fields.get(number, (None,))[-1]
    if isinstance(value, bytes):
        _refuse(f"field {number} is bytes where a number is expected")
    return value


def _needed(fields: Fields, number: int, what: str) -> bytes:
    value = _bytes(fields, number)
    if value is None:
        _refuse(f"a {what} lacks its field {number}")
    return value


def _needed_number(fields: Fields, number: int) -> int:
    value = _number(fields, number)
    if value is None:
        _refuse(f"the filter lacks its field {number}")
    return value


# --- arguments ---------------------------------------------------------------------------------------


def _quoted(value: bytes | None) -> bytes:
    return b"'" + (value or b"").replace(b"'", b"''") + b"'"


def _truth(value: int | None) -> bytes:
    return b"true" if value else b"false"


def _whole(value: int | None) -> bytes:
    return b"%d" % (value or 0)


def _operator(number: int | None) -> bytes:
    if number is None or not 0 <= number < len(_OPERATORS):
        _refuse(f"there is no comparison {number}")
    return _OPERATORS[number]


def _comparison(fields: Fields, number: int = 1) -> list[bytes]:
    """Return operator and comparator of a CompareFilter."""
    compared = _fields(_needed(fields, number, "comparing filter"))
    return [_operator(_number(compared, 1)), _comparator(_needed(compared, 2, "CompareFilter"))]


def _comparator(data: bytes) -> bytes:
    fields = _fields(data)
    name = _class_name(_needed(fields, 1, "comparator"))
    inner = _fields(_bytes(fields, 2) or b"")
    if name in ("BinaryComparator", "BinaryPrefixComparator"):
        operand = _bytes(_fields(_needed(inner, 1, name)), 1) or b""
        return _quoted((b"binary:" if name == "BinaryComparator" else b"binaryprefix:") + operand)
    if name == "SubstringComparator":
        return _quoted(b"substring:" + _needed(inner, 1, name))
    if name == "RegexStringComparator":
        return _quoted(_pattern(inner))
    return _no_form(f"the comparator {abbreviate(name.encode())}")


def _pattern(fields: Fields) -> bytes:
    """Return the pattern as the filter language writes it, where DOTALL is on."""
    pattern, flags = _needed(fields, 1, "RegexStringComparator"), _number(fields, 2) or 0
    charset, engine = _bytes(fields, 3) or b"UTF-8", _bytes(fields, 4) or b"JAVA"
    if charset.upper() != b"UTF-8":
        _refuse(f"values are read as UTF-8 by a pattern, not as {abbreviate(charset)}")
    if engine.upper() != b"JAVA":
        _refuse(f"patterns are those of java.util.regex, not of {abbreviate(engine)}")
    if flags & ~_FLAGS:
        _refuse(f"the flags {flags} of a pattern are more than CASE_INSENSITIVE, MULTILINE, DOTALL and LITERAL")
    if flags & _LITERAL:
        pattern = b"\\Q" + pattern.replace(b"\\E", b"\\E\\\\E\\Q") + b"\\E"
    kind = b"regexstringnocase:" if flags & _CASE_INSENSITIVE else b"regexstring:"
    changed = ("m" if flags & _MULTILINE else "") + ("" if flags & _DOTALL else "-s")
    return kind + (f"(?{changed})".encode() if changed else b"") + pattern


def _class_name(data: bytes) -> str:
    name = data.decode("utf-8", "replace")
    return name.removeprefix(_FILTERS)


# --- filters -----------------------------------------------------------------------------------------


def _filter(data: bytes, depth: int) -> bytes:
    """Convert a filter; a level of nesting takes two stack frames."""
    if depth > FILTER_DEPTH:
        _refuse(f"it is nested deeper than {FILTER_DEPTH} levels")
    fields = _fields(data)
    name = _class_name(_needed(fields, 1, "filter"))
    inner = _fields(_bytes(fields, 2) or b"")
    if name == "FilterList":
        return b"(" + _list(inner, depth) + b")" if depth else _list(inner, depth)
    if name in ("SkipFilter", "WhileMatchFilter"):
        word = b"SKIP " if name == "SkipFilter" else b"WHILE "
        return word + _filter(_needed(inner, 1, name), depth + 1)
    if name == "FilterWrapper":
        return _filter(_needed(inner, 1, name), depth + 1)
    arguments = _ARGUMENTS.get(name)
    if arguments is None:
        _no_form(f"the filter {abbreviate(name.encode())}")
    return name.encode() + b"(" + b", ".join(arguments(inner)) + b")"


def _list(fields: Fields, depth: int) -> bytes:
    operator = _number(fields, 1)
    if operator not in (_ALL, _ONE):
        _refuse(f"a FilterList has the operator {operator}, neither MUST_PASS_ALL nor MUST_PASS_ONE")
    written = []
    for one in fields.get(2, ()):
        if isinstance(one, int):
            _refuse("a FilterList holds a number")
        written.append(_filter(one, depth + 1))
    return (b" AND " if operator == _ALL else b" OR ").join(written) or _EVERYTHING


def _pagination(fields: Fields) -> list[bytes]:
    if _bytes(fields, 3) is not None:
        _no_form("a ColumnPaginationFilter that begins at a column", "give it an offset")
    return [_whole(_needed_number(fields, 1)), _whole(_number(fields, 2))]


def _range(fields: Fields) -> list[bytes]:
    low, high = _quoted(_bytes(fields, 1)), _quoted(_bytes(fields, 3))
    if _bytes(fields, 3) == b"":  # HBase passes the empty column only; a string would mean no bound
        _no_form("a ColumnRangeFilter whose last column is empty", "leave the last column out (null) for no bound")
    return [low, _truth(_number(fields, 2)), high, _truth(_number(fields, 4))]


def _prefixes(fields: Fields) -> list[bytes]:
    return [_quoted(one) for one in fields.get(1, ()) if isinstance(one, bytes)]


def _timestamps(fields: Fields) -> list[bytes]:
    """Return the timestamps, which are packed into one field or have a field each."""
    written = []
    for one in fields.get(1, ()):
        at = 0
        while isinstance(one, bytes) and at < len(one):
            number, at = _varint(one, at)
            written.append(_whole(number))
        if isinstance(one, int):
            written.append(_whole(one))
    return written


def _single(fields: Fields) -> list[bytes]:
    column = [_quoted(_bytes(fields, 1)), _quoted(_bytes(fields, 2))]
    compared = [_operator(_number(fields, 3)), _comparator(_needed(fields, 4, "SingleColumnValueFilter"))]
    return [*column, *compared, _truth(_number(fields, 5)), _truth(_number(fields, 6))]


def _single_exclude(fields: Fields) -> list[bytes]:
    return _single(_fields(_needed(fields, 1, "SingleColumnValueExcludeFilter")))


def _column_value(fields: Fields) -> list[bytes]:
    column = [_quoted(_bytes(fields, 1)), _quoted(_bytes(fields, 2))]
    return [*column, _operator(_number(fields, 3)), _comparator(_needed(fields, 4, "ColumnValueFilter"))]


def _dependent(fields: Fields) -> list[bytes]:
    column = [_quoted(_bytes(fields, 2)), _quoted(_bytes(fields, 3)), _truth(_number(fields, 4))]
    compared = _fields(_needed(fields, 1, "DependentColumnFilter"))
    if _number(compared, 1) == _NO_OP or _bytes(compared, 2) is None:
        return column
    return [*column, *_comparison(fields)]


_ARGUMENTS: Final[Mapping[str, Callable[[Fields], list[bytes]]]] = {
    "KeyOnlyFilter": lambda fields: [_truth(_needed_number(fields, 1))],
    "FirstKeyOnlyFilter": lambda fields: [],
    "PrefixFilter": lambda fields: [_quoted(_needed(fields, 1, "PrefixFilter"))],  # HBase without one: no row
    "ColumnPrefixFilter": lambda fields: [_quoted(_needed(fields, 1, "ColumnPrefixFilter"))],
    "MultipleColumnPrefixFilter": _prefixes,
    "ColumnCountGetFilter": lambda fields: [_whole(_needed_number(fields, 1))],
    "PageFilter": lambda fields: [_whole(_needed_number(fields, 1))],
    "ColumnPaginationFilter": _pagination,
    "InclusiveStopFilter": lambda fields: [_quoted(_needed(fields, 1, "InclusiveStopFilter"))],
    "TimestampsFilter": _timestamps,
    "RowFilter": _comparison,
    "FamilyFilter": _comparison,
    "QualifierFilter": _comparison,
    "ValueFilter": _comparison,
    "ColumnRangeFilter": _range,
    "SingleColumnValueFilter": _single,
    "SingleColumnValueExcludeFilter": _single_exclude,
    "DependentColumnFilter": _dependent,
    "ColumnValueFilter": _column_value,
}
