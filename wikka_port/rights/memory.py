"""Rights that a process keeps in memory, from other rows than the page's: the rules of the site, members of groups.

Both are read again when they are RIGHTS_AGE_S old, so a change counts within a second.  The rules come with the call
that reads a page, where they are due then (``pages.Wiki.page``): a view costs no call of its own for them.

Knows nothing of the store.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from wikka_port.rights.rules import Rules

RIGHTS_AGE_S: Final = 0.9  # the rest of the second is for the request
GROUPS_MAX: Final = 500  # kept at once; the longest unused goes first


class RulesMemory:
    """Thread-safe: a value is replaced as a whole."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._cached: tuple[float, Rules] | None = None  # when it was read

    def young(self) -> Rules | None:
        """Return the rules if they are young enough; None: they have to be read.

        The answer is the rules themselves: another thread may ``forget`` between a check and a use, and no rules
        at all let everybody in.
        """
        cached = self._cached
        return cached[1] if cached is not None and 0 <= self._clock() - cached[0] < RIGHTS_AGE_S else None

    def asking(self) -> float | None:
        """When a reading that begins now begins; None: those in memory are young enough."""
        now = self._clock()
        return now if self.young() is None else None

    def take(self, cells: Mapping[bytes, bytes], begun: float) -> Rules:
        """``cells``: of the row, read since ``begun``."""
        cached = self._cached
        rules = cached[1] if cached is not None and cached[1].cells == cells else Rules(cells)
        self._cached = (begun, rules)
        return rules

    def forget(self) -> None:
        self._cached = None


@dataclass(frozen=True, slots=True)
class Group:
    head: bytes  # the revision of its page
    members: frozenset[str]


NO_GROUP: Final = Group(b"", frozenset())


class GroupMemory:
    """Thread-safe."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._cached: OrderedDict[str, tuple[float, Group]] = OrderedDict()  # guarded by _lock

    def young(self, names: Collection[str]) -> dict[str, Group]:
        """Return the groups among ``names`` that are in memory and young enough."""
        now = self._clock()
        with self._lock:
            found = {name: self._cached[name] for name in names if name in self._cached}
            for name in found:
                self._cached.move_to_end(name)
        return {name: group for name, (begun, group) in found.items() if 0 <= now - begun < RIGHTS_AGE_S}

    def old(self, name: str) -> Group:
        """As it was when it was last read; NO_GROUP: it is not in memory."""
        with self._lock:
            found = self._cached.get(name)
            return NO_GROUP if found is None else found[1]

    def keep(self, groups: Mapping[str, Group], begun: float) -> None:
        with self._lock:
            for name, group in groups.items():
                self._cached[name] = (begun, group)
                self._cached.move_to_end(name)
            while len(self._cached) > GROUPS_MAX:
                self._cached.popitem(last=False)
