"""A report of a replay that never ran: so many intervals, from one seed, with a stall, failures and conflicts."""

from __future__ import annotations

import random

from gauge.histogram import Histogram
from wikibench.latency import Figures, Recorder, Sample
from wikibench.outcome import Kind, Outcome
from wikibench.requirements import parse_requirements
from wikibench.summary import Json, Replay, judge_all, summarize


def made_report(intervals: int = 600, rate: int = 40, seed: int = 1) -> Json:
    """Return the JSON of a report; its requests have the spread of a wiki's."""
    rng = random.Random(seed)
    recorder = Recorder(intervals)
    own = Histogram()
    for number in range(intervals * rate):
        start_s = number / rate
        late_s = rng.expovariate(2000)
        own.record(round(late_s * 1e6))
        took_s = rng.lognormvariate(-4.2, 0.9)
        if 0.4 < start_s / intervals < 0.42:
            late_s += intervals * 0.42 - start_s  # a stall
        recorder.add(_sample(rng, start_s, late_s, took_s))
    planned_s, empty = float(intervals), Recorder(intervals)
    replay = Replay(Figures(recorder, empty, own), "complete", planned_s, 0, planned_s, 9, 1, 5, 8, 1, 0)
    about = {
        "target": "http://127.0.0.1:8080/",
        "command_line": "wikibench replay day.trace --target http://127.0.0.1:8080 --report out",
        "seed": seed,
        "trace": {"file": "day.trace", "requests": intervals * rate},
        "pace": {"speed": None, "rate_per_s": rate},
        "environment": {"date": "2026-11-28 12:00:00 UTC", "machine": "Linux x86_64", "cores": 2},
    }
    return summarize(replay, judge_all(parse_requirements("p95<200ms,errors<0.1%"), replay), about)


def _sample(rng: random.Random, start_s: float, late_s: float, took_s: float) -> Sample:
    chance = rng.random()
    kind, outcome = Kind.PAGE, Outcome.OK
    if chance < 0.002:
        outcome = Outcome.SERVER_ERROR if chance < 0.001 else Outcome.TIMEOUT
    elif chance < 0.03:
        kind, outcome = Kind.EDIT_SAVE, Outcome.REDIRECT if chance > 0.004 else Outcome.CONFLICT
    elif chance < 0.06:
        kind, outcome = Kind.MISSING, Outcome.EXPECTED_404
    sent_s = start_s + late_s
    return Sample(kind, outcome, start_s, sent_s, sent_s + took_s, 10_000, f"http://127.0.0.1:8080/Page{chance}", "why")
