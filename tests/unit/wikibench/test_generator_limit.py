"""The limit of the generator: kept by ``wikibench limits``, said by reports, and stale where the machine is another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.fake_wiki import FakeWiki
from wikibench.cli import main
from wikibench.commands import limits
from wikibench.commands.limits import OwnTry
from wikibench.generator_limit import KEPT, keep_limit, known_limit, limit_of, limits_file, read_limits, words_of_limit
from wikibench.report import environment

MACHINE: dict[str, Any] = {
    "date": "2026-11-29 08:00:00 UTC",
    "processor": "P",
    "cores": 2,
    "python": "3.11.7",
    "wikibench_http_client": "httptools 0.7.1",
}


def kept(path: Path, rate: float = 16_000.0, workers: int = 1, **changed: Any) -> list[dict[str, Any]]:
    keep_limit(limit_of(rate, 19.0, workers, 10_000, 5.0, MACHINE) | changed, path)
    return read_limits(path)


def test_the_newest_of_a_machine_and_a_number_of_workers_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "state" / "limits.json"
    kept(path, node="here")
    kept(path, 30_000.0, 2, node="here")
    kept(path, 9_000.0, node="elsewhere")
    found = kept(path, 17_000.0, node="here")
    assert {(one["node"], one["workers"]): one["rate_per_s"] for one in found} == {
        ("here", 1): 17_000.0,
        ("here", 2): 30_000.0,
        ("elsewhere", 1): 9_000.0,
    }
    said = known_limit(found, "here", 1, MACHINE, 500.0)
    assert said is not None
    assert "node" not in said, "a report does not name its machine"
    assert (said["rate_per_s"], said["asked_share"], said["stale_because"]) == (17_000.0, 0.0294, [])
    assert words_of_limit(said) == "17,000 page views per second (2026-11-29); this run asked for 3% of it"
    assert known_limit(found, "here", 3, MACHINE, 500.0) is None
    assert "may be late" in words_of_limit(known_limit(found, "here", 1, MACHINE, 9_000.0))
    for number in range(KEPT + 5):
        kept(path, node=f"n{number}")
    assert len(read_limits(path)) == KEPT


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"date": "2027-01-29 08:00:00 UTC"}, "61 days old"),
        ({"python": "3.13.0"}, "of another Python"),
        ({"cores": 4, "processor": "Q"}, "of another processor and of another number of cores"),
        ({"wikibench_http_client": "httptools 1"}, "of another version of its HTTP client"),
    ],
)
def test_an_old_one_or_one_of_another_machine_is_stale(tmp_path: Path, changed: dict[str, Any], why: str) -> None:
    found = known_limit(kept(tmp_path / "l", node="here"), "here", 1, MACHINE | changed, 500.0)
    assert f"stale, as it is {why}: wikibench limits" in words_of_limit(found)


@pytest.mark.parametrize("text", ["", "[]", '{"format": "other"}', '{"format": "wikibench-limits-1", "limits": [{}]}'])
def test_a_file_that_is_not_ours_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "l").write_text(text)
    assert read_limits(tmp_path / "l") == []
    assert "not known" in words_of_limit(known_limit([], "here", 1, MACHINE, 1.0))


def test_the_command_keeps_it_and_a_report_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKIBENCH_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(limits, "own_tries", lambda _measure: [OwnTry(8_000.0, 7_990.0, 1.0, 30.0, 0.3, "")])
    result = CliRunner().invoke(main, ["limits", "--seconds", "1s"])
    assert result.exit_code == 0, result.output
    path = limits_file()
    assert path == tmp_path / "state" / "limits.json"
    assert read_limits(path)[0]["environment"]["python"] == environment()["python"]
    (tmp_path / "trace").write_text("1 1.0 http://w/Page -\n2 1.1 http://w/Page -\n")
    with FakeWiki() as wiki:
        words = ["replay", str(tmp_path / "trace"), "--target", wiki.url, "--report", str(tmp_path / "out")]
        said = CliRunner().invoke(main, [*words, "--lateness", "60s"])
    assert "this generator's limit here: 8,000 page views per second" in said.output.replace("\n", " ")
    found = json.loads((tmp_path / "out" / "report.json").read_text())["generator"]["limit_here"]
    assert (found["rate_per_s"], found["workers"], found["stale_because"]) == (8_000.0, 1, [])
    assert "8,000 page views per second" in (tmp_path / "out" / "report.html").read_text()
