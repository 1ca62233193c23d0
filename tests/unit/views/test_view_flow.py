"""Views in the graph of flows: what they read, and cycles of them."""

from __future__ import annotations

import pytest

from columnar.errors import IllegalArgument
from columnar.model.flow_graph import Flow, Graph, Place
from columnar.model.view_definition import Source, View, checked
from columnar.views.contributions import rules_of
from columnar.views.declaring import check_no_cycle, kept_as


def made(name: str, table: str) -> Flow:
    view = checked(View(name, Source(table, key=("meta:author",), sums={"bytes": "size:bytes"})))
    return kept_as(view, rules_of(view)).flow


def test_a_view_reads_the_families_that_it_names() -> None:
    flow = made("by_author", "pages")
    assert set(flow.reads) == {Place("pages", "meta"), Place("pages", "size")}
    assert set(flow.writes) == {Place("by_author", family) for family in ("v", "m", "o")}


def test_a_trigger_that_leads_back_to_the_source_is_refused() -> None:
    back = Flow("trigger", "back", (Place("by_author", "v"),), (Place("pages", "meta"),))
    check_no_cycle(made("by_author", "pages"), Graph([]))
    with pytest.raises(IllegalArgument, match=r"view by_author would follow its own changes: .*trigger back"):
        check_no_cycle(made("by_author", "pages"), Graph([back]))
