"""An SST file that is being written outside any store: sorted pairs for an ingestion."""

from __future__ import annotations

from typing import Any

import rocksdict

from columnar.storage.rocks_errors import translated


class RocksSortedFile:
    """An SST file in the making."""

    def __init__(self, path: str, writer: Any) -> None:
        """``writer``: RocksDB's, which writes to ``path``."""
        self._path = path
        self._writer = writer

    @classmethod
    def begun(cls, path: str, options: Any) -> RocksSortedFile:
        """Make an empty file."""
        writer = rocksdict.SstFileWriter(options)
        writer.open(path)
        return cls(path, writer)

    def put(self, key: bytes, value: bytes) -> None:
        try:
            self._writer[key] = value
        except Exception as error:  # rocksdict raises bare exceptions
            if "ascending" in str(error):
                raise ValueError(f"{self._path}: keys must rise strictly") from None
            raise translated(error, self._path) from error

    def finish(self) -> None:
        try:
            self._writer.finish()
        except Exception as error:  # rocksdict raises bare exceptions
            raise translated(error, self._path) from error
