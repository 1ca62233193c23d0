"""Folders of a trace: parts on disk and their manifest, written so that half a folder is never taken for a whole one.

A folder is made under a name of its own beside its place (``.NAME.making``), and renamed once its manifest is in it and
everything is synced.  A crash leaves a folder without a manifest, or with the wrong name.

Invariants:
    I1. A folder that opens has all of its parts, each of the size that the manifest says.
    I2. A window opens the parts that can have a request of it, and no other.
    I3. The same requests give the same bytes.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Final, cast

from wikibench.errors import TraceFileError

from .lines import Request, parse_line
from .manifest import ALL, NAME, PART_REQUESTS, Manifest, MinuteCounts, Part, Window, from_json, to_json
from .sorting import SortedLine

_BATCH: Final = 10_000  # lines that are written at once
PACKING: Final = 6  # gzip's level: 0.9 us a line; 9 takes twice as long for 2 % less


class FolderTrace:
    """The trace in a folder."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest

    @classmethod
    def opened(cls, path: Path) -> FolderTrace:
        """Read the manifest.  Raises TraceFileError if the folder is no whole trace."""
        try:
            text = (path / NAME).read_text(encoding="utf-8")
        except FileNotFoundError as error:
            why = "a folder without manifest.json: no trace, or what an interrupted command left; make it again"
            raise TraceFileError(str(path), why) from error
        except (OSError, UnicodeDecodeError) as error:
            raise TraceFileError(str(path / NAME), f"cannot be read: {error}") from error
        manifest = from_json(text, str(path / NAME))
        for part in manifest.parts:
            file = path / part.file
            size = file.stat().st_size if file.is_file() else -1
            if size != part.size_bytes:
                found = "is missing" if size < 0 else f"has {size:,} bytes"
                raise TraceFileError(str(file), f"{found}, where the manifest says {part.size_bytes:,}: copy it again")
        return cls(path, manifest)

    def requests_in(
        self, window: Window = ALL, skip: int = 0, is_wanted: Callable[[Part], bool] = bool
    ) -> Iterator[Request]:
        """Yield the requests of the window by time, of the parts that are wanted, without the first ``skip``."""
        for part in self.manifest.parts_in(window):
            if not is_wanted(part):
                continue
            is_covered = window.covers(part.first_us, part.last_us)
            if is_covered and skip >= part.count:
                skip -= part.count
                continue
            requests: Iterator[Request] = self._read(part)
            if not is_covered:
                requests = (one for one in requests if window.has(one.time_us))
            for _ in islice(requests, skip):
                skip -= 1
            yield from requests

    def _read(self, part: Part) -> Iterator[Request]:
        path = self.path / part.file
        try:
            with cast(
                "IO[str]", gzip.open(path, "rt", encoding="utf-8", errors="surrogateescape", newline="\n")
            ) as file:
                for number, line in enumerate(file, start=1):
                    yield parse_line(line, number)
        except (OSError, EOFError) as error:
            raise TraceFileError(str(path), f"the part is damaged ({error}): copy the folder again") from error


class FolderWriter:
    """A folder in the making.  As a context it is renamed to its place at the end, or removed after an error."""

    def __init__(self, path: Path, *, part_requests: int = PART_REQUESTS) -> None:
        self.path = path
        self._making = path.parent / f".{path.name}.making"
        self._most = part_requests
        self._parts: list[Part] = []
        self._dropped: Mapping[str, int] = {}
        self._history: tuple[str, ...] = ()

    def __enter__(self) -> FolderWriter:
        try:
            if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
                raise TraceFileError(str(self.path), "it is there already: give another --out, or remove it first")
            shutil.rmtree(self._making, ignore_errors=True)  # of a command that was interrupted
            self._making.mkdir(parents=True)
        except OSError as error:
            raise TraceFileError(str(self.path), f"cannot be written: {error.strerror or error}") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is not None:
            shutil.rmtree(self._making, ignore_errors=True)
            return
        try:
            manifest = Manifest(tuple(self._parts), self._dropped, self._history)
            with (self._making / NAME).open("w", encoding="utf-8", newline="\n") as file:
                file.write(to_json(manifest))
                file.flush()
                os.fsync(file.fileno())
            if self.path.exists():
                self.path.rmdir()
            self._making.rename(self.path)
            _sync_folder(self.path.parent)
        except OSError as failed:
            raise TraceFileError(str(self.path), f"cannot be written: {failed.strerror or failed}") from failed

    def note_history(self, dropped: Mapping[str, int], history: Iterable[str]) -> None:
        """Note for the manifest what was dropped, by reason, and what was done."""
        self._dropped, self._history = dropped, tuple(history)

    def write_lines(self, lines: Iterable[SortedLine]) -> int:
        """Write the lines, which come in order of time, in parts; return their number.  Raises TraceFileError."""
        rest, count = iter(lines), 0
        try:
            while batch := list(islice(rest, min(_BATCH, self._most))):
                count += self._write_part(batch, islice(rest, self._most - len(batch)))
        except OSError as error:
            raise TraceFileError(str(self.path), f"cannot be written: {error.strerror or error}") from error
        return count

    def _write_part(self, batch: list[SortedLine], rest: Iterable[SortedLine]) -> int:
        """Write a part that begins with the batch; return its lines."""
        name = f"part-{len(self._parts):05d}.gz"
        minutes, kinds, first_us, last_us = MinuteCounts(), Counter[str](), batch[0].time_us, 0
        following = iter(rest)
        with packed_file(self._making / name) as file:
            while batch:
                times, kinds_of_batch, texts = zip(*batch, strict=True)
                assert list(times) == sorted(times), "lines are written in order of time"
                assert last_us <= times[0], "lines are written in order of time"
                last_us = times[-1]
                file.write("\n".join(texts) + "\n")
                minutes.add_times(times)
                kinds.update(kinds_of_batch)
                batch = list(islice(following, _BATCH))
        size = (self._making / name).stat().st_size
        part = Part(name, size, first_us, last_us, kinds, minutes.finished())
        self._parts.append(part)
        return part.count


@contextlib.contextmanager
def packed_file(path: Path) -> Iterator[IO[str]]:
    """Yield a gzip file to write lines to, which is synced at the end."""
    # no name and no time in the header: the same trace gives the same bytes
    with path.open("wb") as raw:
        with (
            gzip.GzipFile("", "wb", compresslevel=PACKING, fileobj=raw, mtime=0) as packed,
            io.BufferedWriter(cast("io.RawIOBase", packed), 1 << 17) as buffered,
            io.TextIOWrapper(buffered, encoding="utf-8", errors="surrogateescape", newline="\n") as file,
        ):
            yield file
        raw.flush()
        os.fsync(raw.fileno())


def _sync_folder(path: Path) -> None:
    with contextlib.suppress(OSError):  # Windows opens no folders
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
