"""Lists of changes that leave out some of them: minor edits, or those that are not of one author."""

from __future__ import annotations

from collections.abc import Callable

from wikka_port.limits import MINOR_STEPS
from wikka_port.listings import RecentChange
from wikka_port.rights.guarded import GuardedWiki


def some_changes(
    wiki: GuardedWiki, wanted: Callable[[RecentChange], bool], *, before: str = "", limit: int
) -> tuple[list[RecentChange], str]:
    """Return the newest changes that are ``wanted``, and the token to continue with.

    At most MINOR_STEPS times ``limit`` changes are read, so a list may be short and continue; no list has more than
    twice ``limit``.
    """
    found: list[RecentChange] = []
    token = before
    for _ in range(MINOR_STEPS):
        items, token = wiki.changes(before=token, limit=limit)
        found += [item for item in items if wanted(item)]
        if len(found) >= limit or not token:
            break
    return found, token


def changes(wiki: GuardedWiki, *, minor: bool, before: str = "", limit: int) -> tuple[list[RecentChange], str]:
    """With ``minor`` all of them."""
    if minor:
        return wiki.changes(before=before, limit=limit)
    return some_changes(wiki, lambda change: not change.minor, before=before, limit=limit)
