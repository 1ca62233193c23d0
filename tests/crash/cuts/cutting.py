"""Cuts of one recording: their places, the files that they leave, and the findings.

A cut is a number of events and a kind of loss (``disk.Kind``) with its own seed, so each can be repeated
alone: ``--cut 4711:mixed:0``.  Processes take neighbouring shares, so that each follows the disk once and opens only
changed regions again.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, get_args

from tests.crash.cuts.disk import Disk, Kind
from tests.crash.cuts.opening import Opener, Unopened, View, serve
from tests.crash.cuts.promises import Promises
from tests.crash.cuts.recording import Recording

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
SHARE: Final = 250  # cuts that one process takes at a time


class Cut(NamedTuple):
    event: int
    kind: Kind
    seed: int

    @property
    def name(self) -> str:
        return f"{self.event}:{self.kind}:{self.seed}"

    @classmethod
    def named(cls, text: str) -> Cut:
        event, kind, seed = text.split(":")
        if kind not in KINDS:
            raise ValueError(f"{text}: the kind is one of {', '.join(KINDS)}")
        return cls(int(event), kind, int(seed))  # type: ignore[arg-type]


@dataclass(slots=True)
class Found:
    cuts: int = 0
    opened: int = 0  # states of regions that no cut before had left
    served: int = 0  # cuts on which the whole server was started
    broken: list[tuple[Cut, list[str]]] = field(default_factory=list)

    def add(self, other: Found) -> None:
        self.cuts += other.cuts
        self.opened += other.opened
        self.served += other.served
        self.broken += other.broken


def chosen(recording: Recording, cuts: int, rng: Random) -> list[Cut]:
    """Return ``cuts`` of all possible cuts by event, each point with each kind before any is repeated."""
    points = recording.cut_points
    every = [Cut(event, kind, 0) for event in points for kind in KINDS]
    picked = rng.sample(every, min(cuts, len(every)))
    for seed in range(1, 1 + (cuts - len(picked)) // len(points) + 1):
        again = [Cut(event, "mixed", seed) for event in points]
        picked += rng.sample(again, min(len(again), cuts - len(picked)))
    return sorted(picked)


def run(
    recording: Recording,
    cuts: Sequence[Cut],
    *,
    serve_every: int = 0,
    drops_syncs_of: str | tuple[str, ...] = (),
    go_on: Callable[[], bool] = lambda: True,
) -> Found:
    """Make the cuts; on every ``serve_every``-th cut the whole server is started too."""
    found, promises = Found(), Promises(recording)
    disk, opener, at = Disk(drops_syncs_of=drops_syncs_of), Opener(), 0
    try:
        for number, cut in enumerate(cuts, 1):
            if not go_on():
                break
            for event in recording.events[at : cut.event]:
                disk.happen(event)
            at = cut.event
            files = disk.left(cut.kind, Random(f"{cut.seed} {cut.event}"))
            wrong = _look(lambda files=files: opener.view(files), promises, cut)
            if serve_every and number % serve_every == 0:
                found.served += 1
                told = found.served % 4 == 0
                wrong += _look(lambda files=files, told=told: serve(files, triggers=told), promises, cut)
            found.cuts += 1
            if wrong:
                found.broken.append((cut, wrong))
    finally:
        found.opened = opener.opened
        opener.close()
    return found


def _look(view: Callable[[], View], promises: Promises, cut: Cut) -> list[str]:
    try:
        seen = view()
    except Unopened as refused:
        return [f"cannot be opened: {refused}"]
    return [*seen.faults, *promises.broken(seen.tables, cut.event, seen.unseen)]


_recording: Recording  # of a worker process


def _begin(path: Path) -> None:
    global _recording
    _recording = pickle.loads(path.read_bytes())


def _share(cuts: Sequence[Cut], serve_every: int, deadline_s: float) -> Found:
    return run(_recording, cuts, serve_every=serve_every, go_on=lambda: time.time() < deadline_s)


def run_in_processes(
    recording: Recording, cuts: Sequence[Cut], *, processes: int, scratch: Path, serve_every: int, deadline_s: float
) -> Iterator[Found]:
    """Yield the findings of each share as soon as it is done; ``deadline_s`` is in seconds since 1970."""
    path = scratch / "recording.pickle"
    path.write_bytes(pickle.dumps(recording))
    shares = [cuts[at : at + SHARE] for at in range(0, len(cuts), SHARE)]
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin, (path,)) as pool:
        for done in [pool.submit(_share, share, serve_every, deadline_s) for share in shares]:
            yield done.result()
