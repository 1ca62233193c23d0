"""(pure) What a client of several servers may do with each method of the Thrift 1 service.

    ROW_OF       a method of a single row: the owner of the row's region is called
    CUT          a method of several rows, its second argument: cut by the owners of the rows
    REPEATABLE   a method that changes nothing: called again if the connection ends before the answer; a method that is
                 not in the set is not, because its outcome is unknown

Methods that are in neither of the first two go to any server.  ``tests/unit/client/test_call_kinds.py`` compares these
with the routes of a gateway (``cluster.method_routing``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

Args = Sequence[Any]  # of a call, in the order of the IDL
RowOf = Callable[[Args], tuple[Any, Any]]  # table and row among the arguments; None: left out


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ROW_READS: Final = _names(
    "get getVer getVerTs getRow getRowWithColumns getRowTs getRowWithColumnsTs columnarRowSlice columnarReadGroup"
)
_ROW_WRITES: Final = _names(
    "mutateRow mutateRowTs atomicIncrement deleteAll deleteAllTs deleteAllRow deleteAllRowTs checkAndPut"
    " columnarCheckAndMutate columnarMutateGroup"
)
_IN_STRUCT: Final = _names("increment append")  # TIncrement, TAppend
_CUT_READS: Final = _names("getRows getRowsWithColumns getRowsTs getRowsWithColumnsTs")
_CUT_WRITES: Final = _names("mutateRows mutateRowsTs columnarCheckAndMutateRows columnarLoadRows")
OPENING: Final = _names(  # a scanner, which expires at its server if nobody uses it
    "scannerOpenWithScan scannerOpen scannerOpenWithStop scannerOpenWithPrefix scannerOpenTs scannerOpenWithStopTs"
)
OF_SCANNER: Final = _names("scannerGet scannerGetList scannerClose")
_OTHER_READS: Final = _names(
    "getRowOrBefore isTableEnabled getTableNames getTableNamesWithIsTableEnabled getColumnDescriptors getTableRegions"
    " getRegionInfo getThriftServerType getClusterId columnarDescribeTable columnarTableExists columnarListNamespaces"
    " columnarListNamespaceTables columnarDescribeNamespace columnarRegionOwners columnarServers columnarLocations"
    " columnarLocate columnarTransitions columnarDecisions columnarStatus columnarRegions columnarTriggers"
    " columnarTriggerDead columnarWait columnarTriggerWait columnarViews columnarViewWait columnarFlows"
    " columnarSnapshotList columnarLoadTarget columnarQueuePeek columnarQueueStats columnarQueueDead"
    " columnarTopicList columnarTopicWait"
    " columnarPartitionFetch columnarPartitionWait columnarPartitionOffset columnarPartitionState"
)


def _first_two(args: Args) -> tuple[Any, Any]:
    return (args[0], args[1]) if len(args) > 1 else (None, None)


def _in_first(args: Args) -> tuple[Any, Any]:
    return (getattr(args[0], "table", None), getattr(args[0], "row", None)) if args else (None, None)


ROW_OF: Final[Mapping[str, RowOf]] = {
    **dict.fromkeys(_ROW_READS, _first_two),
    **dict.fromkeys(_ROW_WRITES, _first_two),
    **dict.fromkeys(_IN_STRUCT, _in_first),
}
CUT: Final = _CUT_READS | _CUT_WRITES
LISTED_ROWS: Final = _CUT_READS  # the list has the rows; else structs with the field ``row``
BY_PLACE: Final = frozenset({"columnarCheckAndMutateRows"})  # an answer for each row; else none, or the rows found
REPEATABLE: Final = _ROW_READS | _CUT_READS | _OTHER_READS | OPENING


def as_bytes(value: Any) -> bytes | None:
    """Return a table's name or a row, which may be text as in happybase, as bytes; None for any other value."""
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else None


def merged(method: str, rows: Sequence[bytes], parts: Sequence[tuple[Sequence[int], Any]]) -> Any:
    """Return the answer to a call that was cut.

    ``parts`` has for each part the places of its rows among ``rows``, ascending, and the part's answer.
    """
    if method in BY_PLACE:
        answers: list[Any] = [None] * len(rows)
        for places, answer in parts:
            for place, one in zip(places, answer, strict=True):
                answers[place] = one
        return answers
    if method not in LISTED_ROWS:
        return None
    found: list[tuple[int, Any]] = []
    for places, answer in parts:
        following = iter(places)
        for one in answer:  # in the order of the places; a row without cells is left out
            at = next((place for place in following if rows[place] == one.row), None)
            if at is None:
                raise ValueError(f"the answer to {method} has row {one.row!r}, which was not asked for")
            found.append((at, one))
    return [one for _, one in sorted(found, key=_place)]


def _place(found: tuple[int, Any]) -> int:
    return found[0]
