r"""The translation of a line of a scenario to a Thrift call, and of the answer to text.

    [@CONNECTION] METHOD ARGUMENT... [-> NAME]

Arguments follow the order of the IDL and are split as in a shell; a left-out argument is null, a left-out attributes
map is empty.  ``\xNN`` in bytes is that byte, ``null`` is null, ``$NAME`` an earlier answer.

    list of bytes       [a:x,a]
    mutations           a:x=value,-a:y,a:z       put, delete, put of null;  !a:x=v without the WAL
    batches             r1{a:x=1,-a:y};r2{a:x=2}
    families            a,b:3,c:3:60             name, versions, time to live in seconds
    TScan               start=r1,stop=r2,columns=[a:x],ts=5,batch=2,reversed,sorted  and filter=... last
    TIncrement          t/row/a:n/5    TAppend   t/row/[a:x]/[v]
    conditions          a:x=v,a:y?,!a:z?         equal, there, absent;  operations: a:x=v,-a:y,a:n+5,a:z&more
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from thriftpy2.thrift import TApplicationException, TException, TType

from columnar.wire.definitions import WireError
from columnar.wire.idl import SERVICE, columnar, hbase

_NOW = 1_000_000_000_000  # timestamps above it are the server's clock
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")


def parse(line: str, names: dict[str, Any]) -> tuple[int, str, list[Any], str | None]:
    """Return (connection, method, arguments, name for the answer)."""
    words = shlex.split(line.replace("\\x", "\\\\x"))
    connection = int(words.pop(0)[1:]) if words[0].startswith("@") else 1
    target = None
    if len(words) > 2 and words[-2] == "->":
        target = words[-1]
        words = words[:-2]
    method, given = words[0], words[1:]
    fields = [spec for _, spec in sorted(_arguments(method).items())]
    assert len(given) <= len(fields), f"{method} takes {len(fields)} arguments"
    values = [_value(field, text, names) for field, text in zip(fields, given, strict=False)]
    for field in fields[len(given) :]:
        values.append({} if field[0] == TType.MAP else None)
    return connection, method, values, target


def _arguments(method: str) -> dict[int, Any]:
    return SERVICE.signatures[method].args


def _bytes(text: str) -> bytes:
    return _ESCAPE.sub(lambda m: bytes([int(m[1], 16)]), text.encode())


def _list(text: str) -> list[bytes]:
    inner = text.removeprefix("[").removesuffix("]")
    return [_bytes(one) for one in inner.split(",")] if inner else []


def _value(field: Any, text: str, names: dict[str, Any]) -> Any:
    if text == "null":
        return None
    if text.startswith("$"):
        return names[text[1:]]
    kind, name = field[0], field[1]
    if kind in (TType.I32, TType.I64):
        return int(text)
    if kind in (TType.STRING, TType.BINARY):
        return _bytes(text)
    if kind == TType.MAP:
        pairs = [one.split("=") for one in text.strip("{}").split(",") if one]
        return {_bytes(key): _bytes(value) for key, value in pairs}
    if kind == TType.LIST:
        return _list_value(field, name, text)
    return _struct(field[2].__name__, text)


def _list_value(field: Any, _name: str, text: str) -> Any:
    element = field[2]
    if not isinstance(element, tuple):
        return _list(text)
    make = {
        "Mutation": _mutations,
        "BatchMutation": _batches,
        "ColumnDescriptor": _families,
        "Condition": _conditions,
        "RowOperation": _row_operations,
        "TIncrement": lambda many: [_struct("TIncrement", one) for one in many.split(",")],
    }[element[1].__name__]
    return make(text) if text != "[]" else []


def _mutation(text: str) -> Any:
    wal = not text.startswith("!")
    text = text.removeprefix("!")
    if text.startswith("-"):
        return hbase.Mutation(isDelete=True, column=_bytes(text[1:]), writeToWAL=wal)
    column, equals, value = text.partition("=")
    return hbase.Mutation(
        isDelete=False, column=_bytes(column), value=_bytes(value) if equals else None, writeToWAL=wal
    )


def _mutations(text: str) -> list[Any]:
    return [_mutation(one) for one in text.split(",")]


def _batches(text: str) -> list[Any]:
    found = []
    for one in text.split(";"):
        row, _, rest = one.partition("{")
        found.append(hbase.BatchMutation(row=_bytes(row), mutations=_mutations(rest.removesuffix("}"))))
    return found


def _families(text: str) -> list[Any]:
    found = []
    for one in text.split(","):
        name, *rest = one.split(":")
        described = hbase.ColumnDescriptor(name=_bytes(name) + b":")
        if rest:
            described.maxVersions = int(rest[0])
        if len(rest) > 1:
            described.timeToLive = int(rest[1])
        found.append(described)
    return found


def _conditions(text: str) -> list[Any]:
    found = []
    for one in text.split(","):
        if one.endswith("?"):
            op = columnar.CompareOp.ABSENT if one.startswith("!") else columnar.CompareOp.EXISTS
            found.append(columnar.Condition(column=_bytes(one.strip("!?")), op=op))
        else:
            column, _, value = one.partition("=")
            found.append(columnar.Condition(column=_bytes(column), op=columnar.CompareOp.EQUAL, value=_bytes(value)))
    return found


def _row_operations(text: str) -> list[Any]:
    found = []
    for one in text.split(","):
        if one.startswith("-"):
            found.append(columnar.RowOperation(kind=1, column=_bytes(one[1:])))
        elif "+" in one:
            column, _, amount = one.partition("+")
            found.append(columnar.RowOperation(kind=2, column=_bytes(column), amount=int(amount)))
        else:
            column, sign, value = re.fullmatch(r"([^=&]*)([=&])(.*)", one).groups()  # type: ignore[union-attr]
            kind = 0 if sign == "=" else 3
            found.append(columnar.RowOperation(kind=kind, column=_bytes(column), value=_bytes(value)))
    return found


def _struct(name: str, text: str) -> Any:
    if name == "Mutation":
        return _mutation(text)
    if name == "TIncrement":
        table, row, column, amount = text.split("/")
        return hbase.TIncrement(table=_bytes(table), row=_bytes(row), column=_bytes(column), ammount=int(amount))
    if name == "TAppend":
        table, row, columns, values = text.split("/")
        return hbase.TAppend(table=_bytes(table), row=_bytes(row), columns=_list(columns), values=_list(values))
    assert name == "TScan", name
    scan = hbase.TScan()
    text, _, filter_string = text.partition("filter=")
    if filter_string:
        scan.filterString = _bytes(filter_string)
    for part in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", text):
        key, _, value = part.partition("=")
        if key in ("start", "stop"):
            setattr(scan, f"{key}Row", _bytes(value))
        elif key == "columns":
            scan.columns = _list(value)
        elif key in ("ts", "batch"):
            setattr(scan, {"ts": "timestamp", "batch": "batchSize"}[key], int(value))
        else:
            setattr(scan, {"reversed": "reversed", "sorted": "sortColumns"}[key], True)
    return scan


# --- answers ---------------------------------------------------------------------------------------


def shown(data: bytes | str) -> str:
    if isinstance(data, str):
        return data
    return "".join(chr(b) if 32 < b < 127 and b != 92 else f"\\x{b:02x}" for b in data)


def _cell(cell: Any) -> str:
    return f"{shown(cell.value)}@{'now' if cell.timestamp > _NOW else cell.timestamp}"


def answer_lines(answer: Any) -> list[str]:
    if isinstance(answer, list):
        return [line for one in answer for line in answer_lines(one)] or ["(none)"]
    if isinstance(answer, dict):
        return [f"{shown(k)} {' '.join(answer_lines(v))}" for k, v in sorted(answer.items())] or ["(none)"]
    name = type(answer).__name__
    if name == "TCell":
        return [_cell(answer)]
    if name == "TRowResult":
        if answer.sortedColumns is not None:
            cells = [f"{shown(c.columnName)}={_cell(c.cell)}" for c in answer.sortedColumns]
            return [f"{shown(answer.row)} sorted  {'  '.join(cells)}"]
        cells = [f"{shown(column)}={_cell(cell)}" for column, cell in (answer.columns or {}).items()]
        return [f"{shown(answer.row)}  {'  '.join(cells)}"]
    if name == "TRegionInfo":
        return [f"[{shown(answer.startKey)}, {shown(answer.endKey)})"]
    if name == "ColumnDescriptor":
        return [
            f"versions {answer.maxVersions} ttl {answer.timeToLive} "
            f"{shown(answer.compression)} {shown(answer.bloomFilterType)}"
        ]
    if name == "CheckAndMutateResult":
        counters = [int.from_bytes(cell.value, "big", signed=True) for cell in answer.counters]
        return [f"applied={answer.applied} counters={counters} failed={answer.failedCondition}"]
    return [shown(answer) if isinstance(answer, bytes | str) else "ok" if answer is None else str(answer)]


def error_line(error: TException | WireError) -> str:
    if isinstance(error, TApplicationException):
        return f"! application error {error.type}: {error.message}"
    said: Any = error.message
    message = said if isinstance(said, str) else said.decode()
    retry = " (retry)" if getattr(error, "canRetry", False) else ""
    return f"! {type(error).__name__} {message}{retry}"
