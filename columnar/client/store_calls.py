"""The calls of a client that knows several servers: each goes to the owner of its rows, or to any server.

``StoreCalls`` stands in for the transport of a happybase connection (``open``, ``close``, ``is_open``), and its
``clients`` for the Thrift clients over it.  Not thread-safe, as a happybase connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Any, Final

from columnar.client.addresses import Address
from columnar.client.call_kinds import OF_SCANNER, OPENING
from columnar.client.client_scans import AnyServer, ClientScans
from columnar.client.gateway import Gateway, MakeLink
from columnar.client.owner_calls import OwnerCalls
from columnar.client.owner_links import OwnerLinks
from columnar.client.store_link import EXTENSION, HBASE, SERVICES, Call, LinkSettings, StoreLink
from columnar.client.store_socket import NotConnected

CONNECT_MS: Final = 3_000  # to a server that another one can replace; the system itself would wait for minutes


def over_sockets(addresses: Sequence[Address], settings: LinkSettings, *, routing: bool) -> StoreCalls:
    """Return calls over TCP connections, which are not open yet."""
    connect_ms = settings.timeout_ms
    if routing or len(addresses) > 1:
        connect_ms = min(settings.timeout_ms or CONNECT_MS, CONNECT_MS)
    return StoreCalls(addresses, lambda address: StoreLink(address, settings, connect_ms), routing=routing)


class StoreCalls:
    def __init__(
        self,
        addresses: Sequence[Address],
        make_link: MakeLink,
        *,
        routing: bool,
        now_s: Callable[[], float] = monotonic,
    ) -> None:
        """Pass ``routing`` to call the owners of rows directly."""
        self._gateway = Gateway(addresses, make_link)
        self._owners = OwnerCalls(self._gateway, OwnerLinks(make_link), now_s) if routing else None
        self._scans = ClientScans(self._owners or AnyServer(), self._gateway.usable_link)
        self._is_open = False
        self.clients: Final = (CallClient(self.call, HBASE), CallClient(self.call, EXTENSION))

    # --- as a transport ----------------------------------------------------------------------------

    def is_open(self) -> bool:
        return self._is_open

    def open(self) -> None:
        """Connect to the first server that answers.  Raises NotConnected if none does."""
        self._gateway.usable_link()
        self._is_open = True

    def close(self) -> None:
        """Close all connections; locations are kept for the next ``open``."""
        self._is_open = False
        self._scans.close()
        if self._owners is not None:
            self._owners.close()
        self._gateway.close()

    # --- as a client -------------------------------------------------------------------------------

    @property
    def address(self) -> Address:
        """The address of the last connection to any server."""
        return self._gateway.address

    def call(self, service: int, method: str, args: Sequence[Any]) -> Any:
        if not self._is_open:
            raise NotConnected(NotConnected.NOT_OPEN, "the connection is closed; open() opens it again")
        call = Call(service, method, args)
        if method in OPENING:
            return self._scans.open_scan(call)
        if method in OF_SCANNER and args:
            if method == "scannerClose":
                return self._scans.close_scan(args[0])
            return self._scans.next_rows(args[0], call)
        return self._owners.call(call) if self._owners is not None else self._gateway.call(call)


class CallClient:
    """Has the methods of one service, as thriftpy2's client has them."""

    def __init__(self, call: Callable[[int, str, Sequence[Any]], Any], service: int) -> None:
        """Pass HBASE or EXTENSION as ``service``."""
        self._call = call
        self._service = service

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in SERVICES[self._service].thrift_services:
            raise AttributeError(f"{type(self).__name__} instance has no attribute '{name}'")
        return partial(self._named, name)

    def _named(self, _method: str, *args: Any, **options: Any) -> Any:
        return self._call(self._service, _method, _in_order(self._service, _method, args, options) if options else args)


def _in_order(service: int, method: str, args: Sequence[Any], options: dict[str, Any]) -> Sequence[Any]:
    """Return all arguments in the order of the IDL; those that are left out are None."""
    spec = getattr(SERVICES[service], method + "_args").thrift_spec
    names = [spec[number][1] for number in sorted(spec)]
    unknown = options.keys() - set(names[len(args) :])
    if unknown:
        raise TypeError(f"{method} takes no argument {', '.join(sorted(unknown))}, or has it already")
    return [*args, *(options.get(name) for name in names[len(args) :])]
