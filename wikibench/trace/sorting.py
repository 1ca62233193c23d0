"""Requests by time, however many there are and in whatever order they come: buckets of a minute on disk.

    bucket line  := time_us:017d kind:"v" | "s" | "m" line LF       ``line`` as ``lines`` has it

Up to PART_REQUESTS are sorted in memory.  More go into buckets, by minute; each is then sorted in memory.  A bucket of
more than PART_REQUESTS is first cut into ten of a tenth of its width; one of a microsecond is in order as it is.  If
the requests are of more than BUCKETS minutes, the buckets become ten times as wide.

Bounds: BUFFERED lines in memory while requests come, PART_REQUESTS while they are given; BUCKETS files (and ten more
for each time that a bucket is cut); one of them is open at a time.

Invariants:
    I1. Any disorder is repaired, and requests of one time keep their order.
    I2. A file that is read has been removed afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Final, NamedTuple

from wikibench.errors import TraceFileError

from .lines import MISSING, VIEW, Request, format_line
from .manifest import MINUTE_US, PART_REQUESTS

BUCKETS: Final = 4_096
BUFFERED: Final = 100_000
_FINER: Final = 10
_KEY: Final = 17  # digits of the time: microseconds until the year 5138
_TIME: Final = attrgetter("time_us")
_LINE_KEY: Final = itemgetter(slice(0, _KEY))
_KINDS: Final = {"v": "view", "s": "save", "m": "missing"}
_LETTERS: Final = {VIEW: "v", MISSING: "m"}  # of all other flags "s"


class SortedLine(NamedTuple):
    """A line of a trace, with what a part's figures need of it."""

    time_us: int
    kind: str
    text: str  # without a line end


def lines_in_time_order(
    requests: Iterable[Request], folder: Path, *, most: int = PART_REQUESTS, buckets: int = BUCKETS
) -> Iterator[SortedLine]:
    """Yield the lines of the requests by time, without making requests of them again."""
    rest = iter(requests)
    first = list(islice(rest, most + 1))
    if len(first) <= most:
        yield from map(line_of, sorted(first, key=_TIME))
        return
    made = _Buckets(folder, MINUTE_US, buckets)
    made.fill(_bucket_line(request) for request in chain(first, rest))
    del first
    yield from map(_unpacked, _sorted_buckets(made, most))


def line_of(request: Request) -> SortedLine:
    return SortedLine(request.time_us, request.kind, format_line(request))


def _bucket_line(request: Request) -> str:
    return f"{request.time_us:017d}{_LETTERS.get(request.flag, 's')}{format_line(request)}\n"


def _unpacked(line: str) -> SortedLine:
    return SortedLine(int(line[:_KEY]), _KINDS[line[_KEY]], line[_KEY + 1 : -1])


def _sorted_buckets(buckets: _Buckets, most: int) -> Iterator[str]:
    """Yield the lines of all buckets in order, with at most ``most`` of them in memory."""
    for key in sorted(buckets.files):
        path, count = buckets.files.pop(key)
        if count <= most:
            lines = list(_read(path))
            path.unlink()
            lines.sort(key=_LINE_KEY)
            yield from lines
        elif buckets.width_us == 1:
            yield from _read(path)
            path.unlink()
        else:
            finer = _Buckets(path.with_suffix(".cut"), max(1, buckets.width_us // _FINER), BUCKETS)
            finer.fill(_read(path))
            path.unlink()
            yield from _sorted_buckets(finer, most)
            finer.folder.rmdir()


class _Buckets:
    """Files of lines, each of a stretch of time of ``width_us``."""

    def __init__(self, folder: Path, width_us: int, most: int) -> None:
        self.folder = folder
        self.width_us = width_us
        self.files: dict[int, tuple[Path, int]] = {}  # by number of the stretch: the file, and its lines
        self._most = most

    def fill(self, lines: Iterable[str]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        rest = iter(lines)
        while batch := list(islice(rest, BUFFERED)):
            buffered: dict[int, list[str]] = {}
            width_us = self.width_us
            for line in batch:
                number = int(line[:_KEY]) // width_us
                if number in buffered:
                    buffered[number].append(line)
                else:
                    buffered[number] = [line]
            del batch
            for number, group in buffered.items():
                self._append(number if self.width_us == width_us else number * width_us // self.width_us, group)

    def _append(self, number: int, lines: list[str]) -> None:
        path, count = self.files.get(number, (self.folder / f"{number}.{self.width_us}", 0))
        try:
            with path.open("a", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
                file.writelines(lines)
        except OSError as error:
            why = f"cannot sort there: {error.strerror or error}; set TMPDIR to a folder with room for the whole trace"
            raise TraceFileError(str(self.folder), why) from error
        self.files[number] = (path, count + len(lines))
        if len(self.files) > self._most:
            self._widen()

    def _widen(self) -> None:
        """Make the buckets ten times as wide: a line stays behind those of its time that came before it."""
        old, self.files = self.files, {}
        self.width_us *= _FINER
        for number in sorted(old):
            path, count = old[number]
            wide = number // _FINER
            if wide not in self.files:
                target = self.folder / f"{wide}.{self.width_us}"
                self.files[wide] = (path.rename(target), count)
                continue
            target, before = self.files[wide]
            with path.open("rb") as source, target.open("ab") as file:
                while block := source.read(1 << 20):
                    file.write(block)
            path.unlink()
            self.files[wide] = (target, before + count)


def _read(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        yield from file
