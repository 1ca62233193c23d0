"""Worker processes share a plan without loss or repeats, and their figures add up; a dead one is seen."""

from __future__ import annotations

import io
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.fake_wiki import FakeWiki
from tests.unit.wikibench.test_latency import SAMPLES, replay_of
from wikibench.latency import Recorder, Sample
from wikibench.live import LiveLine
from wikibench.pacing import Planned
from wikibench.summary import merged_replays, summarize, why_not_valid
from wikibench.targets.target import parse_target
from wikibench.trace.lines import Request
from wikibench.visits import Load
from wikibench.workers import replay_shared


@pytest.fixture
def wiki() -> Iterator[FakeWiki]:
    with FakeWiki() as wiki:
        yield wiki


def planned(count: int, flag: str = "-") -> Iterator[Planned]:
    for number in range(count):
        yield Planned(number / 500, Request(number, f"/Page{number}", flag))


def load_on(wiki: FakeWiki, **more: object) -> Load:
    return Load(parse_target(wiki.url), planned_s=0.1, allow_edits=True, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [2, 3])
def test_every_request_is_sent_once_and_counted_once(wiki: FakeWiki, workers: int) -> None:
    result = replay_shared(load_on(wiki, open_requests=64), lambda: planned(50), workers, LiveLine("test"))
    result.recorder.check()
    assert Counter(wiki.gets) == Counter(f"/Page{number}" for number in range(50))
    assert (result.recorder.count(), result.sent, result.ending) == (50, 50, "complete")
    assert (result.crew.workers, result.crew.lost) == (workers, 0)
    assert result.open_limit == 64 // workers * workers
    assert 0 < result.cpu_share <= 1.0 * workers
    assert why_not_valid(result, 60_000.0) == []


def test_edits_of_workers_have_numbers_of_their_own(wiki: FakeWiki) -> None:
    replay_shared(load_on(wiki), lambda: planned(8, "save"), 2, LiveLine("test"))
    numbers = [fields["body"][0].split(" of the replay")[0].rpartition(" ")[2] for fields in wiki.saves]
    assert sorted(map(int, numbers)) == list(range(1, 9))


def test_a_worker_that_is_killed_makes_the_run_not_valid_and_the_others_go_on(wiki: FakeWiki, tmp_path: Path) -> None:
    def plan() -> Iterator[Planned]:
        """The plan; the first of the workers that comes to its 22nd request is killed there."""
        for one in planned(50):
            if one.request.url == "/Page21":
                with suppress(FileExistsError):
                    os.close(os.open(tmp_path / "killed", os.O_CREAT | os.O_EXCL))
                    os.kill(os.getpid(), signal.SIGKILL)
            yield one

    result = replay_shared(load_on(wiki), plan, 2, LiveLine("test"))
    assert (result.crew.workers, result.crew.lost) == (2, 1)
    assert result.recorder.count() == 25
    assert why_not_valid(result, 60_000.0) == ["1 of 2 worker processes ended without their figures"]


def test_workers_that_all_fail_are_an_error(wiki: FakeWiki) -> None:
    def plan() -> Iterator[Planned]:
        os._exit(7)
        yield from planned(1)

    with pytest.raises(OSError, match="no worker process came to an end"):
        replay_shared(load_on(wiki), plan, 2, LiveLine("test"))


@given(st.lists(SAMPLES, max_size=30), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_merged_figures_are_those_of_one_that_recorded_all(samples: list[Sample], workers: int) -> None:
    planned_s = 500_000.0  # intervals of 834 s
    whole, merged, shares = Recorder(planned_s), Recorder(planned_s), [Recorder(planned_s) for _ in range(workers)]
    for number, sample in enumerate(samples):
        whole.add(sample)
        shares[number % workers].add(sample)
    for share in shares:
        merged.merge(share)
    merged.check()
    histograms = {key: (pair.response.counts, pair.service.counts) for key, pair in whole.pairs.items()}
    assert {key: (pair.response.counts, pair.service.counts) for key, pair in merged.pairs.items()} == histograms
    assert merged.intervals == whole.intervals
    assert merged.received_bytes == whole.received_bytes


def test_figures_of_workers_are_sums_and_the_busiest_is_the_limit() -> None:
    one, other = replay_of(Recorder(10), cpu_s=2.0), replay_of(Recorder(10), cpu_s=9.0)
    both = merged_replays([one, other])
    assert (both.cpu_s, both.cpu_share, both.open_limit, both.crew.workers) == (11.0, 0.9, 1024, 2)
    assert "used 90% of a core" in " ".join(summarize(both, [], {})["generator"]["warnings"])


def test_a_line_of_several_workers_is_drawn(monkeypatch: pytest.MonkeyPatch, wiki: FakeWiki) -> None:
    monkeypatch.setattr("wikibench.run.LIVE_S", 0.02)
    monkeypatch.setattr("wikibench.live.QUIET_S", 0.0)
    drawn = io.StringIO()
    monkeypatch.setattr("sys.stderr", drawn)
    replay_shared(load_on(wiki), lambda: planned(100), 2, LiveLine("shared"))
    assert "shared" in drawn.getvalue()
    assert "failed 0" in drawn.getvalue()
