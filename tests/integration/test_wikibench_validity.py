"""What wikibench refuses to begin, what it says of a run that is not valid, and the rates that a search reports."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.integration.test_wikibench_replay import command, outcomes, run, trace_of
from tests.support.fake_wiki import FakeWiki, reply
from wikibench.cli import main
from wikibench.targets.bodies import edit_body
from wikibench.trace.lines import SAVE


@pytest.fixture
def wiki() -> Iterator[FakeWiki]:
    with FakeWiki() as wiki:
        yield wiki


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    path.write_text("".join(f"{n} {1 + n / 1000:.3f} http://w/Page{n} -\n" for n in range(20)))
    return path


@pytest.fixture
def edits(tmp_path: Path) -> Path:
    path = tmp_path / "edits"
    path.write_text("".join(f"{n} {1 + n / 1000:.3f} http://w/Page{n} save\n" for n in range(5)))
    return path


GARBAGE = [
    b"\x00\x01\x02 this is no answer\r\n\r\n",
    b"HTTP/1.1 abc Strange\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1_000 + b"\r\n",
    b"HTTP/1.1 200 " + b"x" * 100_000,
    b"",
    b"SSH-2.0-OpenSSH_9.2p1\r\n",
]


@pytest.mark.parametrize("front", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_at_the_first_look_is_wrong_usage(front: bytes, trace: Path, tmp_path: Path) -> None:
    with FakeWiki(front=front) as wiki:
        for words in (
            ("replay", trace, "--target", wiki.url),
            ("search", trace, "--target", wiki.url, "--require", "errors<=0"),
            ("synth", "--target", wiki.url, "--out", tmp_path / "out", "--rate", 1, "--requests", 1),
        ):
            result = command(*words)
            assert result.exit_code == 2, (words, result.output, result.exception)
            assert "answers" in result.output.replace("\n", " ")
        assert wiki.gets == []


def test_the_first_look_stays_at_the_target(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a redirect nor a proxy of the environment leads it away."""
    with FakeWiki() as other:
        monkeypatch.setenv("http_proxy", other.url)
        monkeypatch.setenv("no_proxy", "")
        with FakeWiki(front=reply(302, "", f"Location: {other.url}/api/titles")) as wiki:
            assert command("replay", trace, "--target", wiki.url).exit_code == 0
            made = command("synth", "--target", wiki.url, "--out", tmp_path / "o", "--rate", 1, "--requests", 1)
            assert made.exit_code == 2
            assert "(status 302)" in made.output.replace("\n", " ")
        assert other.connections == 0


# -- validity


def test_a_late_generator_is_status_3_whatever_was_met(wiki: FakeWiki, trace: Path, tmp_path: Path) -> None:
    """No generator is on time to a microsecond."""
    words = ("replay", trace, "--target", wiki.url, "--lateness", "0.001ms")
    for more in (("--require", "errors<=0", "--report", tmp_path / "out"), ("--require", "errors>5")):
        result = cli_result(*words, *more)
        assert result.exit_code == 3, result.output
        assert "NOT VALID, whatever was met: the generator itself sent" in result.output.replace("\n", " ")
    summary = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (summary["valid"], summary["requirements"][0]["met"]) == (False, True)
    assert "Not valid" in (tmp_path / "out" / "report.html").read_text()


def cli_result(*words: object) -> Result:
    """As it is typed: with the bound on the generator's lateness that it is given."""
    return CliRunner().invoke(main, [str(word) for word in words])


def test_a_search_that_the_generator_ended_is_not_valid(wiki: FakeWiki, trace: Path) -> None:
    words = ("search", trace, "--target", wiki.url, "--require", "errors<=0", "--duration", "0.1s", "--from", 50)
    result = cli_result(*words, "--lateness", "0.001ms")
    assert result.exit_code == 3, result.output
    assert "the generator, not the wiki, was the limit" in result.output
    assert "no rate kept the requirement" in result.output


@pytest.mark.parametrize("workers", [1, 2])
def test_each_planned_request_is_one_of_those_that_the_report_counts(
    wiki: FakeWiki, trace: Path, edits: Path, tmp_path: Path, workers: int
) -> None:
    """C1 of the crew: planned = answered + failed + lost + interrupted.  A save belongs to its edit."""
    out = tmp_path / "out.json"
    words = ("--target", wiki.url, "--allow-edits", "--warm-up", "0.005s", "--workers", workers, "--json", out)
    result = command("replay", trace, edits, *words)
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())
    requests = found["requests"]
    assert requests["planned"] == 25
    saves = sum(row["count"] for row in found["by_kind"] if row["kind"] == "edit-save")
    assert len(wiki.saves) == 5
    assert found["warm_up"]["requests"] + requests["counted"] + requests["lost"] == 25 + len(wiki.saves)
    assert saves <= len(wiki.saves), "those of the warm-up are counted there"


# -- searching


def test_a_search_offers_the_rate_that_it_says_whatever_the_shape_of_the_trace(wiki: FakeWiki, tmp_path: Path) -> None:
    """The trace begins with its quiet half: tries of its beginning, stretched to a mean, offered 40 to 60 of 100."""
    trace, out = tmp_path / "shaped", tmp_path / "out"
    times = [n / 20 for n in range(20)] + [1 + n / 60 for n in range(60)]  # 20/s, then 60/s: 40/s in the mean
    trace.write_text("".join(f"{n} {1_000 + at:.3f} http://w/Page{n} -\n" for n, at in enumerate(times)))
    words = ("search", trace, "--target", wiki.url, "--require", "errors<=0", "--duration", "0.3s")
    answer = tmp_path / "answer.json"
    result = command(*words, "--from", 100, "--to", 100, "--report", out, "--json", answer)
    assert result.exit_code == 0, result.output
    assert "every rate kept the requirement, up to 100.0 per second: raise --to" in result.output.replace("\n", " ")
    assert len(wiki.gets[1:]) == json.loads(answer.read_text())["sent"] == 30
    assert wiki.gets[1] != "/Page0", "each try begins anywhere in the trace"
    summary = json.loads((out / "report.json").read_text())
    assert summary["pace"]["poisson_seed"] is not None, "the report says how its requests were drawn"


def test_a_miss_by_chance_does_not_cap_a_search(tmp_path: Path) -> None:
    trace = tmp_path / "t"
    trace.write_text("1 1.000 http://w/Page -\n2 1.010 http://w/Once -\n")
    with FakeWiki() as wiki:
        words = ("search", trace, "--target", wiki.url, "--require", "errors<=0", "--duration", "0.2s", "--even")
        result = command(*words, "--arrivals", "trace", "--from", 20, "--to", 40)
    assert result.exit_code == 0, result.output
    assert re.findall(r"try \d: (\d+)/s for 0.2 s (kept|missed)", result.output) == [
        ("20", "missed"), ("20", "kept"), ("40", "kept"),
    ]  # fmt: skip


# -- texts of others


def test_a_replay_does_not_overwrite_the_texts_of_others(edits: Path) -> None:
    with FakeWiki(text="What somebody wrote.") as wiki:
        refused = command("replay", edits, "--target", wiki.url)
        assert refused.exit_code == 2
        said = " ".join(refused.output.replace("│", " ").split())
        assert "whose text no replay wrote: 5 of 5 looked at, the first is 'Page0'; pass --allow-edits" in said
        assert wiki.saves == []
        assert command("replay", edits, "--target", wiki.url, "--allow-edits").exit_code == 0
        assert len(wiki.saves) == 5


@pytest.mark.parametrize("text", ["", "\r\n", edit_body(random.Random(1), "A = page", 7, ("Other",))])
def test_empty_pages_and_those_of_a_replay_are_edited(text: str, edits: Path) -> None:
    with FakeWiki(text=text) as wiki:
        assert command("replay", edits, "--target", wiki.url, "--require", "errors<=0").exit_code == 0
        assert len(wiki.saves) == 5


def test_each_edit_looks_at_the_text_again() -> None:
    """The look beforehand sees some pages, some time before."""
    with FakeWiki(text="What somebody wrote.") as wiki:
        result = run(wiki, trace_of(("Page_x", SAVE)), allow_edits=False)
        assert wiki.saves == []
    assert outcomes(result.recorder) == {("edit-form", "2xx"): 1, ("edit-save", "broken"): 1}
    assert "--allow-edits overwrites it" in result.recorder.failures[0].why
