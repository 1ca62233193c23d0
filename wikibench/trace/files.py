"""Traces and logs in plain or gzip files or on standard input, and the writing of a trace to a file or a folder.

The first bytes of a file say whether it is gzip, whatever its name; other packings are refused by name.
"""

from __future__ import annotations

import gzip
import shlex
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, cast

from wikibench.errors import TraceFileError

from .folder import FolderWriter, packed_file
from .lines import Request
from .sorting import SortedLine, line_of

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
_FIRST_BYTES: Final = max(map(len, _PACKED))


def is_folder(path: str) -> bool:
    """Return whether a trace at ``path`` is, or is to be, a folder: its name ends in a slash, or a folder is there."""
    return path != STDIN and (path.endswith("/") or Path(path).is_dir())


def write_trace(
    path: str, requests: Iterable[Request], dropped: Mapping[str, int] | None = None, history: Iterable[str] = ()
) -> int:
    """Write the requests, which come in order of time, as ``write_lines`` does."""
    return write_lines(path, map(line_of, requests), dropped=dropped or {}, history=history)


def write_lines(path: str, lines: Iterable[SortedLine], *, dropped: Mapping[str, int], history: Iterable[str]) -> int:
    """Write the lines to ``path`` and return their number.

    The place is a folder with a manifest, which says what was ``dropped`` and the ``history``; or a file, gzip if it
    ends in ``.gz``; or ``-``, standard output.  Raises TraceFileError if the disk is full or the place takes no files.
    """
    if is_folder(path):
        with FolderWriter(Path(path)) as folder:
            count = folder.write_lines(lines)
            folder.note_history(dropped, history)
        return count
    count = 0
    try:
        with writable(path) as file:
            for line in lines:
                file.write(f"{line.text}\n")
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
def writable(path: str) -> Iterator[IO[str]]:
    """Yield a file for lines: gzip if its name ends in ``.gz``, standard output for ``-``."""
    if path == STDIN:
        yield sys.stdout
    elif path.endswith(".gz"):
        with packed_file(Path(path)) as file:
            yield file
    else:
        with Path(path).open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            yield file
