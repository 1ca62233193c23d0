"""Pages of reports: their size, what is in them, reports of version 1, and tables."""

from __future__ import annotations

import base64
import csv
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.made_report import made_report
from wikibench.errors import ReportError
from wikibench.findings.csv_files import write_tables
from wikibench.findings.pages import PAGE_BYTES, SERVICE, curves_of, render
from wikibench.findings.plots import DRAWN_INTERVALS, joined
from wikibench.report import JSON, read_report, write_report
from wikibench.summary import machine_lines


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return made_report(600, 25)


def data_of(page: str) -> Any:
    found = re.search(r'id="data">([^<]*)<', page)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def test_a_page_of_600_intervals_is_small_and_has_the_whole_report(report: dict[str, Any]) -> None:
    page = render(report)
    # histograms of busier intervals are larger: 304 KB in 600 intervals of a wiki's spread
    histograms = sum(len(row["response_time_us_hdr_base64"] or "") for row in report["intervals"])
    assert len(page.encode()) + 304_000 - histograms < PAGE_BYTES
    assert data_of(page)["report"] == json.loads(json.dumps(report))
    assert re.search(r"\son\w+=|(?:src|href)=\"(?!#|data:)", page.partition('id="data"')[0]) is None


def test_a_drawing_joins_neighbours_and_loses_no_request(report: dict[str, Any]) -> None:
    drawn = joined(report)
    assert len(drawn["intervals"]) <= DRAWN_INTERVALS
    for name in ("asked", "answered", "conflicts"):
        assert sum(row[name] for row in drawn["intervals"]) == sum(row[name] for row in report["intervals"])
    slowest = max(row["max_ms"] or 0 for row in report["intervals"])
    assert max(row["max_ms"] or 0 for row in drawn["intervals"]) == slowest > 1000


def test_a_report_of_version_1_is_read_and_makes_a_page(tmp_path: Path) -> None:
    old = made_report(8, 20)
    old["format"] = "wikibench-report-1"
    del old["valid"], old["not_valid_because"], old["generator"]["workers"]
    for row in old["intervals"]:
        del row["response_time_us_hdr_base64"]
    for row in old["by_kind_and_outcome"]:
        del row["service_time_us_hdr_base64"]
    (tmp_path / JSON).write_text(json.dumps(old))
    found = read_report(tmp_path)
    assert SERVICE not in curves_of(found)
    assert "Distribution of latencies" in render(found)


def test_the_page_of_a_crew_says_what_came_late_and_what_was_lost() -> None:
    found = made_report(8, 20)
    assert "dealt late" not in render(found)
    found["generator"] |= {"workers": 3, "workers_lost": 1}
    found["generator"]["dealt_late"] |= {"count": 12, "max_ms": 34.0}
    found["requests"]["lost"] = 56
    page = render(found)
    assert "3, 1 lost, and with them the end of 56 requests" in page
    assert "12 requests, max 34 ms: the controller" in page


def test_the_page_has_the_processor_time_of_roles_and_of_others() -> None:
    found = made_report(8, 20)
    assert machine_lines(found) == [], "an older report"
    found["others_cpu_share"], found["roles"] = 0.34, []
    assert machine_lines(found) == [
        "machine: all programs but the generator took 34% of the cores; which of them is the wiki is not known without "
        "--watch, so nothing is judged by it"
    ]
    found["roles"] = [{"role": "wiki", "cpu_s": 1.0, "cpu_us_a_request": 2345.0, "resident_mb": 80.2}]
    assert machine_lines(found) == [
        "wiki: 2,345 us of CPU a request, 80 MB",
        "machine: programs beside generator and watched ones took 34% of the cores: they disturb the figures",
    ]
    for share, words in ((0.95, ", its busiest process 95% of a core: at its limit"), (0.85, ""), (None, "")):
        row = found["roles"][0] | {"busiest_share_of_one_core": share}
        assert machine_lines({"roles": [row]}) == ["wiki: 2,345 us of CPU a request, 80 MB" + words]
    page = render(found)
    assert "<dt>wiki</dt><dd>2,345 us of CPU a request, 80 MB</dd>" in page
    assert "they disturb the figures" in page


def test_the_page_has_what_the_host_kept_and_how_long_programs_waited_for_a_core() -> None:
    found = made_report(8, 20) | {"others_cpu_share": 0.34, "roles": []}
    assert len(machine_lines(found)) == 1
    for stolen, waited, words in (
        (
            0.031,
            0.416,
            "the host kept 3% of the cores (steal), for 42% of the time some program waited for a core (pressure)",
        ),
        (0.0, None, "the host kept 0% of the cores (steal)"),
    ):
        found["contention"] = {"stolen_share": stolen, "waited_share": waited}
        assert machine_lines(found)[1] == f"contention: {words}"
        assert f"<dt>contention</dt><dd>{words}</dd>" in render(found)
    found["contention"] = {"stolen_share": None, "waited_share": None}
    assert len(machine_lines(found)) == 1, "a kernel that does not say"


def test_the_page_says_how_many_requests_were_planned() -> None:
    found = made_report(8, 20)
    assert "<dt>planned</dt>" not in render(found), "of a replay that nobody planned"
    found["requests"]["planned"] = 1_234
    found["environment"]["governor"] = None
    page = render(found)
    assert "<dt>planned</dt><dd>1,234 requests of the trace were due" in page
    assert "<dt>governor</dt>" not in page
    found["environment"]["governor"] = "powersave"
    assert "<dt>governor</dt><dd>powersave</dd>" in render(found)
    del found["requests"]["planned"]
    assert "<dt>planned</dt>" not in render(found), "an older report"


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": "wikibench-comparison-1"}'])
def test_a_file_that_is_no_report_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ReportError, match=r"x\.json: no "):
        read_report(tmp_path / "x.json")


def test_a_report_that_lacks_figures_is_refused(report: dict[str, Any]) -> None:
    with pytest.raises(ReportError, match="rate"):
        render({name: value for name, value in report.items() if name != "rate"})


def test_tables_have_all_intervals_and_kinds(report: dict[str, Any], tmp_path: Path) -> None:
    paths = write_tables(tmp_path / "new", report)
    intervals, kinds = (list(csv.DictReader(path.read_text().splitlines())) for path in paths)
    assert sum(int(row["asked"]) for row in intervals) == report["requests"]["counted"]
    assert sum(int(row["failed 5xx"]) + int(row["failed timeout"]) for row in intervals) == report["requests"]["failed"]
    assert {row["time"] for row in kinds} == {"response_time", "service_time"}
    assert sum(int(row["count"]) for row in kinds) == 2 * report["requests"]["counted"]


def test_a_replay_writes_both_files(report: dict[str, Any], tmp_path: Path) -> None:
    page = write_report(tmp_path, made_report(3, 5))
    assert data_of(page.read_text())["report"] == read_report(tmp_path)
