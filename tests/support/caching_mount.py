"""A file system shared by several machines, as seen by a machine whose cache is older than the files.

CachingMount        a replacement of ``os``: files look as they did until a test renews them
CachingOperations   a mount for ``probe_root`` that keeps what it has seen for a while, as FUSE mounts do by default
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from columnar.storage import dead_logs, durable_files
from columnar.storage.probe_mount import MountOperations


class CachingMount:
    """A replacement of ``os`` in the modules that read dead servers' logs; shows files unchanged until one is aged."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._lengths: dict[str, int] = {}  # reads of the file end there
        self._sizes: dict[str, int] = {}  # as the file's attributes say
        self._hidden: set[str] = set()  # names that its folder does not show
        self._readings_left: dict[str, int] = {}  # of the aged files; after them the cache is as new as the file
        self._open: dict[int, str] = {}
        self.readings: list[str] = []  # names of files that were opened
        for module in (durable_files, dead_logs):
            monkeypatch.setattr(module, "os", self)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def age(self, path: Path, *, length: int | None = None, size: int | None = None, readings: int = 1 << 30) -> None:
        """Show only ``length`` bytes of the file, and ``size`` as its size, until it was opened ``readings`` times."""
        if length is not None:
            self._lengths[str(path)] = length
        if size is not None:
            self._sizes[str(path)] = size
        self._readings_left[str(path)] = readings

    def hide(self, path: Path) -> None:
        self._hidden.add(str(path))

    def renew(self) -> None:
        """Make the cache as new as the files."""
        self._lengths.clear()
        self._sizes.clear()
        self._hidden.clear()

    # --- calls of the system ---------------------------------------------------------------------------

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        if path in self._hidden:
            raise FileNotFoundError(2, os.strerror(2), path)
        file = os.open(path, flags, mode)
        self._open[file] = path
        self.readings.append(os.path.basename(path))
        if path in self._readings_left:
            self._readings_left[path] -= 1
            if self._readings_left[path] < 0:
                self._lengths.pop(path, None)
                self._sizes.pop(path, None)
        return file

    def fstat(self, file: int) -> Any:
        size = self._sizes.get(self._open.get(file, ""))
        return os.fstat(file) if size is None else SimpleNamespace(st_size=size)

    def read(self, file: int, count: int) -> bytes:
        length = self._lengths.get(self._open.get(file, ""))
        if length is not None:
            count = max(0, min(count, length - os.lseek(file, 0, os.SEEK_CUR)))
        return os.read(file, count)

    def close(self, file: int) -> None:
        self._open.pop(file, None)
        os.close(file)

    def listdir(self, folder: str) -> list[str]:
        return [name for name in os.listdir(folder) if os.path.join(folder, name) not in self._hidden]


class CachingOperations(MountOperations):
    """A mount that answers from its cache, ``seconds`` long, and finds folders by the paths that it has seen.

    ``cached`` are the operations whose answers it keeps; a folder that was seen is found by its handle, so that a file
    can be made in it after another mount has renamed it, unless ``finds_by_handle`` is False.
    """

    def __init__(
        self, folder: str, token: str, seconds: float, cached: frozenset[str], *, finds_by_handle: bool = False
    ) -> None:
        super().__init__(folder, token)
        self._seconds = seconds
        self._cached = cached
        self._finds_by_handle = finds_by_handle
        self._answers: dict[tuple[str, str], tuple[float, Any]] = {}
        self._handles: dict[str, int] = {}

    def run_operation(self, name: str, *arguments: Any) -> Any:
        if name in ("write", "append", "rename", "remove", "link", "map", "mkdir"):  # its own changes it knows
            for changed in arguments[:2]:
                for cached in self._cached:
                    self._answers.pop((cached, str(changed)), None)
        if name not in self._cached:
            return super().run_operation(name, *arguments)
        key = (name, str(arguments[0]))
        until_s, answer = self._answers.get(key, (0.0, None))
        if time.monotonic() >= until_s:
            answer = super().run_operation(name, *arguments)
            self._answers[key] = (time.monotonic() + self._seconds, answer)
        return answer

    def _names(self, name: str) -> list[str]:
        if self._finds_by_handle and name not in self._handles:
            self._handles[name] = os.open(self._file(name), os.O_RDONLY)
        return super()._names(name)

    def _write(self, name: str, seed: int, count: int) -> None:
        folder, _, base = name.partition("/")
        if base and folder in self._handles:
            os.close(os.open(base, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=self._handles[folder]))
            return
        super()._write(name, seed, count)

    def close(self) -> None:
        for handle in self._handles.values():
            os.close(handle)
        self._handles.clear()
        super().close()
