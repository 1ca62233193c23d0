"""The plan of an experiment: cells in order, words put in place, and mistakes in files said before anything runs."""

from __future__ import annotations

import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from wikibench.commands.experiment import SHIPPED
from wikibench.experiments.plan import (
    ExperimentError,
    Known,
    MissingFigureError,
    cells_of,
    command_of,
    figure_at,
    parse_experiment,
    unknown_words,
)
from wikibench.experiments.runner import read_experiment
from wikibench.experiments.server_loads import Sample, busiest_over_mean, half_of
from wikibench.experiments.spread import places_of
from wikibench.experiments.system import (
    Place,
    counted_since,
    metrics_in,
    parse_system,
    port_names,
    read_system,
    running,
)
from wikibench.experiments.tables import check_tables, has_system
from wikka_port.names import page_key

LOADS = [
    {"name": "A", "seconds": {"quick": 5}, "steps": [["run", "{url}"]]},
    {"name": "B", "seconds": {"quick": 7}, "steps": [["run", "{A:rate*0.5}"]], "systems": ["x"]},
    {"name": "C", "seconds": {"quick": 9}, "steps": [["run"]]},
]


def experiment(**more: Any) -> Any:
    return parse_experiment("e.toml", {"sizes": {"quick": {"pages": 3}}, "loads": LOADS, **more})


def test_systems_take_turns_after_they_were_filled() -> None:
    cells = cells_of(experiment(), {"x": 60, "y": 30}, "quick")
    assert [cell.name for cell in cells] == ["fill.x", "fill.y", "A.x", "A.y", "B.x", "C.x", "C.y"]
    assert sum(cell.seconds for cell in cells) == 60 + 30 + 10 + 7 + 18


def test_the_order_of_systems_turns_with_each_load() -> None:
    found = experiment(loads=[LOADS[0], LOADS[2]], repeats=2)
    names = [cell.name for cell in cells_of(found, {"x": 1, "y": 1}, "quick")][2:]
    assert names == ["A.x", "A.y", "C.y", "C.x", "A.y.2", "A.x.2", "C.x.2", "C.y.2"]


def test_words_and_figures_are_put_in_place() -> None:
    known = Known({"url": "http://h", "port.wiki": "81"}, {"options": ["-a", "b c"]}, {"A": {"rows": [{"rate": 8.0}]}})
    step = ("run", "{url}:{port.wiki}/", "{options}", "{A:rows.0.rate*0.25}", '{"json": 1}')
    assert command_of(step, known) == ["run", "http://h:81/", "-a", "b c", "2", '{"json": 1}']
    assert list(unknown_words([step], ["url"])) == ["port.wiki", "options"]
    with pytest.raises(MissingFigureError, match=r"needs rows\.1\.rate of A"):
        command_of(["{A:rows.1.rate}"], known)


def test_figures_are_found_by_path() -> None:
    found = {"rows": [{"kind": "page", "n": 1}, {"kind": "save", "n": 2}]}
    assert figure_at(found, "rows.1.n") == 2
    assert figure_at(found, "rows.kind=save.n") == 2
    assert figure_at(found, "rows.kind=none.n") is None
    assert figure_at(found, "rows.7.n") is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sizes": {}}, "no [sizes.NAME]"),
        ({"loads": []}, "what is to be measured"),
        ({"loads": LOADS[1:]}, "B needs figures of A, which is no earlier load"),
        ({"loads": [LOADS[0], LOADS[0]]}, "is taken"),
        ({"loads": [{**LOADS[0], "seconds": {}}]}, "how many seconds"),
        ({"loads": [{**LOADS[0], "step": 1}]}, "load A has step"),
        ({"extra": 1}, "the file has extra"),
    ],
)
def test_mistakes_of_a_file_are_said(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        experiment(**change)
    assert said in str(caught.value)


def test_the_estimate_of_a_fill_grows_with_the_pages() -> None:
    found, _ = read_experiment("thesis", SHIPPED)
    columnar = read_system("columnar", SHIPPED / "systems")
    estimates = {size: columnar.fill_estimate_s(words) for size, words in found.sizes.items()}
    assert 60 < estimates["quick"] < estimates["default"] < estimates["full"]
    assert columnar.fill_estimate_s({}) == columnar.fill_s


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.toml")), ids=lambda path: path.stem)
def test_the_shipped_experiments_can_be_planned(path: Path, tmp_path: Path) -> None:
    found, _ = read_experiment(path.stem, SHIPPED)
    check_tables(found.file, found.tables, [load.name for load in found.loads])
    systems = [read_system(name, SHIPPED / "systems") for name in found.systems]
    for size, words in found.sizes.items():
        assert cells_of(found, {one.name: one.fill_estimate_s(words) for one in systems}, size)
        for system in systems:
            known = Place.of(system, tmp_path / system.name, words, dict.fromkeys(system.needs, "given")).known
            mine = [one.steps for one in found.loads if not one.systems or system.name in one.systems]
            for steps in mine:
                assert list(unknown_words(steps, [*known.texts, *known.lists, "cell"])) == []


@pytest.mark.parametrize(
    "name", ["servers:servers=6", "servers:servers=1", "servers-zookeeper:servers=2", "null:servers=6"]
)
def test_each_system_of_the_scale_has_a_row_of_one_table(name: str) -> None:
    found, _ = read_experiment("scale", SHIPPED)
    system = read_system(name, SHIPPED / "systems")
    assert sum(has_system(table, system.name) for table in found.tables) == 1


@pytest.mark.parametrize("path", sorted((SHIPPED / "systems").glob("*.toml")), ids=lambda path: path.stem)
def test_the_shipped_systems_know_their_words(path: Path, tmp_path: Path) -> None:
    system = read_system(path.stem, SHIPPED / "systems")
    place = Place.of(system, tmp_path, {"pages": "10"}, dict.fromkeys(system.needs, "given"))
    assert place.url.startswith("http") or "address" in system.needs
    assert {"view_options", "edit_options", "check"} <= place.known.lists.keys()


def test_mistakes_of_a_system_are_said(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="no url"):
        parse_system("s", "s.toml", {})
    with pytest.raises(ExperimentError, match="a role needs a name"):
        parse_system("s", "s.toml", {"url": "http://h", "roles": [{"name": "r"}]})
    needy = parse_system("s", "s.toml", {"url": "http://h", "needs": {"gateway": "HBase's address"}})
    with pytest.raises(ExperimentError, match=r"needs --set gateway=… \(HBase's address\)"):
        Place.of(needy, tmp_path, {}, {})
    with pytest.raises(ExperimentError, match="no such system; shipped are balanced, columnar"):
        read_system("gone", SHIPPED / "systems")


def test_a_word_of_a_system_can_be_set() -> None:
    system = read_system("null:servers=4", SHIPPED / "systems")
    assert (system.name, system.title, system.words["servers"]) == ("null-4", "Null servers, servers 4", "4")
    with pytest.raises(ExperimentError, match="sets none of its words: servers"):
        read_system("null:server=4", SHIPPED / "systems")


@pytest.mark.parametrize("name", ["columnar", "hbase", "mediawiki"])
def test_the_store_of_a_system_is_capped_under_loads_and_not_while_it_is_filled(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``hbase:quota=0.1`` was refused once, so the wiki was the limit of systems whose stores were to be compared."""
    quotas: dict[str, float] = {}

    def started(given: Mapping[str, object]) -> subprocess.Popen[bytes]:
        quotas[Path(str(given["log"])).stem] = float(str(given["quota"]))
        return subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)

    monkeypatch.setattr("wikibench.experiments.system.start_guard", started)
    monkeypatch.setattr("wikibench.experiments.system.why_no_quota", lambda: "")
    monkeypatch.setattr("wikibench.experiments.system._wait_until_ready", lambda *_: None)
    others = {"columnar": ["wiki"], "hbase": ["tables", "wiki"], "mediawiki": ["wiki"]}[name]
    for word, label, share in ((":quota=0.1", "T3", 0.1), (":quota=0.1", "fill", 0.0), ("", "T3", 0.0)):
        place = Place.of(read_system(name + word, SHIPPED / "systems"), tmp_path, {"pages": "1"}, {})
        with running(place, label) as found:
            assert found.why_uncapped == ""
        assert quotas == {"store": share, **dict.fromkeys(others, 0.0)}, (word, label)


def test_ports_stay_the_same(tmp_path: Path) -> None:
    found = {"url": "http://h:{port.wiki}", "roles": [{"name": "r", "start": ["{port.store}"], "ready": {"line": "x"}}]}
    system = parse_system("s", "s.toml", found)
    assert port_names(system) == ["store", "wiki"]
    first = Place.of(system, tmp_path, {}, {}).url
    assert Place.of(system, tmp_path, {}, {}).url == first


def test_counters_are_summed_over_their_labels() -> None:
    text = '# TYPE calls counter\ncalls{m="get"} 3.0\ncalls{m="put"} 4.5\ncalls_more 9\n'
    assert metrics_in(text, "calls") == {"": 7.5}
    with pytest.raises(KeyError):
        metrics_in(text, "call")


def test_counters_are_summed_by_the_value_of_a_label() -> None:
    text = 'calls{m="get",server="s1"} 3\ncalls{m="put",server="s1"} 4\ncalls{m="get",server="s2"} 5\n'
    assert metrics_in(text, "calls", "server") == {"s1": 7.0, "s2": 5.0}
    assert metrics_in("calls 3\n", "calls", "server") == {"": 3.0}, "a store of one process has no label"
    assert metrics_in('calls{xserver="s9"} 3\n', "calls", "server") == {"": 3.0}
    before = {"all": 5.0, "each": {"s1": 7.0}, "gone": 1.0}
    after = {"all": 12.0, "each": {"s1": 9.0, "s2": 3.0}, "new": 4.0}
    assert counted_since(before, after) == {"all": 7.0, "each": {"s1": 2.0, "s2": 3.0}}


def test_regions_are_given_to_the_servers_in_turn() -> None:
    assert places_of(["a", "b", "c"], ["s1", "s2"]) == {"a": "s1", "b": "s2", "c": "s1"}


def loads(*calls: tuple[float, float], every_s: float = 2.0) -> list[Sample]:
    return [
        Sample((at + 1) * every_s, {"s1": one, "s2": two}, 1.0 if at == 3 else 0.0)
        for at, (one, two) in enumerate(calls)
    ]


def test_a_half_is_balanced_when_no_later_window_is_uneven() -> None:
    found = half_of(loads(*[(10, 0)] * 10, *[(5, 5)] * 10), 2)
    assert found["busiest_over_mean"] == 1.0
    assert found["balanced_after_s"] == 24.0, (
        "three of five samples are even: 7 of 10 calls are at most 1.5 times the mean"
    )
    assert found["moves"] == 1.0
    late = half_of(loads(*[(5, 5)] * 10, *[(10, 0)] * 10), 2)
    assert late["balanced_after_s"] is None
    assert late["busiest_over_mean"] == 2.0


def test_a_load_without_calls_is_neither_even_nor_uneven() -> None:
    assert busiest_over_mean(loads((0, 0)), 2) is None
    assert half_of([], 2) == {"busiest_over_mean": None, "balanced_after_s": None, "moves": 0}
    assert busiest_over_mean([Sample(1.0, {"s1": 8.0}, 0.0)], 4) == 4.0, "servers that were never called count"


@pytest.mark.parametrize("name", ["servers", "servers-zookeeper", "balanced"])
def test_splits_of_the_table_of_pages_cut_it_evenly(name: str) -> None:
    steps = read_system(name, SHIPPED / "systems").fill
    splits = [step[5].encode() for step in steps if step[3:5] == ("split", "pages")]
    keys = [page_key(f"Page {n}") for n in range(4_000)]
    counts = Counter(bisect_right(splits, key) for key in keys)
    assert splits == sorted(splits)
    assert all(0.7 < counts[at] * (len(splits) + 1) / len(keys) < 1.3 for at in range(len(splits) + 1)), counts
