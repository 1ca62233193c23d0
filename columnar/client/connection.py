"""A happybase connection that also calls our extension, over the same socket.

HBase's methods are called through happybase's own client, our methods through a second client.  Both clients raise
``IOError`` and ``IllegalArgument`` of ``happybase.hbase``, as subclasses whose ``str()`` is the message (``errors``).
As in happybase, use a connection from one thread only, or use a ``ConnectionPool``.
"""

from __future__ import annotations

import queue
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Self

from happybase.connection import Hbase
from thriftpy2.thrift import TApplicationException

from columnar.client.addresses import DEFAULT_PORT, Address, addresses_of
from columnar.client.admin import Admin
from columnar.client.errors import IllegalArgument, IOError, NotColumnar
from columnar.client.snapshots import Snapshots
from columnar.client.store_link import LinkSettings, StoreClient
from columnar.client.store_socket import StoreSocket
from columnar.client.table import Table
from columnar.client.tls import ClientTls, TlsSocket, given
from columnar.client.triggers import Triggers
from columnar.client.view_reader import ViewReader
from columnar.client.views import Definitions, Views
from columnar.wire.idl import SERVICE

if TYPE_CHECKING:
    from columnar.client.happybase_types import HappybaseConnection as _HappybaseConnection
    from columnar.client.happybase_types import HappybasePool as _HappybasePool
    from columnar.client.store_calls import StoreCalls
else:
    from happybase import Connection as _HappybaseConnection
    from happybase.pool import ConnectionPool as _HappybasePool

_UNKNOWN_METHOD: Final = TApplicationException.UNKNOWN_METHOD


class Connection(_HappybaseConnection):
    """A ``happybase.Connection``, whose calls block.  ``timeout`` is in milliseconds; None waits for ever.

    ``tls_ca`` makes the connection use TLS; ``tls=True`` does, too, with the authorities that this system trusts.
    ``tls_cert`` and ``tls_key`` are the client's own certificate.  ``tls`` may also be a ``ClientTls`` or an
    ``ssl.SSLContext``.  ``unix_socket`` is a path that replaces host and port.

    ``host`` may be several addresses, as a list of ``HOST:PORT`` or as one text with commas: the first that answers is
    used, and the next one once its connection breaks.  A call that was sent is then called again only if it changes
    nothing; else its error is raised, because the outcome is unknown.

    With ``routing`` calls go to the servers that own their rows, which saves the forwarding: rows, batches (cut by
    owners) and scans.  docs/connecting.md describes both.
    """

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
        routing: bool = False,
        **options: Any,
    ) -> None:
        self._tls = given(tls, tls_ca, tls_cert, tls_key)
        self._unix_socket = unix_socket
        self._routing = routing
        self._calls: StoreCalls | None = None  # of several servers
        self._addresses = _several(host, port, routing=routing and not unix_socket)
        first = host if isinstance(host, str) else ""
        if self._addresses is not None:
            first, port = self._addresses[0]
        super().__init__(first, port, timeout, *more, **options)

    @classmethod
    def at(cls, addresses: str, timeout: int | None = None, **options: Any) -> Self:
        """Return an open connection to ``HOST:PORT``, or to several such addresses with commas, as a person types them.

        ``timeout`` and ``options`` are those of the constructor.  Raises WrongArgument if the text is no address.
        """
        found = addresses_of(addresses)
        if len(found) > 1:
            return cls([str(one) for one in found], timeout=timeout, **options)
        return cls(*found[0], timeout=timeout, **options)

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
        self.transport = self._transport_class(self._socket())
        protocol = self._protocol_class(self.transport, decode_response=False)
        self.client = StoreClient(Hbase, protocol)
        self._extension: Any = StoreClient(SERVICE, protocol)

    def _refresh_calls(self, addresses: Sequence[Address]) -> None:
        """Close all connections, or make the clients of several servers."""
        if self._calls is not None:
            self._calls.close()
            return
        from columnar.client.store_calls import over_sockets  # most clients know one server

        settings = LinkSettings(self._transport_class, self._protocol_class, self.timeout, self._tls)
        self.transport = self._calls = over_sockets(addresses, settings, routing=self._routing)
        self.client, self._extension = self._calls.clients

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

    def table(self, name: bytes | str, use_prefix: bool = True) -> Table:
        wire_name = name.encode() if isinstance(name, str) else name
        return Table(self._table_name(wire_name) if use_prefix else wire_name, self)

    def create_table(
        self,
        name: bytes | str,
        families: Mapping[Any, Mapping[str, Any]],
        *,
        attributes: Mapping[str, str] | None = None,
        splits: Sequence[bytes] = (),
    ) -> None:
        """Create a table as happybase does; with ``attributes`` or ``splits`` as ``admin`` does, by its defaults."""
        if not attributes and not splits:
            super().create_table(name, families)
            return
        self.admin.create_table(self._table_name(name), families, attributes, splits=splits)

    def delete_table(self, name: bytes | str, disable: bool = False) -> None:
        """Delete a table as happybase does.

        With ``disable`` the table is disabled and dropped in one step, and stays enabled if the drop is refused.
        """
        if not disable:
            super().delete_table(name)
            return
        try:
            self.call("columnarDropTable", self._table_name(name))
        except NotColumnar:
            self._disable_and_delete(name)

    def _disable_and_delete(self, name: bytes | str) -> None:
        """Disable and drop on a plain HBase, in two calls.

        If the drop is refused, a table that was enabled is enabled again.
        """
        was_enabled = self.is_table_enabled(name)
        if was_enabled:
            self.disable_table(name)
        try:
            super().delete_table(name)
        except (IOError, IllegalArgument):
            if was_enabled:
                self.enable_table(name)
            raise

    def status(self) -> Any:
        """Return the server's StatusReport: version, tables with sizes, open regions, requests by method."""
        return self.call("columnarStatus")

    def flows(self) -> str:
        """Return the graph of flows, from tables through triggers and views, as JSON (docs/operations.md)."""
        found = self.call("columnarFlows")
        return found.decode() if isinstance(found, bytes) else str(found)

    @property
    def admin(self) -> Admin:
        """The administration over this connection, which takes whole table names and ignores ``table_prefix``."""
        return Admin(self)

    @property
    def triggers(self) -> Triggers:
        return Triggers(self)

    @property
    def views(self) -> Views:
        return Views(self)

    def view(self, name: str) -> ViewReader:
        """Return a reader of the view ``name``, which requests the view's definition at its first read."""
        return ViewReader(self, Definitions(self.views, name))

    @property
    def snapshots(self) -> Snapshots:
        return Snapshots(self)


class ConnectionPool(_HappybasePool):
    """happybase's connection pool, with our connections."""

    if TYPE_CHECKING:

        def connection(self, timeout: float | None = None) -> AbstractContextManager[Connection]: ...

    def __init__(self, size: int, **kwargs: Any) -> None:
        """Make ``size`` connections, and connect the first one; ``kwargs`` are the arguments of ``Connection``."""
        if not isinstance(size, int):
            raise TypeError("Pool 'size' arg must be an integer")
        if size <= 0:
            raise ValueError("Pool 'size' arg must be greater than zero")
        # happybase's own constructor makes connections of happybase's class, which lacks our arguments.
        self._lock = threading.Lock()
        self._queue: queue.LifoQueue[Connection] = queue.LifoQueue(maxsize=size)
        self._thread_connections = threading.local()
        for _ in range(size):
            self._queue.put(Connection(**{**kwargs, "autoconnect": False}))
        with self.connection():  # an address that cannot be resolved is found out now
            pass


def _several(host: str | Sequence[str], port: int, *, routing: bool) -> list[Address] | None:
    """Return the addresses of a client of several servers, or None for one connection, as happybase's."""
    if not host or (isinstance(host, str) and "," not in host):
        return [Address(str(host or "localhost"), port or DEFAULT_PORT)] if routing else None
    return addresses_of(host, port)
