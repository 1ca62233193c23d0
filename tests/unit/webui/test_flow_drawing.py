"""The drawing of flows: rows in the order of data, arcs down and back, bounded."""

from __future__ import annotations

import json

import pytest

from columnar.model import flow_status
from columnar.model.flow_status import FlowStatus, merged_flows
from columnar.webui.flow_page import FLOWS_DRAWN, ROW, drawing_of, fitted

THERE = FlowStatus("trigger", "there", ("a/f",), ("b",), rate_per_s=2.0, runs=(0.0, 3.0) + (0.0,) * 15 + (1.0,))
BACK = FlowStatus("trigger", "back", ("b/f",), (), ("a/f",), "paused", 5, 1.5, dead=1)


def test_places_and_flows_stand_in_the_order_of_the_data() -> None:
    drawing = drawing_of([BACK, THERE])
    names = [row.name for row in drawing.rows]
    assert sorted(names) == ["a", "b", "trigger back", "trigger there"]
    assert names.index("a") < names.index("trigger there") or names.index("b") < names.index("trigger back")
    assert sum(arc.is_upward for arc in drawing.arcs) == 1, "the arc that closes the cycle"
    assert len(drawing.arcs) == 4
    assert drawing.height == ROW * 4
    ill = [row for row in drawing.rows if row.is_ill]
    assert [row.figures for row in ill] == ["0.0/s, lag 5 (1.5 s), paused, 1 dead"]


@pytest.mark.parametrize(
    "text", ["m" * 60, "W" * 60, "i" * 60, "posts", "表" * 60, "", "12,345,678.9/s, lag 99 (1.0 s), paused"]
)
def test_texts_are_as_wide_as_the_drawing_has_room_for(text: str) -> None:
    shown = fitted(text, 14)
    assert shown == text or (shown.endswith("…") and text.startswith(shown[:-1]))
    assert (len(shown) > 12) == (len(text) > 12)
    assert fitted(shown, 14) == shown


def test_a_drawing_is_bounded() -> None:
    drawing = drawing_of([FlowStatus("trigger", f"t{n}", ("a/f",), (f"b{n}",)) for n in range(3 * FLOWS_DRAWN)])
    assert len(drawing.rows) == 2 * FLOWS_DRAWN + 1


def test_looks_of_servers_are_one_and_travel_as_json() -> None:
    (one,) = merged_flows(
        [THERE, FlowStatus("trigger", "there", ("a/f",), ("b",), ("c/f",), "paused", 1, 2.0, 1.0, idle_s=4.0)]
    )
    assert (one.state, one.rate_per_s, one.seen, one.idle_s, one.runs) == ("paused", 3.0, ("c/f",), 4.0, THERE.runs)
    text = flow_status.to_json([one], ["s2"])
    assert flow_status.from_json(text) == ([one], ["s2"])
    assert json.loads(text)["flows"][0]["run_p50_s"] == 0.00025
