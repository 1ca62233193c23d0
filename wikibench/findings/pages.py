"""The page of a report, whole in one file: figures, drawings, the JSON itself, and the script that draws it.

The page makes no request to anywhere, and its policy forbids it: scripts are named by their hashes, everything else
but inline styles is refused.  A browser without script, and paper, get matplotlib's drawings in place of uPlot's.

    data of a page := base64 of gzip of {"report": as in report.json, "curves": points by name, "live": false}
    point          := [1 / (1 - quantile), milliseconds]

Knows nothing of how a report was measured: a page is made of report.json alone.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from gauge.histogram import Histogram, merged
from wikibench.errors import ReportError
from wikibench.generator_limit import words_of_limit
from wikibench.outcome import Outcome
from wikibench.summary import Json, distribution, machine_lines

if TYPE_CHECKING:
    import jinja2

COLUMNS: Final = ("p50_ms", "p90_ms", "p95_ms", "p99_ms", "p99.9_ms", "max_ms")
PAGE_BYTES: Final = 600_000  # a page of 600 intervals is smaller
UPLOT: Final = ("uPlot.iife.min.js", "uPlot.min.css", "uPlot.LICENSE")
RESPONSE: Final = "response time (from the intended start)"
SERVICE: Final = "service time (from the actual send)"

Curves = Mapping[str, Sequence[tuple[float, float]]]
Rows = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of a page: what is said of it, the table behind it, and its drawing; a live page has none."""

    name: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: Rows
    drawing: str = ""


def render(report: Json) -> str:
    """Return the page of a report.  Raises ReportError for one that is not whole."""
    import jinja2  # slow to import, and only wanted here

    try:
        return _rendered_report(report)
    except (jinja2.UndefinedError, KeyError, TypeError) as error:
        raise ReportError("report", f"it is not whole: {error}") from error


def _rendered_report(report: Json) -> str:
    from .plots import draw

    curves = curves_of(report)
    plots = [replace(one, drawing=draw(one.name, one.title, report, curves)) for one in plots_of(report, curves)]
    data = {"report": report, "curves": curves, "live": False}
    return rendered(
        "report.html",
        data,
        ("report.js",),
        s=report,
        headline=headline(report),
        plots=plots,
        machine=machine_lines(report),
    )


def rendered(template: str, data: Json, own_scripts: Sequence[str], *, connects: bool = False, **names: Any) -> str:
    """Return a page of ``template`` with its data and scripts; ``connects`` allows calls of its own server."""
    from markupsafe import Markup

    scripts = [_licensed_uplot(), *(_static(name) for name in own_scripts)]
    hashes = " ".join(f"'sha256-{_hash(text)}'" for text in scripts)
    policy = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:"
    policy += "; base-uri 'none'; form-action 'none'" + ("; connect-src 'self'" if connects else "")
    packed = gzip.compress(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode(), mtime=0)
    return (
        _environment()
        .get_template(template)
        .render(
            policy=policy,
            style=Markup(_static(UPLOT[1]) + _static("report.css")),  # noqa: S704  our own files
            data=base64.b64encode(packed).decode(),
            scripts=[Markup(one) for one in scripts],  # noqa: S704  our own files
            tiles=tiles(names["s"]) if "s" in names else (),
            **names,
        )
    )


def curves_of(report: Json) -> dict[str, list[tuple[float, float]]]:
    """Return the percentile curves, as far as the report has the histograms: version 1 has no service times."""
    found = {}
    for name, key in ((RESPONSE, "response_time_us_hdr_base64"), (SERVICE, "service_time_us_hdr_base64")):
        rows = [row for row in report["by_kind_and_outcome"] if row["outcome"] != Outcome.INTERRUPTED]
        if all(key in row for row in rows):
            found[name] = [
                (round(inverse, 4), round(ms, 4))
                for inverse, ms in distribution(merged(Histogram.decode(row[key]) for row in rows))
            ]
    return found


def plots_of(report: Json, curves: Curves, *, is_live: bool = False) -> list[Plot]:
    """Return the plots without drawings; a live page has all, with empty tables that its script fills."""
    rows: Sequence[Json] = () if is_live else report["intervals"]
    bad = sorted({name for row in rows for name in row["failed"]})
    found = [
        Plot(
            "latency",
            "Response time over time",
            "From the intended start, of the requests intended to start in each stretch of "
            f"{report['interval_s']:g} s.",
            ("from s", "requests", "p50 ms", "p95 ms", "p99 ms", "max ms"),
            [
                (f"{row['start_s']:g}", f"{row['asked']:,}", *(milliseconds(row[f"{name}_ms"]) for name in _OVER_TIME))
                for row in rows
            ],
        ),
        Plot(
            "distribution",
            "Distribution of latencies",
            "How slow the slowest part of the requests was. Where the two lines part, requests waited before "
            "they were sent.",
            ("no slower", *(f"{name.partition(' (')[0]} ms" for name in curves)),
            _distribution_rows(curves),
        ),
        Plot(
            "rate",
            "Rate asked and got",
            "Requests intended to start, and answers that came, per second.",
            ("from s", "asked", "answered"),
            [(f"{row['start_s']:g}", f"{row['asked']:,}", f"{row['answered']:,}") for row in rows],
        ),
    ]
    if is_live or any(row["failed"] or row["conflicts"] for row in rows):
        found.append(
            Plot(
                "failures",
                "Failures and conflicts over time",
                "By the moment the request was intended to start.",
                ("from s", *(("failed",) if is_live else bad), "conflict"),
                [
                    (
                        f"{row['start_s']:g}",
                        *(f"{row['failed'].get(name, 0):,}" for name in bad),
                        f"{row['conflicts']:,}",
                    )
                    for row in rows
                    if row["failed"] or row["conflicts"]
                ],
            )
        )
    return found


_OVER_TIME: Final = ("p50", "p95", "p99", "max")


def _distribution_rows(curves: Curves) -> Rows:
    columns = [dict(points) for points in curves.values()]
    inverses = sorted({inverse for points in columns for inverse in points})
    return [
        (f"{100 * (1 - 1 / inverse):.7g}%", *(milliseconds(points.get(inverse)) for points in columns))
        for inverse in inverses
    ]


def headline(report: Json) -> str:
    rate = report["rate"]
    text = f"{rate['got_per_s']:.4g} of {rate['asked_per_s']:.4g} requests per second"
    p95 = report["response_time"]["p95_ms"]
    return text if p95 is None else f"{text}, 95 % within {milliseconds(p95)} ms"


def tiles(report: Json) -> list[tuple[str, str]]:
    """Return the first figures of a page, each with its name."""
    requests, times = report["requests"], report["response_time"]
    return [
        (f"{requests['counted']:,}", "requests counted"),
        (f"{requests['failed']:,}", "failed"),
        (f"{requests['conflicts']:,}", "edit conflicts"),
        (f"{report['rate']['page_views_per_s']:.4g}", "page views per second"),
        (f"{milliseconds(times['p50_ms'])} ms", "median response"),
        (f"{milliseconds(times['p95_ms'])} ms", "p95 response"),
        (f"{milliseconds(times['p99_ms'])} ms", "p99 response"),
        (f"{requests['received_bytes'] / 1e6:,.1f} MB", "received"),
    ]


def milliseconds(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _environment() -> jinja2.Environment:
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("wikibench.findings"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    filters: dict[str, Callable[[Any], str]] = {
        "ms": milliseconds,
        "limit": words_of_limit,
        "count": lambda number: f"{number:,}",
        "words": lambda name: name.replace("_", " "),
    }
    environment.filters.update(filters)
    environment.globals["cells"] = lambda times: Markup("").join(
        Markup("<td>{}</td>").format(milliseconds(times[column])) for column in COLUMNS
    )
    return environment


def _licensed_uplot() -> str:
    return f"/* uPlot\n{_static(UPLOT[2])}*/\n{_static(UPLOT[0])}"


def _static(name: str) -> str:
    return files("wikibench.findings").joinpath("static", name).read_text("utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
