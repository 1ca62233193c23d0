"""A recording: a real ``columnar standalone`` under strace, clients at work, a ``kill -9`` in the middle.

    serve ... clients work ... kill -9 ... serve again ... clients work ... SIGTERM

The folder stays the same, so the events of both servers are one history of one disk.  With ``copies`` one client also
makes and restores snapshots, exports and backups, some of them by commands beside the server (``site``), in folders
beside the data folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from columnar.storage.synced_bound import SYNCED
from tests.crash.cuts.copying import Copier, Site
from tests.crash.cuts.disk import Disk
from tests.crash.cuts.system_calls import TRACED, Event, Sent, Synced, events_of
from tests.crash.cuts.workload import WRITERS, Call, Client, Writer, prepare, work

ROOT: Final = Path(__file__).parents[3]
DATA: Final = "data"
TRIGGER_MODULE: Final = "tests.support.trigger_functions"
KEPT_BYTES: Final = 64 * 1024 * 1024  # of each write, by strace
ROUNDS: Final = 12  # of administration, at most, before the kill and after it
SERVER: Final = ("-m", "tests.support.noting_store")
SHARING: Final = ("-m", "tests.support.sharing_store")


def may_trace() -> bool:
    """Return whether there is strace, and this container allows ptrace."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode == 0


@dataclass(frozen=True, slots=True, repr=False)  # it is long
class Recording:
    events: list[Event]  # paths are relative to the folder that holds ``data``
    calls: list[Call]
    acknowledged: list[int]  # the event, counted from 1, in which the last byte of the answer was sent

    @property
    def cut_points(self) -> list[int]:
        """Return the numbers of events after which the disk, or the promises about it, differ from before."""
        answered = set(self.acknowledged)
        return [
            number
            for number, event in enumerate(self.events, 1)
            if (number in answered if isinstance(event, Sent) else not is_beside(event.path))
        ]


class Traced:
    """A server under strace."""

    def __init__(self, root: Path, run: int, server: tuple[str, ...], modules: str, site: Site | None = None) -> None:
        self.trace = root.parent / f"{root.name}.trace-{run}"
        self._log = root.parent / f"{root.name}.log"
        strace = ["strace", "-f", "-ttt", "-xx", "-yy", "--seccomp-bpf", "-s", str(KEPT_BYTES)]
        strace += ["-e", f"trace={TRACED}", "-e", "signal=none", "-o", str(self.trace)]
        beside = ["-m", "tests.crash.cuts.site", str(site.port)] if site is not None else []
        command = [sys.executable, *beside, *server, "--data", str(root / DATA), "--port", "0", "--web-port", "-1"]
        if modules:
            command += ["--trigger-modules", modules]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [*strace, "--", *command], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        words = dict(word.split("=", 1) for word in self._process.stdout.readline().split() if "=" in word)
        assert "pid" in words, f"it did not start: {self._log.read_text()[-2000:]}"
        self.port, self._server = int(words["store"].rpartition(":")[2]), int(words["pid"])
        self._site = site
        if site is not None:
            site.meet()

    def end(self, number: int) -> None:
        """Send the signal; return when the server and its children have ended and strace has written everything."""
        if self._process.poll() is None:
            os.kill(self._server, number)
        if self._site is not None:
            self._site.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def record(
    root: Path,
    *,
    seed: int,
    calls: int,
    trigger: bool = True,
    server: tuple[str, ...] = SERVER,
    copies: bool = False,
    ends: tuple[signal.Signals, ...] = (signal.SIGKILL, signal.SIGTERM),
) -> Recording:
    """Record in the new folder ``root``.

    ``calls`` are those of each writer over all servers; ``ends`` has the signal that ends each server.
    """
    root.mkdir(parents=True)
    rng = Random(seed)
    writers = [Writer(number, Random(rng.random())) for number in range(WRITERS)]
    noted: list[Call] = []
    events: list[Event] = []
    modules = TRIGGER_MODULE if trigger else ""
    copier = Copier(str(root)) if copies else None
    for run, number in enumerate(ends):
        site = Site() if copies else None
        traced = Traced(root, run, server, modules, site)
        try:
            if run == 0:
                client = Client(traced.port)
                prepare(client, f"{TRIGGER_MODULE}:note" if trigger else "")
                if copier is not None:
                    copier.prepare(client)
                client.close()
                noted += client.calls
            beside = partial(copier.run, site, traced.port) if copier is not None and site is not None else None
            noted += work(traced.port, writers, calls // len(ends), range(run * ROUNDS, (run + 1) * ROUNDS), beside)
            noted += site.calls if site is not None else []
        finally:
            traced.end(number)
        with traced.trace.open(encoding="ascii", errors="replace") as lines:
            events += _shifted(events_of(lines, str(root)), len(events))
    return Recording(events, noted, acknowledgements(events, noted))


def _shifted(events: Iterator[Event], by: int) -> Iterator[Event]:
    """Yield events with shifted numbers, because the second server's syncs count from its own first event."""
    for event in events:
        yield replace(event, began=event.began + by) if isinstance(event, Synced) else event


def acknowledgements(events: list[Event], calls: list[Call]) -> list[int]:
    """Return for each call the number of the event in which the last byte of its answer was sent."""
    sent: dict[int, list[int]] = {}
    pending: dict[int, bytes] = {}
    for number, event in enumerate(events, 1):
        if not isinstance(event, Sent):
            continue
        data = pending.get(event.port, b"") + event.data
        while len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[:4], "big"):
            data = data[4 + int.from_bytes(data[:4], "big") :]
            sent.setdefault(event.port, []).append(number)
        pending[event.port] = data
    return [sent[call.port][call.nth] for call in calls]


def differences(disk: Disk, root: Path) -> list[str]:
    """Return differences between the model of the disk and the real one, which would invalidate all findings."""
    modelled = {path: data for path, data in disk.left("kept", Random(0)).items() if not is_beside(path)}
    real = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if path.is_file() and not is_beside(name):
            real[name] = path.read_bytes()
    files = {name for name in modelled if not name.endswith("/")}
    wrong = [f"{name}: only on the {'real' if name in real else 'followed'} disk" for name in real.keys() ^ files]
    wrong += [
        f"{name}: {len(real[name])} bytes, followed: {len(modelled[name])}"
        for name in real.keys() & files
        if real[name] != modelled[name]
    ]
    return sorted(wrong)


def is_beside(path: str) -> bool:
    """Return whether the file is not compared: the engine's diary, locks, and bounds, which are noted separately."""
    return path.rpartition("/")[2].split(".")[0] in ("LOG", "LOCK", SYNCED)


def forget(root: Path) -> None:
    shutil.rmtree(root)
    for path in root.parent.glob(f"{root.name}.*"):
        path.unlink()
