"""The replay against a wiki that misbehaves: honest latencies, classes of failures, exit statuses."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gauge.histogram import Histogram
from tests.support.fake_wiki import FakeWiki
from wikibench.cli import main
from wikibench.commands.search import CURVE
from wikibench.latency import Recorder
from wikibench.outcome import Kind, Outcome
from wikibench.pacing import Pace, plan, planned_seconds, shape_of
from wikibench.run import replay
from wikibench.summary import Replay
from wikibench.targets.target import parse_target
from wikibench.trace.lines import MISSING, SAVE, VIEW, Request
from wikibench.visits import Load


@pytest.fixture(autouse=True)
def _frozen_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count no frozen objects: those of all tests, one by one, take a replay 2 s late in a run."""
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 1)


@pytest.fixture
def wiki() -> Iterator[FakeWiki]:
    with FakeWiki() as wiki:
        yield wiki


def trace_of(*visits: tuple[str, str], every_us: int = 2_000) -> list[Request]:
    return [Request(1_000_000 + n * every_us, f"http://w/{page}", flag) for n, (page, flag) in enumerate(visits)]


def run(wiki: FakeWiki, requests: list[Request], pace: Pace | None = None, **load: Any) -> Replay:
    pace = pace or Pace()
    shape = shape_of(requests)
    given = {"planned_s": planned_seconds(pace, shape), "allow_edits": True, **load}
    return replay(Load(parse_target(wiki.url), **given), plan(lambda: requests, pace, shape))


def outcomes(recorder: Recorder) -> dict[tuple[str, str], int]:
    return {(str(kind), str(outcome)): pair.response.count for (kind, outcome), pair in recorder.pairs.items()}


def command(*words: object) -> Result:
    patience = ("--lateness", "60s") if words[0] in ("replay", "search") else ()  # this machine may be busy
    return CliRunner().invoke(main, [str(word) for word in (*words, *patience)])


def slower_than(result: Replay, milliseconds: int, *, service: bool = False) -> int:
    return histogram_over(result.recorder.service() if service else result.recorder.response(), milliseconds)


def histogram_over(histogram: Histogram, milliseconds: int) -> int:
    return sum(count for value, count in histogram.counts.items() if histogram.top_of(value) >= milliseconds * 1000)


# -- honest latencies


def test_a_stall_is_charged_to_everybody_who_came_meanwhile() -> None:
    with FakeWiki(stall=(0.4, 0.5)) as wiki:
        result = run(
            wiki, trace_of(("Page", VIEW), ("Page2", VIEW)), Pace(rate=200, even=True, duration_s=1.2, loop=True)
        )
    result.recorder.check()
    assert result.recorder.count() == 240
    assert result.recorder.failed() == 0
    # 200 per second over half a second: those intended k/200 s before its end waited that long.  A machine that is
    # away makes it more; how many exactly, and that no others wait, is shown in time of its own (test_injector)
    assert slower_than(result, 50) >= 80
    assert slower_than(result, 250) >= 40
    assert result.recorder.response().percentile(100) >= 450_000


def test_with_few_requests_in_the_air_the_wait_still_counts() -> None:
    """A closed loop would show some slow requests; here the others' wait is in their response time."""
    with FakeWiki(stall=(0.4, 0.5)) as wiki:
        result = run(
            wiki,
            trace_of(("Page", VIEW), ("Page2", VIEW)),
            Pace(rate=200, even=True, duration_s=1.2, loop=True),
            open_requests=4,
        )
    assert result.recorder.count() == 240
    assert result.most_open == 4
    assert slower_than(result, 250, service=True) >= 4
    assert slower_than(result, 250) >= 40
    assert result.slot_wait.count >= 1


# -- classes


def test_every_end_of_a_request_has_its_class(wiki: FakeWiki) -> None:
    requests = trace_of(
        ("Page", VIEW),
        ("Redirect", VIEW),
        ("Loop", VIEW),
        ("Missing", MISSING),
        ("Missing", VIEW),
        ("Forbidden", VIEW),
        ("Error", VIEW),
        ("Short", VIEW),
        ("Garbage", VIEW),
        ("Hang", VIEW),
        ("Page_x", SAVE),
        ("Page_y", "20080103|given+text"),
        ("Conflict", SAVE),
        ("NoForm", SAVE),
        ("Again", SAVE),
        ("Forbidden", SAVE),
    )
    result = run(wiki, requests, timeout_s=5.0, names=("One", "Two"))  # the machine may be busy
    result.recorder.check()
    assert outcomes(result.recorder) == {
        ("page", "2xx"): 2,  # a redirect within the wiki is followed
        ("page", "broken"): 3,  # a redirect without end, a cut answer, no HTTP
        ("page", "4xx"): 2,
        ("page", "5xx"): 1,
        ("page", "timeout"): 1,
        ("missing", "404 expected"): 1,
        ("edit-form", "2xx"): 4,
        ("edit-form", "broken"): 1,
        ("edit-form", "4xx"): 1,
        ("edit-save", "3xx"): 2,
        ("edit-save", "conflict"): 1,
        ("edit-save", "broken"): 1,
    }
    assert result.recorder.failed() == 10
    assert result.sent == len(requests)  # visits; an edit is one
    assert wiki.wrong_saves == []  # token, cookie, base and an empty honeypot came back, "save" was pressed
    bodies = [fields["body"][0] for fields in wiki.saves]
    assert "given text" in bodies
    assert any("[[One]]" in body or "[[Two]]" in body for body in bodies)


def test_edits_are_made_from_seed_page_and_number(wiki: FakeWiki) -> None:
    requests = trace_of(("Page_a", SAVE), ("Page_b", SAVE))
    for seed in (1, 1, 2):
        run(wiki, requests, seed=seed)
    bodies = [sorted(fields["body"][0] for fields in wiki.saves[at : at + 2]) for at in (0, 2, 4)]
    assert bodies[0] == bodies[1]
    assert bodies[0] != bodies[2]


def test_what_cannot_be_sent_before_the_drain_ends_has_failed(wiki: FakeWiki) -> None:
    requests = trace_of(*[("Hang", VIEW)] * 2, *[("Page", VIEW)] * 5)
    result = run(wiki, requests, open_requests=2, drain_s=0.2, timeout_s=100)
    assert outcomes(result.recorder) == {("page", "unsent"): 5, ("page", "timeout"): 2}
    assert result.recorder.failed() == 7
    assert result.sent == 2  # of seven visits: the report tells what was sent from what was asked for
    assert result.elapsed_s < 60, "a timeout is 100 s"


def test_nobody_there_is_a_class_of_its_own(wiki: FakeWiki) -> None:
    with FakeWiki() as gone:
        pass
    assert outcomes(run(gone, trace_of(("Page", VIEW))).recorder) == {("page", "refused"): 1}


def test_connections_are_kept_and_the_warm_up_is_apart(wiki: FakeWiki) -> None:
    result = run(wiki, trace_of(*[("Page", VIEW)] * 40, every_us=5_000), warm_up_s=0.1)
    assert result.recorder.count(Kind.PAGE, [Outcome.OK]) == 20
    assert result.warm_up.count() == 20
    assert wiki.connections < 40  # some are used again; how many depends on how quick the machine is
    assert result.connections == wiki.connections


def test_a_request_that_is_sent_once_more_is_counted(wiki: FakeWiki) -> None:
    result = run(wiki, trace_of(("Page", VIEW), ("Drop", VIEW)), open_requests=1)
    assert outcomes(result.recorder) == {("page", "2xx"): 2}
    assert (result.retried, result.connections) == (1, 2)


# -- the commands


def test_from_the_wikis_titles_to_a_report(wiki: FakeWiki, tmp_path: Path) -> None:
    trace, out = tmp_path / "t.trace.gz", tmp_path / "out"
    made = command("synth", "--target", wiki.url, "--out", trace, "--rate", 200, "--duration", "1s", "--edits", "10%")
    assert made.exit_code == 0, made.output
    required = "p95<60s,errors<0.1%"
    words = ("replay", trace, "--target", wiki.url, "--require", required, "--report", out)
    played = command(*words, "--expect-404", "--allow-edits")
    assert played.exit_code == 0, played.output
    summary = json.loads((out / "report.json").read_text("utf-8"))
    assert summary["ending"] == "complete"
    assert summary["requests"]["failed"] == 0
    assert summary["trace"]["requests"] == 200
    assert {row["kind"] for row in summary["by_kind"]} == {"page", "edit-form", "edit-save"}
    assert summary["response_time"]["p95_ms"] > 0
    page = (out / "report.html").read_text("utf-8")
    assert page.count("<svg") == 3
    for outside in ("<script src", '<link rel="style', "<img", "@import"):
        assert outside not in page
    assert wiki.wrong_saves == []


def test_the_exit_status_says_what_was_missed(wiki: FakeWiki, tmp_path: Path) -> None:
    trace = tmp_path / "t"
    trace.write_text("1 1.000 http://w/Page -\n2 1.010 http://w/Error -\n")
    missed = command("replay", trace, "--target", wiki.url, "--require", "errors<0.1%,p95<5s")
    assert missed.exit_code == 1
    assert "MISSED errors<0.1%: got 50%, off by 49.9%" in missed.output
    assert command("replay", trace, "--target", wiki.url, "--require", "errors<=1").exit_code == 0
    assert command("replay", trace, "--target", wiki.url).exit_code == 0


def test_wrong_usage_is_told_in_a_line(wiki: FakeWiki, tmp_path: Path) -> None:
    trace, bad = tmp_path / "t", tmp_path / "bad"
    trace.write_text("1 1.000 http://w/Page -\n")
    bad.write_text("1 1.000 http://w/Page -\nnonsense\n")
    (tmp_path / "empty").write_text("")
    with FakeWiki() as gone:
        pass
    for words, why in (
        (("replay", trace, "--target", "http://192.0.2.1"), "--allow-remote"),
        (("replay", trace, "--target", wiki.url, "--require", "p95<200"), "needs its unit"),
        (("replay", trace, "--target", wiki.url, "--rate", "5", "--speed", "2"), "not both"),
        (("replay", trace, "--target", wiki.url, "--duration", "soon"), "not a duration"),
        (("replay", bad, "--target", wiki.url), "trace line 2"),
        (("replay", tmp_path / "empty", "--target", wiki.url), "no request"),
        (("replay", trace, "--target", gone.url), "nothing answers"),
        (("synth", "--target", wiki.url + "/none", "--out", trace, "--rate", "1", "--requests", "1"), "--titles"),
        (("synth", "--titles", trace, "--out", trace, "--rate", "1"), "exactly two"),
        (("search", trace, "--target", wiki.url), "--require"),
    ):
        result = command(*words)
        assert result.exit_code == 2, (words, result.output)
        assert why in result.output.replace("\n", " "), (words, result.output)
        assert "Traceback" not in result.output
    assert command("replay", bad, "--target", wiki.url, "--skip-bad-lines").exit_code == 0


def test_a_rate_that_changes_and_random_arrivals(wiki: FakeWiki, tmp_path: Path) -> None:
    trace, out = tmp_path / "t", tmp_path / "out.json"
    trace.write_text("1 1.000 http://w/A -\n2 9.000 http://w/B -\n")
    words = ("replay", trace, "--target", wiki.url)
    result = command(*words, "--profile", "50/s 200ms, 50..100/s 200ms", "--json", out)
    assert result.exit_code == 0, result.output
    assert json.loads(out.read_text())["requests"]["counted"] == 25
    result = command(*words, "--arrivals", "poisson", "--rate", 100, "--duration", "0.3s", "--json", out)
    assert result.exit_code == 0, result.output
    assert json.loads(out.read_text())["requests"]["counted"] == 30
    for bad, why in (
        (("--profile", "fast"), "not of the form"),
        (("--profile", "5/s 1s", "--arrivals", "trace"), "poisson or even"),
        (("--profile", "5/s 1s", "--rate", 5), "leave --rate"),
        (("--arrivals", "poisson"), "needs --rate and --duration"),
        (("--even", "--arrivals", "poisson"), "give one of them"),
    ):
        refused = command(*words, *bad)
        assert (refused.exit_code, why in " ".join(refused.output.split())) == (2, True), refused.output


def test_search_finds_the_largest_rate_that_keeps_the_requirement(wiki: FakeWiki, tmp_path: Path) -> None:
    # a try of 0.2 s at 250 a second asks for the first 50 pages, and the pages after them fail: what a try finds
    # follows from its rate, not from how quick this machine is today
    trace, out = tmp_path / "t", tmp_path / "out"
    names = [f"Page{n}" if n < 50 else f"Error{n}" for n in range(200)]
    trace.write_text("".join(f"{n} {n / 100:.3f} http://w/{name} -\n" for n, name in enumerate(names)))
    words = ("search", trace, "--target", wiki.url, "--require", "errors<0.1%", "--duration", "0.2s", "--even")
    words = (*words, "--arrivals", "trace", "--from", 200, "--precision", "20%", "--report", out)
    result = command(*words, "--curve", "--json", tmp_path / "answer.json")
    assert result.exit_code == 0, result.output
    verdicts = re.findall(r"try \d+: (\d+)/s for 0.2 s (kept|missed)", result.output)
    assert verdicts[:3] == [("200", "kept"), ("400", "missed"), ("400", "missed")]
    assert all((verdict == "kept") == (float(rate) <= 251) for rate, verdict in verdicts)
    said = re.search(r"keep: (\S+) per second, with 90 % between (\S+) and (\S+)", result.output)
    assert said is not None
    rate, low, high = said.groups()
    assert 240 <= float(rate) <= 260
    assert float(low) < 251 < float(high)
    assert json.loads((out / "report.json").read_text())["requirements"][0]["met"]
    curve = json.loads((tmp_path / "answer.json").read_text())["curve"]
    assert [row["share_of_answer"] for row in curve] == list(CURVE)
    asked = [row["asked/s"] / float(rate) for row in curve]
    assert asked == pytest.approx(CURVE, rel=0.25), "of some requests in 0.2 s"
    assert [bool(row["failed"]) for row in curve] == [False, False, False, False, False, True]
    page = (out / "search.html").read_text("utf-8")
    assert page.count("<figure><svg") == 2
    assert all(
        words in page
        for words in (
            f"keep: {rate} per second",
            "Largest rate that half",
            "1: kept",
            "2: missed",
            "110% of the answer",
        )
    )
    assert page.count("<tr>") == 2 + len(verdicts) + len(CURVE)


def test_search_says_when_no_rate_keeps_the_requirement(wiki: FakeWiki, tmp_path: Path) -> None:
    trace = tmp_path / "t"
    trace.write_text("1 1.000 http://w/Error -\n")
    words = ("search", trace, "--target", wiki.url, "--require", "errors<0.1%", "--duration", "0.1s")
    result = command(*words, "--from", 2)
    assert result.exit_code == 1
    assert "no rate kept the requirement" in result.output
    refused = command(*words, "--budget", "50ms")
    assert refused.exit_code == 2
    assert "--budget is shorter than one try" in refused.output


def test_ctrl_c_ends_the_replay_and_still_reports(wiki: FakeWiki, tmp_path: Path) -> None:
    trace = tmp_path / "t"
    trace.write_text("".join(f"{n} {n / 100:.3f} http://w/Page{n} -\n" for n in range(10_000)))
    words = ["-m", "wikibench.cli", "replay", str(trace), "--target", wiki.url, "--report", str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    assert wiki.twenty_gets.wait(60)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors.decode()
    summary = json.loads((tmp_path / "out" / "report.json").read_text())
    assert summary["ending"] == "interrupted"
    assert 10 <= summary["requests"]["counted"] < 10_000
    assert "Interrupted." in (tmp_path / "out" / "report.html").read_text()
