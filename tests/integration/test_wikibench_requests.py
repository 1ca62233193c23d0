"""``--requests``: a line for each request, of each process that sends, and its sums are those of the report."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.integration.test_wikibench_crew import port_of, started
from tests.support.fake_wiki import FakeWiki
from wikibench.cli import main
from wikibench.latency import Sample
from wikibench.outcome import Kind, Outcome
from wikibench.request_log import COLUMNS, request_log

VIEWS, EDITS = 40, 5
ONE = Sample(Kind.PAGE, Outcome.BROKEN, 1.0, 1.25, 1.5, 17, "/a,b", 'said "no"\nand went')


@pytest.fixture
def wiki() -> Iterator[FakeWiki]:
    with FakeWiki() as wiki:
        yield wiki


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "small.trace"
    lines = [f"{number} {number / 100:.3f} http://w/Page{number} {flag}" for number, flag in enumerate(_flags())]
    path.write_text("\n".join(lines) + "\n")
    return path


def _flags() -> Iterator[str]:
    yield from ["-"] * VIEWS
    yield from ["save"] * EDITS


def rows_of(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("workers", [1, 2])
def test_each_request_is_a_line_and_the_sums_are_those_of_the_report(
    wiki: FakeWiki, trace: Path, tmp_path: Path, workers: int
) -> None:
    folder, report = tmp_path / "requests", tmp_path / "report.json"
    words = ["--requests", folder, "--json", report, "--workers", workers, "--lateness", "60s", "--warm-up", "0.1s"]
    result = CliRunner().invoke(main, ["replay", str(trace), "--target", wiki.url, "--allow-edits", *map(str, words)])
    assert result.exit_code == 0, result.output
    files = sorted(folder.iterdir())
    assert [one.name for one in files] == [f"requests-{number}.csv.gz" for number in range(1, workers + 1)]
    shares = [rows_of(one) for one in files]
    assert all(shares)
    rows = [row for share in shares for row in share]
    assert tuple(rows[0]) == COLUMNS
    kinds = Counter(row["kind"] for row in rows)
    assert kinds == {"page": VIEWS, "edit-form": EDITS, "edit-save": EDITS}
    assert Counter((row["kind"], row["outcome"]) for row in rows).keys() == {
        ("page", "2xx"),
        ("edit-form", "2xx"),
        ("edit-save", "3xx"),
    }
    assert Counter(row["url"] for row in rows if row["kind"] == "page") == Counter(
        f"{wiki.url}/Page{number}" for number in range(VIEWS)
    )
    counted = [row for row in rows if row["warm_up"] == "0"]
    found = json.loads(report.read_text())
    assert len(counted) == found["requests"]["counted"] == VIEWS + 2 * EDITS - 10
    slowest_ms = max(float(row["response_ms"]) for row in counted)
    assert slowest_ms == pytest.approx(found["response_time"]["max_ms"], rel=0.002, abs=0.002)
    for row in rows:
        waited_ms = (float(row["sent_s"]) - float(row["intended_s"])) * 1000
        assert waited_ms >= 0
        assert float(row["response_ms"]) == pytest.approx(waited_ms + float(row["service_ms"]), abs=0.01)
        assert int(row["bytes"]) > 0 or row["kind"] == "edit-save"


def test_a_worker_elsewhere_has_its_own_folder(wiki: FakeWiki, trace: Path, tmp_path: Path) -> None:
    words = ["replay", trace, "--target", wiki.url, "--allow-edits", "--lateness", "60s"]
    refused = CliRunner().invoke(
        main, [*map(str, words), "--listen", "127.0.0.1:0", "--expect", "1", "--requests", str(tmp_path / "there")]
    )
    assert refused.exit_code == 2
    assert "option of each wikibench worker" in " ".join(refused.output.split())
    controller = started(*words, "--listen", "127.0.0.1:0", "--expect", 1)
    worker = started("worker", port_of(controller), "--requests", tmp_path / "here")
    controller.communicate(timeout=60)
    output, errors = worker.communicate(timeout=60)
    assert (worker.returncode, errors) == (0, "served 1\n"), output
    assert len(rows_of(tmp_path / "here" / "requests-1.csv.gz")) == VIEWS + 2 * EDITS


def test_requests_of_an_earlier_replay_are_kept(wiki: FakeWiki, trace: Path, tmp_path: Path) -> None:
    (tmp_path / "requests-2.csv.gz").write_bytes(b"of earlier")
    result = CliRunner().invoke(main, ["replay", str(trace), "--target", wiki.url, "--requests", str(tmp_path)])
    assert result.exit_code == 2
    assert "another folder" in " ".join(result.output.split())
    assert (wiki.gets, (tmp_path / "requests-2.csv.gz").read_bytes()) == ([], b"of earlier")


def test_a_full_file_says_how_many_requests_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with request_log(tmp_path, 7, most_lines=2) as log:
        assert log is not None
        for _ in range(5):
            log.add(ONE, is_warm_up=False)
    assert (
        rows_of(tmp_path / "requests-7.csv.gz")
        == [
            {
                "intended_s": "1.0",
                "sent_s": "1.25",
                "ended_s": "1.5",
                "response_ms": "500.0",
                "service_ms": "250.0",
                "kind": "page",
                "outcome": "broken",
                "bytes": "17",
                "warm_up": "0",
                "url": "/a,b",
                "why": 'said "no"\nand went',
            }
        ]
        * 2
    )
    assert capsys.readouterr().err == f"{tmp_path}/requests-7.csv.gz: full; 3 requests are not in it\n"
