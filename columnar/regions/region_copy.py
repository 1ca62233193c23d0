"""A copy of a region's store that becomes another region's: without the change log and whoever reads it.

Kept in ``meta``: ``epoch``, ``stamp``, ``future`` and ``reached`` (``columnar.regions.region``), so that sequences and
timestamps of the new region go on from where the old one's were, never back.
"""

from __future__ import annotations

from typing import Final

from columnar.regions.change_log import LOG_SPACE
from columnar.regions.log_retention import META_SPACE
from columnar.storage.api import Store

KEPT: Final = (b"epoch", b"future", b"reached", b"stamp")


def forget_log(store: Store) -> None:
    """Synced when it returns."""
    if LOG_SPACE in store.spaces:
        store.drop_space(LOG_SPACE)
    store.add_space(LOG_SPACE)
    batch = store.batch()
    for key, _ in store.scan(META_SPACE, b"", None):
        if key not in KEPT:
            batch.delete(META_SPACE, key)
    store.write(batch)
    store.sync()
