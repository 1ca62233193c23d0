"""Tables of a report for spreadsheets and data frames: intervals.csv and kinds.csv, in UTF-8 with a header line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from wikibench.summary import Json
from wikibench.whole_files import write_whole

INTERVALS, KINDS = "intervals.csv", "kinds.csv"
_OVER_TIME: Final = ("p50_ms", "p95_ms", "p99_ms", "max_ms")
_TIMES: Final = ("p50_ms", "p90_ms", "p95_ms", "p99_ms", "p99.9_ms", "max_ms", "mean_ms")


def write_tables(folder: Path, report: Json) -> tuple[Path, Path]:
    """Write both tables into ``folder``, which is made if missing; return their paths.  Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / INTERVALS, folder / KINDS
    for path, table in zip(paths, (interval_rows(report), kind_rows(report)), strict=True):
        text = io.StringIO(newline="")
        csv.writer(text).writerows(table)
        write_whole(path, text.getvalue())
    return paths


def interval_rows(report: Json) -> Iterable[Sequence[object]]:
    """Yield the header, and a row for each interval: a column for each outcome that failed somewhere."""
    outcomes = sorted({name for row in report["intervals"] for name in row["failed"]})
    yield ["start_s", "length_s", "asked", "answered", "conflicts", *(f"failed {one}" for one in outcomes), *_OVER_TIME]
    for row in report["intervals"]:
        counts = [row["failed"].get(name, 0) for name in outcomes]
        times = [row[name] for name in _OVER_TIME]
        yield [row["start_s"], report["interval_s"], row["asked"], row["answered"], row["conflicts"], *counts, *times]


def kind_rows(report: Json) -> Iterable[Sequence[object]]:
    """Yield the header, and two rows for each kind and outcome: response time and service time."""
    yield ["kind", "outcome", "failed", "time", "count", *_TIMES]
    for row in report["by_kind_and_outcome"]:
        for name in ("response_time", "service_time"):
            times = row[name]
            yield [
                row["kind"],
                row["outcome"],
                row["failed"],
                name,
                times["count"],
                *(times.get(one) for one in _TIMES),
            ]
