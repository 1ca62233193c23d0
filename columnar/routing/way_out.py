"""The way of a call from a service of this server to another server, once its handler says that it goes there.

    RegionElsewhere, of a method of a single row     to the owner of the row's region
    GoesToMaster                                     to the master
    ScannerNotFound                                  to the server that gave the scanner its id

Other errors are answered here.
"""

from __future__ import annotations

from collections.abc import Callable

from columnar.errors import GoesToMaster, RegionElsewhere, ScannerNotFound
from columnar.model.owner import Incarnation
from columnar.routing.forwarding import Forwarding, raw_message
from columnar.routing.method_ways import ROWS_OF, WAYS, Way
from columnar.wire.codec import Request
from columnar.wire.service import CallContext, HandedOn

ServerOfScanner = Callable[[int], Incarnation | None]  # by its id; None: no living server gave it


def _unknown(_scanner_id: int) -> None:
    return None


class WayOut:
    """Constant, but for what is counted."""

    def __init__(self, forwarding: Forwarding, service: int, server_of_scanner: ServerOfScanner = _unknown) -> None:
        """``service``: THRIFT1 or THRIFT2, of all calls."""
        self._forwarding = forwarding
        self._server_of_scanner = server_of_scanner
        self._service = service
        self._ways = WAYS[service]
        self._rows_of = ROWS_OF[service]
        self.handed: dict[str, int] = {}  # calls that went on, by method: as many as the service has

    def leads_from(self, method: str) -> bool:
        """A call of this method may be handed on after it has waited."""
        return method in self._rows_of

    def handed_on(self, ctx: CallContext, request: Request, error: Exception) -> HandedOn | None:
        """None: ``error`` is for the client."""
        method = request.method
        if method is None or not request.buffer:
            return None
        found = self._way_of(ctx, request, method.name, error)
        if found is not None:
            self.handed[method.name] = self.handed.get(method.name, 0) + 1
        return found

    def _way_of(self, ctx: CallContext, request: Request, method: str, error: Exception) -> HandedOn | None:
        if isinstance(error, RegionElsewhere):
            row_of = self._rows_of.get(method)
            if row_of is None:
                return None
            raw = raw_message(request, self._service, ctx.protocol)
            row, is_write = row_of(request.args), self._ways[method] is Way.WRITE
            return self._forwarding.forward(ctx, raw, error.table, row or b"", is_write)
        if isinstance(error, GoesToMaster):
            return self._forwarding.to_master(raw_message(request, self._service, ctx.protocol))
        if isinstance(error, ScannerNotFound) and self._ways[method] is Way.SCANNER:
            server = self._server_of_scanner(error.scanner_id)
            if server is not None and server != self._forwarding.here:
                return self._forwarding.to_server(server, raw_message(request, self._service, ctx.protocol))
        return None
