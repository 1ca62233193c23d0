"""Forwards calls from a service of this server to another server.

``forward_early`` checks before the handler is called: a call of a single row goes to the owner of the row's region if
this server's own state says that it does not own the region.  The handler would detect that too, and raise
RegionNotLocal, but this costs more than all the rest of a forwarded call at its gateway.  The owner reports any other
fault of such a call.

``forward_after_error`` checks the error of a handler:

    RegionNotLocal, of a method of a single row     to the owner of the row's region, which was here before a wait
    ForwardToMaster                                 to the master
    ScannerNotFound                                 to the server that gave the scanner its id

Other errors are answered by this server.

A client that calls owners itself (``columnarRoute``) is refused with RegionMoved where its call would be forwarded to
the owner of a row, if the owner's address is known.
"""

from __future__ import annotations

from collections.abc import Callable, Set

from columnar.cluster.forwarding import Forwarding, raw_message
from columnar.cluster.method_routing import METHOD_ROUTES, ROWS_OF, TABLE_OF, MethodRoute, RowOf
from columnar.errors import ForwardToMaster, RegionMoved, RegionNotLocal, ScannerNotFound
from columnar.model.owner import Incarnation
from columnar.regions.server import RegionServer
from columnar.wire.codec import Request
from columnar.wire.service import CallContext, ForwardedReply

OwnerOf = Callable[[str, bytes], RegionMoved | None]  # by table and row; None: forward the call
ServerOfScanner = Callable[[int], Incarnation | None]  # by the scanner's id; None: no living server gave that id


class OneRow:
    """A method of a single row.  Constant."""

    __slots__ = ("is_write", "row_of", "table")

    def __init__(self, row_of: RowOf, is_write: bool, table: bytes | None) -> None:
        self.row_of = row_of
        self.is_write = is_write
        self.table = table  # None: the first argument names it


def _unknown(_scanner_id: int) -> None:
    return None


def _unknown_owner(_table: str, _row: bytes) -> None:
    return None


class RequestForwarder:
    """The forwarder of one service.  Constant, except for its counts."""

    def __init__(
        self,
        forwarding: Forwarding,
        server: RegionServer,
        service: int,
        server_of_scanner: ServerOfScanner = _unknown,
        routing: Set[int] = frozenset(),
        owner_of: OwnerOf = _unknown_owner,
    ) -> None:
        """``service``: the service of all its calls, THRIFT1 or THRIFT2.

        ``routing``: the ids of connections whose clients call owners themselves, a live set.  ``owner_of``: the refusal
        that names a row's owner to them.
        """
        self._forwarding = forwarding
        self._server = server
        self._tables = server.tables
        self._server_of_scanner = server_of_scanner
        self._service = service
        self._routing = routing
        self._owner_of = owner_of
        self._method_routes = METHOD_ROUTES[service]
        self._of_one_row = {
            method: OneRow(row_of, self._method_routes[method] is MethodRoute.WRITE, TABLE_OF.get(method))
            for method, row_of in ROWS_OF[service].items()
        }
        self.forwarded_calls: dict[str, int] = {}  # counts by method; at most one for each method of the service

    def leads_from(self, method: str) -> bool:
        """Return whether a call of this method may be forwarded after it has waited."""
        return method in self._of_one_row

    def forward_early(self, ctx: CallContext, request: Request) -> ForwardedReply | None:
        """Forward a call whose region is remote.

        Returns None if the handler must be called: the region is local, or the call does not name table and row.
        """
        method = request.method
        if method is None:
            return None
        found = self._of_one_row.get(method.name)
        if found is None:
            return None
        args = request.args
        table, row = args[0] if found.table is None else found.table, found.row_of(args)
        if type(table) is not bytes:
            table = getattr(table, "table", None)  # of TIncrement and TAppend
        if type(table) is not bytes or type(row) is not bytes:
            return None
        served = self._tables.meant(table)
        if served is None or not served.enabled or not self._server.is_not_local(served, row):
            return None
        return self._forward_row(ctx, request, method.name, served.schema.name, row, found)

    def forward_after_error(self, ctx: CallContext, request: Request, error: Exception) -> ForwardedReply | None:
        """Forward the call if ``error`` says so.  Returns None if ``error`` is for the client."""
        method = request.method
        if method is None or not request.buffer:
            return None
        return self._forward_by_error(ctx, request, method.name, error)

    def _forward_row(
        self, ctx: CallContext, request: Request, method: str, table: str, row: bytes, found: OneRow
    ) -> ForwardedReply:
        """Forward the call to the row's owner; a client that calls owners itself is told the owner instead.

        A client does not know the owners of a table that its call does not name.
        """
        if ctx.connection_id in self._routing and found.table is None:
            moved = self._owner_of(table, row)
            if moved is not None:
                refused = ForwardedReply()
                refused.fail(moved)
                return refused
        self._count(method)
        raw = raw_message(request, self._service, ctx)
        return self._forwarding.forward(ctx, raw, table, row, found.is_write)

    def _count(self, method: str) -> None:
        self.forwarded_calls[method] = self.forwarded_calls.get(method, 0) + 1

    def _forward_by_error(
        self, ctx: CallContext, request: Request, method: str, error: Exception
    ) -> ForwardedReply | None:
        if isinstance(error, RegionNotLocal):
            found = self._of_one_row.get(method)
            if found is None:
                return None
            row = found.row_of(request.args) or b""
            return self._forward_row(ctx, request, method, error.table, row, found)
        if isinstance(error, ForwardToMaster):
            self._count(method)
            return self._forwarding.to_master(raw_message(request, self._service, ctx))
        if isinstance(error, ScannerNotFound) and self._method_routes[method] is MethodRoute.SCANNER:
            server = self._server_of_scanner(error.scanner_id)
            if server is not None and server != self._forwarding.local_server:
                self._count(method)
                return self._forwarding.to_server(server, raw_message(request, self._service, ctx))
        return None
