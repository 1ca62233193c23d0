"""A report on disk: report.json, and report.html, the same whole in one page."""

from __future__ import annotations

import json
import tempfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from gauge import machine

from .errors import MissingPlotsError, ReportError
from .summary import Json
from .whole_files import write_whole

HTML, JSON = "report.html", "report.json"
REPORT_BYTES: Final = 2 << 20  # both files together are smaller
READABLE_BYTES: Final = 64 << 20  # of a report that is read again
READABLE: Final = ("wikibench-report-1", "wikibench-report-2")


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


def write_report(folder: Path, summary: Json) -> Path:
    """Write both files into ``folder``, which is made if missing; return the path of the HTML."""
    folder.mkdir(parents=True, exist_ok=True)
    # the JSON first, so that it is not lost if drawing fails
    write_whole(folder / JSON, json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    return write_page(folder / HTML, summary)


def write_page(path: Path, summary: Json) -> Path:
    """Write the page of a report; raises MissingPlotsError, OSError, and ReportError for a report that is not whole."""
    from .findings.pages import render

    if find_spec("matplotlib") is None:
        raise MissingPlotsError
    write_whole(path, render(summary))
    return path


def read_report(path: Path) -> Json:
    """Read a report.json of either version, or the one in a folder; raises ReportError and OSError.

    Keys that version 1 does not have are filled in, except for histograms.
    """
    path = path / JSON if path.is_dir() else path
    if path.stat().st_size > READABLE_BYTES:
        raise ReportError(str(path), f"larger than {READABLE_BYTES >> 20} MB, so no report")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ReportError(str(path), f"no JSON: {error}") from error
    version = found.get("format") if isinstance(found, dict) else None
    if version not in READABLE:
        raise ReportError(str(path), f"no report of a replay ({' or '.join(READABLE)}), but {version or 'other JSON'}")
    return {"valid": True, "not_valid_because": [], **found}
