"""Bytes of views on disk: rows of the catalogue, and what a view keeps in its cursors; docs/formats/views.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from columnar.errors import DamagedData
from columnar.flows.delivery_cursor import Cursor, pack_cursor, unpack_cursor
from columnar.master import derivation_rows
from columnar.master.catalogue_rows import Cells
from columnar.model.derivations import FAMILIES, KeptView, Reads, ViewSet
from columnar.model.flow_graph import Place
from columnar.model.schema import from_json, to_json
from columnar.model.view_definition import MEMBERS, ORDERED, TOTALS, Source, View
from columnar.model.view_definition import to_json as definition_to_json
from columnar.model.view_generations import Swap
from columnar.regions.log.change_record import Sequence
from columnar.views import progress
from columnar.views.contributions import rules_of
from columnar.views.declaring import kept_as, table_of
from columnar.views.progress import Pass, Progress
from tests.support.golden import hold_to

VIEW = View("ns:by_a", Source("t", ("f:a",), sums={"n": "f:n"}), Source("u", ("g:a",)))
KEPT = KeptView("ns:by_a", definition_to_json(VIEW), (Reads("t", ("f",)), Reads("u", ("g\xff",))))
SHOWING = Progress(7, 3, 512, Pass.SHOWS, b"row 511\x00", b"row 700\xff\x00")
OVER = Progress(7, 3, 1 << 33, Pass.OVER, None, None)
OPEN = ((Sequence(7, 2, 299), 0),)


def read(rows: Mapping[bytes, Cells], *tables: str) -> ViewSet:
    return derivation_rows.sets_from(rows.items(), tables)[ViewSet]  # type: ignore[return-value]  # of its kind


def test_rows_of_views() -> None:
    adding = ViewSet().adding(KeptView("gone")).without(["gone"]).adding(KEPT)
    found = {}
    for state, views in (
        ("adding", adding),
        ("building", adding.with_state("ns:by_a", "building")),
        ("live", adding.with_state("ns:by_a", "building").with_state("ns:by_a", "live")),
    ):
        for row, cells in derivation_rows.rows_of(views).items():
            for column, value in cells.items():
                if state == "adding" or column == b"info:state":
                    found[f"{state} {row.decode()} {column.decode()}"] = repr(value)[2:-1]
        assert read(derivation_rows.rows_of(views), "ns:by_a", "t", "u") == views
    hold_to("catalogue-views.txt", found | _aliases())


def _aliases() -> dict[str, str]:
    """What ``alias/NAME`` is after a swap, and when the generation before is gone."""
    both = ViewSet().adding(KEPT).adding(replace(KEPT, name="ns:by_a.2"))
    swapped = both.swapped(Swap("ns:by_a", "ns:by_a.2", "ns:by_a", 1_764_003_600_000))
    found = {}
    for state, views in (("swapped", swapped), ("alone", swapped.without(["ns:by_a"]))):
        rows = derivation_rows.rows_of(views)
        found[f"{state} alias/ns:by_a info:alias"] = rows[b"alias/ns:by_a"][b"info:alias"].decode()
        assert read(rows, "ns:by_a", "ns:by_a.2", "t", "u").swaps == views.swaps != ()
    rows = derivation_rows.rows_of(swapped.without(["ns:by_a.2"]))
    assert b"alias/ns:by_a" not in rows, "the name is a table of its own"
    return found


def test_an_alias_that_cannot_be_used_is_none() -> None:
    row = b"alias/ns:by_a"
    for data in (b"", b"{", b'{"table": "ns:by_a.2"}', b'{"table": "gone", "kept": "", "until_ms": 0}'):
        held = read({row: {b"info:alias": data}}, "ns:by_a", "t", "u")
        assert held.live_table("ns:by_a") == "ns:by_a"


def test_the_schema_of_a_views_table() -> None:
    table = table_of(KEPT)
    assert from_json(to_json(table)) == table
    assert b'"kept_by": "ns:by_a"' in to_json(table)
    assert tuple(family.name for family in table.families) == tuple(sorted(FAMILIES))
    assert {family.encode() for family in FAMILIES} == {TOTALS, MEMBERS, ORDERED}


def test_a_view_is_the_same_part_of_the_graph_for_those_that_know_its_definition() -> None:
    kept = KeptView("ns:by_a", definition_to_json(VIEW), (Reads("t", ("f",)), Reads("u", ("g",))))
    flow = kept_as(VIEW, rules_of(VIEW)).flow
    assert set(kept.flow.reads) == set(flow.reads) == {Place("t", "f"), Place("u", "g")}
    assert set(kept.flow.writes) == set(flow.writes)


def test_cursors_of_views() -> None:
    found = {}
    for name, held in (("showing", SHOWING), ("over", OVER), ("count", Progress(9, 0, 5, Pass.COUNTS, b"m", b"m"))):
        cursor = Cursor(Sequence(7, 2, 300), OPEN, (), progress.pack(held))
        found[name] = pack_cursor(cursor)
        assert unpack_cursor(found[name]) == cursor
        assert progress.unpack(cursor.kept) == held
    hold_to("view-cursors.txt", found)


def test_bytes_that_are_none_of_ours() -> None:
    for data in (b"", b"\x01", bytes.fromhex("97020703cd020001a000"), progress.pack(OVER)[:-1]):
        with pytest.raises(DamagedData, match="progress of a view"):
            progress.unpack(data)
