"""The subject of a slow call, by the names of its arguments in the IDL, for ``operations.slow_log``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from columnar.operations.slow_log import SlowLog, Subject
from columnar.storage.stored_cells import PackedRows
from columnar.wire.codec_replies import RowList
from columnar.wire.codec_results import Results
from columnar.wire.definitions import ServiceDefinition
from columnar.wire.idl import SERVICE
from columnar.wire.service import CallContext

LONG_BY_INTENT: Final = frozenset({"columnarTriggerWait", "majorCompact", "columnarSplit", "columnarMerge"})
_LISTS: Final = ("mutations", "rowBatches", "operations", "rows")


class SlowCalls:
    def __init__(self, log: SlowLog, definition: ServiceDefinition = SERVICE) -> None:
        self._log = log
        self._arguments = {name: _argument_names(definition, name) for name in definition.thrift_services}

    def was_slow(self, ctx: CallContext, method: str, args: Sequence[Any], took_s: float, result: Any) -> None:
        if method not in LONG_BY_INTENT:
            self._log.note(method, ctx.peer, took_s, partial(self._subject, method, args, result))

    def _subject(self, method: str, args: Sequence[Any], result: Any) -> Subject:
        named = dict(zip(self._arguments[method], args, strict=False))
        scanner_id = next((named[name] for name in ("id", "scannerId") if name in named), None)
        struct = next((value for value in named.values() if hasattr(value, "row")), None)
        table = named.get("table", named.get("tableName", getattr(struct, "table", None)))
        row = named.get("row", getattr(struct, "row", None))
        scan = next((value for value in named.values() if hasattr(value, "filterString")), None)
        answered = None
        if isinstance(result, RowList):
            answered = result.size()
        elif isinstance(result, Results):
            answered = RowList(
                [one if isinstance(one, PackedRows) else (one.row, one.cells) for one in result.results]
            ).size()
        return Subject(
            table=table if isinstance(table, bytes) else None,
            row=row if isinstance(row, bytes) else None,
            scanner_id=scanner_id if "Close" not in method else None,
            answered=answered,
            filter_string=getattr(scan, "filterString", None),
            counts=tuple((name, len(named[name])) for name in _LISTS if isinstance(named.get(name), list)),
        )


def _argument_names(definition: ServiceDefinition, method: str) -> tuple[str, ...]:
    spec = definition.signatures[method].args
    return tuple(spec[number][1] for number in sorted(spec))
