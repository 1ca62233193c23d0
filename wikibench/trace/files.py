"""Traces in plain or gzip files or on standard input; a trace is read again for every round of a replay.

The first bytes of a file say whether it is gzip, whatever its name; other packings are refused by name.
"""

from __future__ import annotations

import gzip
import io
import shlex
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, cast

from wikibench.errors import TraceError, TraceFileError
from wikibench.limits import BAD_LINES_KEPT
from wikibench.targets.paths import host_of

from .lines import Request, format_line, in_order, parse
from .log_formats import guessed

STDIN = "-"
_GZIP: Final = b"\x1f\x8b"
_PACKED: Final = {  # by the first bytes: the packing, and its unpacker
    _GZIP: ("gzip", "gzip -dc"),
    b"BZh": ("bzip2", "bzip2 -dc"),
    b"\xfd7zXZ\x00": ("xz", "xz -dc"),
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -dc"),
    b"7z\xbc\xaf\x27\x1c": ("7z", "7z e -so"),
    b"PK\x03\x04": ("zip", "unzip -p"),
}
_TO_READ: Final = "not of a trace: make a trace of it by wikibench trace read LOG --out day.trace.gz"
_FIRST_BYTES: Final = max(map(len, _PACKED))


class TraceFile:
    """A trace that can be read from its beginning, in order of time.

    Without ``window`` the trace is read and sorted once and then kept in memory (about 250 bytes a request); with
    ``window`` each reading streams from disk.
    """

    def __init__(self, path: str, *, window: int | None, skip_bad: bool, host: str | None) -> None:
        self._path = path
        self._window = window
        self._skip_bad = skip_bad
        self._host = host
        self._kept: list[Request] | None = None
        self.bad_lines = 0
        self.first_bad: list[TraceError] = []
        self.other_hosts = 0  # requests left out because of ``host``

    @classmethod
    def opened(
        cls, path: str, *, window: int | None = None, skip_bad: bool = False, host: str | None = None
    ) -> TraceFile:
        """Open the trace, and read it now if it is to be kept in memory.  Raises TraceError."""
        trace = cls(path, window=window, skip_bad=skip_bad, host=host)
        if window is None or path == STDIN:  # standard input cannot be read twice
            trace._kept = list(trace._read_once())
        return trace

    def read(self) -> Iterable[Request]:
        return self._kept if self._kept is not None else self._read_once()

    def _read_once(self) -> Iterator[Request]:
        # counted afresh at each reading
        self.bad_lines, self.first_bad, self.other_hosts = 0, [], 0
        try:
            with opened_lines(self._path) as lines:
                yield from in_order(self._wanted(parse(lines, self._on_bad())), self._window)
        except TraceError as error:
            if (found := guessed([error.text])) is not None:
                raise TraceFileError(self._path, f"a line of an access log ({found[0].name}), {_TO_READ}") from error
            raise

    def _wanted(self, requests: Iterable[Request]) -> Iterator[Request]:
        for request in requests:
            if self._host is not None and host_of(request.url) not in (None, self._host):
                self.other_hosts += 1
                continue
            yield request

    def _on_bad(self) -> Callable[[TraceError], None] | None:
        return self._note_bad if self._skip_bad else None

    def _note_bad(self, error: TraceError) -> None:
        self.bad_lines += 1
        if len(self.first_bad) < BAD_LINES_KEPT:
            self.first_bad.append(error)


def write_trace(path: str, requests: Iterable[Request]) -> int:
    """Write the requests to ``path`` (gzip if it ends in ``.gz``, ``-`` for standard output); return their number.

    Raises TraceFileError if the disk is full or the folder takes no files.
    """
    count = 0
    try:
        with _writable(path) as file:
            for request in requests:
                file.write(format_line(request) + "\n")
                count += 1
    except OSError as error:
        if path == STDIN:
            raise
        raise TraceFileError(path, f"cannot be written: {error.strerror or error}") from error
    return count


@contextmanager
def opened_lines(path: str) -> Iterator[IO[str]]:
    """Yield the open file.  Raises TraceFileError if a gzip file is cut or damaged, wherever the damage is found."""
    try:
        with _opened(path) as file:
            yield file
    except EOFError as error:
        raise TraceFileError(path, "the gzip file is cut: its end is missing; fetch or make it again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TraceFileError(path, f"the gzip file is damaged or none: {error}") from error


@contextmanager
def _opened(path: str) -> Iterator[IO[str]]:
    # real traces have bytes that are no UTF-8; they must come out as they went in
    if path == STDIN:
        peek = getattr(getattr(sys.stdin, "buffer", None), "peek", None)
        _require_plain("standard input", peek(_FIRST_BYTES) if peek is not None else b"", STDIN)
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
        yield sys.stdin
        return
    with Path(path).open("rb") as raw:
        first = raw.read(_FIRST_BYTES)
    if path.endswith(".gz") or first.startswith(_GZIP):
        with cast("IO[str]", gzip.open(path, "rt", encoding="utf-8", errors="surrogateescape", newline="\n")) as file:
            yield file
        return
    _require_plain(path, first, path)
    with Path(path).open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        yield file


def _require_plain(what: str, first: bytes, path: str) -> None:
    """Raise TraceFileError if the ``first`` bytes are those of a packed file."""
    for magic, (name, unpack) in _PACKED.items():
        if first.startswith(magic):
            source = f"{unpack} FILE" if path == STDIN else f"{unpack} {shlex.quote(path)}"
            raise TraceFileError(what, f"it is packed by {name}: unpack it first ({source} | wikibench replay -)")


@contextmanager
def _writable(path: str) -> Iterator[IO[str]]:
    if path == STDIN:
        yield sys.stdout
    elif path.endswith(".gz"):
        # no name and no time in the header: the same trace gives the same bytes
        with (
            Path(path).open("wb") as raw,
            gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
            io.TextIOWrapper(packed, encoding="utf-8", errors="surrogateescape", newline="\n") as file,
        ):
            yield file
    else:
        with Path(path).open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            yield file
