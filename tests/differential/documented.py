"""(pure) The differences from HBase 2.6.1 that COMPATIBILITY.md documents, as far as random sessions meet them.

Each has the name of its paragraph there.  Whatever differs and is none of these is a bug, of ours or of the page.
"""

from __future__ import annotations

from typing import Any, Final

from tests.differential.answers import Answer
from tests.differential.calls import Call, Scanner

_INTERNAL: Final = ["error", "TApplicationException", "INTERNAL_ERROR"]
_NAMED: Final = ("NoSuchColumnFamilyException", "TableNotFoundException")

TYPED_ERRORS: Final = "typed-errors"
AT_THE_OPENING: Final = "at-the-opening"
FIRST_BAD_ROW: Final = "first-bad-row"
BARE_FAMILY: Final = "bare-family"
CHECKED_FIRST: Final = "checked-first"
MISSING_TABLE: Final = "missing-table"
APPEND_ORDER: Final = "append-order"
UNSET_FIELDS: Final = "unset-fields"
EVERY: Final = (
    UNSET_FIELDS,
    APPEND_ORDER,
    TYPED_ERRORS,
    AT_THE_OPENING,
    FIRST_BAD_ROW,
    BARE_FAMILY,
    CHECKED_FIRST,
    MISSING_TABLE,
)


def _is_declared(answer: Answer) -> bool:
    return answer[0] == "error" and answer[1] in ("IOError", "IllegalArgument", "AlreadyExists")


def _leaves_out(value: Any) -> bool:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return value is None
    return any(map(_leaves_out, value))


class Documented:
    """Judges one session; remembers the scanners that did not open here."""

    def __init__(self) -> None:
        self._refused: dict[Scanner, Answer] = {}
        self._taken: set[Scanner | None] = set()  # that did not open there

    def name(self, call: Call, hbase: Answer, ours: Answer) -> str | None:
        """The paragraph that documents the difference, or None."""
        if call.opens and hbase[0] == "ok" and _is_declared(ours):
            self._refused[call.opens] = ours
            return AT_THE_OPENING
        if call.scanner in self._refused and ours[:2] == ["error", "IllegalArgument"]:
            told = self._refused[call.scanner]
            if hbase == told or (call.method == "scannerClose" and hbase[0] == "ok"):
                return AT_THE_OPENING
        if hbase == _INTERNAL and _is_declared(ours):
            return TYPED_ERRORS
        if hbase == _INTERNAL and ours[0] == "ok" and _leaves_out(call.args):
            if call.opens:
                self._taken.add(call.opens)
            return UNSET_FIELDS
        if call.scanner and call.scanner in self._taken and hbase[:2] == ["error", "IllegalArgument"]:
            return UNSET_FIELDS
        if hbase == _INTERNAL and call.method == "getTableRegions" and ours == ["ok", []]:
            return TYPED_ERRORS
        return self._of_method(call, hbase, ours)

    def _of_method(self, call: Call, hbase: Answer, ours: Answer) -> str | None:
        refused = _is_declared(ours)
        if hbase[2:] == ["RetriesExhaustedWithDetailsException"] and ours[1:2] == ["IOError"] and ours[2] in _NAMED:
            return FIRST_BAD_ROW
        if call.method.startswith("mutateRow") and hbase[0] == "ok" and ours[:2] == ["error", "IllegalArgument"]:
            return BARE_FAMILY if any(b":" not in (one["column"] or b"") for one in call.args[2]) else None
        if call.method == "checkAndPut" and hbase == ["ok", False] and refused:
            return CHECKED_FIRST
        if (
            call.method == "append"
            and hbase[0] == ours[0] == "ok"
            and sorted(hbase[1], key=str) == sorted(ours[1], key=str)
        ):
            columns = call.args[0]["columns"]
            return APPEND_ORDER if columns != sorted(columns) else None
        if call.method == "deleteTable" and hbase == ["error", "IOError", "IOException"]:
            return MISSING_TABLE if ours == ["error", "IOError", "TableNotFoundException"] else None
        return None
