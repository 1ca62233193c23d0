"""Check WikiBench's percentiles against a server that stops for 1 s of every 10 and writes down when.

    python -m tests.measure.instrument [--rate 100] [--seconds 40] [--wrk2 PATH] [--k6 PATH] [--wrk PATH]

From the plan and the server's stops the response times are reckoned, without a generator.  WikiBench's p95, p99 and max
must be within 2 % of them (--tolerance), or the exit status is 1.  wrk2, k6 and wrk run against the same server at the
same rate if they are on PATH or given; --only-wikibench leaves them out.  Each tool has a server process of its own.

    reckoned     a request that is due in a stop is answered at its end, any other within the service time: the median
                 of 300 requests of a plain client outside of stops
    noted        until the server has read each request, as it wrote down; after a stop it reads them one by one
    difference   to what is reckoned

For other tools even starts at the rate are reckoned with, from the moment of their first request; for wrk2 those of its
own plan, in which each connection has even gaps from its first request on, after its calibration.
While other work stops WikiBench for more than 20 ms, as its own lateness says, a replay is repeated, twice at most.
The closed loops (wrk, wikibench clients) and --open 10 are there to be compared, not judged.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from gauge.arrivals import in_order
from gauge.machine import machine, now
from tests.measure.other_load_tools import FEW, Measured, Tool, tools_of
from tests.support.stop_schedule import (
    NAMES,
    STOPPED,
    Figures,
    begin_of,
    even_starts,
    figures_of,
    noted_times,
    off_percent,
    response_times,
    starts_by_connection,
)
from tests.support.stopping_server import Notes, service_s, stopping_server
from wikibench.trace.lines import Request, format_line

FIRST_S, EVERY_S, LASTING_S = 8.0, 10.0, 1.0
SEED: Final = 38
TOLERANCE_PERCENT: Final = 2.0
TRIES: Final = 3  # of a replay, while the machine disturbs it
DISTURBED_MS: Final = 20.0  # of own lateness: 2 % of a stop
REPLAY: Final = "wikibench replay"
WIKIBENCH: Final = (sys.executable, "-m", "wikibench.cli")

Report = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A tool's figures beside the reckoned ones."""

    name: str
    due: int  # requests; 0 if the tool has no plan
    done: int
    found: Figures
    reckoned: Figures
    noted: Figures | None = None  # of a plan whose requests are known by their paths
    is_judged: bool = False
    is_valid: bool = True
    late_ms: float = 0.0  # the longest lateness of WikiBench's own
    remark: str = ""

    @property
    def off(self) -> Figures:
        return off_percent(self.found, self.reckoned)

    @property
    def most_off(self) -> float:
        """Return the largest difference among the figures that lie within the stops, in percent."""
        return max(abs(self.off[name]) for name in STOPPED)


@dataclass(frozen=True, slots=True)
class Plan:
    """The requests of a replay by path, with their starts in seconds, as a trace and as options."""

    trace: Path
    starts_s: dict[str, float]
    words: tuple[str, ...]


def plans(folder: Path, rate: float, seconds: float) -> tuple[Plan, Plan]:
    """Return a plan with even gaps and one with random starts, of one trace."""
    count = round(rate * seconds)
    times_us = [round(at_s * 1e6) for at_s in in_order(random.Random(SEED), count, seconds)]
    trace, paths = folder / "stops.trace", [f"/Page_{number}" for number in range(count)]
    lines = (format_line(Request(10**15 + at_us, path)) for at_us, path in zip(times_us, paths, strict=True))
    trace.write_text("\n".join((*lines, "")))
    even = dict(zip(paths, even_starts(0.0, rate, seconds), strict=True))
    chance = {path: (at_us - times_us[0]) / 1e6 for at_us, path in zip(times_us, paths, strict=True)}
    return Plan(trace, even, ("--rate", f"{rate:g}", "--even")), Plan(trace, chance, ())


def replayed(plan: Plan, url: str, file: Path, *options: str) -> Report:
    """Replay the plan by the command line; return its report."""
    words = (*WIKIBENCH, "replay", str(plan.trace), "--target", url, "--json", str(file), *plan.words, *options)
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(file.read_text())


def row_of(name: str, plan: Plan, report: Report, notes: Notes, own_s: float) -> Row:
    """Return WikiBench's figures beside those of the plan and the notes; ``own_s`` is the server's service time."""
    read_s, planned_s = notes.read_s(), plan.starts_s
    begin_s = begin_of(planned_s, read_s)
    times, late = report["response_time"], report["generator"]["own_lateness"]
    return Row(
        name=name,
        due=len(planned_s),
        done=report["requests"]["counted"] - report["requests"]["failed"],
        found={figure: times[f"{figure}_ms"] for figure in NAMES},
        reckoned=figures_of(response_times((begin_s + at_s for at_s in planned_s.values()), notes.stops, own_s)),
        noted=figures_of(noted_times(planned_s, begin_s, read_s)),
        is_valid=report["valid"],
        late_ms=late["max_ms"],
        remark=f"own lateness p99 {late['p99_ms']:.1f}, max {late['max_ms']:.1f} ms",
    )


def wikibench_rows(rate: float, seconds: float, own_s: float) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="instrument-") as text:
        folder = Path(text)
        even, chance = plans(folder, rate, seconds)
        for name, plan, options in (
            (f"{REPLAY}, even", even, ()),
            (f"{REPLAY}, random starts", chance, ()),
            (f"{REPLAY}, --workers 2", even, ("--workers", "2")),
            (f"{REPLAY}, --open {FEW}", even, ("--open", f"{FEW}")),
        ):
            row = undisturbed(name, plan, folder / "report.json", options, own_s)
            yield replace(row, is_judged="--open" not in options)
        with stopping_server(FIRST_S, EVERY_S, LASTING_S) as notes:
            closed = clients_of(even, notes.url, folder / "clients.json", rate, seconds)
        yield other_row(f"wikibench clients, {FEW}", closed, notes, rate, seconds, own_s, is_open_loop=False)


def undisturbed(name: str, plan: Plan, file: Path, options: Sequence[str], own_s: float) -> Row:
    """Return the row of a replay whose process was not stopped by the machine itself, or that of the last of TRIES.

    The tries are chosen by the lateness of the sends, so not by the figures that are judged.
    """
    for number in range(1, TRIES + 1):
        with stopping_server(FIRST_S, EVERY_S, LASTING_S) as notes:
            report = replayed(plan, notes.url, file, *options)
        row = row_of(name, plan, report, notes, own_s)
        if row.late_ms <= DISTURBED_MS:
            break
        print(f"{name}: try {number}, other work stopped the generator for {row.late_ms:.0f} ms", file=sys.stderr)
    return row


def clients_of(plan: Plan, url: str, file: Path, rate: float, seconds: float) -> Measured:
    """Run the closed loop, whose clients pause so that they keep the rate if the answers take no time."""
    words = (*WIKIBENCH, "clients", str(plan.trace), "--target", url, "--number", f"{FEW}", "--json", str(file))
    subprocess.run((*words, "--think", f"{FEW / rate}s", "--duration", f"{seconds}s"), check=True, capture_output=True)
    (row,) = json.loads(file.read_text())["rows"]
    times = row["service_time"]
    return Measured(row["requests"]["counted"], {name: times[f"{name}_ms"] for name in NAMES})


def other_row(
    name: str, measured: Measured, notes: Notes, rate: float, seconds: float, own_s: float, *, is_open_loop: bool
) -> Row:
    firsts_s = list(notes.first_read_s().values())
    begin_s = firsts_s[0] + measured.skipped_s
    if measured.is_by_connection:
        starts_s = starts_by_connection(firsts_s, rate, begin_s, begin_s + seconds)
    else:
        starts_s = even_starts(begin_s, rate, seconds)
    reckoned = figures_of(response_times(starts_s, notes.stops, own_s))
    due = len(starts_s) if is_open_loop else 0
    return Row(name, due, measured.done, measured.figures, reckoned, remark=measured.remark)


def tool_rows(tools: Sequence[Tool], rate: int, seconds: int, own_s: float) -> Iterator[Row]:
    for tool in tools:
        with stopping_server(FIRST_S, EVERY_S, LASTING_S) as notes:
            measured = tool.measure(notes.url, rate, seconds)
        yield other_row(tool.name, measured, notes, rate, seconds, own_s, is_open_loop=tool.is_open_loop)


def print_row(row: Row, tolerance_percent: float) -> None:
    print(f"| {row.name} | {row.due or '–'} | {row.done} | {_cells(row.found)} |")
    if row.noted is not None:
        print(f"| *noted* | | | {_cells(row.noted)} |")
    print(f"| *reckoned* | | | {_cells(row.reckoned)} |")
    print(f"| *difference* | | | {' | '.join(f'{row.off[name]:+.1f} %' for name in NAMES)} |", flush=True)
    verdict = ("kept, " if is_kept(row, tolerance_percent) else "MISSED, ") if row.is_judged else ""
    print(f"{row.name}: {verdict}{row.most_off:.2f} % at most; {row.remark}", file=sys.stderr)


def _cells(figures: Figures) -> str:
    return " | ".join(f"{figures[name]:.1f}" for name in NAMES)


def is_kept(row: Row, tolerance_percent: float) -> bool:
    return row.is_valid and row.done == row.due and row.most_off <= tolerance_percent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=100, help="requests a second")
    parser.add_argument("--seconds", type=int, default=40, help="that are counted: whole periods of 10 s")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE_PERCENT, help="percent, of p95, p99 and max")
    parser.add_argument("--only-wikibench", action="store_true")
    for kind in ("wrk2", "k6", "wrk"):
        parser.add_argument(f"--{kind}", metavar="PATH", help="the program, if it is not on PATH")
    given = parser.parse_args()
    own_s = service_s()
    print(f"{now()}, {machine()}, load average {os.getloadavg()[0]:.1f}")
    print(f"{given.rate} requests a second for {given.seconds} s; service time {own_s * 1000:.2f} ms; times in ms\n")
    print(f"| | due | done | {' | '.join(NAMES)} |\n|---|{'---|' * (len(NAMES) + 2)}")
    rows = []
    for row in wikibench_rows(given.rate, given.seconds, own_s):
        rows.append(row)
        print_row(row, given.tolerance)
    tools = [] if given.only_wikibench else list(tools_of(given.rate, vars(given)))
    for row in tool_rows([tool for tool in tools if tool.program], given.rate, given.seconds, own_s):
        print_row(row, given.tolerance)
    if missing := sorted({tool.kind for tool in tools if not tool.program}):
        print(f"not found, so not run: {', '.join(missing)}; give --{missing[0]} PATH", file=sys.stderr)
    sys.exit(any(row.is_judged and not is_kept(row, given.tolerance) for row in rows))


if __name__ == "__main__":
    main()
