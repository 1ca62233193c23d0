"""A client of several fake servers, and where its calls went."""

from __future__ import annotations

from typing import Any

from columnar.client.addresses import Address
from columnar.client.store_calls import StoreCalls
from tests.support.fake_servers import FakeLink, FakeStore


class Client:
    def __init__(self, servers: int = 3, *, gateways: int = 1, routing: bool = True) -> None:
        self.store = FakeStore(servers)
        self.now_s = 0.0
        self.links: list[FakeLink] = []
        self.calls = StoreCalls(self.store.addresses[:gateways], self._link, routing=routing, now_s=lambda: self.now_s)
        self.calls.open()

    def _link(self, address: Address) -> Any:
        self.links.append(FakeLink(self.store, address))
        return self.links[-1]

    def __call__(self, method: str, *args: Any, **options: Any) -> Any:
        return getattr(self.calls.clients[0], method)(*args, **options)

    def ours(self, method: str, *args: Any) -> Any:
        return getattr(self.calls.clients[1], method)(*args)

    def took(self) -> list[tuple[int, str]]:
        """Return the calls since the last time, by the number of the server."""
        taken, self.store.calls = self.store.calls, []
        return [(self.store.addresses.index(address), method) for address, method in taken]

    def faults(self, *faults: str) -> None:
        left = list(faults)
        self.store.next_fault = lambda: left.pop(0) if left else ""


def split(client: Client) -> None:
    """Make region n belong to server n: rows from b to the second, from c to the third."""
    client.store.split(b"b")
    client.store.split(b"c")
    for n in range(3):
        client.store.move(n, client.store.addresses[n])
