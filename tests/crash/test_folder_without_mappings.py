"""A data folder whose file system has no shared mappings is served as any other, by one process and by several."""

from __future__ import annotations

from pathlib import Path

import pytest

from columnar.storage.synced_bound import read_bound
from tests.support.failing_disk import NO_MAPPINGS, FailingStore, library, rows

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler: mappings cannot be refused")

VALUES = {b"%02d" % n: b"value" for n in range(20)}


@pytest.mark.parametrize("flags", [(), ("--servers", "2")], ids=["one process", "two servers"])
def test_a_store_without_mappings_keeps_its_bounds_and_its_writes(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """The start was refused once: cannot write .../SYNCED: No such device."""
    folder = tmp_path / "data"
    store = FailingStore(folder, *flags)
    store.fail(NO_MAPPINGS)
    with store:
        connection = store.connection()
        for table in (b"one", b"two"):
            connection.create_table(table, {"f": {"max_versions": 1}})
            for row, value in VALUES.items():
                connection.table(table).put(row, {b"f:x": value})
        connection.close()
        assert "are written by system calls" in store.log.read_text(encoding="utf-8")
        store.kill()
        bounds = [read_bound(str(path)) for path in (folder / "regions").iterdir()]
        assert sum(bound is not None and bound.certain > 0 for bound in bounds) >= 3, "the catalogue and both tables"
        store.start()
        connection = store.connection()
        assert rows(connection, b"one") == rows(connection, b"two") == VALUES
        connection.close()
