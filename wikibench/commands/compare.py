"""``wikibench compare``: what reports of two systems say of each other, with intervals."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import click
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from gauge.confidence import Ratio
from wikibench.comparison import MARGIN, Comparison, Difference, Limit, Run, compare, json_of, parse_limits, run_of
from wikibench.errors import PlanError, ReportError, WikibenchError
from wikibench.options import Share
from wikibench.report import JSON
from wikibench.statuses import CONTEXT, MET, MISSED, NOT_VALID, report_errors
from wikibench.whole_files import write_whole

SEED: Final = 1  # blocks are drawn by it, so that the same reports give the same words
STYLES = {"better": "green", "worse": "bold red", "same": "green", "cannot tell": "yellow"}


class Limits(click.ParamType[tuple[Limit, ...]]):
    """The clauses of a --fail-if."""

    name = "limits"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Limit, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return parse_limits(str(value))
        except WikibenchError as error:
            self.fail(str(error), param, ctx)


class _ListsOfReports(click.Command):
    """A command whose ``--with`` takes all words up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words: list[str] = []
        is_with = False
        for word in args:
            if word.startswith("-"):
                is_with = word == "--with"
                words += [] if is_with else [word]
            else:
                words += ["--with", word] if is_with else [word]
        return super().parse_args(ctx, words)


limit_option = click.option(
    "--fail-if", "limits", type=Limits(), default="", help="Exit with 1 if B is beyond this, such as 'p50>+5%,cpu>+5%'."
)
margin_option = click.option(
    "--margin", type=Share(), default=MARGIN, show_default=True, help="A difference within it is too small to count."
)


@click.command("compare", cls=_ListsOfReports, context_settings=CONTEXT)
@click.argument("a", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="A.json...")
@click.option(
    "--with",
    "b",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="B.json...",
    help="The reports of the other system: all words up to the next option.",
)
@limit_option
@margin_option
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="Write the comparison here.")
def compare_command(
    a: tuple[Path, ...], b: tuple[Path, ...], limits: tuple[Limit, ...], margin: float, json_path: Path | None
) -> None:
    """Compare reports of two systems, A and B: is B better, worse, the same, or can nobody tell?

    \b
    Two reports, or several of each in pairs (the first of A with the first of B, and so on):
      wikibench compare before/report.json after/report.json
      wikibench compare a1.json a2.json a3.json --with b1.json b2.json b3.json --fail-if 'p50>+5%,cpu>+5%'

    Each figure comes with the interval that holds the ratio of B to A with 92 %, and with the smallest difference
    that nine of ten such comparisons would have shown. Three pairs and more say how much runs differ; fewer are
    compared by their blocks of 5 s, which is said "of these runs only". A folder stands for its report.json.
    Better than reports from different hours is `wikibench ab`, which measures both in turn.

    \b
    The exit status is 1 if B is worse, else 0. --fail-if sets it by p50, p95, p99, rate, cpu or cpu.ROLE instead:
      p50>+5%     1 if the whole interval is above +5 %, 0 if none of it is, 3 if it cannot be told
      rate<-3%    the same, below -3 %
    A report that is not valid makes it 3, in either case. A B that fails in over 1 % more of the requests than A, or
    cannot follow where A can, is worse whatever its times, and the exit status is 1.
    """
    with report_errors():
        if not b:
            if len(a) != 2:
                raise PlanError(f"{len(a)} reports and no --with: which are of the other system?")
            a, b = a[:1], a[1:]
        found = compare([read_run(path) for path in a], [read_run(path) for path in b], Random(SEED), margin)
        if json_path is not None:
            write_json(json_path, found, limits)
    print_comparison(Console(), found, limits)
    sys.exit(status_of(found, limits))


def read_run(path: Path) -> Run:
    """Return what is compared of a report on disk; raises ReportError and OSError."""
    path = path / JSON if path.is_dir() else path
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ReportError(str(path), f"no JSON: {error}") from error
    return run_of(report, str(path))


def write_json(path: Path, comparison: Comparison, limits: Sequence[Limit]) -> None:
    text = json.dumps(json_of(comparison, limits), indent=1, ensure_ascii=False)
    write_whole(path, text + "\n")


def status_of(comparison: Comparison, limits: Sequence[Limit]) -> int:
    """Return the exit status: that of the limits, or without limits 1 for a B that is worse.

    The status is 3 if a run is not valid, and 1 if B fails where A does not, whatever the limits.
    """
    found = {limit.judge(comparison) for limit in limits}
    if comparison.not_valid:
        return NOT_VALID
    if comparison.why_b_fails:
        return MISSED
    if not limits:
        return MISSED if comparison.verdict == "worse" else MET
    return MISSED if "missed" in found else NOT_VALID if "cannot tell" in found else MET


def print_comparison(console: Console, comparison: Comparison, limits: Sequence[Limit]) -> None:
    runs = f"{comparison.runs} pairs of runs" if comparison.basis == "pairs" else "blocks of 5 s of these runs only"
    table = Table(title=f"B against A: {runs}", title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    for name in ("A", "B", f"B to A, {comparison.confidence:.0%} between", "visible"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("B is", no_wrap=True)
    for one in comparison.differences:
        table.add_row(*_cells(one), style=STYLES[one.verdict] if one.decides else None)
    console.print(table)
    for one in comparison.differences:
        if one.why:
            console.print(f"{one.figure}: {one.why}", markup=False, soft_wrap=True)
    for remark in comparison.remarks:
        console.print(f"note: {remark}", style="yellow", markup=False, soft_wrap=True)
    for limit in limits:
        judged = limit.judge(comparison)
        style = {"met": "green", "missed": "bold red"}.get(judged, "yellow")
        console.print(f"{_WORDS[judged]} {limit.text}", style=style, markup=False)
    for why in comparison.not_valid:
        console.print(f"NOT VALID: {why}", style="bold red", markup=False, soft_wrap=True)
    for why in filter(None, (comparison.why_a_fails, comparison.why_b_fails)):
        console.print(f"FAILS: {why}; times and rates say nothing then", style="bold red", soft_wrap=True)
    console.print(
        f"B is {comparison.verdict}" if comparison.verdict != "cannot tell" else "cannot tell whether B differs",
        style=STYLES[comparison.verdict],
    )


_WORDS = {"met": "not beyond", "missed": "BEYOND", "cannot tell": "CANNOT TELL"}


def _cells(one: Difference) -> list[str]:
    unit = "us" if one.figure.startswith("cpu") else "/s" if one.figure == "rate" else "ms"
    ratio = one.ratio
    between = "–" if ratio is None else _of_ratio(ratio)
    visible = "–" if ratio is None else "over 100 %" if ratio.visible >= 0.995 else f"{ratio.visible * 100:.2g} %"
    return [f"{one.figure} {unit}", f"{one.a:.4g}", f"{one.b:.4g}", between, visible, one.verdict]


def _of_ratio(ratio: Ratio) -> str:
    low, middle, high = (_percent(value) for value in (ratio.low, ratio.middle, ratio.high))
    return f"{middle} % ({low} to {high})"


def _percent(ratio: float) -> str:
    value = (ratio - 1) * 100
    return f"{value:+.0f}" if abs(value) >= 20 else f"{value:+.1f}"
