"""``python -m tests.proofs.crew_clocks``: a worker whose clock is 3 s off starts when it should.

Two workers connect to a replay as those of other machines do.  One of them runs in a Linux time namespace whose
monotonic clock is --shift seconds before or behind (``unshare --time``; needs root), so no clock but the one of the
frames is common to both.  The requests take turns between the workers; a server notes when each came.

    shifted     the median of arrival less due moment of the one worker differs from that of the other by 1 ms at most
    control     the same with both clocks the same: how far two workers of one clock differ on this machine
    far         a proxy delays what the worker sends by --delay ms, and nothing that comes back, so its clock can only
                be placed within half of that: over 5 ms the run is not valid (status 3), and its starts are off by no
                more than the report says

A replay that other work made late is repeated, twice at most.  Rounds of shifted and control take turns; the medians of
rounds are judged.  5 rounds of 10 s take three minutes; --rounds 1 --seconds 3 takes half a minute.
"""

from __future__ import annotations

import csv
import gzip
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click
from rich.console import Console

from gauge.machine import machine
from tests.proofs.verdict import end_report
from tests.support.delaying_proxy import delaying_proxy
from tests.support.noted_load import EvenPlan, command, even_plan, moments_of, noting_server, report_of
from tests.support.stop_schedule import begin_of, percentile
from wikibench.limits import CLOCK_MS

SAME_MS: Final = 1.0
TRIES: Final = 3
TOKEN: Final = "0123456789abcdef0123456789abcdef"
RATE: Final = 100.0


@dataclass(frozen=True, slots=True)
class Starts:
    """How late the requests of each of two workers came, in ms, and what the report says of the run."""

    late_ms: tuple[list[float], list[float]]
    is_valid: bool
    reasons: str
    clocks_ms: float
    lateness_ms: float

    @property
    def apart_ms(self) -> float:
        """The median of the second worker, whose clock or link is another one, less that of the first."""
        first, second = (statistics.median(one) for one in self.late_ms)
        return second - first

    def line(self) -> str:
        quantiles = ("/".join(f"{percentile(one, percent):.2f}" for percent in (10, 50, 90)) for one in self.late_ms)
        return (
            f"late p10/p50/p90 {' and '.join(quantiles)} ms, medians {self.apart_ms:+.3f} ms apart; clocks within "
            f"{self.clocks_ms:.3f} ms, own lateness p99 {self.lateness_ms:.1f} ms"
        )


@dataclass
class Found:
    apart_ms: dict[str, list[float]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def why_no_namespace() -> str:
    """Return why no process can run with a clock of its own; "" if one can."""
    try:
        done = subprocess.run(["unshare", "--time", "--monotonic", "3", "true"], capture_output=True, text=True)
    except OSError as error:
        return str(error)
    return done.stderr.strip()


def shifted(seconds: float) -> tuple[str, ...]:
    """Return the words before a command whose monotonic clock is to be off."""
    return ("unshare", "--time", "--monotonic", f"{seconds:g}", "--boottime", f"{seconds:g}") if seconds else ()


def replayed(plan: EvenPlan, folder: Path, before: Sequence[str], there_s: float = 0.0) -> Starts:
    """Replay with two workers; ``before`` stands before the second one's command, and ``there_s`` delays its frames."""
    folder.mkdir()
    token = folder / "token"
    token.write_text(TOKEN)
    crew = ("--listen", "127.0.0.1:0", "--expect", 2, "--token-file", token)
    with ExitStack() as stack:
        notes = stack.enter_context(noting_server())
        words = ("replay", plan.trace, "--target", notes.url, *crew, "--json", folder / "report.json")
        controller = stack.enter_context(command(folder / "said", *words))
        address = controller.address()
        workers = []
        for number in range(2):
            own = folder / f"worker-{number}"
            if number and there_s:
                host, _, port = address.rpartition(":")
                address = f"{host}:{stack.enter_context(delaying_proxy(host, int(port), there_s, 0.0))}"
            given = ("worker", address, "--token-file", token, "--requests", own)
            one = command(folder / f"said-{number}", *given, before=before if number else ())
            workers.append(stack.enter_context(one))
        status = controller.wait()
        for worker in workers:
            worker.wait()  # its log is whole
    if status not in (0, 3):
        raise SystemExit(f"status {status}: {controller.output}")
    moments_s = moments_of(notes, plan)
    begin_s = begin_of(plan.starts_s, moments_s)
    report = report_of(folder / "report.json")
    return Starts(
        tuple(  # type: ignore[arg-type]
            [1000 * (moments_s[path] - begin_s - plan.starts_s[path]) for path in paths_of(folder / f"worker-{number}")]
            for number in range(2)
        ),
        report["valid"],
        "; ".join(report["not_valid_because"]),
        report["generator"]["clocks_within_ms"],
        report["generator"]["own_lateness"]["p99_ms"],
    )


def paths_of(folder: Path) -> list[str]:
    """Return the paths that a worker has sent, by its own log."""
    with gzip.open(folder / "requests-1.csv.gz", "rt", newline="") as lines:
        return [urlsplit(row["url"]).path for row in csv.DictReader(lines)]


def undisturbed(plan: EvenPlan, folder: Path, before: Sequence[str]) -> Starts:
    """Return the first valid replay, or the last of TRIES."""
    for number in range(TRIES):
        starts = replayed(plan, folder.with_name(f"{folder.name}-{number}"), before)
        if starts.is_valid:
            break
    return starts


def prove(
    rounds: int, seconds: float, shift_s: float, delay_ms: float, folder: Path, tell: Callable[[str], None]
) -> Found:
    found, plan = Found(), even_plan(folder, RATE, seconds)
    for number in range(rounds):
        off_s = shift_s if number % 2 == 0 else -shift_s
        kinds = [("control", 0.0), ("shifted", off_s)]
        for kind, clock_s in kinds if number % 2 == 0 else kinds[::-1]:
            starts = undisturbed(plan, folder / f"{kind}-{number}", shifted(clock_s))
            found.apart_ms.setdefault(kind, []).append(starts.apart_ms)
            tell(f"round {number + 1}, {kind}, clock {clock_s:+g} s: {starts.line()}")
            if not starts.is_valid:
                found.wrong.append(f"round {number + 1}, {kind}: not valid after {TRIES} tries: {starts.reasons}")
    for kind, apart_ms in found.apart_ms.items():
        if kind == "shifted" and abs(statistics.median(apart_ms)) > SAME_MS:
            found.wrong.append(f"{kind}: starts are {statistics.median(apart_ms):+.3f} ms apart, over {SAME_MS:g}")
    if delay_ms:
        _judge_far(found, replayed(plan, folder / "far", (), delay_ms / 1000), delay_ms, tell)
    return found


def _judge_far(found: Found, far: Starts, delay_ms: float, tell: Callable[[str], None]) -> None:
    tell(f"far, frames delayed by {delay_ms:g} ms: {far.line()}")
    tell(f"far: {'valid' if far.is_valid else f'not valid: {far.reasons}'}")
    is_over = delay_ms / 2 > CLOCK_MS
    if is_over and (far.is_valid or "clocks" not in far.reasons):
        found.wrong.append(f"far: a clock that may be {far.clocks_ms:.2f} ms off, and the run is valid")
    if abs(far.apart_ms) > far.clocks_ms + SAME_MS:
        found.wrong.append(f"far: starts are {far.apart_ms:+.2f} ms apart, and the report says {far.clocks_ms:.2f}")


@click.command(
    help=(__doc__ or "").replace("\n\n", "\n\n\b\n"), context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1))
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(2), help="Of each replay.")
@click.option("--shift", default=3.0, show_default=True, type=click.FloatRange(0), help="Seconds.")
@click.option("--delay", default=20.0, show_default=True, type=click.FloatRange(0), help="Milliseconds; 0: not.")
def main(rounds: int, seconds: float, shift: float, delay: float) -> None:
    console = Console(soft_wrap=True, highlight=False, markup=False)
    if why := why_no_namespace():
        console.print(f"NOT RUN: no process can have a clock of its own here: {why}")
        sys.exit(1)
    folder = Path(tempfile.mkdtemp(prefix="columnar-crew-clocks-"))
    console.print(f"{machine()}; no seed: {RATE:g} requests a second at equal gaps for {seconds:g} s")
    found = prove(rounds, seconds, shift, delay, folder, console.print)
    for kind, apart_ms in found.apart_ms.items():
        each = ", ".join(f"{one:+.3f}" for one in apart_ms)
        console.print(
            f"{kind}: medians {statistics.median(apart_ms):+.3f} ms apart over {len(apart_ms)} rounds ({each})"
        )
    end_report(console, found.wrong, folder)


if __name__ == "__main__":
    sys.exit(main())
