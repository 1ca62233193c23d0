"""A store that acknowledges before its fsync, to see that the proofs notice it."""

from __future__ import annotations

from tests.support.patched_store import serve  # isort: skip - first: it asks for the sources

from columnar.storage import server_log_files
from columnar.storage.rocks_store import RocksStore

if __name__ == "__main__":
    RocksStore.sync = lambda _: None  # type: ignore[method-assign]
    server_log_files.force = lambda _: None  # type: ignore[assignment]
    serve()
