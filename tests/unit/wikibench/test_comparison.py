"""Reports compared: pairs and single runs, verdicts, limits, and what is refused."""

from __future__ import annotations

import json
from math import exp
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gauge.histogram import Histogram
from wikibench.cli import main
from wikibench.comparison import Limit, compare, parse_limits, run_of
from wikibench.errors import LimitError, ReportError


def report(
    number: int = 0, slower: float = 0.0, noise: float = 0.0, seconds: int = 30, **changed: Any
) -> dict[str, Any]:
    """Return a report as ``summary`` makes it, as far as it is compared: 50 requests a second of about 10 ms."""
    rng = Random(f"{number} {slower}")
    speed = exp(rng.gauss(0, noise)) * (1 + slower)
    intervals, whole = [], Histogram()
    for second in range(seconds):
        interval = Histogram(2)
        for _ in range(50):
            value = round(10_000 * speed * rng.lognormvariate(0, 0.05))
            interval.record(value)
            whole.record(value)
        encoded = interval.encode()
        intervals.append(
            {"start_s": float(second), "asked": 50, "answered": 50, "response_time_us_hdr_base64": encoded}
        )
    times = {f"p{percent:g}_ms": whole.percentile(percent) / 1000 for percent in (50, 95, 99)}
    return {
        "format": "wikibench-report-2",
        "ending": "complete",
        "not_valid_because": [],
        "target": "http://127.0.0.1:8080/",
        "trace": {"file": "day.trace"},
        "environment": {"date": f"2026-11-28 12:{number:02d}:00 UTC"},
        "warm_up": {"duration_s": 0.0},
        "requests": {"counted": 50 * seconds, "failed": 0},
        "rate": {"asked_per_s": 50.0, "got_per_s": 50.0},
        "response_time": times,
        "interval_s": 1.0,
        "intervals": intervals,
        "roles": [{"role": "wiki", "cpu_us_a_request": 2_000 * speed}, {"role": "store", "cpu_us_a_request": 500.0}],
        **changed,
    }


def sides(slower: float, runs: int, noise: float = 0.005) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    a = [report(2 * number, noise=noise) for number in range(runs)]
    return a, [report(2 * number + 1, slower, noise) for number in range(runs)]


def compared(slower: float, runs: int = 4) -> dict[str, Any]:
    a, b = ([run_of(one, side) for one in of_side] for side, of_side in zip("ab", sides(slower, runs), strict=True))
    found = compare(a, b, Random(1))
    return {"all": found, **{one.figure: one for one in found.differences}}


def test_each_figure_of_pairs_has_its_verdict() -> None:
    found = compared(0.2)
    assert [one.figure for one in found["all"].differences] == [
        "cpu",
        "p50",
        "p95",
        "p99",
        "rate",
        "cpu.wiki",
        "cpu.store",
    ]
    assert (found["cpu"].a, found["cpu"].b) == (pytest.approx(2_500, rel=0.02), pytest.approx(2_900, rel=0.02))
    assert [found[name].verdict for name in ("cpu", "p50", "cpu.wiki", "cpu.store", "rate")] == [
        "worse", "worse", "worse", "same", "same",
    ]  # fmt: skip
    assert 1.15 < found["p50"].ratio.low < found["p50"].ratio.high < 1.25
    assert found["all"].verdict == "worse"
    assert compared(-0.2)["all"].verdict == "better"
    assert compared(0.0)["all"].verdict == "same"


def test_where_cpu_and_p50_lean_either_way_nobody_can_tell() -> None:
    a, b = sides(0.2, 4)
    for one in b:
        one["roles"] = [{"role": "wiki", "cpu_us_a_request": 1_500.0}]
    found = compare(*([run_of(one, "r") for one in side] for side in (a, b)), Random(1))
    assert [one.verdict for one in found.differences if one.decides] == ["better", "worse"]
    assert found.verdict == "cannot tell"


def test_one_run_each_is_compared_by_its_blocks_and_says_so() -> None:
    found = compared(0.2, runs=1)
    assert found["all"].basis == "blocks"
    assert "of these runs only" in found["all"].remarks[0]
    assert found["p50"].verdict == "worse"
    assert 1.15 < found["p50"].ratio.low < found["p50"].ratio.high < 1.25
    assert (found["cpu"].ratio, found["cpu"].verdict) == (None, "cannot tell")
    assert found["all"].verdict == "worse", "the CPU is not known, the p50 is"


def test_blocks_leave_out_the_warm_up_and_the_rest_at_the_end() -> None:
    rest = report(0)
    rest["warm_up"]["duration_s"] = 3.0
    for row in rest["intervals"][-2:]:
        row.update(asked=0, response_time_us_hdr_base64=None)
    assert len(run_of(rest, "a").blocks) == 5, "of 25 s"
    assert [block.count for block in run_of(rest, "a").blocks] == [250] * 5
    old = report(0)
    for row in old["intervals"]:
        del row["response_time_us_hdr_base64"]
    assert run_of({**old, "format": "wikibench-report-1"}, "a").blocks == ()


def test_what_does_not_fit_is_remarked() -> None:
    a, b = sides(0.0, 3)
    b[0]["rate"] = {"asked_per_s": 70.0, "got_per_s": 70.0}
    b[1]["trace"] = {"file": "other.trace"}
    b[2]["requests"] = {"counted": 1_500, "failed": 7}
    a[0]["environment"]["date"], b[2]["not_valid_because"] = "2026-11-28 13:00:00 UTC", ["it was late"]
    found = compare(*([run_of(one, "r") for one in side] for side in (a, b)), Random(1))
    said = " ".join(found.remarks)
    for part in ("not made in turn", "the traces differ", "50.0 to 70.0 per second", "B: 7 of 4500 requests failed"):
        assert part in said
    assert found.not_valid == ("r: it was late",)


@pytest.mark.parametrize(
    "broken",
    [{}, {"format": "wikibench-report-9"}, [], {"format": "wikibench-report-2"}, {**report(), "rate": None}],
    ids=["empty", "format", "list", "parts", "rate"],
)
def test_what_is_no_report_is_refused_by_name(broken: Any) -> None:
    with pytest.raises(ReportError, match=r"^x\.json: "):
        run_of(broken, "x.json")


@pytest.mark.parametrize(
    ("text", "slower", "judged"),
    [
        ("p50>+5%", 0.2, "missed"),
        ("p50>+5%", 0.0, "met"),
        ("p95>+20%", 0.2, "cannot tell"),
        ("p50<-10%", -0.2, "missed"),
        ("p50<-10%", 0.0, "met"),
        ("rate<-1%", 0.2, "met"),
        ("cpu.wiki>+5%", 0.2, "missed"),
        ("cpu.proxy>+5%", 0.2, "cannot tell"),
    ],
)
def test_a_limit_is_missed_where_the_whole_interval_is_beyond(text: str, slower: float, judged: str) -> None:
    (limit,) = parse_limits(text)
    assert limit.judge(compared(slower)["all"]) == judged


@pytest.mark.parametrize("text", ["p50", "p50>5", "p42>+5%", "p50=5%", "latency>+5%", "p50>+5%;cpu>+5%"])
def test_a_limit_that_cannot_be_read(text: str) -> None:
    with pytest.raises(LimitError, match="limit '"):
        parse_limits(text)
    assert parse_limits(" p50 > 5% , ") == (Limit("p50 > 5%", "p50", ">", 1.05),)


# -- the command


def files(folder: Path, slower: float, runs: int, **changed: Any) -> list[Path]:
    paths = []
    for side, reports in zip("ab", sides(slower, runs), strict=True):
        for number, one in enumerate(reports):
            path = folder / f"{side}{number}.json"
            path.write_text(json.dumps({**one, **changed}))
            paths.append(path)
    return paths


def command(*words: object) -> Result:
    return CliRunner().invoke(main, ["compare", *map(str, words)], env={"COLUMNS": "140"})


@pytest.mark.parametrize(
    ("slower", "limit", "status"),
    [(0.2, "p50>+5%", 1), (0.0, "p50>+5%,cpu>+5%", 0), (0.2, "p95>+20%", 3), (0.2, "p50>+50%", 0)],
)
def test_the_exit_status_is_that_of_the_limits(tmp_path: Path, slower: float, limit: str, status: int) -> None:
    paths = files(tmp_path, slower, 3)
    words = ("--fail-if", limit) if limit else ()
    result = command(*paths[:3], "--with", *paths[3:], *words, "--json", tmp_path / "out.json")
    assert result.exit_code == status, result.output
    assert ("BEYOND p50>+5%" in result.output) == (status == 1)
    assert ("CANNOT TELL p95>+20%" in result.output) == (status == 3)
    written = json.loads((tmp_path / "out.json").read_text())
    assert (written["format"], written["verdict"]) == ("wikibench-comparison-1", "worse" if slower else "same")
    assert f"B is {written['verdict']}" in result.output


@pytest.mark.parametrize(("slower", "verdict", "status"), [(0.2, "worse", 1), (0.0, "same", 0), (-0.2, "better", 0)])
def test_without_limits_the_exit_status_is_that_of_the_verdict(
    tmp_path: Path, slower: float, verdict: str, status: int
) -> None:
    paths = files(tmp_path, slower, 3)
    result = command(*paths[:3], "--with", *paths[3:])
    assert result.exit_code == status, result.output
    assert f"B is {verdict}" in result.output


def test_a_difference_that_cannot_be_known_is_status_0_without_a_limit(tmp_path: Path) -> None:
    short = report(1)
    for name in ("a", "b"):
        (tmp_path / name).write_text(json.dumps({**short, "intervals": short["intervals"][:5]}))
    words = (tmp_path / "a", tmp_path / "b")
    assert "cannot tell whether B differs" in (result := command(*words)).output
    assert result.exit_code == 0
    assert command(*words, "--fail-if", "p50>+5%").exit_code == 3


def test_two_reports_need_no_with_and_a_folder_stands_for_its_report(tmp_path: Path) -> None:
    for side, slower in (("a", 0.0), ("b", 0.2)):
        (tmp_path / side).mkdir()
        (tmp_path / side / "report.json").write_text(json.dumps(report(1, slower)))
    result = command(tmp_path / "a", tmp_path / "b" / "report.json", "--fail-if", "p50>+5%")
    assert result.exit_code == 1, result.output
    assert "of these runs only" in result.output


def test_what_is_wrong_usage(tmp_path: Path) -> None:
    paths = files(tmp_path, 0.0, 2)
    (tmp_path / "none").write_text("<html>")
    for words, said in (
        (paths[:3], "which are of the other system"),
        ((*paths[:1], "--with", *paths[2:]), "give as many of either side"),
        ((paths[0], tmp_path / "none"), "no JSON"),
        ((paths[0], tmp_path), "report.json"),
        ((paths[0], paths[2], "--fail-if", "p50"), "not of the form"),
    ):
        result = command(*words)
        assert result.exit_code == 2, result.output
        assert said in " ".join(result.output.replace("│", " ").split())


def test_a_report_that_is_not_valid_is_status_3(tmp_path: Path) -> None:
    paths = files(tmp_path, 0.0, 1, ending="interrupted")
    result = command(*paths, "--fail-if", "p50>+50%")
    assert result.exit_code == 3
    assert "NOT VALID" in result.output
    assert "the replay was interrupted" in result.output


def failing(number: int, failed: int, ending: str = "complete") -> dict[str, Any]:
    """Return a report of quick answers, of which some are failures."""
    made = report(number, slower=-0.5)
    return {**made, "requests": {"counted": 1500, "failed": failed}, "ending": ending}


@pytest.mark.parametrize(("failed", "ending"), [(1500, "complete"), (30, "complete"), (0, "overloaded")])
def test_a_system_that_fails_is_worse_however_quick_its_failures_are(failed: int, ending: str, tmp_path: Path) -> None:
    a = [run_of(report(2 * number), "a") for number in range(4)]
    b = [run_of(failing(2 * number + 1, failed, ending), "b") for number in range(4)]
    found, turned = compare(a, b, Random(1)), compare(b, a, Random(1))
    (limit,) = parse_limits("p50>+5%")
    assert (found.verdict, limit.judge(found), found.not_valid) == ("worse", "missed", ())
    assert (turned.verdict, limit.judge(turned)) == ("better", "cannot tell")
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, made in zip(paths, (report(), failing(1, failed, ending)), strict=True):
        path.write_text(json.dumps(made))
    result = CliRunner().invoke(main, ["compare", *map(str, paths)])
    assert result.exit_code == 1, result.output
    assert "FAILS: " in result.output
    assert "B is worse" in result.output


def test_two_systems_that_fail_alike_are_compared_by_their_times() -> None:
    a = [run_of(failing(2 * number, 30), "a") for number in range(4)]
    b = [run_of({**report(2 * number + 1), "requests": {"counted": 1500, "failed": 16}}, "b") for number in range(4)]
    assert compare(a, b, Random(1)).verdict == "worse", "twice as slow"
    fallen = [run_of(failing(number, 0, "overloaded"), "x") for number in range(8)]
    assert compare(fallen[::2], fallen[1::2], Random(1)).not_valid
