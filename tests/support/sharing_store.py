"""A store that syncs only the server log, in small segments, for recordings."""

from __future__ import annotations

from tests.support.patched_store import serve  # isort: skip - first: it asks for the sources

from columnar.storage import commit, server_log_files
from tests.support.noted_bounds import note_bounds

if __name__ == "__main__":
    commit.SHARED_FROM = 0  # type: ignore[misc]
    server_log_files.SEGMENT_BYTES = 64 * 1024  # type: ignore[misc]
    note_bounds()
    serve()
