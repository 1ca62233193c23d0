"""Replay a log whose times are whole seconds, spread and as logged, beside its original times.

    python -m tests.measure.whole_seconds [--rate 600] [--limit 1000] [--seconds 20] [--rounds 3]

Random arrivals of --rate a second are written three times: with their own times as a trace, and as an access log of
whole seconds, which 'wikibench trace read' reads with its requests spread within their seconds, and --within-second
as-logged.  Each is replayed against a server that answers --limit requests a second, one after the other.

The median p95 of the spread ones must be at most 1.5 times that of the original times, or the exit status is 1; that of
those as logged is printed beside.  Rounds take turns.  3 rounds of 20 s take four minutes; --rounds 1 --seconds 4 takes
20 s.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast

from gauge.arrivals import in_order
from gauge.machine import machine, now
from tests.measure.same_wiki import wikibench
from tests.support.noted_load import report_of
from wikibench.null_server import answer_of
from wikibench.run import loop_factory
from wikibench.trace.lines import Request, format_line

BOUND: Final = 1.5
DAY_S: Final = 1_704_067_200  # 2024-01-01
ANSWER: Final = answer_of(1_000)
KINDS: Final = ("original", "spread", "as logged")


class LimitedServer(asyncio.Protocol):
    """A connection of a server that needs ``cost_s`` for each request, one after the other, and no processor."""

    free_s = 0.0  # of all connections: when the last request that waits is answered

    def __init__(self, cost_s: float) -> None:
        self._cost_s = cost_s

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(data.count(b"\r\n\r\n")):
            LimitedServer.free_s = max(LimitedServer.free_s, loop.time()) + self._cost_s
            loop.call_at(LimitedServer.free_s, self._transport.write, ANSWER)


async def serve(rate: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: LimitedServer(1 / rate), "127.0.0.1", backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await loop.run_in_executor(None, sys.stdin.read)


@contextmanager
def limited_server(rate: float) -> Iterator[str]:
    """Run the server in a process of its own; yield its address."""
    words = [sys.executable, "-m", "tests.measure.whole_seconds", "--serve", "--limit", str(rate)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.communicate()


def traces(folder: Path, rate: float, seconds: float, seed: int) -> dict[str, Path]:
    """Write the arrivals with their times, and as logs of whole seconds that have been read."""
    moments_s = list(in_order(random.Random(seed), round(rate * seconds), seconds))
    paths = [f"/Page_{number}" for number in range(len(moments_s))]
    lines = [
        format_line(Request(round((DAY_S + at_s) * 1e6), path)) for at_s, path in zip(moments_s, paths, strict=True)
    ]
    found = {kind: folder / kind.replace(" ", "-") for kind in KINDS}
    found["original"].write_text("\n".join((*lines, "")))
    log = folder / "access.log"
    log.write_text("".join(map(log_line, moments_s, paths)))
    read = ("trace", "read", log, "--format", "combined", "--seed", seed)
    wikibench((*read, "--out", f"{found['spread']}/"), (0,))
    wikibench((*read, "--within-second", "as-logged", "--out", f"{found['as logged']}/"), (0,))
    return found


def log_line(at_s: float, path: str) -> str:
    clock = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(DAY_S + int(at_s)))
    return f'192.0.2.1 - - [{clock}] "GET {path} HTTP/1.1" 200 1000 "-" "-"\n'


def p95_ms(trace: Path, url: str) -> float:
    """Return p95 of the response times of one replay."""
    file = trace.parent / "report.json"
    wikibench(("replay", trace, "--target", url, "--map", "plain", "--json", file), (0, 3))
    report = report_of(file)
    late = report["generator"]["own_lateness"]["p99_ms"]
    valid = "" if report["valid"] else "; NOT VALID"
    print(
        f"{trace.name}: p95 {report['response_time']['p95_ms']:.2f} ms, own lateness p99 {late:.2f} ms{valid}",
        flush=True,
    )
    return float(report["response_time"]["p95_ms"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=600.0, help="requests a second of the log")
    parser.add_argument("--limit", type=float, default=1_000.0, help="requests a second that the server answers")
    parser.add_argument("--seconds", type=float, default=20.0, help="of the log")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(serve(given.limit))
        return
    print(f"{now()}, {machine()}, load average {os.getloadavg()[0]:.1f}; seed {given.seed}, {given.rate:g} requests a "
          f"second for {given.seconds:g} s, a server of {given.limit:g} a second")  # fmt: skip
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory(prefix="columnar-seconds-") as text, limited_server(given.limit) as url:
        made = traces(Path(text), given.rate, given.seconds, given.seed)
        for number in range(given.rounds):
            for kind in KINDS[number % 3 :] + KINDS[: number % 3]:
                found[kind].append(p95_ms(made[kind], url))
    medians = {kind: statistics.median(one) for kind, one in found.items()}
    times = {kind: medians[kind] / medians["original"] for kind in KINDS}
    is_met = times["spread"] <= BOUND
    print("; ".join(f"{kind}: p95 {medians[kind]:.2f} ms, {times[kind]:.2f} times" for kind in KINDS))
    print(f"spread within {BOUND:g} times the original times: {'met' if is_met else 'missed'}")
    sys.exit(not is_met)


if __name__ == "__main__":
    main()
