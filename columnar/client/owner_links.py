"""Connections of a client to the servers that own regions: made when needed, bounded, closed when idle.

Each such connection has called ``columnarRoute``, so its server refuses rows that it does not own.  A server to which
no connection can be made is left alone for UNREACHABLE_S.
"""

from __future__ import annotations

from typing import Final

from thriftpy2.thrift import TException

from columnar.client.addresses import Address
from columnar.client.gateway import MakeLink
from columnar.client.store_link import BROKEN, EXTENSION, Call, NotSent, StoreLink

MOST_LINKS: Final = 64  # the one that was used least recently is closed for another
IDLE_S: Final = 300.0
CHECKED_EVERY_S: Final = 10.0  # how often idle links are looked for
UNREACHABLE_S: Final = 5.0
_ROUTE: Final = Call(EXTENSION, "columnarRoute", (True,))


class OwnerLinks:
    def __init__(self, make_link: MakeLink) -> None:
        self._make_link = make_link
        self._links: dict[Address, StoreLink] = {}
        self._unreachable: dict[Address, float] = {}  # until when
        self._check_s = 0.0  # when idle links are looked for next

    def __len__(self) -> int:
        return len(self._links)

    def link(self, server: Address, now_s: float) -> StoreLink | None:
        """Return a usable link to the server, or None if it cannot be reached now."""
        if now_s >= self._check_s:
            self._close_idle(now_s)
        found = self._links.get(server)
        if found is not None:
            if found.is_usable:
                found.note_use(now_s)
                return found
            self.close_link(server)
        if self._unreachable.get(server, now_s) > now_s:
            return None
        return self._opened(server, now_s)

    def _opened(self, server: Address, now_s: float) -> StoreLink | None:
        if len(self._links) >= MOST_LINKS and not self._close_oldest():
            return None
        link = self._make_link(server)
        try:
            link.connect()
            link.call(_ROUTE)
        except (*BROKEN, NotSent, TException):  # its rows are reached by any other server
            link.close()
            while len(self._unreachable) >= MOST_LINKS:
                del self._unreachable[next(iter(self._unreachable))]
            self._unreachable[server] = now_s + UNREACHABLE_S
            return None
        self._unreachable.pop(server, None)
        self._links[server] = link
        link.note_use(now_s)
        return link

    def _close_oldest(self) -> bool:
        """Close the link that was used least recently.  Returns False if each link waits for an answer."""
        idle = [link for link in self._links.values() if not link.waits]
        if idle:
            self.close_link(min(idle, key=_last_use).address)
        return bool(idle)

    def _close_idle(self, now_s: float) -> None:
        self._check_s = now_s + CHECKED_EVERY_S
        for server in [server for server, link in self._links.items() if now_s - link.used_s >= IDLE_S]:
            self.close_link(server)

    def close_link(self, server: Address) -> None:
        link = self._links.pop(server, None)
        if link is not None:
            link.close()

    def close(self) -> None:
        for server in list(self._links):
            self.close_link(server)


def _last_use(link: StoreLink) -> float:
    return link.used_s
