"""Real worker processes, killed and stopped; a controller that is killed; workers that connect with a token.

Each time: planned = answered + failed + lost + interrupted, and nothing is sent twice.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from gauge.processes import children_of
from tests.support.deep import seeds
from tests.support.fake_wiki import FakeWiki
from wikibench.cli import main
from wikibench.crew.controller import Controller, conducted, result_of
from wikibench.crew.controller_state import ControllerState
from wikibench.crew.local import LocalWorkers
from wikibench.crew.worker import Check, work
from wikibench.errors import CrewError
from wikibench.live import LiveLine, Snapshot
from wikibench.pacing import Planned
from wikibench.request_log import RequestLog
from wikibench.run import loop_factory
from wikibench.summary import Replay, why_not_valid
from wikibench.targets.target import parse_target, require_loopback
from wikibench.trace.lines import Request
from wikibench.visits import Load

ROOT = Path(__file__).parents[2]
KILLS = seeds("kills of a load's worker", deep=100, short=2)
STOPS = seeds("stops of a load's worker", deep=100, short=1)
RATE = 200
COMMANDS_S = 150  # four of them start, and the machine may be busy
TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def wiki() -> Iterator[FakeWiki]:
    with FakeWiki() as wiki:
        yield wiki


class AtMoments(LiveLine):
    """The line of a replay, which does something at each of some moments."""

    def __init__(self, what: list[tuple[float, Callable[[], object]]]) -> None:
        super().__init__("")
        self.what = what

    def tick(self, now: Snapshot) -> None:
        while self.what and now.now_s >= self.what[0][0]:
            self.what.pop(0)[1]()


def replayed(
    wiki: FakeWiki, seconds: float, *what: tuple[float, int, signal.Signals], spares_lost: bool = False
) -> Replay:
    """Replay with two workers, which get signals at moments; check that every request has one end."""
    count = round(RATE * seconds)
    rows = (Planned(number / RATE, Request(0, f"/Page{number}")) for number in range(count))
    state = ControllerState(Load(parse_target(wiki.url), planned_s=seconds, drain_s=20.0), rows, 2, lead_s=0.2)
    state.prepare()
    with LocalWorkers().start(2) as processes, asyncio.Runner(loop_factory=loop_factory()) as runner:
        pids = processes.pids
        line = AtMoments([(at_s, partial(os.kill, pids[number], sent)) for at_s, number, sent in what])
        lost = (lambda _: None) if spares_lost else processes.kill_worker
        runner.run(Controller(state, line, lost).run(processes.connections))
    state.check()
    result = result_of(state, 0.0)
    assert result.crew.planned == count
    assert result.recorder.count() + result.crew.lost_requests == count
    assert max(Counter(wiki.gets).values()) == 1, "a request was sent twice"
    return result


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wikibench.crew.controller.LIVE_S", 0.05)
    monkeypatch.setattr("wikibench.crew.worker.TICK_S", 0.2)


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("seed", range(KILLS))
def test_a_killed_worker(wiki: FakeWiki, seed: int) -> None:
    moment_s = random.Random(seed).uniform(0.0, 1.0)
    result = replayed(wiki, 2.5, (moment_s, seed % 2, signal.SIGKILL))
    assert result.crew.lost == 1
    assert "workers were lost" in why_not_valid(result, 60_000.0)[0]
    assert result.recorder.count() > RATE * 2.5 * 0.5, "the other one has taken over"


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("seed", range(STOPS))
def test_a_stopped_worker(wiki: FakeWiki, seed: int) -> None:
    """It is away for longer than the controller waits, and comes back while the others have its requests."""
    at_s = random.Random(seed).uniform(0.1, 0.5)
    back_s = at_s + random.Random(seed + 1).uniform(3.2, 4.0)
    signals = (at_s, seed % 2, signal.SIGSTOP), (back_s, seed % 2, signal.SIGCONT)
    result = replayed(wiki, 5.0, *signals, spares_lost=True)
    assert result.crew.lost == 1


@pytest.mark.usefixtures("_quick")
def test_a_worker_that_is_stopped_for_a_moment_is_not_lost(wiki: FakeWiki) -> None:
    result = replayed(wiki, 1.5, (0.1, 0, signal.SIGSTOP), (1.1, 0, signal.SIGCONT))
    assert (result.crew.lost, result.crew.lost_requests, result.recorder.count()) == (0, 0, 300)


# -- by the command


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace"
    path.write_text("".join(f"{n} {1000 + n / 100:.3f} http://w/Page{n} -\n" for n in range(150)))
    return path


def started(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from wikibench.cli import main; main()", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def port_of(controller: subprocess.Popen[str]) -> str:
    assert controller.stderr is not None
    for line in controller.stderr:
        if match := re.search(r"wikibench worker (\S+:\d+)", line):
            return match[1]
    raise AssertionError("the controller does not listen")


@pytest.mark.timeout(3 * COMMANDS_S)
def test_workers_connect_with_the_token_and_a_stranger_does_not(wiki: FakeWiki, trace: Path, tmp_path: Path) -> None:
    token, other = tmp_path / "token", tmp_path / "other"
    token.write_text(TOKEN)
    other.write_text(TOKEN[::-1])
    words = ("replay", trace, "--target", wiki.url, "--lateness", "60s", "--report", tmp_path / "out")
    controller = started(*words, "--listen", "127.0.0.1:0", "--expect", 2, "--token-file", token)
    address = port_of(controller)
    stranger = started("worker", address, "--token-file", other)
    assert "another token" in "".join(stranger.communicate(timeout=COMMANDS_S))
    assert stranger.returncode == 2
    workers = [started("worker", address, "--token-file", token) for _ in range(2)]
    output, errors = controller.communicate(timeout=COMMANDS_S)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert controller.returncode in (0, 3), output + errors  # 3: a busy machine may compare clocks badly
    assert Counter(wiki.gets[1:]) == Counter(f"/Page{number}" for number in range(150))
    assert report["requests"]["counted"] == 150
    assert (report["generator"]["workers"], report["generator"]["workers_lost"]) == (2, 0)
    for worker in workers:
        output, errors = worker.communicate(timeout=COMMANDS_S)
        assert (worker.returncode, errors) == (0, "served 1\n")


def test_workers_end_with_their_controller(wiki: FakeWiki, trace: Path) -> None:
    controller = started("replay", trace, "--target", wiki.url, "--workers", 2, "--speed", 0.1)
    deadline_s = time.monotonic() + 60
    while len(wiki.gets) < 5 and time.monotonic() < deadline_s:
        os.sched_yield()
    workers = children_of(controller.pid)
    assert len(workers) == 2
    controller.kill()
    controller.communicate(timeout=60)
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline_s:
        os.sched_yield()
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_ctrl_c_ends_a_crew_with_its_report(wiki: FakeWiki, trace: Path, tmp_path: Path) -> None:
    words = ("replay", trace, "--target", wiki.url, "--workers", 2, "--speed", 0.1, "--report", tmp_path / "out")
    controller = started(*words)
    deadline_s = time.monotonic() + 60
    while len(wiki.gets) < 5 and time.monotonic() < deadline_s:
        os.sched_yield()
    controller.send_signal(signal.SIGINT)
    controller.communicate(timeout=60)
    assert controller.returncode == 130
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (report["ending"], report["requests"]["lost"]) == ("interrupted", 0)
    assert 0 < report["requests"]["counted"] < 150


def test_ctrl_c_ends_a_controller_that_waits_for_its_workers(wiki: FakeWiki, trace: Path) -> None:
    controller = started("replay", trace, "--target", wiki.url, "--listen", "127.0.0.1:0", "--expect", 1)
    port_of(controller)
    controller.send_signal(signal.SIGINT)
    _, errors = controller.communicate(timeout=60)
    assert (controller.returncode, "Traceback" in errors) == (130, False), errors


def test_a_crew_that_is_interrupted_before_it_begins_has_no_figures() -> None:
    state = ControllerState(Load(parse_target("http://127.0.0.1:9")), [Planned(0.0, Request(0, "/"))], 1)
    state.prepare()
    state.interrupt()
    with pytest.raises(KeyboardInterrupt):
        conducted(Controller(state, LiveLine("")), ())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--listen", "0.0.0.0:0", "--expect", 2), "it needs --token-file"),
        (("--listen", "127.0.0.1:0"), "--listen needs --expect"),
        (("--expect", 2), "are for --listen"),
        (("--listen", "nowhere", "--expect", 2), "is not of the form HOST:PORT"),
    ],
)
def test_wrong_usage_is_said(wiki: FakeWiki, trace: Path, words: tuple[object, ...], said: str) -> None:
    result = CliRunner().invoke(main, ["replay", str(trace), "--target", wiki.url, *map(str, words)])
    assert result.exit_code == 2
    assert said in " ".join(result.output.replace("│", " ").split())
    assert len(wiki.gets) <= 1, "nothing but the first look"


def test_a_worker_refuses_a_target_that_is_not_on_its_machine() -> None:
    def refusing(connection: socket.socket, name: str, token: bytes, _: Check, _log: RequestLog | None) -> str:
        return work(connection, name, token, lambda load: require_loopback(load.target))

    state = ControllerState(Load(parse_target("http://192.0.2.1")), [Planned(0.0, Request(0, "/"))], 1)
    state.prepare()
    with LocalWorkers(refusing).start(1) as processes:
        controller = Controller(state, LiveLine(""))
        with pytest.raises(CrewError, match=r"does not take the load: 192\.0\.2\.1 is not this machine"):
            conducted(controller, processes.connections)
