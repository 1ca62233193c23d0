"""``wikibench clients``: a closed loop asks as clients, pauses and wiki allow, and says what was in time."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.fake_wiki import FakeWiki
from wikibench.cli import main
from wikibench.commands.clients import ClosedLoop, Stretch, lines_of, row_of
from wikibench.http.answer import Answer, NoAnswer
from wikibench.http.pool import Wire
from wikibench.latency import Recorder, Sample
from wikibench.outcome import Kind, Outcome
from wikibench.targets.target import parse_target
from wikibench.trace.lines import Request
from wikibench.visits import Load


def command(*words: object, text: str | None = None) -> Result:
    return CliRunner().invoke(main, ["clients", *map(str, words)], input=text)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "day.trace"
    path.write_text("".join(f"{n} {1190146243 + n}.000 http://w/Page_{n} -\n" for n in range(50)))
    return path


def test_what_was_in_time_counts_good_answers_alone() -> None:
    recorder = Recorder(1.0)
    for outcome, seconds in ((Outcome.OK, 0.1), (Outcome.OK, 0.3), (Outcome.SERVER_ERROR, 0.1), (Outcome.OK, 0.199)):
        recorder.add(Sample(Kind.PAGE, outcome, 0.0, 0.0, seconds))
    row = row_of(Stretch(1, 2.0, 0.0, 0.0, 0.2), recorder, 2.0, 0.1, 5)
    assert (row["within_percent"], row["got_per_s"]) == (50.0, 1.5)
    assert row["requests"] == {"counted": 4, "failed": 1, "sent": 5}
    assert row_of(Stretch(1, 2.0, 0.0, 0.0, 0.2), Recorder(1.0), 2.0, 0.1, 5)["within_percent"] is None


def test_each_number_of_clients_is_a_stretch(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    with FakeWiki() as wiki:
        result = command(trace, "--target", wiki.url, "--number", "1,3", "--duration", "1s", "--json", out)
        assert result.exit_code == 0, result.output
        assert wiki.connections <= 3 + 2, "a client keeps its connection; the check of the target had its own"
        assert "A closed loop hides stalls" in result.output
        piped = command("-", "--target", wiki.url, "--duration", "100ms", text=trace.read_text())
        assert piped.exit_code == 0, piped.output
        more = tmp_path / "more.trace"
        more.write_text("1 1190146200.000 http://w/More -\n")
        both = command(trace, more, "--target", wiki.url, "--number", "30", "--duration", "1s")
        assert both.exit_code == 0, both.output
        assert {"/More", "/Page_7"} <= set(wiki.gets), "several files, as all commands take them"
    found = json.loads(out.read_text())
    assert [row["clients"] for row in found["rows"]] == [1, 3]
    assert all(row["requests"]["counted"] > 3 and not row["requests"]["failed"] for row in found["rows"])


def test_the_pages_of_another_wiki_are_asked_for_and_its_processes_watched(trace: Path, tmp_path: Path) -> None:
    out, words = tmp_path / "found.json", ("--map", "mediawiki", "--connections", "fresh", "--duration", "150ms")
    with FakeWiki() as wiki:
        result = command(trace, "--target", wiki.url, *words, "--watch", f"wiki={os.getpid()}", "--json", out)
        assert result.exit_code == 0, result.output
        (row,) = json.loads(out.read_text())["rows"]
        assert wiki.connections > row["requests"]["sent"], "and that of the check"
        assert {path.partition("Page")[0] for path in wiki.gets if "Page" in path} == {"/index.php/"}
    (role,) = row["roles"]
    assert role["role"] == "wiki"
    assert "wiki: " in result.output
    assert "no process 4194301" in command(trace, "--target", wiki.url, "--watch", "wiki=4194301").output


def test_a_generator_that_is_the_limit_is_said() -> None:
    row = row_of(Stretch(1, 2.0, 0.0, 0.0, 0.2), Recorder(1.0), 2.0, 0.9, 0) | {"roles": []}
    assert [line for line in lines_of(row) if "it may be the limit" in line]
    assert not [line for line in lines_of(row | {"generator_cpu_share": 0.5}) if "limit" in line]


def test_pauses_bound_the_rate(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    with FakeWiki() as wiki:
        command(trace, "--target", wiki.url, "--number", 2, "--think", "10s", "--duration", "200ms", "--json", out)
    (row,) = json.loads(out.read_text())["rows"]
    assert row["requests"]["counted"] <= 2


def test_mistakes_are_said(trace: Path, tmp_path: Path) -> None:
    assert command(trace, "--target", "http://127.0.0.1:9", "--number", "0").exit_code == 2
    assert "nothing answers" in command(trace, "--target", "http://127.0.0.1:9").output
    saves = tmp_path / "saves.trace"
    saves.write_text("1 1190146243.000 http://w/Page save\n")
    with FakeWiki() as wiki:
        assert "no page view" in command(saves, "--target", wiki.url).output
        late = command(trace, "--target", wiki.url, "--warm-up", "2s", "--duration", "1s")
    assert "leaves nothing" in late.output


class HangingWire(Wire):
    """Never answers."""

    def __init__(self) -> None:
        self.asked = 0

    async def exchange(self, *_: Any, **_more: Any) -> Answer | NoAnswer:
        self.asked += 1
        return await asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        pass


def test_a_cancelled_stretch_ends_though_its_clients_are_within_a_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C cancels it; a view takes that for the end of its own, and its client would go on to the stretch's end."""
    wire = HangingWire()
    monkeypatch.setattr("wikibench.commands.clients.wire_of", lambda _: wire)
    closed = ClosedLoop(
        Load(parse_target("http://127.0.0.1:1")), [Request(0, "/Page")], Stretch(10, 3_600.0, 0.0, 0.0, 0.2)
    )

    async def cancelled() -> None:
        running = asyncio.create_task(closed.run())
        for _ in range(10):  # iterations of the loop, in which all of them begin
            await asyncio.sleep(0)
        running.cancel()
        _, unfinished = await asyncio.wait({running}, timeout=1)
        assert not unfinished

    asyncio.run(asyncio.wait_for(cancelled(), 5))
    assert wire.asked == 10
    assert not closed.recorder.count()
