"""The answer of a search: in words, as JSON, as tables on the terminal, and as a page with plots.

The page has the answer in words, a plot and a table of the tries in order, and the curve around the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich import table
from rich.console import Console

from gauge.rate_search import Found, Try
from wikibench.experiments.tables import NONE, Page, Row, Table, html_of, text_of_value
from wikibench.summary import Json
from wikibench.whole_files import write_whole

FORMAT: Final = "wikibench-search-1"
PAGE: Final = "search.html"
BEYOND_REQUIREMENTS: Final = ("its backlog grew", "it was not steady")
_HEAD: Final = ("asked/s", "got/s", "p50, ms", "p95, ms", "p99, ms", "failed", "late p99, ms")

LIVE_HEAD: Final = ("asked/s", "got/s", "p50, ms", "p95, ms", "failed")

Tries = Sequence[tuple[Try, str, Json]]  # each with its verdict and its report


def figures_of(summary: Json) -> dict[str, float | None]:
    """(pure) Return the figures of a try or of a point of the curve, by the heads of the page's columns."""
    times = summary["response_time"]
    return {
        "asked/s": summary["rate"]["asked_per_s"],
        "got/s": summary["rate"]["got_per_s"],
        **{f"{name}, ms": times[f"{name}_ms"] for name in ("p50", "p95", "p99")},
        "failed": summary["requests"]["failed"],
        "late p99, ms": summary["generator"]["own_lateness"]["p99_ms"],
    }


def verdict_of(one: Try, summary: Json) -> str:
    if one.is_kept:
        return "kept"
    if not summary["valid"]:
        return "not valid"
    return "missed" if summary["ending"] == "complete" else str(summary["ending"])


def lines_of(found: Found) -> list[str]:
    """(pure) Return the answer in words."""
    if found.why == "no rate kept" or not found.rate:
        return ["no rate kept the requirement"]
    if found.why == "every rate kept":
        return [f"every rate kept the requirement, up to {found.rate:.1f} per second: raise --to to find the limit"]
    if not found.width:
        return [f"kept at {found.rate:.1f} per second; the search ended before a rate was missed"]
    lines = [
        f"largest rate that half of the tries keep: {found.rate:.1f} per second, "
        f"with 90 % between {found.low:.1f} and {found.high:.1f}",
        f"nine of ten tries keep {found.safe_rate:.1f} per second",
    ]
    if found.why != "precise":
        what = {"tries": "after the most tries that a search makes", "budget": "before it was known as wanted"}
        lines.append(f"the search ended {what.get(found.why, found.why)}: the interval is {found.width:.0%} wide")
    return lines


def lines_so_far(found: Found) -> list[str]:
    """(pure) Return the answer in words while the search goes on."""
    if not found.rate:
        return ["no rate kept so far"]
    if not found.width:
        return [f"kept so far: {found.rate:.1f} per second"]
    return lines_of(replace(found, why="precise"))


def live_of(title: str, words: Sequence[str], found: Found, tries: Tries) -> Json:
    """(pure) Return what the page of a running search has beside the figures of a try; see ``findings.running``."""
    rows = []
    for number, (_, verdict, summary) in enumerate(tries, start=1):
        values = [figures_of(summary)[head] for head in LIVE_HEAD]
        rows.append([f"{number}: {verdict}", *(text_of_value(value, 4) for value in values)])
    bounds = {"low": found.low, "answer": found.rate, "high": found.high}
    return {"title": title, "answer": [f"{one[0].upper()}{one[1:]}." for one in words], "tries": rows, "bounds": bounds}


def answer_of(found: Found, tries: Tries, curve: Sequence[Json]) -> Json:
    """(pure) Return answer and tries for programs; rates per second."""
    return {
        "format": FORMAT,
        "rate_per_s": round(found.rate, 2),
        "low_per_s": round(found.low, 2),
        "high_per_s": round(found.high, 2),
        "nine_of_ten_per_s": round(found.safe_rate, 2),
        "why": found.why,
        "tries": [
            {
                "rate_per_s": one.rate,
                "kept": one.is_kept,
                "valid": summary["valid"],
                "got_per_s": summary["rate"]["got_per_s"],
                "failed": summary["requests"]["failed"],
                "p50_ms": summary["response_time"]["p50_ms"],
                "p95_ms": summary["response_time"]["p95_ms"],
                "own_lateness_p99_ms": summary["generator"]["own_lateness"]["p99_ms"],
            }
            for one, _, summary in tries
        ],
        "curve": [
            {"share_of_answer": one["share_of_answer"], "valid": one["valid"], "roles": one["roles"], **figures_of(one)}
            for one in curve
        ],
    }


def print_tries(tries: Tries, curve: Sequence[Json]) -> None:
    """Print the tables of tries and curve, and why tries were missed or not valid."""
    console = Console()
    rows = [(summary, verdict, "green" if one.is_kept else "red") for one, verdict, summary in tries]
    console.print(_printed_table("Tries; times in ms, late is the generator's own p99", rows))
    for _, _, summary in tries:
        for row in summary["requirements"]:
            if not row["met"]:
                console.print(f"at {summary['rate']['asked_per_s']:.1f}/s: {row['text']}", markup=False)
        if summary["missed_because"] in BEYOND_REQUIREMENTS:
            console.print(f"at {summary['rate']['asked_per_s']:.1f}/s: {summary['missed_because']}", markup=False)
        for why in summary["not_valid_because"]:
            console.print(f"at {summary['rate']['asked_per_s']:.1f}/s, not valid: {why}", markup=False)
    if curve:
        around = [(one, f"{one['share_of_answer']:.0%}", "") for one in curve]
        console.print(_printed_table("Curve: tries around the answer; times in ms", around))


def print_answer(found: Found, best: Json | None) -> None:
    """Print the answer in words, and what the kept try nearest to it answered."""
    console = Console()
    for line in lines_of(found):
        console.print(line, markup=False, soft_wrap=True)
    if best is not None:
        rate = best["rate"]
        console.print(
            f"answered at {rate['asked_per_s']:.1f}/s: {rate['got_per_s']:.1f} per second, "
            f"page views {rate['page_views_per_s']:.1f}"
        )


def _printed_table(title: str, rows: Sequence[tuple[Json, str, str]]) -> table.Table:
    """Return a table of reports, each with its last cell and its style."""
    made = table.Table(title=title, title_justify="left")
    for name in ("asked/s", "got/s", "pages/s", "p50", "p95", "p99", "failed", "late", ""):
        made.add_column(name, justify="right", no_wrap=True)
    for summary, last, style in rows:
        times, rate, generator = summary["response_time"], summary["rate"], summary["generator"]
        made.add_row(
            f"{rate['asked_per_s']:.1f}",
            f"{rate['got_per_s']:.1f}",
            f"{rate['page_views_per_s']:.1f}",
            *("–" if times[key] is None else f"{times[key]:.0f}" for key in ("p50_ms", "p95_ms", "p99_ms")),
            str(summary["requests"]["failed"]),
            f"{generator['own_lateness']['p99_ms'] or 0:.1f}",
            last,
            style=style,
        )
    return made


def write_search_page(folder: Path, words: Sequence[str], found: Found, tries: Tries, curve: Sequence[Json]) -> Path:
    """Write ``search.html`` into the folder, and return its path.  Raises OSError.

    ``words`` say the answer; ``curve`` has the reports of the tries around it, each with its ``share_of_answer``.
    """
    tables = [_table("Tries, in order", [(f"{at}: {verdict}", one) for at, (_, verdict, one) in enumerate(tries, 1)])]
    if curve:
        rows = [(f"{one['share_of_answer']:.0%} of the answer", one) for one in curve]
        tables.append(_table("Response times below and above the answer", rows))
    path = folder / PAGE
    about = tries[0][2] if tries else {}
    facts = [("target", str(about.get("target", NONE))), ("trace", str(about.get("trace", {}).get("file", NONE)))]
    facts += [("required", row["requirement"]) for row in about.get("requirements", ())]
    if about:
        machine = about["environment"]
        facts += [("machine", f"{machine['cores']} cores, {machine['processor']}"), ("begun", str(machine["date"]))]
    answer = " ".join(f"{one[0].upper()}{one[1:]}." for one in words)
    page = Page("The largest rate that a wiki keeps", answer, tuple(facts), tuple(tables))
    write_whole(path, html_of(page, "", _drawings(found, tries, curve)))
    return path


def _table(title: str, rows: Sequence[tuple[str, Json]]) -> Table:
    made = []
    for name, summary in rows:
        values = tuple(figures_of(summary)[head] for head in _HEAD)
        made.append(Row(name, tuple(text_of_value(value, 4) for value in values), values))
    return Table(title, ("", *_HEAD), tuple(made))


def _drawings(found: Found, tries: Tries, curve: Sequence[Json]) -> list[str]:
    from wikibench.findings.search_plots import draw_curve, draw_tries  # imports matplotlib, which is slow

    marks = [(one.rate, one.is_kept, bool(summary["valid"])) for one, _, summary in tries]
    drawings = [draw_tries(marks, found.low, found.rate, found.high)]
    if curve:
        drawings.append(draw_curve([figures_of(one) for one in curve]))
    return drawings
