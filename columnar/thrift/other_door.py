"""The store has a port for each of two services; who knocks at the wrong one is told where the other is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class OtherDoor:
    """The other service, as the one at hand tells of it."""

    def __init__(self, definition: Callable[[], Any], title: str, port: Callable[[], int | None]) -> None:
        """Both are asked for when somebody knocks at the wrong door; a port of None: it is not served."""
        self._definition = definition
        self._title = title
        self._port = port

    def where_is(self, method: str) -> str:
        """Behind "unknown method": where it is, empty where it is nowhere."""
        if method not in self._definition().thrift_services:
            return ""
        port = self._port()
        if port is None:
            return f"it belongs to the {self._title} service, which is not served here: start with --thrift2-port"
        return f"it belongs to the {self._title} service, which is at port {port}"

    def hint(self, method: str) -> str:
        """Behind "was not sent", of a method that both services have; empty where that cannot be the reason."""
        port = self._port()
        if port is None or method not in self._definition().thrift_services:
            return ""
        return f"; a client of the {self._title} service belongs at port {port}"
