"""The logs that explain a failed test: of a store, of each node, and of fixtures that are neither."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from tests.conftest import logs_of


def test_logs_of_a_store_of_nodes_and_of_what_is_no_store(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    store = SimpleNamespace(log=log)
    assert logs_of(store) == [log]
    assert logs_of(SimpleNamespace(nodes=[store, store])) == [log, log]
    for other in (SimpleNamespace(nodes=3), SimpleNamespace(nodes=str), SimpleNamespace(log=tmp_path / "none"), 7):
        assert logs_of(other) == []
