"""The other of the two services: a client at the wrong port learns where the right one is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class SiblingHint:
    """The other service, as the one at hand describes it."""

    def __init__(self, definition: Callable[[], Any], title: str, port: Callable[[], int | None]) -> None:
        """``definition`` is called at the first unknown method; ``port`` each time, None: it is not served."""
        self._definition = definition
        self._title = title
        self._port = port
        self._methods: frozenset[str] | None = None

    def _has(self, method: str) -> bool:
        if self._methods is None:
            self._methods = frozenset(self._definition().thrift_services)
        return method in self._methods

    def where_is(self, method: str) -> str:
        """Return the text after "unknown method": the port that serves it; empty if none does."""
        if not self._has(method):
            return ""
        port = self._port()
        if port is None:
            return f"it belongs to the {self._title} service, which is not served here: start with --thrift2-port"
        return f"it belongs to the {self._title} service, which is at port {port}"

    def hint(self, method: str) -> str:
        """Return the text after "was not sent", for a method that both services have; empty if that is no reason."""
        port = self._port()
        if port is None or not self._has(method):
            return ""
        return f"; a client of the {self._title} service belongs at port {port}"
