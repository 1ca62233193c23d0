"""Every sample is counted once, in microseconds, and the summary carries units."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gauge.histogram import HIGHEST_US, Histogram, merged
from wikibench.latency import Figures, Recorder, Sample
from wikibench.limits import FAILURES_KEPT
from wikibench.outcome import Kind, Outcome, classify
from wikibench.requirements import parse_requirements
from wikibench.summary import Crew, Replay, distribution, judge_all, summarize, why_not_valid

MOMENTS = st.floats(0, 5000)
SAMPLES = st.builds(
    lambda kind, outcome, intended, late, service: Sample(
        kind, outcome, intended, intended + late, intended + late + service
    ),
    st.sampled_from(Kind),
    st.sampled_from(Outcome),
    MOMENTS,
    st.floats(0, 100),
    st.floats(0, 5000),
)


def replay_of(recorder: Recorder, **other: float) -> Replay:
    figures = {"planned_s": 10.0, "warm_up_s": 0.0, "elapsed_s": 10.0, "cpu_s": 1.0, **other}
    return Replay(
        Figures(recorder, Recorder(10)),
        ending="complete",
        sent=0,
        most_open=1,
        open_limit=512,
        connections=1,
        retried=0,
        **figures,
    )


@given(st.lists(SAMPLES, max_size=30))
@settings(max_examples=50)
def test_every_sample_is_in_one_class_and_one_interval(samples: list[Sample]) -> None:
    recorder = Recorder(5000)
    for sample in samples:
        recorder.add(sample)
    recorder.check()
    assert recorder.count() == len(samples)
    assert len(recorder.intervals) <= (5000 + 5100) / recorder.interval_s + 1


def test_response_and_service_are_told_apart() -> None:
    recorder = Recorder(10)
    recorder.add(Sample(Kind.PAGE, Outcome.OK, intended_s=1.0, sent_s=1.5, ended_s=1.6))
    assert recorder.response().percentile(100) == pytest.approx(600_000, rel=0.001)
    assert recorder.service().percentile(100) == pytest.approx(100_000, rel=0.001)
    assert recorder.response(Kind.MISSING).count == 0


def test_what_the_user_cut_off_is_in_no_percentile_and_is_no_failure() -> None:
    recorder = Recorder(10)
    recorder.add(Sample(Kind.PAGE, Outcome.OK, 0, 0, 0.1))
    recorder.add(Sample(Kind.PAGE, Outcome.INTERRUPTED, 0, 0, 9))
    recorder.check()
    assert recorder.failed() == 0
    assert recorder.response().count == 1
    assert recorder.count() == 2


def test_an_hour_is_the_top_and_failures_kept_are_bounded() -> None:
    recorder = Recorder(10)
    for _ in range(FAILURES_KEPT + 5):
        recorder.add(Sample(Kind.PAGE, Outcome.TIMEOUT, 0, 0, 10_000))
    assert recorder.response().percentile(100) <= HIGHEST_US * 1.001
    assert len(recorder.failures) == FAILURES_KEPT
    assert recorder.failed() == FAILURES_KEPT + 5


@pytest.mark.parametrize(
    ("kind", "status", "expect_404", "outcome"),
    [
        (Kind.PAGE, 200, False, Outcome.OK),
        (Kind.PAGE, 304, False, Outcome.REDIRECT),
        (Kind.PAGE, 404, False, Outcome.CLIENT_ERROR),
        (Kind.PAGE, 404, True, Outcome.EXPECTED_404),
        (Kind.MISSING, 404, False, Outcome.EXPECTED_404),
        (Kind.MISSING, 200, False, Outcome.OK),
        (Kind.EDIT_FORM, 404, True, Outcome.CLIENT_ERROR),
        (Kind.PAGE, 409, False, Outcome.CLIENT_ERROR),
        (Kind.PAGE, 429, False, Outcome.CLIENT_ERROR),
        (Kind.PAGE, 503, False, Outcome.SERVER_ERROR),
        (Kind.PAGE, 199, False, Outcome.BROKEN),
        (Kind.PAGE, 600, False, Outcome.BROKEN),
    ],
)
def test_classes_of_answers(kind: Kind, status: int, expect_404: bool, outcome: Outcome) -> None:
    assert classify(kind, status, expect_404=expect_404) is outcome


def test_the_summary_is_json_and_its_histograms_can_be_merged() -> None:
    recorder = Recorder(10)
    for n in range(1, 101):
        recorder.add(Sample(Kind.PAGE, Outcome.OK, n / 20, n / 20, n / 20 + n / 1000))
    recorder.add(Sample(Kind.EDIT_SAVE, Outcome.CONFLICT, 1, 1, 1.01))
    recorder.add(Sample(Kind.PAGE, Outcome.SERVER_ERROR, 2, 2, 2.01, 0, "http://x/\udcff", "status 500"))
    replay = replay_of(recorder)
    required = parse_requirements("page.p95<90ms,errors<2%,conflicts<=1,rate>10,missing.p50<1s,mean<1s,lateness<1ms")
    verdicts = judge_all(required, replay)
    assert [verdict.met for verdict in verdicts] == [False, True, True, True, False, True, False]
    summary = json.loads(json.dumps(summarize(replay, verdicts, {"target": "t"})).encode("utf-8"))
    assert summary["requests"]["failed"] == 1
    assert summary["requests"]["conflicts"] == 1
    assert summary["rate"]["got_per_s"] == pytest.approx(10.1)
    assert summary["rate"]["page_views_per_s"] == pytest.approx(10.0)
    page = next(row for row in summary["by_kind_and_outcome"] if row["outcome"] == "2xx")
    assert page["response_time"]["p50_ms"] == pytest.approx(50, rel=0.01)
    intervals = [row["response_time_us_hdr_base64"] for row in summary["intervals"]]
    assert merged((Histogram.decode(text) for text in intervals if text), digits=2).count == 102
    twice = [Histogram.decode(page["response_time_us_hdr_base64"])] * 2
    assert merged(twice).count == 200


def test_the_percentile_curve_rises_and_ends_at_the_slowest() -> None:
    histogram = Histogram()
    assert distribution(histogram) == []
    for n in range(1, 1001):
        histogram.record(n * 1000)
    curve = distribution(histogram)
    assert [x for x, _ in curve] == sorted(x for x, _ in curve)
    assert [y for _, y in curve] == sorted(y for _, y in curve)
    assert curve[-1] == (1000.0, pytest.approx(1000, rel=0.01))


@pytest.mark.parametrize(
    ("elapsed_s", "cpu_s", "busiest_s", "is_valid"),
    [
        (10, 9.4, None, True),
        (10, 9.5, None, False),
        (10, 19.0, 9.4, True),
        (10, 9.6, 9.6, False),
        (1.5, 1.5, None, True),
    ],
)
def test_a_generator_that_takes_a_whole_core_makes_a_run_not_valid(
    elapsed_s: float, cpu_s: float, busiest_s: float | None, *, is_valid: bool
) -> None:
    """It was a warning, with status 0: whatever such a run found was found of the generator."""
    crew = Crew(busiest_cpu_s=busiest_s)
    found = Replay(Figures.empty(10), "complete", 10, 0, elapsed_s, cpu_s, 1, 1, 512, 1, 0, crew)
    assert bool(why_not_valid(found, 100.0)) != is_valid
    if not is_valid:
        assert re.search(r"used 9[56]% of a core; from 95% on it is the limit itself", why_not_valid(found, 100.0)[0])


def test_a_generator_that_cannot_be_believed_says_so() -> None:
    recorder = Recorder(10)
    recorder.add(Sample(Kind.PAGE, Outcome.OK, 0, 0, 0.1))
    replay = replay_of(recorder, cpu_s=9.5)
    replay.own_lateness.record(50_000)
    replay.slot_wait.record(1_000)
    warnings = " ".join(summarize(replay, [], {})["generator"]["warnings"])
    assert "sent late" in warnings
    assert "95% of a core" in warnings
    assert "512 were open" in warnings
