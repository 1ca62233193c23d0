"""One run: a store process, quiet, besieged, quiet again; what it held and how long others waited."""

from __future__ import annotations

import json
import multiprocessing
import random
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from columnar import limits
from columnar.limits import MIB
from columnar.memory_plan import CACHE_BYTES, WRITE_BUFFERS_BYTES
from tests.overload import neighbours, siege
from tests.overload.neighbours import KINDS, Latencies, quantile_ms
from tests.support.ports import free_port
from tests.support.standalone_store import StoreProcess

SEED: Final = 7
ALL: Final = frozenset({"crowd", "mute", "giant", "scanners", "filters", "parsing"})
TIMES: Final = 10.0  # of the quiet p99 is what a neighbour may wait
LEAST_MS: Final = 5.0  # which everybody may take: two rounds of the loop with all their dear work
RECOVERY_S: Final = 30.0
ATTACKERS_S: Final = 60.0  # until all their connections are there
BUFFERS: Final = ("requests", "replies", "gathered", "scanners")  # which are empty when nothing is under way
SPARE_SCANNERS: Final = 1_000  # opened by a request whose answer nobody read
_SPAWN: Final = multiprocessing.get_context("spawn")

# What a besieged store may hold beside what it holds when it is quiet: each limit, once, as often as it counts.
BOUNDS: Final[dict[str, int]] = {
    "unsent replies (SERVER_OUTPUT_BYTES)": limits.SERVER_OUTPUT_BYTES,
    "requests (SERVER_INPUT_BYTES)": limits.SERVER_INPUT_BYTES,
    "replies in the making (GATHERED_BYTES)": limits.GATHERED_BYTES,
    "open scanners (SCANNERS_BYTES)": limits.SCANNERS_BYTES,
    "the largest message, decoded, on its way into the engine (6 of MESSAGE_BYTES)": 6 * limits.MESSAGE_BYTES,
    "memtables (WRITE_BUFFERS_BYTES) and the cache of blocks (CACHE_BYTES)": WRITE_BUFFERS_BYTES + CACHE_BYTES,
}


@dataclass
class Report:
    quiet: Latencies
    besieged: Latencies = field(default_factory=dict)
    after: Latencies = field(default_factory=dict)
    heard: Counter[str] = field(default_factory=Counter)
    quiet_bytes: int = 0
    peak_bytes: int = 0
    after_bytes: int = 0
    held: dict[str, float] = field(default_factory=dict)  # the most that the metrics said, by what
    left: dict[str, float] = field(default_factory=dict)  # at the end

    @property
    def bound_bytes(self) -> int:
        return self.quiet_bytes + sum(BOUNDS.values())

    def problems(self, *, latency: bool = True) -> list[str]:
        """Empty where every bound held.  Without ``latency``: where others use the machine too, it says nothing."""
        found = []
        for kind in KINDS if latency else ():
            took_ms = quantile_ms(self.besieged[kind], 0.99)
            allowed_ms = max(TIMES * quantile_ms(self.quiet[kind], 0.99), LEAST_MS)
            if took_ms > allowed_ms:
                found.append(f"p99 of a {kind} was {took_ms:.1f} ms, {allowed_ms:.1f} are allowed")
        if self.peak_bytes > self.bound_bytes:
            found.append(f"the store held {self.peak_bytes // MIB} MiB, its bound is {self.bound_bytes // MIB}")
        found += [f"{what} did not go back to nothing: {size:.0f}" for what, size in self.left.items() if size]
        found += [f"heard {what}" for what in self.heard if what in ("crowd failed", "crowd closed")]
        return found

    def lines(self) -> Iterator[str]:
        yield f"{'p50 / p99 / max ms':24} {'quiet':>22} {'besieged':>22} {'after':>22}"
        for kind in KINDS:
            phases = (self.quiet[kind], self.besieged[kind], self.after[kind])
            shown = ["/".join(f"{quantile_ms(one, q):.1f}" for q in (0.5, 0.99, 1.0)) for one in phases]
            yield f"{kind:24} {shown[0]:>22} {shown[1]:>22} {shown[2]:>22}"
        yield (
            f"resident: quiet {self.quiet_bytes // MIB} MiB, at most {self.peak_bytes // MIB} of "
            f"{self.bound_bytes // MIB}, after {self.after_bytes // MIB}"
        )
        yield "held at most: " + ", ".join(f"{size:,.0f} {what}" for what, size in self.held.items())
        yield "heard: " + ", ".join(f"{what} {count}" for what, count in sorted(self.heard.items()))


def furnish(store: StoreProcess) -> None:
    connection = store.connection()
    rng = random.Random(SEED)
    for name in (neighbours.TABLE, siege.LARGE_TABLE):
        connection.create_table(name, {"a": {"max_versions": 1}})
    with connection.table(neighbours.TABLE).batch(batch_size=500) as batch:
        for number in range(neighbours.ROWS):
            batch.put(neighbours.key(number), {b"a:x": rng.randbytes(50).hex().encode()})
    for number in range(siege.LARGE_ROWS):
        connection.table(siege.LARGE_TABLE).put(b"%d" % number, {b"a:x": rng.randbytes(MIB)})
    connection.close()


def run(seconds: float, connections: int, mute: int, kinds: frozenset[str] = ALL, *, quiet_s: float = 3.0) -> Report:
    siege.raise_descriptors(connections + siege.SPARE_DESCRIPTORS)  # a child starts with what we have
    with tempfile.TemporaryDirectory(prefix="columnar-overload-") as folder:
        web_port = free_port()
        with StoreProcess(Path(folder) / "data", "--web-port", str(web_port), is_forked=False) as store:
            furnish(store)
            with ProcessPoolExecutor(1, mp_context=_SPAWN) as pool:
                pool.submit(neighbours.measure, store.port, 0.2, SEED).result()  # imports, warm caches
                report = Report(pool.submit(neighbours.measure, store.port, quiet_s, SEED).result())
                _gauges(web_port)  # the page's own libraries belong to the quiet size
                report.quiet_bytes = store.resident_bytes()
                store.forget_peak()
                with _besieged(report, store.port, connections, mute, kinds), _watched(report, web_port):
                    report.besieged = pool.submit(neighbours.measure, store.port, seconds, SEED + 1).result()
                report.peak_bytes = store.peak_bytes()
                _drop_scanners(store, report)
                report.left = _emptied(web_port)
                report.after_bytes = store.resident_bytes()
                report.after = pool.submit(neighbours.measure, store.port, quiet_s, SEED + 2).result()
    return report


@contextmanager
def _besieged(report: Report, port: int, connections: int, mute: int, kinds: frozenset[str]) -> Iterator[None]:
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=siege.besiege, args=(port, connections, mute, kinds, theirs))
    process.start()
    theirs.close()
    try:
        _told(ours)
        yield
        ours.send("stop")
        report.heard = _told(ours)
    finally:
        process.join(10)
        process.kill()
        process.join()


def _told(ours: Any) -> Any:
    if not ours.poll(ATTACKERS_S):
        raise RuntimeError(f"the attackers said nothing for {ATTACKERS_S:g} s")
    found = ours.recv()
    if isinstance(found, str) and found != "begun":
        raise RuntimeError(found)
    return found


@contextmanager
def _watched(report: Report, web_port: int) -> Iterator[None]:
    """The most of each gauge, looked at twice a second."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            with suppress(OSError):  # its loop was held for too long to answer this time
                for what, value in _gauges(web_port).items():
                    report.held[what] = max(report.held.get(what, 0.0), value)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _gauges(web_port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{web_port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    found = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith("columnar_memory_used_bytes{") and name.split('"')[1] in BUFFERS:
            found[name.split('"')[1] + " bytes"] = float(value)
        elif name in ("columnar_connections", "columnar_open_scanners"):
            found[name.removeprefix("columnar_")] = float(value)
    return found


def _drop_scanners(store: StoreProcess, report: Report) -> None:
    """Those that were left live on for a minute after their connection: closed by their ids, which count from 0."""
    opened = sum(report.heard[f"{who} ok"] for who in ("scanners", "filters", "parsing"))
    opened += sum(len(phase.get("scan", [])) for phase in (report.quiet, report.besieged)) + SPARE_SCANNERS
    line = neighbours.Line(store.port)
    for scanner in range(opened):
        line.ask(neighbours.calls.call("scannerClose", scanner))
    line.close()


def _emptied(web_port: int) -> dict[str, float]:
    """What is still held once nothing has changed any more."""
    ends = time.monotonic() + RECOVERY_S
    while any(_gauges(web_port).values()) and time.monotonic() < ends:
        threading.Event().wait(0.1)
    return _gauges(web_port)


def as_json(report: Report) -> str:
    phases: dict[str, Any] = {}
    for name, latencies in (("quiet", report.quiet), ("besieged", report.besieged), ("after", report.after)):
        phases[name] = {
            kind: {f"p{100 * q:g}_ms": round(quantile_ms(taken, q), 3) for q in (0.5, 0.99, 1.0)}
            for kind, taken in latencies.items()
        }
    sizes = {"quiet": report.quiet_bytes, "peak": report.peak_bytes, "bound": report.bound_bytes}
    return json.dumps(
        {"latency": phases, "resident_bytes": sizes, "held": report.held, "heard": report.heard}, indent=1
    )
