"""Two wikis measured in turn: who is sent what, and how it ends."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gauge.processes import Role, RoleWatch
from tests.support.fake_wiki import FakeWiki
from wikibench.cli import main
from wikibench.comparison import Comparison
from wikibench.experiment import Experiment
from wikibench.pacing import Pace
from wikibench.summary import Json, Replay

NEEDS_CONFIRMING = Comparison.needs_confirming


@pytest.fixture
def wikis() -> Iterator[tuple[FakeWiki, FakeWiki]]:
    with FakeWiki() as a, FakeWiki() as b:
        yield a, b


@pytest.fixture(autouse=True)
def nothing_shows_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries of a tenth of a second may differ, and a difference brings more rounds."""
    monkeypatch.setattr(Comparison, "needs_confirming", lambda _self, _limits: False)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    path.write_text("".join(f"{n} {1 + n / 1000:.3f} http://w/Page{n} -\n" for n in range(20)))
    return path


def ab(trace: object, wikis: tuple[FakeWiki, FakeWiki], *words: object, lateness: str = "60s") -> Result:
    urls = ("--a", wikis[0].url, "--b", wikis[1].url)
    given = ("ab", trace, *urls, "--duration", "0.1s", "--rounds", 2, "--lateness", lateness, *words)
    return CliRunner().invoke(main, [str(word) for word in given], env={"COLUMNS": "120"})


def test_both_are_sent_the_same_requests_in_turn_and_the_reports_are_kept(
    wikis: tuple[FakeWiki, FakeWiki], trace: Path, tmp_path: Path
) -> None:
    watch = f"wiki={os.getpid()}"
    words = ("--rate", 100, "--out", tmp_path / "out", "--watch-a", watch, "--watch-b", watch)
    result = ab(trace, wikis, *words, "--fail-if", "p50>+100000%")
    assert result.exit_code == 0, result.output
    rounds = [line.split(":")[0] for line in result.output.splitlines() if line.startswith("round ")]
    assert "".join(line[-1] for line in rounds) == "ABBAABBA"
    assert sorted(wikis[0].gets) == sorted(wikis[1].gets), "on a busy machine two of them change places"
    assert len(wikis[0].gets) == 1 + 5 * 10, "a look, a warm-up and four tries"
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [*(f"{side}-00{n}.json" for side in "ab" for n in range(1, 5)), "comparison.json"]
    written = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert (written["basis"], written["runs_of_each"]) == ("pairs", 4)
    assert written["figures"][0]["figure"] == "cpu"
    again = CliRunner().invoke(
        main,
        ["compare", *(str(tmp_path / "out" / name) for name in names[:4]), "--with"]
        + [str(tmp_path / "out" / name) for name in names[4:8]],
    )
    assert again.output.splitlines()[-1] == result.output.splitlines()[-2], "compare reads what ab has written"


@pytest.mark.parametrize(
    ("slower", "rounds", "verdict"),
    [((0.0, 0.0), 3, "same"), ((0.1, -0.07), 6, "cannot tell"), ((0.1, 0.1), 6, "worse")],
    ids=["equal", "by chance", "slower"],
)
def test_a_difference_counts_if_as_many_rounds_again_show_it(
    wikis: tuple[FakeWiki, FakeWiki],
    trace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    slower: tuple[float, float],
    rounds: int,
    verdict: str,
) -> None:
    """Of ten comparisons of a wiki with itself one said "worse", as often as 92 % of each figure let it."""
    monkeypatch.setattr(Comparison, "needs_confirming", NEEDS_CONFIRMING)
    go, summary, titles = Experiment.go, Experiment.summary, list[str]()

    def named(self: Experiment, pace: Pace, title: str) -> Replay:
        titles.append(title)
        return go(self, pace, title)

    def said(self: Experiment, result: Replay, required: Any, pace: Pace) -> Json:
        made, number = summary(self, result, required, pace), len(titles)
        share = slower[number > 2 + 3 * 4] if titles[-1].endswith("B") else 0.0
        p50_ms = 5.0 * (1 + share) * (1 + number % 3 / 1_000)
        return made | {"response_time": made["response_time"] | {"p50_ms": p50_ms}}

    monkeypatch.setattr(Experiment, "go", named)
    monkeypatch.setattr(Experiment, "summary", said)
    result = ab(trace, wikis, "--rate", 50, "--rounds", 3, "--out", tmp_path / "out")
    assert result.exit_code == (1 if verdict == "worse" else 0), result.output
    assert len(titles) == 2 + 4 * rounds
    assert ("3 rounds more" in result.output) == (rounds == 6)
    written = json.loads((tmp_path / "out" / "comparison.json").read_text())
    found = (written["verdict"], written["runs_of_each"], written["confidence"])
    assert found == (verdict, 2 * rounds, 0.92 if rounds == 3 else 0.99)


@pytest.mark.parametrize(
    ("slower", "rounds", "limit", "status"),
    [
        ((0.1, -0.07), 6, "p95>+5%", 3),
        ((0.1, 0.1), 6, "p95>+5%", 1),
        ((0.1, 0.1), 3, "p95>+20%", 0),
        ((0.0, 0.0), 3, "p95>+5%", 0),
    ],
    ids=["by chance", "slower", "within", "equal"],
)
def test_a_limit_of_a_figure_that_does_not_decide_is_missed_if_as_many_rounds_again_miss_it(
    wikis: tuple[FakeWiki, FakeWiki],
    trace: Path,
    monkeypatch: pytest.MonkeyPatch,
    slower: tuple[float, float],
    rounds: int,
    limit: str,
    status: int,
) -> None:
    """The verdict is "same" throughout, and of equal wikis four in a hundred missed such a limit."""
    monkeypatch.setattr(Comparison, "needs_confirming", NEEDS_CONFIRMING)
    summary, made = Experiment.summary, list[str]()

    def said(self: Experiment, result: Replay, required: Any, pace: Pace) -> Json:
        found, number = summary(self, result, required, pace), len(made)
        made.append("A" if number in (0, 1) else "ABBA"[(number - 2) % 4])
        share = slower[number >= 2 + 3 * 4] if made[-1] == "B" else 0.0
        times = {"p50_ms": 5.0 * (1 + number % 3 / 1_000), "p95_ms": 9.0 * (1 + share) * (1 + number % 3 / 1_000)}
        return found | {"response_time": found["response_time"] | times}

    monkeypatch.setattr(Experiment, "summary", said)
    result = ab(trace, wikis, "--rate", 50, "--rounds", 3, "--fail-if", limit)
    assert result.exit_code == status, result.output
    assert len(made) == 2 + 4 * rounds
    assert ("3 rounds more" in result.output) == (rounds == 6)


def test_without_a_rate_it_is_a_fifth_of_the_largest(
    wikis: tuple[FakeWiki, FakeWiki], trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, rates = Experiment.go, []

    def go(self: Experiment, pace: Pace, title: str) -> Replay:
        rates.append(pace.rate)
        if title.startswith("largest"):  # in time of its own
            monkeypatch.setattr(Experiment, "summary", lambda _self, _result, _required, pace: tried(pace.rate <= 200))
            return real(self, Pace(rate=50, even=True, duration_s=0.05, loop=True), title)
        monkeypatch.setattr(Experiment, "summary", summary)
        return real(self, pace, title)

    def tried(is_met: bool) -> dict[str, Any]:
        return {"valid": True, "requirements": [{"met": is_met}]}

    summary = Experiment.summary
    monkeypatch.setattr(Experiment, "go", go)
    result = ab(trace, wikis, "--fail-if", "p50>+100000%")  # or a slower B, by chance, would be status 1
    assert result.exit_code == 0, result.output
    assert rates[:5] == [50, 100, 200, 400, 400]
    assert set(rates[5:]) == {40.0}


@pytest.mark.parametrize("ended_at", [1, 7])
@pytest.mark.parametrize("is_between", [False, True], ids=["within a try", "between tries"])
def test_ctrl_c_is_130_with_the_pairs_until_then(
    wikis: tuple[FakeWiki, FakeWiki], trace: Path, monkeypatch: pytest.MonkeyPatch, ended_at: int, is_between: bool
) -> None:
    real, made = Experiment.go, []

    def go(self: Experiment, pace: Pace, title: str) -> Replay:
        made.append(title)
        if len(made) < ended_at:
            return real(self, pace, title)
        if is_between:
            raise KeyboardInterrupt
        return replace(real(self, pace, title), ending="interrupted")

    monkeypatch.setattr(Experiment, "go", go)
    result = ab(trace, wikis, "--rate", 100)
    assert (result.exit_code, len(made)) == (130, ended_at), result.output
    assert ("of these runs only" in result.output) == (ended_at == 7), "two whole pairs"


def test_a_late_generator_is_status_3_after_three_tries(wikis: tuple[FakeWiki, FakeWiki], trace: Path) -> None:
    result = ab(trace, wikis, "--rate", 100, lateness="0.001ms")
    assert result.exit_code == 3, result.output
    assert result.output.count("round 1 of 2, A: not valid") == 3
    assert "the generator, not the wikis" in result.output


def test_what_is_wrong_usage(wikis: tuple[FakeWiki, FakeWiki], trace: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for words, said in (
        (("-",), "give the trace as a file"),
        ((trace, "--watch-a", "wiki"), "not of the form"),
        ((trace, "--watch-b", "wiki=4194305"), "no process 4194305"),
        ((trace, "--out", tmp_path / "file"), "file"),
        ((trace, "--rounds", 1), "--rounds"),
    ):
        result = ab(words[0], wikis, "--rate", 100, *words[1:])
        assert result.exit_code == 2, result.output
        assert said in " ".join(result.output.replace("│", " ").split())
    assert not [get for wiki in wikis for get in wiki.gets if get.startswith("/Page")]


def test_the_processor_time_of_a_role_is_that_of_its_processes() -> None:
    watch = RoleWatch([Role("tests", (os.getpid(),)), Role("nobody", (4_194_305,))])
    watch.begin()
    sum(range(3_000_000))
    mine, nobodys = watch.uses()
    assert (mine.name, nobodys.cpu_s) == ("tests", 0.0)
    assert 0.02 <= mine.cpu_s <= 10
    assert mine.resident_mb > 10


def test_the_busiest_process_of_a_role_is_told_from_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In 10 s of 100 ticks each, one process takes 900, another 300, and a third begins meanwhile and takes 400."""
    moments = iter([100.0, 110.0])
    families = [{7: 50, 8: 20}, {9: 5}], [{7: 950, 8: 320, 10: 400}, {9: 5}]
    stages = iter(families)
    monkeypatch.setattr("gauge.processes.time.monotonic", lambda: next(moments))
    monkeypatch.setattr("gauge.processes.os.sysconf", lambda _name: 100)
    watch = RoleWatch([Role("wiki", (7,)), Role("store", (9,))])
    monkeypatch.setattr(watch, "_cpu_s", lambda: [0.0, 0.0])
    monkeypatch.setattr(watch, "_known_s", lambda: 0.0)
    monkeypatch.setattr(watch, "_ticks_of_each", lambda: next(stages))
    monkeypatch.setattr("gauge.processes.resident_mb", lambda _pids: 1.0)
    watch.begin()
    assert [use.busiest_share for use in watch.uses()] == [pytest.approx(0.9), 0.0]


def test_what_other_programs_took_of_the_machine_is_not_what_the_generator_or_a_role_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clocks are given: of 10 s of two cores 8 s were worked, 3 s of them by this process and 1 s by the role."""
    moments, worked, known = iter([100.0, 110.0]), iter([50.0, 58.0]), iter([(1.0, 2.0), (2.0, 5.0)])
    monkeypatch.setattr("gauge.processes.time.monotonic", lambda: next(moments))
    monkeypatch.setattr("gauge.processes.busy_s", lambda: next(worked))
    monkeypatch.setattr("gauge.processes.os.cpu_count", lambda: 2)
    watch = RoleWatch([Role("role", (4_194_305,))])
    monkeypatch.setattr(watch, "_cpu_s", list)
    monkeypatch.setattr("gauge.processes.cpu_s_of", lambda _pids: next(known))
    watch.begin()
    assert watch.others_share() == 0.2
    monkeypatch.undo()
    assert RoleWatch([]).others_share() is None, "it has not begun"
