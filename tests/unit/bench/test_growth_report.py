"""Growth as tables: what is flat is seen at once."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from benchmarks.growth_report import Group, Step, as_json, remarks_of, spread, table_of_group

GROUP = Group(
    "puts",
    "Durable puts",
    (
        Step("1 region", {"puts/s": 8_000.0, "p99 ms": 5.0}),
        Step("4 regions", {"puts/s": 10_000.0, "p99 ms": 5.5}),
        Step("64 regions", {"puts/s": 2_000.0, "p99 ms": 50.0}),
    ),
)
LEFT_OUT = Group("regions", "Regions", left_out="the endpoint has none")


def test_spread_is_one_where_all_steps_cost_the_same() -> None:
    flat = Group("rows", "Rows", (Step("a", {"get us": 40.0}), Step("b", {"get us": 40.0})))
    assert spread(flat, "get us") == 1.0


def test_spread_is_worst_over_best_for_rates_and_times() -> None:
    assert spread(GROUP, "puts/s") == 5.0
    assert spread(GROUP, "p99 ms") == 10.0


def test_the_table_ends_with_worst_over_best() -> None:
    written = StringIO()
    Console(width=120, file=written).print(table_of_group(GROUP))
    lines = written.getvalue().splitlines()
    last = next(line for line in reversed(lines) if "worst / best" in line)
    assert last.split("│")[2:4] == ["   5.00 ", "  10.00 "]
    assert any("10,000" in line and "5.50" in line for line in lines)


def test_what_is_left_out_is_said_and_has_no_steps() -> None:
    assert remarks_of([GROUP, LEFT_OUT]) == ["Regions: left out, the endpoint has none"]
    puts, regions = as_json([GROUP, LEFT_OUT])
    assert puts["steps"][2] == {"what": "64 regions", "puts/s": 2_000.0, "p99 ms": 50.0}
    assert puts["worst_over_best"] == {"puts/s": 5.0, "p99 ms": 10.0}
    assert (regions["steps"], regions["left_out"]) == ([], "the endpoint has none")
