"""Worker processes are dealt a plan without loss or repeats, and their figures add up; a dead one is seen."""

from __future__ import annotations

import asyncio
import io
import socket
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.fake_wiki import FakeWiki
from tests.unit.wikibench.test_latency import SAMPLES
from wikibench.crew.controller import Controller, result_of
from wikibench.crew.controller_state import ControllerState
from wikibench.crew.figures import add_to, ticks_of
from wikibench.crew.frames import FRAME_BYTES, FrameReader, Standing, Tick, encoded
from wikibench.crew.local import LocalWorkers, replay_shared
from wikibench.errors import CrewError
from wikibench.latency import Figures, Recorder, Sample
from wikibench.live import LiveLine, Snapshot
from wikibench.pacing import Pace, Planned, plan, shape_of
from wikibench.run import loop_factory
from wikibench.summary import why_not_valid
from wikibench.targets.target import parse_target
from wikibench.trace.lines import Request
from wikibench.visits import Load


@pytest.fixture
def wiki() -> Iterator[FakeWiki]:
    with FakeWiki() as wiki:
        yield wiki


def planned(count: int, flag: str = "-") -> Iterator[Planned]:
    for number in range(count):
        yield Planned(number / 500, Request(number, f"/Page{number}", flag))


class Killing(LiveLine):
    """The line of a replay, which kills a worker when it is drawn for the first time."""

    def __init__(self, title: str, number: int, processes: LocalWorkers) -> None:
        super().__init__(title)
        self.number, self.processes = number, processes

    def tick(self, now: Snapshot) -> None:
        self.processes.kill_worker(self.number)


def replayed(controller: Controller, connections: Sequence[socket.socket]) -> None:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(controller.run(connections))
    if controller.state.failure:
        raise CrewError(controller.state.failure)


def load_on(wiki: FakeWiki, **more: object) -> Load:
    return Load(parse_target(wiki.url), planned_s=0.1, allow_edits=True, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [2, 3])
def test_every_request_is_sent_once_and_counted_once(wiki: FakeWiki, workers: int) -> None:
    result = replay_shared(load_on(wiki, open_requests=64), planned(50), workers, LiveLine("test"))
    result.recorder.check()
    assert Counter(wiki.gets) == Counter(f"/Page{number}" for number in range(50))
    assert (result.recorder.count(), result.sent, result.ending) == (50, 50, "complete")
    assert (result.crew.workers, result.crew.lost, result.crew.planned, result.crew.starved) == (workers, 0, 50, 0)
    assert result.open_limit == 64 // workers * workers
    assert result.connections >= workers
    assert 0 < result.cpu_share <= 1.0 * workers
    assert why_not_valid(result, 60_000.0) == []


def test_edits_have_the_numbers_that_one_process_gives_them(wiki: FakeWiki) -> None:
    requests = [Request(number, f"/Page{number}", "save") for number in range(8)]
    shape = shape_of(requests)
    replay_shared(load_on(wiki), plan(lambda: requests, Pace(), shape), 2, LiveLine("test"))
    numbers = [fields["body"][0].split(" of the replay")[0].rpartition(" ")[2] for fields in wiki.saves]
    assert sorted(map(int, numbers)) == list(range(1, 9))


def test_a_worker_that_is_killed_is_lost_and_the_other_takes_over(
    wiki: FakeWiki, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wikibench.crew.controller.LIVE_S", 0.3)
    monkeypatch.setattr("wikibench.crew.worker.TICK_S", 0.1)
    load = load_on(wiki, drain_s=5.0)
    state = ControllerState(load, planned(300), 2, lead_s=0.1)
    state.prepare()
    with LocalWorkers().start(2) as processes:
        line = Killing("test", 0, processes)
        replayed(Controller(state, line, processes.kill_worker), processes.connections)
    state.check()
    result = result_of(state, 0.0)
    assert (result.crew.workers, result.crew.lost, result.crew.planned) == (2, 1, 300)
    assert result.recorder.count() + result.crew.lost_requests == 300
    assert max(Counter(wiki.gets).values()) == 1, "nothing is sent twice"
    assert "1 of 2 workers were lost" in why_not_valid(result, 60_000.0)[0]


def test_a_worker_that_ends_before_the_start_is_an_error(wiki: FakeWiki) -> None:
    state = ControllerState(load_on(wiki), planned(1), 2)
    state.prepare()
    with LocalWorkers().start(2) as processes:
        processes.kill_worker(1)
        with pytest.raises(CrewError, match="was lost before the load began"):
            replayed(Controller(state, LiveLine("test"), processes.kill_worker), processes.connections)


@given(st.lists(SAMPLES, max_size=30), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_merged_figures_are_those_of_one_that_recorded_all(samples: list[Sample], workers: int) -> None:
    """By frames, as between processes; each worker ticks after its every third sample."""
    planned_s = 500_000.0  # intervals of 834 s
    whole, merged = Recorder(planned_s), Figures.empty(planned_s)
    shares = [Figures.empty(planned_s) for _ in range(workers)]
    for number, sample in enumerate(samples):
        whole.add(sample)
        share = shares[number % workers]
        share.recorder.add(sample)
        if share.recorder.count() == 3:
            add_to(merged, sent(share))
            shares[number % workers] = Figures.empty(planned_s)
    for share in shares:
        add_to(merged, sent(share))
    merged.recorder.check()
    histograms = {key: (pair.response.counts, pair.service.counts) for key, pair in whole.pairs.items()}
    found = {key: (pair.response.counts, pair.service.counts) for key, pair in merged.recorder.pairs.items()}
    assert found == histograms
    assert merged.recorder.intervals == whole.intervals
    assert merged.recorder.received_bytes == whole.received_bytes
    assert merged.recorder.failures == sorted(whole.failures, key=lambda one: one.intended_s)


def test_a_tick_of_many_buckets_goes_in_several_frames() -> None:
    share, merged = Figures.empty(10.0), Figures.empty(10.0)
    for value in [first << size for size in range(12) for first in range(1024, 2048)]:
        share.own_lateness.record(value)
        share.slot_wait.record(value)
        share.dealt_late.record(value)
    frames = list(ticks_of(share, Standing()))
    assert len(frames) > 1
    assert max(len(encoded(one)) for one in frames) < FRAME_BYTES / 2
    add_to(merged, frames)
    assert merged.named() == share.named()


def sent(figures: Figures) -> list[Tick]:
    reader = FrameReader()
    reader.trust()
    for tick in ticks_of(figures, Standing()):
        reader.append(encoded(tick))
    return [frame for frame in iter(reader.next_frame, None) if isinstance(frame, Tick)]


def test_a_line_of_several_workers_is_drawn(monkeypatch: pytest.MonkeyPatch, wiki: FakeWiki) -> None:
    monkeypatch.setattr("wikibench.crew.controller.LIVE_S", 0.02)
    monkeypatch.setattr("wikibench.live.QUIET_S", 0.0)
    drawn = io.StringIO()
    monkeypatch.setattr("sys.stderr", drawn)
    replay_shared(load_on(wiki), planned(100), 2, LiveLine("shared"))
    assert "shared" in drawn.getvalue()
    assert "failed 0" in drawn.getvalue()
