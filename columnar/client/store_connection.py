"""Opens, closes and calls a store: the part of ``connection.Connection`` that knows sockets, and no table.

HBase's methods are called through happybase's own client, our methods through a second client over the same socket.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from happybase.connection import Hbase
from thriftpy2.thrift import TApplicationException

from columnar.client.addresses import DEFAULT_PORT, UNIX, Address, addresses_of
from columnar.client.errors import NotColumnar
from columnar.client.store_link import LinkSettings, StoreClient
from columnar.client.store_socket import StoreSocket
from columnar.client.tls import ClientTls, TlsSocket, given
from columnar.wire.idl import SERVICE

if TYPE_CHECKING:
    from columnar.client.happybase_types import HappybaseConnection as _HappybaseConnection
    from columnar.client.sasl_socket import ClientSignIn
    from columnar.client.store_calls import StoreCalls
else:
    from happybase import Connection as _HappybaseConnection

_UNKNOWN_METHOD: Final = TApplicationException.UNKNOWN_METHOD
_PLACES: Final = ("autoconnect", "table_prefix", "table_prefix_separator", "compat", "transport", "protocol")


class StoreConnection(_HappybaseConnection):
    """A connection to one store, or to several servers of a store; ``Connection`` has its arguments."""

    def __init__(
        self,
        host: str | Sequence[str] = "localhost",
        port: int = 9090,
        timeout: int | None = None,
        *more: Any,
        tls: ClientTls | ssl.SSLContext | bool | None = None,
        tls_ca: str = "",
        tls_cert: str = "",
        tls_key: str = "",
        unix_socket: str = "",
        user: str = "",
        password: str = "",
        token: str = "",
        routing: bool = False,
        **options: Any,
    ) -> None:
        self._arguments = {
            **options, "host": host, "port": port, "tls": tls, "tls_ca": tls_ca, "tls_cert": tls_cert,
            "tls_key": tls_key, "unix_socket": unix_socket, "user": user, "password": password, "token": token,
            "routing": routing,
        }  # fmt: skip
        self._arguments.update(zip(_PLACES, more, strict=False))
        self._tls = given(tls, tls_ca, tls_cert, tls_key)
        self._unix_socket = unix_socket
        self._routing = routing
        self._calls: StoreCalls | None = None  # of several servers
        self._addresses = _several(host, port, routing=routing and not unix_socket)
        first = host if isinstance(host, str) else ""
        if self._addresses is not None:
            first, port = self._addresses[0]
        self._sign_in: ClientSignIn | None = None
        if user or password or token:
            from columnar.client.sasl_socket import ClientSignIn  # most stores have no users

            self._sign_in = ClientSignIn(user, password, token)
            for one in self._addresses or [Address(first or "localhost", port)]:
                self._sign_in.check_host(one.host, has_tls=self._tls is not None, has_socket=bool(unix_socket))
        super().__init__(first, port, timeout, *more, **options)

    @classmethod
    def at(cls, addresses: str, timeout: int | None = None, **options: Any) -> Self:
        """Return an open connection to ``HOST:PORT``, or to several such addresses with commas, as a person types them.

        ``unix:PATH`` is the Unix socket of a store (``--socket``).

        ``timeout`` and ``options`` are those of the constructor.  Raises WrongArgument if the text is no address.
        """
        if addresses.startswith(UNIX):
            return cls(unix_socket=addresses.removeprefix(UNIX), timeout=timeout, **options)
        found = addresses_of(addresses)
        if len(found) > 1:
            return cls([str(one) for one in found], timeout=timeout, **options)
        return cls(*found[0], timeout=timeout, **options)

    def another(self, timeout: int | None) -> Self:
        """Return a new open connection with this one's arguments, except the timeout (ms); the caller closes it."""
        return type(self)(timeout=timeout, **self._arguments | {"autoconnect": True})

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _refresh_thrift_client(self) -> None:
        """Make the Thrift clients as happybase does in its method of this name, but over our own socket."""
        self._is_columnar: bool | None = None
        if self._addresses is not None:
            self._refresh_calls(self._addresses)
            return
        self.transport = self._transport()
        protocol = self._protocol_class(self.transport, decode_response=False)
        self.client = StoreClient(Hbase, protocol)
        self._extension: Any = StoreClient(SERVICE, protocol)

    def _refresh_calls(self, addresses: Sequence[Address]) -> None:
        """Close all connections, or make the clients of several servers."""
        if self._calls is not None:
            self._calls.close()
            return
        from columnar.client.store_calls import over_sockets  # most clients know one server

        settings = LinkSettings(self._transport_class, self._protocol_class, self.timeout, self._tls, self._sign_in)
        self.transport = self._calls = over_sockets(addresses, settings, routing=self._routing)
        self.client, self._extension = self._calls.clients

    def _transport(self) -> Any:
        """Return the transport over a socket that is not yet open, framed if the user signs in."""
        if self._sign_in is None:
            return self._transport_class(self._socket())
        from columnar.client.sasl_socket import signing_in

        return signing_in(self._socket(), self._sign_in)

    def _socket(self) -> StoreSocket:
        """Return a socket that is not yet open."""
        if self._tls is not None:
            return TlsSocket(self._tls, self.host, self.port, socket_timeout=self.timeout)
        if self._unix_socket:
            return StoreSocket(unix_socket=self._unix_socket, socket_timeout=self.timeout)
        return StoreSocket(self.host, self.port, socket_timeout=self.timeout)

    @property
    def address(self) -> Address:
        """The address of the last connection; of several servers, of the last one to any server."""
        return self._calls.address if self._calls is not None else Address(self.host, self.port)

    @property
    def user(self) -> str:
        """The user for whom the connection signs in; "" if it does not."""
        return self._sign_in.user if self._sign_in is not None else ""

    @property
    def knows_several(self) -> bool:
        """Whether the connection goes on at another server, or the same one, if a server ends."""
        return self._addresses is not None

    def call(self, method: str, *args: Any) -> Any:
        """Call a method of the extension.  Raises NotColumnar if the server is a plain HBase."""
        function: Callable[..., Any] = getattr(self._extension, method)
        try:
            return function(*args)
        except TApplicationException as error:
            if error.type == _UNKNOWN_METHOD:
                raise NotColumnar(method, str(self.address)) from None
            raise

    @property
    def is_columnar(self) -> bool:
        """Whether the server is a Columnar.  Calls the server at the first use, then remembers the answer."""
        if self._is_columnar is None:
            try:
                self.call("columnarStatus")
                self._is_columnar = True
            except NotColumnar:
                self._is_columnar = False
        return self._is_columnar


def _several(host: str | Sequence[str], port: int, *, routing: bool) -> list[Address] | None:
    """Return the addresses of a client of several servers, or None for one connection, as happybase's."""
    if not host or (isinstance(host, str) and "," not in host):
        return [Address(str(host or "localhost"), port or DEFAULT_PORT)] if routing else None
    return addresses_of(host, port)
