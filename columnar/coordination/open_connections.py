"""(pure) The number of open connections of each server, as its supervisor knows it at any moment.

    open = the server's own number in its last beat
         + connections that were dispatched to it and that it had not taken by then
         - connections that it has returned since then

Both sides count the connections on the channel since the server's start, so a late number is only late: no connection
is counted twice.

Knows nothing of sockets and processes; ``Name`` is whatever names a server.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from columnar.coordination.beat import Beat

Name = TypeVar("Name", bound=Hashable)
TOLERATED_PART: Final = 8


@dataclass(slots=True)
class _Count:
    said: Beat
    dispatched: int = 0  # to the server, since its start
    returned: int = 0  # by it


class OpenConnections(Generic[Name]):
    def __init__(self) -> None:
        self._counts: dict[Name, _Count] = {}

    def joined(self, server: Name) -> None:
        self._counts[server] = _Count(Beat(0))

    def ended(self, server: Name) -> None:
        self._counts.pop(server, None)

    def said(self, server: Name, beat: Beat) -> None:
        count = self._counts.get(server)
        if count is not None:
            count.said = beat

    def count_dispatched(self, server: Name) -> None:
        self._counts[server].dispatched += 1

    def count_returned(self, server: Name) -> None:
        """Count a connection that the server returned; no effect if the server has ended meanwhile."""
        count = self._counts.get(server)
        if count is not None:
            count.returned += 1

    def of(self, server: Name) -> int:
        count = self._counts.get(server)
        if count is None:
            return 0
        said = count.said
        return max(0, said.open + max(0, count.dispatched - said.taken) - max(0, count.returned - said.given))

    def surplus(self, servers: Iterable[Name]) -> tuple[Name, int] | None:
        """Return the server with the most connections, and its number above its share; None: they are even enough.

        O(servers).  A difference of one is no surplus, nor is an eighth of a share: connections come and go.
        """
        counts = {server: self.of(server) for server in servers if server in self._counts}
        if len(counts) < 2:
            return None
        fullest = max(counts, key=counts.__getitem__)
        share = -(-sum(counts.values()) // len(counts))
        over = counts[fullest] - share
        if over <= share // TOLERATED_PART or counts[fullest] - min(counts.values()) < 2:
            return None
        return fullest, over

    def fewest_first(self, servers: Iterable[Name]) -> list[Name]:
        """Order the servers that have joined; equals keep the order in which they joined."""
        wanted = set(servers)
        return sorted((server for server in self._counts if server in wanted), key=self.of)
