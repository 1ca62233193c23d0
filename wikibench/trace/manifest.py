"""The manifest of a trace's folder: what is in its parts, without opening one (pure).

    manifest.json := {"format": "wikibench-trace-1",
                      "parts": [part, ...],             in order of time
                      "requests": {kind: count},        of all parts; kinds are view, save, missing
                      "dropped": {reason: count},       lines of the logs that are not in the trace
                      "history": [sentence, ...]}       what was done, in order: read, cut, sample, scrub, map
    part          := {"file": "part-00000.gz", "bytes": of the file,
                      "first_us": time of its first request, "last_us": of its last one,
                      "requests": {kind: count},
                      "minutes": [[minute since 1970, count, first_us, last_us], ...]}   the last two within the minute

A part is gzip, has at most PART_REQUESTS lines of ``lines``, sorted by time.  The manifest is written last: a folder
without one is what an interrupted command left behind, and is refused.

Invariants:
    I1. No request of a part is earlier than the last one of the part before.
    I2. The counts of the minutes of a part add up to its requests, and those of the parts to the whole.
    I3. The same manifest gives the same bytes.

The minutes give requests and span of any window of whole minutes, also with silences of a minute and more cut: such a
silence lies between the last request of one minute and the first one of another.

Knows nothing of files.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from wikibench.errors import TraceFileError

from .lines import KINDS, MICROS

FORMAT: Final = "wikibench-trace-1"
NAME: Final = "manifest.json"
PART_REQUESTS: Final = 250_000
MINUTE_US: Final = 60 * MICROS


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time, half open; None is without an end on that side."""

    begin_us: int | None = None
    end_us: int | None = None

    @property
    def is_all(self) -> bool:
        return self.begin_us is None and self.end_us is None

    def has(self, time_us: int) -> bool:
        return (self.begin_us is None or time_us >= self.begin_us) and (self.end_us is None or time_us < self.end_us)

    def meets(self, first_us: int, last_us: int) -> bool:
        """Return whether a request between the two times, both included, can be in the window."""
        return (self.begin_us is None or last_us >= self.begin_us) and (self.end_us is None or first_us < self.end_us)

    def covers(self, first_us: int, last_us: int) -> bool:
        return self.has(first_us) and self.has(last_us)


ALL: Final = Window()


@dataclass(frozen=True, slots=True)
class Minute:
    """The requests of a minute: their number, and the times of the first and the last one."""

    number: int
    count: int
    first_us: int
    last_us: int


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a folder."""

    file: str
    size_bytes: int
    first_us: int
    last_us: int
    requests: Mapping[str, int]  # by kind
    minutes: tuple[Minute, ...]

    @property
    def count(self) -> int:
        return sum(self.requests.values())


@dataclass(frozen=True, slots=True)
class Manifest:
    """The parts of a folder, and where they come from."""

    parts: tuple[Part, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    history: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts)

    @property
    def requests(self) -> dict[str, int]:
        """The requests by kind."""
        return {kind: sum(part.requests.get(kind, 0) for part in self.parts) for kind in KINDS}

    def parts_in(self, window: Window) -> Iterator[Part]:
        return (part for part in self.parts if window.meets(part.first_us, part.last_us))

    def size_and_span(self, window: Window = ALL, max_gap_us: int | None = None) -> tuple[int, int] | None:
        """Return the requests of the window and the time from the first to the last, in microseconds.

        Silences over ``max_gap_us`` count as so long.  None if the minutes cannot say it: the window begins or ends
        within a minute that has requests on both sides, or shorter silences than a minute are to be cut.
        """
        if max_gap_us is not None and max_gap_us < MINUTE_US:
            return None
        count, span_us, previous_us = 0, 0, None
        for part in self.parts_in(window):
            for minute in part.minutes:
                if not window.meets(minute.first_us, minute.last_us):
                    continue
                if not window.covers(minute.first_us, minute.last_us):
                    return None
                if previous_us is not None:
                    gap_us = minute.first_us - previous_us
                    span_us += gap_us if max_gap_us is None else min(gap_us, max_gap_us)
                span_us += minute.last_us - minute.first_us
                previous_us = minute.last_us
                count += minute.count
        return count, span_us

    def check(self) -> None:
        """Raise AssertionError if I1 or I2 is broken."""
        last_us = 0
        for part in self.parts:
            assert last_us <= part.first_us <= part.last_us, part.file
            last_us = part.last_us
            assert 0 < part.count == sum(minute.count for minute in part.minutes), part.file
            assert part.count <= PART_REQUESTS, part.file
            for minute in part.minutes:
                assert minute.number == minute.first_us // MINUTE_US == minute.last_us // MINUTE_US, part.file


class MinuteCounts:
    """Requests by minute, fed in order of time."""

    def __init__(self) -> None:
        self.minutes: list[Minute] = []
        self._number = -1
        self._count = self._first_us = self._last_us = 0

    def add_times(self, times_us: Sequence[int]) -> None:
        begin = 0
        while begin < len(times_us):
            number = times_us[begin] // MINUTE_US
            if number != self._number:
                self._note()
                self._number, self._count, self._first_us = number, 0, times_us[begin]
            end = bisect_left(times_us, (number + 1) * MINUTE_US, begin)
            self._count += end - begin
            self._last_us = times_us[end - 1]
            begin = end

    def finished(self) -> tuple[Minute, ...]:
        self._note()
        self._number = -1
        return tuple(self.minutes)

    def _note(self) -> None:
        if self._number >= 0:
            self.minutes.append(Minute(self._number, self._count, self._first_us, self._last_us))


def to_json(manifest: Manifest) -> str:
    """Return the text of the file."""
    parts = [
        {
            "file": part.file,
            "bytes": part.size_bytes,
            "first_us": part.first_us,
            "last_us": part.last_us,
            "requests": _by_kind(part.requests),
            "minutes": [
                [one.number, one.count, one.first_us % MINUTE_US, one.last_us % MINUTE_US] for one in part.minutes
            ],
        }
        for part in manifest.parts
    ]
    whole: dict[str, Any] = {
        "format": FORMAT,
        "requests": manifest.requests,
        "dropped": dict(sorted(manifest.dropped.items())),
        "history": list(manifest.history),
    }
    head = json.dumps(whole, ensure_ascii=False, indent=1).removesuffix("\n}")
    rows = ",\n".join(f"  {json.dumps(part)}" for part in parts)  # a line a part: a person can read it
    return f'{head},\n "parts": [\n{rows}\n ]\n}}\n'


def from_json(text: str, path: str) -> Manifest:
    """Return the manifest of a file's text.  Raises TraceFileError, which names ``path``."""
    try:
        found = json.loads(text)
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        manifest = Manifest(
            tuple(_part(part) for part in found["parts"]),
            {str(reason): int(count) for reason, count in found["dropped"].items()},
            tuple(str(sentence) for sentence in found["history"]),
        )
        manifest.check()
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
        raise TraceFileError(path, f"not the manifest of a trace ({type(error).__name__}: {error})") from error
    return manifest


def _part(found: Mapping[str, Any]) -> Part:
    minutes = tuple(
        Minute(number, count, number * MINUTE_US + first, number * MINUTE_US + last)
        for number, count, first, last in found["minutes"]
    )
    name = str(found["file"])
    if "/" in name or "\\" in name:
        raise ValueError(f"the name of a part is {name!r}")
    requests = {kind: int(found["requests"].get(kind, 0)) for kind in KINDS}
    return Part(name, int(found["bytes"]), int(found["first_us"]), int(found["last_us"]), requests, minutes)


def _by_kind(requests: Mapping[str, int]) -> dict[str, int]:
    return {kind: requests.get(kind, 0) for kind in KINDS}
