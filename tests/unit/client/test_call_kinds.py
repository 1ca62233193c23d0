"""What a client of several servers does with a method is what a gateway does with it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from columnar.client.call_kinds import CUT, OF_SCANNER, OPENING, REPEATABLE, ROW_OF, as_bytes, merged
from columnar.cluster.method_routing import METHOD_ROUTES, ROWS_OF, TABLE_OF, MethodRoute
from columnar.cluster.row_forms import THRIFT1
from columnar.wire.idl import SERVICE, hbase

ROUTES = METHOD_ROUTES[THRIFT1]


def test_methods_of_a_single_row_are_those_of_a_gateway() -> None:
    assert set(ROW_OF) == set(ROWS_OF[THRIFT1]) - {"columnarLoadTarget"} - set(TABLE_OF)  # which do not route


def test_the_row_is_where_a_gateway_finds_it() -> None:
    for name, row_of in ROW_OF.items():
        of_struct = {"increment": hbase.TIncrement, "append": hbase.TAppend}.get(name)
        args = [of_struct(table=b"t", row=b"r")] if of_struct else [b"t", b"r", *[None] * 5]
        assert row_of(args) == (b"t", b"r"), name
        assert row_of(args)[1] == ROWS_OF[THRIFT1][name](args), name
        assert row_of([]) == (None, None), "a client may leave anything out"


def test_only_what_changes_nothing_is_repeated() -> None:
    """Scanners' steps are none of it: a step that was answered to nobody has moved the scanner on."""
    assert REPEATABLE.isdisjoint(name for name, route in ROUTES.items() if route is MethodRoute.WRITE)
    assert {name for name, route in ROUTES.items() if route is MethodRoute.READ} <= REPEATABLE
    assert REPEATABLE.isdisjoint(OF_SCANNER)
    assert {name for name, route in ROUTES.items() if route is MethodRoute.SCANNER} == OF_SCANNER
    assert set(SERVICE.signatures) >= REPEATABLE
    changing = ("Add", "Sync", "Reload", "Remove", "Pause", "Resume", "Replay", "Retry", "Skip", "Purge", "mutate")
    changing += ("Create", "Alter", "Drop", "Truncate", "Delete", "delete", "enable", "disable", "create", "ompact")
    changing += ("Move", "Assign", "Drain", "Balance", "Switch", "Restart", "Fence", "Split", "Merge", "Stage")
    changing += ("Rebuild", "Swap", "Rollback", "Load", "Ingest", "Take", "Clone", "Restore", "Flush", "Check")
    allowed = {"columnarLoadTarget"}
    assert {name for name in REPEATABLE if any(word in name for word in changing)} == allowed


def test_what_is_cut_goes_over_several_rows() -> None:
    assert {ROUTES[name] for name in CUT} == {MethodRoute.ROWS}
    assert all(name.startswith("scannerOpen") for name in OPENING)
    assert {name for name in ROUTES if name.startswith("scannerOpen")} == OPENING


def found(*rows: bytes) -> list[SimpleNamespace]:
    return [SimpleNamespace(row=row) for row in rows]


def test_rows_are_put_in_the_order_in_which_they_were_asked_for() -> None:
    rows = [b"z", b"a", b"m", b"a", b"none", b"b"]
    parts = [([1, 3, 5], found(b"a", b"a", b"b")), ([0, 2, 4], found(b"z", b"m"))]
    assert [one.row for one in merged("getRows", rows, parts)] == [b"z", b"a", b"m", b"a", b"b"]
    with pytest.raises(ValueError, match=r"b'x', which was not asked for"):
        merged("getRows", rows, [([0, 1], found(b"x"))])


def test_answers_for_each_row_take_their_places() -> None:
    assert merged("columnarCheckAndMutateRows", [b""] * 3, [([1], ["b"]), ([0, 2], ["a", "c"])]) == ["a", "b", "c"]
    assert merged("mutateRows", [b"a", b"b"], [([0], None), ([1], None)]) is None


def test_names_may_be_text() -> None:
    assert [as_bytes(value) for value in (b"t", "t", "ü", None, 5)] == [b"t", b"t", "ü".encode(), None, None]
