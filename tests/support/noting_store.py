"""An unchanged store for recordings, whose synced bounds are noted where strace sees them."""

from __future__ import annotations

from tests.support.patched_store import serve  # isort: skip - first: it asks for the sources

from tests.support.noted_bounds import note_bounds

if __name__ == "__main__":
    note_bounds()
    serve()
