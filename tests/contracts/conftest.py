"""The implementations of ``columnar.storage.api`` that the contract is asked of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.storage.api import Engine, Store
from columnar.storage.memory import MemoryEngine
from columnar.storage.rocks import RocksEngine
from tests.support.store_contents import SPACES


@pytest.fixture(params=[RocksEngine, MemoryEngine], ids=["rocks", "memory"])
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store")


@pytest.fixture
def store(engine: Engine, path: str) -> Iterator[Store]:
    opened = engine.open_store(path, SPACES)
    yield opened
    opened.close()
