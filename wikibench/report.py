"""A report on disk: report.html, whole in one file, and report.json beside it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from importlib import metadata
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from gauge import machine

from .errors import MissingPlotsError
from .summary import Json, Replay, distribution

HTML, JSON = "report.html", "report.json"
REPORT_BYTES: Final = 1 << 20  # both files together are smaller
COLUMNS = ("p50_ms", "p90_ms", "p95_ms", "p99_ms", "p99.9_ms", "max_ms")


def environment() -> Json:
    """Return the machine and the software, as far as figures depend on them."""
    return {
        **machine.environment(),
        "wikibench_http_client": f"httptools {metadata.version('httptools')}",
    }


def require_writable(folder: Path) -> None:
    """Make the folder before the load, and check that it has room for a report, and that plots can be drawn.

    Raises OSError and MissingPlotsError.
    """
    if find_spec("matplotlib") is None:
        raise MissingPlotsError
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(REPORT_BYTES))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error


def write_report(folder: Path, summary: Json, replay: Replay) -> Path:
    """Write both files into ``folder``, which is made if missing; return the path of the HTML."""
    folder.mkdir(parents=True, exist_ok=True)
    # the JSON first, so that it is not lost if drawing fails
    (folder / JSON).write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    path = folder / HTML
    path.write_text(render(summary, replay), encoding="utf-8")
    return path


def render(summary: Json, replay: Replay) -> str:
    """Return the HTML page."""
    import jinja2  # these two are slow to import and only wanted here
    from markupsafe import Markup

    from .plots import draw_all

    curves = {
        "response time (from the intended start)": distribution(replay.recorder.response()),
        "service time (from the actual send)": distribution(replay.recorder.service()),
    }
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters["ms"] = _milliseconds
    environment.filters["count"] = lambda number: f"{number:,}"
    environment.filters["words"] = lambda name: name.replace("_", " ")
    template = environment.from_string(files("wikibench").joinpath("templates", HTML).read_text("utf-8"))
    return template.render(
        s=summary,
        headline=_headline(summary),
        tiles=_tiles(summary),
        plots=draw_all(summary, curves),
        cells=lambda times: Markup("").join(
            Markup("<td>{}</td>").format(_milliseconds(times[column])) for column in COLUMNS
        ),
    )


def _headline(summary: Json) -> str:
    rate = summary["rate"]
    text = f"{rate['got_per_s']:.4g} of {rate['asked_per_s']:.4g} requests per second"
    p95 = summary["response_time"]["p95_ms"]
    return text if p95 is None else f"{text}, 95 % within {_milliseconds(p95)} ms"


def _tiles(summary: Json) -> Sequence[tuple[str, str]]:
    requests, times = summary["requests"], summary["response_time"]
    return (
        (f"{requests['counted']:,}", "requests counted"),
        (f"{requests['failed']:,}", "failed"),
        (f"{requests['conflicts']:,}", "edit conflicts"),
        (f"{summary['rate']['page_views_per_s']:.4g}", "page views per second"),
        (f"{_milliseconds(times['p50_ms'])} ms", "median response"),
        (f"{_milliseconds(times['p95_ms'])} ms", "p95 response"),
        (f"{_milliseconds(times['p99_ms'])} ms", "p99 response"),
        (f"{requests['received_bytes'] / 1e6:,.1f} MB", "received"),
    )


def _milliseconds(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
