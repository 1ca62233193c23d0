"""The report of a replay: programs of users read ``report.json``, and ``compare`` reads reports of last year."""

from __future__ import annotations

import json

from gauge.histogram import Histogram
from gauge.processes import RoleUse
from tests.support.golden import FOLDER, hold_to
from wikibench.comparison import run_of
from wikibench.latency import Figures, Recorder, Sample
from wikibench.outcome import Kind, Outcome
from wikibench.requirements import parse_requirements
from wikibench.summary import FORMAT, Crew, Replay, judge_all, roles_of, summarize

FILE = f"{FORMAT}.txt"
SAMPLES = (
    Sample(Kind.PAGE, Outcome.OK, 0.0, 0.0, 0.01, 8_000),
    Sample(Kind.PAGE, Outcome.OK, 0.25, 0.5, 0.75, 8_000),
    Sample(Kind.MISSING, Outcome.EXPECTED_404, 1.0, 1.0, 1.02, 500),
    Sample(Kind.EDIT_SAVE, Outcome.CONFLICT, 1.5, 1.5, 1.6, 900),
    Sample(Kind.PAGE, Outcome.BROKEN, 2.0, 2.0, 2.5, 0, "http://w/\udcff<A>", "cut"),
    Sample(Kind.PAGE, Outcome.INTERRUPTED, 2.75, 2.75, 2.8),
)


def histogram_of(*values_us: int) -> Histogram:
    made = Histogram()
    for value_us in values_us:
        made.record(value_us)
    return made


def replay() -> Replay:
    recorder, warm_up = Recorder(3), Recorder(3)
    for sample in SAMPLES:
        recorder.add(sample)
    warm_up.add(SAMPLES[0])
    figures = Figures(recorder, warm_up)
    figures.own_lateness.add(histogram_of(100, 15_000))
    figures.slot_wait.add(histogram_of(250_000))
    crew = Crew(2, 1, 1.5, 0.25, planned=8, lost_requests=1, starved=1, clock_ms=0.25)
    return Replay(figures, "complete", 4, 1, 4.5, 2.5, 7, 2, 8, 3, 1, crew)


def report() -> dict[str, object]:
    made = replay()
    about = {
        "target": "http://w",
        "trace": {"file": "views.trace"},
        "environment": {"date": "2026-11-29T00:00:00Z"},
        "seed": 1,
        "roles": roles_of([RoleUse("wiki", 1.25, 60.5, 0.5)], 6),
        "others_cpu_share": 0.25,
    }
    verdicts = judge_all(parse_requirements("p95<200ms,errors<1%"), made)
    return summarize(made, verdicts, about, ["own lateness"])


def test_report() -> None:
    hold_to(FILE, {name: json.dumps(value, ensure_ascii=False) for name, value in report().items()})


def test_a_kept_report_is_compared() -> None:
    lines = (FOLDER / FILE).read_text("utf-8").splitlines()
    kept = {name: json.loads(text) for name, _, text in (line.partition("  ") for line in lines)}
    run = run_of(kept, "kept")
    assert (run.counted, run.failed, run.not_valid) == (6, 1, ("own lateness",))
    assert run.figures.keys() >= {"p50", "p95", "p99", "rate", "cpu", "cpu.wiki"}
