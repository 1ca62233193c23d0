"""Tables of an experiment: figures of cells, reference figures beside, and a note for each cell that has none."""

from __future__ import annotations

from typing import Any

import pytest

from wikibench.commands.experiment import SHIPPED
from wikibench.experiments.drawings import drawings_of
from wikibench.experiments.plan import ExperimentError, Json
from wikibench.experiments.runner import read_experiment
from wikibench.experiments.tables import (
    Page,
    check_tables,
    facts_of,
    html_of,
    interval_of,
    json_of,
    loads_of,
    markdown_of,
    notes_beside,
    table_of,
    text_of_value,
)

NAMES = {"x": "System X", "y": "System Y"}
ENVIRONMENT = {"date": "2026-01-01 00:00:00 UTC", "cores": 2, "processor": "P", "machine": "M", "python": "3.11"}


def cell(load: str, system: str, figures: Any, **more: Any) -> Json:
    return {
        "load": load, "system": system, "figures": figures, "ok": True, "why": "", "number": 1, "statuses": [0],
        "environment": ENVIRONMENT, **more,
    }  # fmt: skip


RESULTS = [
    cell("A", "x", {"rate": 150.0, "n": 300}, roles={"a": {"cpu_s": 1.0}, "b": {"cpu_s": 2.0}}, others_cpu_share=0.25),
    cell("A", "y", {"rate": 1234.5, "n": 0}, statuses=[0, 3]),
    cell("B", "x", {}, ok=False, why="it <broke>"),
]
TABLE: Json = {
    "title": "Rates",
    "columns": [
        {"head": "rate", "value": "A.figures.rate"},
        {"head": "µs", "value": "A.roles.*.cpu_s", "per": "A.figures.n", "times": 1e6},
        {"head": "more", "value": "B.figures.p50"},
        {"head": "refused", "value": "A.figures.refused", "missing": 0},
    ],
    "reference": [["thesis", "75", "", "10 and more"]],
}


def test_a_table_has_figures_references_and_notes() -> None:
    table = table_of(TABLE, NAMES, RESULTS)
    assert table.head == ("", "rate", "µs", "more", "refused")
    assert [(row.name, row.cells) for row in table.rows] == [
        ("System X", ("150", "10,000", "–", "0")),
        ("System Y", ("1,234", "–", "–", "0")),
        ("thesis", ("75", "", "10 and more", "")),
    ]
    assert table.notes == (
        "beside A x other programs took 25% of the cores",
        "A y was not valid: the generator, not the system, was the limit",
        "B x failed: it <broke>",
    )


def test_a_row_for_each_element() -> None:
    found = [cell("C", "x", {"rows": [{"n": 1}, {"n": 2}]}), cell("C", "y", {"rows": [{"n": 3}]})]
    table = table_of({"each": "C.figures.rows", "columns": [{"head": "n", "value": "n"}]}, NAMES, found)
    assert [(row.name, row.cells) for row in table.rows] == [
        ("System X", ("1",)), ("System X", ("2",)), ("System Y", ("3",)),
    ]  # fmt: skip


def test_a_table_may_have_some_systems_beside_the_first_of_them() -> None:
    found = [cell("A", name, {"rate": rate}) for name, rate in (("w", 9), ("x", 100), ("y", 250))]
    columns = [{"head": "rate", "value": "A.figures.rate"}, {"head": "times", "value": "A.figures.rate", "of_first": 1}]
    table = table_of({"systems": ["x", "y"], "columns": columns}, {"w": "W", **NAMES}, found)
    assert [row.cells for row in table.rows] == [("100", "1"), ("250", "2.5")]


def test_systems_of_a_table_may_be_a_pattern() -> None:
    found = [cell("A", name, {"rate": 1}) for name in ("s-1", "s-6", "s-far-1", "n-1")]
    names = {name: name for name in ("s-1", "s-6", "s-far-1", "n-1")}
    columns = [{"head": "rate", "value": "A.figures.rate"}]
    for pattern, rows in (("s-[0-9]*", ["s-1", "s-6"]), ("s-far-*", ["s-far-1"]), ("n-*", ["n-1"])):
        assert [row.name for row in table_of({"systems": [pattern], "columns": columns}, names, found).rows] == rows


def test_repetitions_give_their_median() -> None:
    found = [cell("A", "x", {"rate": rate}, number=number) for number, rate in enumerate((5, 1, 3), start=1)]
    table = table_of({"columns": [{"head": "r", "value": "A.figures.rate"}]}, {"x": "X"}, found)
    assert table.rows[0].cells == ("3",)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(None, 3, "–"), (0.0, 3, "0"), (0.01234, 3, "0.0123"), (99.96, 3, "100"), (1234.5, 3, "1,234"), (7.0, 3, "7")],
)
def test_figures_have_digits_and_no_exponent(value: float | None, digits: int, text: str) -> None:
    assert text_of_value(value, digits) == text


def test_the_page_is_whole_in_every_form() -> None:
    page = Page("T & U", "About.", facts_of(RESULTS), (table_of(TABLE, NAMES, RESULTS),))
    markdown, page_html, found = markdown_of(page), html_of(page, "<details>"), json_of(page)
    assert "| System X | 150 | 10,000 | – | 0 |" in markdown
    assert "| *thesis* | 75 |  | 10 and more |  |" in markdown
    assert "other work on the machine: 25% of its cores, at most 25%" in markdown
    assert "<td>10,000</td>" in page_html
    assert "it &lt;broke&gt;" in page_html
    assert "&lt;details&gt;" in page_html
    assert "<script" not in page_html
    assert found["tables"][0]["rows"][0]["values"][0] == 150.0


def test_plots_have_the_figures_of_their_tables() -> None:
    found = [cell("C", "x", {"rows": [{"n": 64, "r": 9.0}, {"n": 1, "r": 2.5}, {"n": 4}]})]
    columns = [{"head": "clients", "value": "n"}, {"head": "rate", "value": "r"}]
    lines = {"title": "L", "each": "C.figures.rows", "columns": columns, "plot": {"x": "clients", "y": "rate"}}
    bars = {**TABLE, "plot": {"y": "rate"}}
    check_tables("e.toml", [lines, bars], ["A", "B", "C"])
    page = Page("T", "", (), (table_of(lines, NAMES, found), table_of(bars, NAMES, RESULTS), table_of(TABLE, {}, [])))
    assert page.tables[0].lines() == {"System X": [(1.0, 2.5), (64.0, 9.0)]}
    assert page.tables[1].bars() == [("System X", 150.0, False), ("System Y", 1234.5, False), ("thesis", 75.0, True)]
    drawings = drawings_of(page)
    assert [bool(one) for one in drawings] == [True, True, False]
    assert all(name in drawings[1] for name in ("System Y", "thesis", "1,234"))
    assert html_of(page, "", drawings).count("<figure><svg") == 2
    assert drawings_of(Page("T", "", (), (table_of(lines, NAMES, []),))) == [""]


@pytest.mark.parametrize("plot", [{"x": "clients"}, {"y": "nowhere"}, {"y": "rate", "z": "rate"}])
def test_a_plot_of_no_column_is_refused(plot: Json) -> None:
    with pytest.raises(ExperimentError, match="a plot has y, and may have x"):
        check_tables("e.toml", [{**TABLE, "plot": plot}], ["A", "B"])


def test_ratios_have_the_interval_of_their_rounds() -> None:
    loads = [
        {"w": "W1", "v": "sync", "rounds": [{"rate": 100}, {"rate": 200}, {"rate": 50}]},
        {"w": "W1", "v": "trigger", "rounds": [{"rate": 50}, {"rate": 110}, {"rate": 24}]},
        {"w": "W2", "v": "trigger", "rounds": [{"rate": 1}]},
    ]
    ratios = {"each": "E.figures.loads", "keys": ["w"], "of": "v", "beside": "sync", "rounds": "rounds"}
    table = {"title": "R", "ratios": ratios, "columns": [{"head": "rate", "value": "rate"}]}
    check_tables("e.toml", [table], ["E"])
    (row,) = table_of(table, {}, [cell("E", "", {"loads": loads})]).rows
    assert row.name == "W1 trigger"
    assert row.cells == ("0.509 (0.453 to 0.573)",)
    assert interval_of([0.5, None]) == (0.5, None, None)
    assert interval_of([None]) is None


def test_intervals_are_of_the_rounds_of_the_elements_that_are_meant() -> None:
    loads = [
        {"w": "W1", "v": "x", "rounds": [{"n": 1}]},
        {"w": "W5", "v": "x", "rounds": [{"n": 2, "t": {"p50": 100}}, {"n": 0, "t": {"p50": 121}}]},
        {"w": "W5", "v": "y", "rounds": [{"n": 0}, {"n": 0, "t": {}}]},
    ]
    intervals = {"each": "E.figures.loads", "only": {"w": "W5"}, "names": ["v"], "rounds": "rounds"}
    columns = [{"head": "n", "value": "n", "sum": True}, {"head": "ms", "value": "t.p50"}]
    table = {"title": "I", "intervals": intervals, "columns": columns}
    check_tables("e.toml", [table], ["E"])
    rows = table_of(table, {}, [cell("E", "", {"loads": loads})]).rows
    assert [(row.name, row.cells) for row in rows] == [("x", ("2", "110 (60.3 to 201)")), ("y", ("0", "–"))]
    with pytest.raises(ExperimentError, match="names E, which is no load"):
        check_tables("e.toml", [table], ["A"])


def test_a_table_of_no_load_is_refused() -> None:
    with pytest.raises(ExperimentError, match="names B, which is no load"):
        check_tables("e.toml", [TABLE], ["A"])
    with pytest.raises(ExperimentError, match="a table has heads"):
        check_tables("e.toml", [{"heads": []}], ["A"])


def test_a_column_has_the_largest_of_its_figures() -> None:
    calls = {"all": 200.0, "each": {"s1": 50.0, "s2": 150.0}}
    table = {
        "title": "Shares",
        "columns": [
            {
                "head": "busiest, %",
                "value": "A.counters.each.*",
                "largest": True,
                "per": "A.counters.all",
                "times": 100,
            },
            {"head": "of all", "value": "A.counters.each.*"},
        ],
    }
    assert [row.cells for row in table_of(table, {"x": "X"}, [cell("A", "x", {}, counters=calls)]).rows] == [
        ("75", "200")
    ]


def test_a_rate_without_its_share_of_a_core_is_left_out_and_a_note_says_why() -> None:
    columns = [{"head": "rate", "value": "A.figures.rate", "capped": True}, {"head": "n", "value": "A.figures.n"}]
    bound = cell("A", "x", {"rate": 5.0, "n": 3}, why_uncapped="")
    free = cell("A", "y", {"rate": 9.0, "n": 4}, why_uncapped="no control group can be made here")
    table = table_of({"title": "Rates", "columns": columns}, NAMES, [bound, free])
    assert [row.cells for row in table.rows] == [("5", "3"), ("–", "4")]
    assert table.notes == ("A y had no share of a core, so its rates are left out: no control group can be made here",)
    plain = table_of({"title": "Rates", "columns": columns[1:]}, NAMES, [bound, free])
    assert plain.notes == (
        "A y had no share of a core, so its figures are of processes without a bound: "
        "no control group can be made here",
    ), "nothing is left out of this one"


def test_a_cell_that_is_in_no_table_is_said_at_the_top_of_the_page() -> None:
    """A load whose figures stand in no table could fail, and the page said nothing."""
    lonely = [
        cell("Z", "", {}, ok=False, why="an oracle found 3 <missing>"),
        cell("fill", "x", {}, ok=False, why="no room"),
    ]
    notes = notes_beside([TABLE], [*RESULTS, *lonely])
    assert notes == ("Z failed: an oracle found 3 <missing>", "fill x failed: no room")
    assert notes_beside([{**TABLE, "systems": ["x"]}], RESULTS) == (
        "A y was not valid: the generator, not the system, was the limit",
    ), "its table is of another system"
    page = Page("T", "About.", (), (), notes)
    assert "Z failed: an oracle found 3 <missing>\n" in markdown_of(page)
    assert "<p>Z failed: an oracle found 3 &lt;missing&gt;</p>" in html_of(page)
    assert json_of(page)["notes"] == list(notes)


def test_a_figure_stands_beside_its_aim() -> None:
    aims = [{"column": "rate", "systems": ["x*"], "of": 75, "words": "times the thesis's; the aim is 15"}]
    table = {**TABLE, "note": "About.", "aims": aims}
    check_tables("e.toml", [table], ["A", "B"])
    assert table_of(table, NAMES, RESULTS).notes[:2] == ("About.", "System X: 2 times the thesis's; the aim is 15")
    assert table_of(table, NAMES, []).notes == ("About.",)
    for wrong in ({**aims[0], "column": "rates"}, {**aims[0], "of": 0}, {"column": "rate"}):
        with pytest.raises(ExperimentError, match="an aim has column"):
            check_tables("e.toml", [{**TABLE, "aims": [wrong]}], ["A", "B"])


def test_a_page_was_measured_until_the_end_of_its_last_cell() -> None:
    """The end was the moment at which the last cell began: 30 minutes too early for a replay of 30 minutes."""
    long = cell("A", "x", {}, lasted_s=7_200.4)
    later = cell("A", "y", {}, lasted_s=5.0) | {"environment": {**ENVIRONMENT, "date": "2026-01-01 01:00:00 UTC"}}
    old = cell("B", "y", {}) | {"environment": {**ENVIRONMENT, "date": "2025-12-31 23:00:00 UTC"}}
    assert dict(facts_of([later, long, old]))["measured"] == "2025-12-31 23:00:00 UTC to 2026-01-01 02:00:00 UTC"
    stolen = [cell("A", "x", {}, contention={"stolen_share": share}) for share in (0.0, 0.125, None)]
    assert dict(facts_of(stolen))["kept by the host"] == "6.2% of the cores (steal), at most 12.5%"
    assert "kept by the host" not in dict(facts_of([old]))


def results_of_eth(*, kills: bool) -> list[Json]:
    """Return cells as ``benchmarks flows`` writes them: a burst, a fault, and, in E2, kills of everything."""
    good = {"tweets": 70_000, "copies": 900_000, "missing": 0, "strange": 0, "torn": 2}
    plain = {
        "tweets": 5_000,
        "unanswered": 1,
        "response_ms": {"p99": 40.0, "max": 900.0},
        "propagation_ms": {"max": 80.0},
    }
    burst = {
        "workload": "W3",
        "load": "burst",
        "variant": "sync",
        "rounds": [plain | {"burst": {"drained_after_s": 2.5}}],
    }
    faults = {"faults": {"count": 3, "pause_ms": {"p50": 400.0, "max": 700.0}}, "breaks": 8, "drain_s": 0.5}
    kill = {"workload": "W4", "load": "all killed", "variant": "integrated", "rounds": [plain | faults, plain | faults]}
    found = [cell("E1", "", {"oracle": {"integrated": good}, "loads": [burst, kill]})]
    of_kills = {"tweets": 80_000, "copies": 950_000, "missing": 3, "strange": 4, "torn": 5}
    return [*found, cell("E2", "", {"oracle": {"integrated": of_kills}, "loads": [kill]})] if kills else found


def test_the_page_of_the_eth_has_bursts_faults_and_the_oracle_of_the_kills() -> None:
    """The kills were measured, and neither their oracle nor their pauses stood anywhere on the page."""
    found, _ = read_experiment("eth", SHIPPED)
    tables = {one["title"]: table_of(one, {}, results_of_eth(kills=True)) for one in found.tables}
    assert [row.cells for row in tables["Oracle of the kills"].rows] == [("80000", "950000", "3", "4", "5")]
    (burst,) = tables["W3: a burst of twice the saturation"].rows
    assert (burst.name, burst.cells) == ("sync", ("2.5", "5000", "1", "40", "900", "80"))
    for title, name in (("W4: faults", "E1"), ("W4: everything killed, again and again", "E2")):
        (row,) = tables[title].rows
        assert (row.name, row.values) == ("integrated all killed", pytest.approx((6, 400, 700, 2, 16, 0.5))), name
    failed = cell("E2", "", {}, ok=False, why="the oracle: 3 missing")
    told = table_of(next(one for one in found.tables if one["title"] == "Oracle of the kills"), {}, [failed])
    assert told.notes[1:] == ("E2 failed: the oracle: 3 missing",)
    assert notes_beside(found.tables, [failed]) == ()


@pytest.mark.parametrize("name", sorted(path.stem for path in SHIPPED.glob("*.toml")))
def test_each_load_of_a_shipped_experiment_is_in_a_table(name: str) -> None:
    found, _ = read_experiment(name, SHIPPED)
    named = {load for table in found.tables for load in loads_of(table)}
    assert {load.name for load in found.loads} <= named


def test_the_thesis_has_calls_and_processor_time_beside_each_rate() -> None:
    found, _ = read_experiment("thesis", SHIPPED)
    roles = {"store": {"cpu_s": 1.0}, "wiki": {"cpu_s": 3.0}}
    used = {"roles": roles, "counters": {"store_calls": 2_000.0}}
    counted = {"requests": {"counted": 500}}
    cells = [
        cell("T5", "columnar", {"over": counted, "after": counted}, **used),
        cell("T6", "columnar", {"rate_per_s": 270.0, "low_per_s": 250.0, "high_per_s": 290.0, "sent": 1_000}, **used),
        cell("T6check", "columnar", {}, statuses=[0]),
    ]
    tables = {one["title"].partition(":")[0]: table_of(one, {"columnar": "Columnar"}, cells) for one in found.tables}
    assert tables["T5"].rows[0].cells[-3:] == ("4,000", "1,000", "2")
    assert tables["T6"].rows[0].cells == ("270", "250", "290", "4,000", "1,000", "2", "0")
