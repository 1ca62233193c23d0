"""``DATA/opened/ENCODED``: notes (empty files) of the regions whose folders had a store.

A region's folder is empty until its first use.  A folder that is noted here and empty was emptied: a new store in it
would answer that the region has no rows.

Invariants:
    F1. A note is made when the store's head is on disk, so no power cut leaves a noted folder empty.
    F2. A note is never synced, and a refused one is no error: without it an emptied folder counts as unused.
    F3. The note goes when a region's folder is made or removed on purpose.

Stores outside ``regions`` (copies, staging) have no notes.  Costs an opening 3 us.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import Final

from columnar.storage.data_folder import OPENED, REGIONS

_log = logging.getLogger(__name__)

_ENTRY: Final = 0o600


def note(path: str) -> None:
    """A store stands in the region's folder ``path``."""
    place = _place(path)
    if place is None or os.path.exists(place):
        return
    try:
        with suppress(FileExistsError):
            os.mkdir(os.path.dirname(place))
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _ENTRY))
    except OSError as error:
        _log.info("%s is not noted as opened: %s", path, error.strerror)


def is_noted(path: str) -> bool:
    place = _place(path)
    return place is not None and os.path.exists(place)


def forget(path: str) -> None:
    """The folder is gone, or empty by intent.  OSError."""
    place = _place(path)
    if place is not None:
        with suppress(FileNotFoundError):
            os.unlink(place)


def _place(path: str) -> str | None:
    regions, name = os.path.split(os.path.abspath(path))
    data, folder = os.path.split(regions)
    return os.path.join(data, OPENED, name) if folder == REGIONS else None
