"""Actions: what ``{{name key="value"}}`` in a page becomes.  One module each, named as in WikkaWiki.

``toc`` and ``redirect`` are the markup's own.  An action returns safe HTML; it may raise StoreAway and
ValueError, which are shown in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wikka_port.actions import (
    backlinks,
    category,
    countpages,
    orphanedpages,
    pageindex,
    recentchanges,
    wantedpages,
)
from wikka_port.actions.call import ActionCall

ACTIONS: Final[Mapping[str, Callable[[ActionCall], str]]] = {
    "backlinks": backlinks.run,
    "category": category.run,
    "countpages": countpages.run,
    "orphanedpages": orphanedpages.run,
    "pageindex": pageindex.run,
    "recentchanges": recentchanges.run,
    "wantedpages": wantedpages.run,
}
__all__ = ["ACTIONS", "ActionCall"]
