"""The report is made of whatever there is, and what it shows is escaped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from wikibench.errors import MissingPlotsError
from wikibench.latency import Figures, Recorder, Sample
from wikibench.outcome import Kind, Outcome
from wikibench.report import environment, require_writable, write_report
from wikibench.requirements import parse_requirements
from wikibench.summary import Replay, judge_all, summarize


def replay_of(*samples: Sample) -> Replay:
    recorder = Recorder(10)
    for sample in samples:
        recorder.add(sample)
    return Replay(Figures(recorder, Recorder(10)), "interrupted", 10, 0, 1, 0.1, 1, 1, 8, 1, 0)


ONE = Sample(Kind.PAGE, Outcome.OK, 0.0, 0.0, 0.01)
BAD = Sample(Kind.PAGE, Outcome.BROKEN, 0.5, 0.5, 0.6, 0, "http://w/<script>alert(1)</script>", "<b>why</b>")


@pytest.mark.parametrize("samples", [(), (ONE,), (ONE, BAD)], ids=["nothing", "one", "one failed"])
def test_a_report_of_little_or_nothing(samples: tuple[Sample, ...], tmp_path: Path) -> None:
    replay = replay_of(*samples)
    about = {
        "target": "http://127.0.0.1",
        "command_line": "wikibench replay '<x>'",
        "seed": 1,
        "trace": {"file": "t"},
        "pace": {"speed": 2, "rate_per_s": None},
        "environment": environment(),
    }
    summary = summarize(replay, judge_all(parse_requirements("p95<200ms,errors<1%"), replay), about)
    page = write_report(tmp_path / "new" / "folder", summary).read_text("utf-8")
    assert "Interrupted." in page
    assert "<script>alert" not in page
    assert "<b>why" not in page
    assert "&lt;x&gt;" in page
    assert json.loads((tmp_path / "new" / "folder" / "report.json").read_text())["requests"]["counted"] == len(samples)


def test_plots_are_imported_only_when_they_are_drawn() -> None:
    code = "import sys, wikibench.cli; sys.exit('matplotlib' in sys.modules or 'jinja2' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_a_report_that_cannot_be_drawn_is_refused_before_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_writable(tmp_path)
    monkeypatch.setattr("wikibench.report.find_spec", lambda _name: None)
    with pytest.raises(MissingPlotsError, match=r"columnar\[plots\]"):
        require_writable(tmp_path)
