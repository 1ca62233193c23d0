"""The service on the port: every method of HBase's Thrift 1 and ours, by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from columnar.errors import RegionAway
from columnar.regions.scanners import ScannerTable
from columnar.thrift.away import asked_again
from columnar.thrift.errors import to_wire
from columnar.thrift.slow_log import SlowLog
from columnar.wire.idl import SERVICE
from columnar.wire.service import CallContext, Handler


def _methods() -> list[str]:
    """The names of the whole service, those of the service it extends among them."""
    found: list[str] = []
    service = SERVICE
    while service is not None and hasattr(service, "thrift_services"):
        found += [name for name in service.thrift_services if name not in found]
        service = next((base for base in service.__bases__ if hasattr(base, "thrift_services")), None)
    return found


class ThriftService:
    """What ``columnar.wire`` calls; see ``columnar.wire.service.Service``."""

    def __init__(self, scanners: ScannerTable, slow_log: SlowLog, *parts: object) -> None:
        self._scanners = scanners
        self.slow_after_s = slow_log.limit_s
        self.was_slow = slow_log.was_slow
        found = {}
        for name in _methods():
            for part in parts:
                handler = getattr(part, name, None)
                if handler is not None:
                    found[name] = handler
        self.handlers: Mapping[str, Callable[..., Any]] = found

    def missing(self) -> list[str]:
        return [name for name in _methods() if name not in self.handlers]

    def translate(self, method: str, error: Exception) -> Any | None:
        return to_wire(method, error)

    def asked_again(
        self, handler: Handler, ctx: CallContext, args: list[Any], error: Exception
    ) -> Awaitable[Any] | None:
        return asked_again(handler, ctx, args, error) if isinstance(error, RegionAway) else None

    def connection_closed(self, connection_id: int) -> None:
        self._scanners.connection_closed(connection_id)
