"""The service on a port, its methods by name: HBase's Thrift 1 and ours, or Thrift 2 (``thrift2``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from columnar.errors import NotSent
from columnar.regions.scanners import ScannerTable
from columnar.thrift import errors
from columnar.thrift.other_door import OtherDoor
from columnar.thrift.slow_log import SlowLog
from columnar.wire.idl import SERVICE


def _methods(service: Any) -> list[str]:
    """The names of the whole service, those of the service it extends among them."""
    found: list[str] = []
    while service is not None and hasattr(service, "thrift_services"):
        found += [name for name in service.thrift_services if name not in found]
        service = next((base for base in service.__bases__ if hasattr(base, "thrift_services")), None)
    return found


class ThriftService:
    """What ``columnar.wire`` calls; see ``columnar.wire.service.Service``."""

    def __init__(
        self,
        scanners: ScannerTable,
        slow_log: SlowLog,
        *parts: object,
        definition: Any = SERVICE,
        to_wire: Callable[[str, Exception], Any | None] = errors.to_wire,
        other_door: OtherDoor | None = None,
    ) -> None:
        self._scanners = scanners
        self.slow_after_s = slow_log.limit_s
        self.was_slow = slow_log.was_slow
        self._names = _methods(definition)
        self._to_wire = to_wire
        self._other_door = other_door
        found = {}
        for name in self._names:
            for part in parts:
                handler = getattr(part, name, None)
                if handler is not None:
                    found[name] = handler
        self.handlers: Mapping[str, Callable[..., Any]] = found

    def missing(self) -> list[str]:
        return [name for name in self._names if name not in self.handlers]

    def translate(self, method: str, error: Exception) -> Any | None:
        if isinstance(error, NotSent) and self._other_door is not None:
            error = NotSent(error.text + self._other_door.hint(method))
        return self._to_wire(method, error)

    def connection_closed(self, connection_id: int) -> None:
        self._scanners.connection_closed(connection_id)
