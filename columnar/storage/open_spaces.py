"""The spaces of a store that is open, by name."""

from __future__ import annotations

from typing import Any

from columnar.storage.api import StoreClosed


class OpenSpaces(dict[str, Any]):
    """The engine's object for each space; empty once the store is closed."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def __missing__(self, name: str) -> Any:
        raise StoreClosed(f"the store {self._path} is closed, or has no space {name}")
