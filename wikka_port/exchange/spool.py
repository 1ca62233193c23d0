"""A private database on disk for what an export sorts or looks up: it has no name, and goes with its connection."""

from __future__ import annotations

import sqlite3
from typing import Final

_CACHE_KB: Final = 8_192


def spool_database() -> sqlite3.Connection:
    """Open an empty database.  Its changes are never committed: a crash leaves nothing."""
    database = sqlite3.connect("", isolation_level=None)
    database.execute(f"PRAGMA cache_size=-{_CACHE_KB}")
    database.execute("PRAGMA journal_mode=OFF")
    database.execute("BEGIN")
    return database
