"""Measure what a log of many lines costs: read, begin to replay, plan, sample.

    python -m tests.measure.trace_lines [--lines 10000000] [--folder DIR]

A process of its own makes lines in Apache's combined format, of a day, each up to five minutes out of place, of pages
with Wikipedia's popularity, and pipes them into ``wikibench trace read``.  Printed are CPU a line and peak memory of
each step, what 100,000,000 lines would take, and the seconds until a replay of the 14th hour sends its first request.
A sample of a tenth of the pages is compared with the whole, beside a choice of pages by their hash.  10,000,000 lines
take a quarter of an hour, and a few GB of DIR.  The exit status is 1 if one of LIMITS is passed; each is printed with
what was found.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate
from pathlib import Path
from typing import Final

from gauge.machine import machine
from gauge.popularity import VIEWS, weights
from wikibench.commands.passes import page_of
from wikibench.pacing import Pace, TraceShape, plan
from wikibench.trace.likeness import Profile, differences
from wikibench.trace.sampling import page_hash
from wikibench.trace.source import Trace

PAGES: Final = 200_000
BATCH: Final = 10_000
DAY_S: Final = 86_400
OUT_OF_PLACE_S: Final = 300
WHOLE: Final = 100_000_000
SHARE: Final = 0.1
SEED: Final = 38
LIMITS: Final = {  # of 100,000,000 lines on a machine of our time
    "CPU of reading, minutes": 25.0,
    "memory of reading, MB": 300.0,
    "first request of the 14th hour, s": 2.0,
    "requests of the sample off, %": 0.5,
    "curve of popularity off": 0.02,
    "hot pages off": 0.05,
    "hours off": 0.03,
}
AGENT: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
WIKIBENCH: Final = (sys.executable, "-m", "wikibench.cli")


def make_lines(count: int) -> None:
    """Print the lines of the log."""
    rng = random.Random(SEED)
    ends = list(accumulate(weights(VIEWS, PAGES)))
    clocks = [f"{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}" for s in range(DAY_S)]
    for begin in range(0, count, BATCH):
        lines = []
        for n, page in enumerate(rng.choices(range(PAGES), cum_weights=ends, k=min(BATCH, count - begin)), begin):
            second = min(max(n * DAY_S // count + rng.randrange(-OUT_OF_PLACE_S, OUT_OF_PLACE_S), 0), DAY_S - 1)
            lines.append(
                f"10.1.{n & 255}.{page & 255} - - [01/Jan/2024:{clocks[second]} +0000] "
                f'"GET /wiki/Page_{page} HTTP/1.1" 200 10240 "https://w.example/wiki/Main_Page" "{AGENT}"\n'
            )
        sys.stdout.write("".join(lines))


def run_measured(words: Sequence[str], source: object = None) -> tuple[float, float]:
    """Run a program; return its seconds of CPU and its peak memory in MB."""
    began = os.times()
    process = subprocess.Popen(words, stdin=source, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # type: ignore[call-overload]
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(
            f"{' '.join(words)}: status {process.returncode} after {os.times().elapsed - began.elapsed:.0f} s"
        )
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def read_log(folder: str, lines: int) -> dict[str, float]:
    words = (sys.executable, "-m", "tests.measure.trace_lines", "--make", str(lines))
    with subprocess.Popen(words, stdout=subprocess.PIPE) as maker:
        cpu_s, peak_mb = run_measured(
            (*WIKIBENCH, "trace", "read", "-", "--format", "combined", "--out", folder), maker.stdout
        )
    say("read", cpu_s, lines, peak_mb)
    return {"CPU of reading, minutes": cpu_s / lines * WHOLE / 60, "memory of reading, MB": peak_mb}


def say(step: str, cpu_s: float, lines: int, peak_mb: float) -> None:
    whole_min = cpu_s / lines * WHOLE / 60
    cost = f"{cpu_s / lines * 1e6:.2f} us of CPU a line, {peak_mb:.0f} MB"
    print(f"{step}: {cost}; {WHOLE:,} lines: {whole_min:.1f} minutes", flush=True)


def first_request_s(folder: str) -> float:
    """Return the seconds from the start of ``wikibench replay`` of the 14th hour to its first request of a page."""
    seen = threading.Event()

    class Wiki(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/":
                seen.set()
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Wiki) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        target = f"http://127.0.0.1:{server.server_address[1]}"
        words = (*WIKIBENCH, "replay", folder, "--target", target, "--from", "13:00", "--to", "14:00")
        began = time.perf_counter()
        process = subprocess.Popen(
            (*words, "--duration", "1s", "--rate", "50"), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        if not seen.wait(120):
            raise SystemExit("the replay sent nothing")
        found = time.perf_counter() - began
        process.wait()
        server.shutdown()
    return found


def plan_all(folder: str) -> None:
    """Print what the plan of the whole trace costs, without sockets."""
    trace = Trace([folder]).open_all()
    known = trace.size_and_span()
    assert known is not None
    began = time.process_time()
    count = sum(1 for _ in plan(trace.read, Pace(rate=1000.0), TraceShape(*known)))
    cpu_s = time.process_time() - began
    say("plan", cpu_s, count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def compare_samples(folder: str, small: str) -> dict[str, float]:
    profiles = [_profile(Trace([path]).open_all().read()) for path in (folder, small)]
    whole, part = profiles
    limit = SHARE * 2**64
    by_hash = Counter({page: n for page, n in whole.pages.counts.items() if page_hash(1, page) < limit})
    found = differences(whole, part)
    kept = part.count / whole.count
    print(
        f"sample of {SHARE:.0%} of the pages: {kept:.3%} of the requests (by hash: {by_hash.total() / whole.count:.3%})"
    )
    print("differences: " + ", ".join(f"{name} {value:.2%}" for name, value in found.items()))
    return {
        "requests of the sample off, %": abs(kept / SHARE - 1) * 100,
        "curve of popularity off": found["popularity"],
        "hot pages off": found["hot pages"],
        "hours off": found["hours"],
    }


def missed(found: Mapping[str, float]) -> list[str]:
    """Print each figure beside its limit; return the names of those that pass it."""
    for name, limit in LIMITS.items():
        print(f"{name}: {found[name]:.3g} (at most {limit:g}){' MISSED' if found[name] > limit else ''}")
    return [name for name, limit in LIMITS.items() if found[name] > limit]


def _profile(requests: Iterable[object]) -> Profile:
    profile = Profile()
    for request in requests:
        profile.add_request(request, page_of(request))  # type: ignore[arg-type]
    return profile


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="where the traces go; removed at the end")
    parser.add_argument("--make", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--plan", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make is not None:
        make_lines(given.make)
        return 0
    if given.plan is not None:
        plan_all(given.plan)
        return 0
    with tempfile.TemporaryDirectory(dir=given.folder) as made:
        day, small = f"{made}/day/", f"{made}/small/"
        print(f"{machine()}; seed {SEED}", flush=True)
        found = read_log(day, given.lines)
        found["first request of the 14th hour, s"] = first_request_s(day)
        subprocess.run((sys.executable, "-m", "tests.measure.trace_lines", "--plan", day), check=True)
        cpu_s, peak_mb = run_measured((*WIKIBENCH, "trace", "sample", day, "--pages", f"{SHARE:.0%}", "--out", small))
        say("sample by pages", cpu_s, given.lines, peak_mb)
        found |= compare_samples(day, small)
    return 1 if missed(found) else 0


if __name__ == "__main__":
    sys.exit(main())
