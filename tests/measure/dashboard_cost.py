"""Measure what browsers that follow a running replay do to the generator's own lateness.

    python -m tests.measure.dashboard_cost [--rounds 5] [--seconds 15] [--rate 500] [--browsers 20] [--chromium]

Replays with --dashboard against a server that answers at once, with no browser and with 20, in turn (A B B A).  A
browser is a client of server-sent events that reads as fast as they come; all of them are one other process.  With
--chromium one of them is a real browser without a window, which draws the page and takes much of a core.

The median, over all neighbours in turn, of p99 of own lateness with browsers less p99 without must be 1 ms at most, or
the exit status is 1.  5 rounds of 15 s take six minutes; --rounds 1 --seconds 3 takes half a minute.  No seed: the
requests have equal gaps.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gauge.machine import machine, now
from gauge.processes import cpu_s_of
from tests.support.noted_load import EvenPlan, Report, command, even_plan, report_of, wait_until
from wikibench.limits import DASHBOARD_CLIENTS
from wikibench.null_server import null_server

BOUND_MS: Final = 1.0
READ_BYTES: Final = 1 << 16
CHROMIUM: Final = ("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0")


async def follow(address: str, count: int) -> int:
    """Read the events of ``count`` followers until the server ends; return how many came."""

    async def one() -> int:
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        events = 0
        with suppress(OSError):
            while data := await reader.read(READ_BYTES):
                events += data.count(b"\n\n")
        writer.close()
        return events

    return sum(await asyncio.gather(*(one() for _ in range(count))))


@contextmanager
def browsers(url: str, count: int, folder: Path, *, has_chromium: bool) -> Iterator[list[int]]:
    """Follow a dashboard; the list has the number of events after the block."""
    events: list[int] = []
    if not count:
        yield events
        return
    words = [sys.executable, "-m", "tests.measure.dashboard_cost", "--follow", urlsplit(url).netloc]
    followers = subprocess.Popen(
        [*words, "--browsers", str(count - has_chromium)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    chromium = None
    if has_chromium:
        profile = folder / "profile"
        chromium = subprocess.Popen(
            ["chromium", *CHROMIUM, f"--user-data-dir={profile}", url],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    try:
        yield events
        events.append(int(followers.communicate(timeout=60)[0]))
    finally:
        followers.kill()
        followers.wait()
        if chromium is not None:
            print(f"chromium used {cpu_s_of([chromium.pid])[0]:.1f} s of CPU", flush=True)
            chromium.terminate()
            chromium.wait()


def replayed(plan: EvenPlan, target: str, count: int, folder: Path, *, has_chromium: bool) -> tuple[Report, int]:
    """Replay with so many browsers; return the report, and how many events they have read."""
    report = folder / "report.json"
    words = ("replay", plan.trace, "--target", target, "--dashboard", "127.0.0.1:0", "--json", report)
    with command(folder / "said", *words) as replay:
        wait_until(lambda: "dashboard: http" in replay.output or replay.process.poll() is not None)
        found = re.search(r"dashboard: (http://\S+)", replay.output)
        if found is None:
            raise SystemExit(f"no dashboard: {replay.output}")
        with browsers(found[1], count, folder, has_chromium=has_chromium) as events:
            status = replay.wait()
        if status not in (0, 3):
            raise SystemExit(f"status {status}: {replay.output}")
    return report_of(report), sum(events)


def differences_of(p99_ms: list[tuple[str, float]]) -> list[float]:
    """Return, of each two neighbours in turn, p99 with browsers less p99 without."""
    pairs = zip(p99_ms[::2], p99_ms[1::2], strict=True)
    return [dict(pair)["with"] - dict(pair)["without"] for pair in pairs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="A B B A each")
    parser.add_argument("--seconds", type=float, default=15.0, help="of a replay")
    parser.add_argument("--rate", type=float, default=500.0, help="requests a second")
    parser.add_argument("--browsers", type=int, default=DASHBOARD_CLIENTS)
    parser.add_argument("--chromium", action="store_true", help="one of the browsers is a real one")
    parser.add_argument("--follow", metavar="HOST:PORT", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.follow is not None:
        print(asyncio.run(follow(given.follow, given.browsers)))
        return
    if given.chromium and shutil.which("chromium") is None:
        raise SystemExit("--chromium: there is no chromium on PATH")
    print(f"{now()}, {machine()}, load average {os.getloadavg()[0]:.1f}; {given.rate:g} requests a second")
    p99_ms: list[tuple[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="columnar-dashboard-") as text, null_server() as target:
        plan = even_plan(Path(text), given.rate, given.seconds)
        for number in range(given.rounds):
            for kind in ("without", "with", "with", "without"):
                count = given.browsers if kind == "with" else 0
                report, events = replayed(plan, target, count, Path(text), has_chromium=bool(count) and given.chromium)
                late = report["generator"]["own_lateness"]
                p99_ms.append((kind, late["p99_ms"]))
                said = f"own lateness p50 {late['p50_ms']:.2f}, p99 {late['p99_ms']:.2f} ms; {events} events read"
                end = "" if report["valid"] else "; NOT VALID"
                print(f"round {number + 1}, {count:2} browsers: {said}{end}", flush=True)
                if count and not events:
                    raise SystemExit("the browsers have read nothing")
    found = differences_of(p99_ms)
    moved_ms = statistics.median(found)
    is_met = moved_ms <= BOUND_MS
    print(f"differences of p99: {', '.join(f'{one:+.2f}' for one in found)} ms")
    print(f"{given.browsers} browsers move p99 by {moved_ms:+.2f} ms (median); bound {BOUND_MS:g} ms: "
          f"{'met' if is_met else 'missed'}")  # fmt: skip
    sys.exit(not is_met)


if __name__ == "__main__":
    main()
