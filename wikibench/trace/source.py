"""A trace to be read, wherever it is: a folder, a file, several files, standard input; all of it or a window.

    folder              read part by part; its manifest says how much is in a window
    files, input        up to PART_REQUESTS are sorted in memory; more are sorted into a folder of TMPDIR, which is
                        removed at the end.  With a sort window files are streamed each time instead

A trace is read again for every round of a replay.

Invariants:
    I1. Requests come in order of time; only with a sort window can one come late, and it is counted (``late_lines``).
    I2. Memory does not grow with the trace.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Final

from wikibench.addresses.paths import host_of
from wikibench.errors import PlanError, TraceError, TraceFileError
from wikibench.limits import BAD_LINES_KEPT

from .files import STDIN, is_folder, opened_lines
from .folder import FolderTrace, FolderWriter
from .lines import MICROS, Request, in_order, parse, parse_line
from .log_formats import guessed
from .manifest import ALL, PART_REQUESTS, Manifest, Part, Window
from .sorting import lines_in_time_order

_TO_READ: Final = "not of a trace: make a trace of it by wikibench trace read LOG --out day.trace.gz"
_AFTER: Final = re.compile(r"\+(\d+(?:\.\d+)?)(s|m|h|d)")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_FORMS: Final = "08:00 (of the trace's first day, UTC), +2h (after its first request), or 2024-01-31T08:00"


class Trace:
    """A trace, read in order of time as often as wanted."""

    def __init__(
        self, paths: Sequence[str], *, sort_window: int | None = None, skip_bad: bool = False, host: str | None = None
    ) -> None:
        self.paths = tuple(paths)
        self.window = ALL
        self.folder: FolderTrace | None = None
        self.bad_lines = 0
        self.first_bad: list[TraceError] = []
        self.other_hosts = 0  # requests left out because of ``host``
        self.late_lines = 0  # that were further out of place than the sort window repairs
        self._sort_window = sort_window
        self._skip_bad = skip_bad
        self._host = host
        self._kept: list[Request] | None = None

    def open_all(self, begin: str | None = None, end: str | None = None) -> Trace:
        """Open the trace, and sort it if it has to be; restrict it to the window.  Raises TraceError, PlanError."""
        if len(self.paths) == 1 and is_folder(self.paths[0]):
            self.folder = FolderTrace.opened(Path(self.paths[0]))
        elif self._sort_window is None or STDIN in self.paths:  # standard input cannot be read twice
            self._sort()
        if begin is not None or end is not None:
            first = next(iter(self.read()), None)
            if first is not None:
                self.window = window_of(begin, end, first.time_us)
        return self

    @property
    def name(self) -> str:
        return " ".join(self.paths)

    def read(self, skip: int = 0) -> Iterable[Request]:
        """Return the requests of the window in order, without the first ``skip`` of them."""
        if self._kept is not None:
            kept = self._kept if self.window.is_all else [one for one in self._kept if self.window.has(one.time_us)]
            return kept[skip:] if skip else kept
        if self.folder is not None:
            if self._host is None:
                return self.folder.requests_in(self.window, skip)
            self.other_hosts = 0
            return islice(self._of_host(self.folder.requests_in(self.window)), skip, None)
        return islice((one for one in self._read_once(self._sort_window) if self.window.has(one.time_us)), skip, None)

    def saves(self) -> Iterable[Request]:
        """Return the edits of the window; parts without an edit are not opened."""
        if self.folder is not None:
            found: Iterable[Request] = self.folder.requests_in(self.window, is_wanted=_has_saves)
        else:
            found = self.read()
        return (request for request in found if request.is_save)

    def size_and_span(self, max_gap_us: int | None = None) -> tuple[int, int] | None:
        """Return requests and microseconds of the window without reading it; None if only reading can say it."""
        if self.folder is None or self._host is not None:
            return None
        return self.folder.manifest.size_and_span(self.window, max_gap_us)

    def history(self, *steps: str) -> tuple[str, ...]:
        """Return what was done to the folders of the trace, with further ``steps``.

        Several folders are numbered: their paths are nothing to hand on.
        """
        is_one = len(self.paths) == 1
        done = [
            sentence if is_one else f"trace {number}: {sentence}"
            for number, manifest in enumerate(self._manifests(), start=1)
            for sentence in manifest.history
        ]
        return (*done, *steps)

    def dropped(self) -> Counter[str]:
        """Return the lines of the logs that are not in the folders of the trace, by reason."""
        found: Counter[str] = Counter()
        for manifest in self._manifests():
            found.update(manifest.dropped)
        return found

    def _manifests(self) -> list[Manifest]:
        return [FolderTrace.opened(Path(path)).manifest for path in self.paths if is_folder(path)]

    def raw(self) -> Iterator[Request]:
        """Yield the requests of all files in the order of their lines; counts are afresh at each reading."""
        self.bad_lines, self.first_bad, self.other_hosts, self.late_lines = 0, [], 0, 0
        for path in self.paths:
            if is_folder(path):
                yield from FolderTrace.opened(Path(path)).requests_in()
                continue
            try:
                with opened_lines(path) as lines:
                    yield from parse(lines, self._on_bad())
            except TraceError as error:
                if (found := guessed([error.text])) is not None:
                    raise TraceFileError(path, f"a line of an access log ({found[0].name}), {_TO_READ}") from error
                raise error if len(self.paths) == 1 else TraceFileError(path, str(error)) from error

    def _read_once(self, sort_window: int | None) -> Iterator[Request]:
        return in_order(self._of_host(self.raw()), sort_window, self._note_late)

    def _sort(self) -> None:
        rest = self._of_host(self.raw())
        first = list(islice(rest, PART_REQUESTS + 1))
        if len(first) <= PART_REQUESTS:
            self._kept = sorted(first, key=lambda request: request.time_us)
            return
        made = Path(tempfile.mkdtemp(prefix="wikibench-"))
        weakref.finalize(self, _remove, made, os.getpid())
        with FolderWriter(made / "sorted") as folder:
            folder.write_lines(lines_in_time_order(chain(first, rest), made / "buckets"))
        self.folder = FolderTrace.opened(made / "sorted")
        self._host = None  # applied

    def _of_host(self, requests: Iterable[Request]) -> Iterator[Request]:
        if self._host is None:
            yield from requests
            return
        for request in requests:
            if host_of(request.url) not in (None, self._host):
                self.other_hosts += 1
                continue
            yield request

    def _on_bad(self) -> Callable[[TraceError], None] | None:
        return self._note_bad if self._skip_bad else None

    def _note_bad(self, error: TraceError) -> None:
        self.bad_lines += 1
        if len(self.first_bad) < BAD_LINES_KEPT:
            self.first_bad.append(error)

    def _note_late(self) -> None:
        self.late_lines += 1


def is_trace(path: str) -> bool:
    """Return whether a folder, or a file whose first line is a trace's, is at ``path``; False for standard input."""
    if path == STDIN or is_folder(path):
        return path != STDIN
    with opened_lines(path) as lines:
        first = next((line for line in lines if line.strip()), "")
    try:
        parse_line(first)
    except TraceError:
        return False
    return True


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # not a worker process, which has a copy of the object
        shutil.rmtree(folder, ignore_errors=True)


def _has_saves(part: Part) -> bool:
    return part.requests.get("save", 0) > 0


def window_of(begin: str | None, end: str | None, first_us: int) -> Window:
    """Return the window of a trace whose first request is at ``first_us``.  Raises PlanError.

    An end by the clock that is not after the beginning is of the next day.
    """
    begin_us = None if begin is None else _moment("--from", begin, first_us)
    end_us = None if end is None else _moment("--to", end, first_us)
    begins_us = first_us if begin_us is None else begin_us
    if end_us is not None and end_us <= begins_us and end is not None and _CLOCK.fullmatch(end):
        end_us += 86_400 * MICROS
    if end_us is not None and end_us <= begins_us:
        raise PlanError(f"--to {end} is not after {'the first request' if begin is None else f'--from {begin}'}")
    return Window(begin_us, end_us)


def _moment(option: str, text: str, first_us: int) -> int:
    if (found := _AFTER.fullmatch(text)) is not None:
        return first_us + round(float(found[1]) * _UNITS_S[found[2]] * MICROS)
    if (found := _CLOCK.fullmatch(text)) is not None:
        day = datetime.fromtimestamp(first_us // MICROS, UTC).replace(hour=0, minute=0, second=0)
        clock = timedelta(hours=int(found[1]), minutes=int(found[2]), seconds=int(found[3] or 0))
        if clock <= timedelta(days=1):
            return int((day + clock).timestamp()) * MICROS
    try:
        if re.fullmatch(r"\d{9,10}(\.\d+)?", text):
            return round(float(text) * MICROS)
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise PlanError(f"{option} {text!r} is no moment: write {_FORMS}") from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * MICROS)
