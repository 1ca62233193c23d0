"""A compare-and-set store in the memory of one process: for a cluster whose processes share one parent, and for tests.

Clients of one ``CasMemory`` see one another's writes.  As in ZooKeeper, versions count from 0 again when a key is
created anew, so code tested here cannot depend on more.

The store is never unavailable, outcomes are always known, and no call blocks.  Any thread may call.
"""

from __future__ import annotations

import threading

from columnar.coordination.cas import FOLDER, Condition, VersionConflict, Versioned, check_key


class CasMemory:
    """``CasStore`` over a dictionary."""

    def __init__(self) -> None:
        self._values: dict[str, Versioned] = {}
        self._lock = threading.Lock()  # guards the values

    def create_key(self, key: str, value: bytes) -> int:
        check_key(key, value)
        with self._lock:
            if key in self._values:
                raise VersionConflict(key)
            self._values[key] = Versioned(value, 0)
        return 0

    def put_key(self, key: str, value: bytes, version: int) -> int:
        check_key(key, value)
        with self._lock:
            self._expect(key, version)
            self._values[key] = Versioned(value, version + 1)
        return version + 1

    def delete_key(self, key: str, version: int, also: Condition | None = None) -> None:
        check_key(key)
        with self._lock:
            if also is not None:
                self._expect(also.key, also.version)
            self._expect(key, version)
            del self._values[key]

    def read_key(self, key: str) -> Versioned | None:
        check_key(key)
        return self._values.get(key)

    def list_keys(self, folder: str) -> dict[str, Versioned]:
        assert FOLDER.fullmatch(folder), folder
        with self._lock:
            return {key: found for key, found in sorted(self._values.items()) if key.startswith(f"{folder}/")}

    def close(self) -> None:
        """Do nothing: the values stay, because other clients may use the same object."""

    def _expect(self, key: str, version: int) -> None:
        found = self._values.get(key)
        if found is None or found.version != version:
            raise VersionConflict(key)
