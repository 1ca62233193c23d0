"""Translation of our errors to the declared exceptions of each method, in one place.

An IllegalArgument is sent as such if the method declares it and as IOError otherwise (design
7 of the observations: "IllegalArgument where declared, else IOError").  ``canRetry`` is false for
errors that the caller must correct.
"""

from __future__ import annotations

from typing import Any, Final

from columnar.errors import CallerError, ColumnarError, IllegalArgument, TableExists
from columnar.wire.idl import SERVICE, hbase


def _declared(method: str) -> frozenset[str]:
    """Names of the exceptions that ``method`` declares."""
    spec = SERVICE.signatures[method].result
    return frozenset(field[2].__name__ for number, field in spec.items() if number > 0)


_DECLARED: Final[dict[str, frozenset[str]]] = {method: _declared(method) for method in SERVICE.signatures}


def to_wire(method: str, error: Exception) -> Any | None:
    """The struct to answer with, or None for what is no error of ours."""
    if not isinstance(error, ColumnarError):
        return None
    declared = _DECLARED.get(method, frozenset())
    message = error.wire_message.encode()
    if isinstance(error, TableExists) and "AlreadyExists" in declared:
        return hbase.AlreadyExists(message=message)
    if isinstance(error, IllegalArgument) and "IllegalArgument" in declared:
        return hbase.IllegalArgument(message=message)
    if "IOError" in declared:
        return hbase.IOError(message=message, canRetry=not isinstance(error, CallerError))
    return None
