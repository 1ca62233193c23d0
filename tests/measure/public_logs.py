"""Access logs that nobody here wrote, read, sampled, and replayed onto a wiki: what is refused, why, and what happens.

    python -m tests.measure.public_logs apache_logs traefik.json 'nginx.log::nginx:$remote_addr ... $request_time'

Each log is read by ``wikibench trace read`` in its format, which is guessed unless it stands behind ``::``.  Printed
are the lines that are not in the trace, by reason, with the first one of each.  A tenth of its pages (``--pages``) is
sampled, gets names of a wiki of synthetic pages that is started for it, and is replayed within ``--seconds``, so hours
are squeezed, with their bursts.  The table at the end has all logs.  Fails if a line is neither kept nor refused, if
most of a log cannot be read, or if a request of a replay fails.

Logs of other people stay out of the repository; ``docs/wikibench.md`` says where some are.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from tests.support.ports import free_port
from wikibench.commands.passes import page_of
from wikibench.trace.files import opened_lines
from wikibench.trace.log_entries import Entry, LogFormat
from wikibench.trace.log_formats import AUTO_LINES, format_of, guessed
from wikibench.trace.logs import Selection, Tally, requests_of
from wikibench.trace.source import Trace

WIKI_PAGES: Final = 3_000
READY_S: Final = 60.0
SHOWN: Final = 100  # letters of a line
SHORTEST_S: Final = 1e-3


@dataclass(slots=True)
class Examples(Tally):
    """A tally that keeps the first line of each reason."""

    first_of: dict[str, str] = field(default_factory=dict)

    def drop(self, reason: str, line: str) -> None:
        Tally.drop(self, reason, line)
        self.first_of.setdefault(reason, line.rstrip("\n"))


def words_of(line: str, log_format: LogFormat) -> str:
    """Return method, address and status of a line; of one without them all of it."""
    entry = log_format.parse(line)
    return f"{entry.method} {entry.target} {entry.status}" if isinstance(entry, Entry) else line


def refusals(path: str, format_name: str) -> tuple[LogFormat, Examples]:
    """Return the format, and what of the log is refused, with examples."""
    if format_name:
        log_format = format_of(format_name)
    else:
        with opened_lines(path) as lines:
            found = guessed(list(islice(lines, AUTO_LINES)))
        if found is None:
            raise SystemExit(f"{path}: no known format; write FILE::FORMAT")
        log_format = found[0]
    tally = Examples()
    with opened_lines(path) as lines:
        for _ in requests_of(lines, log_format, Selection(), tally, None):
            pass
    tally.check()
    return log_format, tally


def command(*words: object) -> str:
    """Run a command of this checkout; return what it says.  Raises CalledProcessError."""
    done = subprocess.run([sys.executable, "-m", *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        raise SystemExit(f"{' '.join(map(str, words[:3]))} ended with {done.returncode}")
    return done.stdout + done.stderr


@contextmanager
def wiki(folder: Path) -> Iterator[str]:
    """Start a store and a wiki with WIKI_PAGES pages; yield its address."""
    port, store, web = free_port(), free_port(), free_port()
    words = ["run", "--data", folder, "--port", port, "--store-port", store, "--web-port", web, "--log-level", "error"]
    with subprocess.Popen(
        [sys.executable, "-m", "wikka_port.cli", *map(str, words)], stdout=subprocess.DEVNULL
    ) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for(url, process)
            command("wikka_port.cli", "synth", "--store", f"127.0.0.1:{store}", "--pages", WIKI_PAGES)
            yield url
        finally:
            process.terminate()
            process.wait(READY_S)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + READY_S
    while time.monotonic() < until_s and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise SystemExit(f"no wiki at {url}")


def replayed(path: str, format_name: str, folder: Path, url: str, share: str, seconds: float) -> dict[str, Any]:
    """Read, sample, map and replay a log; return the report, with the numbers of its requests and pages."""
    words = ("--format", format_name) if format_name else ()
    command("wikibench.cli", "trace", "read", path, *words, "--out", f"{folder / 'whole'}/")
    command("wikibench.cli", "trace", "sample", folder / "whole", "--pages", share, "--out", f"{folder / 'small'}/")
    command("wikibench.cli", "trace", "map", folder / "small", "--target", url, "--out", f"{folder / 'mapped'}/")
    whole, small = (list(Trace([str(folder / name)]).open_all().read()) for name in ("whole", "small"))
    span_s = (small[-1].time_us - small[0].time_us) / 1e6
    speed = max(span_s / seconds, SHORTEST_S)
    report = folder / "report.json"
    command(
        *("wikibench.cli", "replay", folder / "mapped", "--target", url, "--speed", speed, "--json", report),
        *("--lateness", "1s", "--require", "errors<=0"),
    )
    pages = [len({page_of(one) for one in requests}) for requests in (whole, small)]
    sizes = {"whole": len(whole), "small": len(small), "pages": pages, "speed": speed, "span_h": span_s / 3600}
    found: dict[str, Any] = json.loads(report.read_text())
    return found | sizes


def row_of(name: str, kind: str, tally: Tally, report: dict[str, Any]) -> Sequence[str]:
    times, outcomes = report["response_time"], report["by_kind_and_outcome"]
    missing = sum(row["response_time"]["count"] for row in outcomes if row["outcome"] == "404 expected")
    return (
        name,
        kind,
        f"{tally.lines:,}",
        f"{tally.dropped.total():,}",
        f"{tally.unreadable:,}",
        f"{report['whole']:,} of {report['pages'][0]:,}",
        f"{report['small']:,} of {report['pages'][1]:,}",
        f"{report['span_h']:.3g} h",
        f"{report['speed']:,.0f}",
        f"{report['requests']['counted']:,}",
        f"{missing:,}",
        f"{report['requests']['failed']:,}",
        f"{times['p50_ms']:.3g}",
        f"{times['p95_ms']:.3g}",
    )


HEAD: Final = (
    *("log", "format", "lines", "refused", "unreadable", "requests of pages", "sample", "span", "squeezed by"),
    *("sent", "404 expected", "failed", "p50 ms", "p95 ms"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", metavar="FILE[::FORMAT]")
    parser.add_argument("--pages", default="10%", help="Of each log's pages (10%%).")
    parser.add_argument("--seconds", type=float, default=60.0, help="Of each replay (60).")
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="public-logs-") as folder, wiki(Path(folder) / "wiki") as url:
        for number, text in enumerate(given.logs):
            path, _, format_name = text.partition("::")
            log_format, tally = refusals(path, format_name)
            kind = log_format.name.partition(":")[0]
            print(f"{Path(path).name}: {tally.lines:,} lines, {kind}; {tally.kept:,} kept", flush=True)
            for reason, count in tally.dropped.most_common():
                print(f"  {count:,} {reason}\n      {words_of(tally.first_of[reason], log_format)[:SHOWN]!r}")
            own = Path(folder) / str(number)
            own.mkdir()
            report = replayed(path, format_name, own, url, given.pages, given.seconds)
            rows.append(row_of(Path(path).name, kind, tally, report))
    table = Table()
    for name in HEAD:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(width=220).print(table)


if __name__ == "__main__":
    main()
