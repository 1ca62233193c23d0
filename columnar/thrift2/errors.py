"""Our errors to the declared exceptions of the Thrift 2 service: TIOError nearly everywhere."""

from __future__ import annotations

from typing import Any

from columnar.errors import CallerError, ColumnarError, ScannerNotFound
from columnar.wire.idl2 import SERVICE2, hbase2
from columnar.wire.service import NO_ERROR


def to_wire(method: str, error: Exception) -> Any | None:
    """The struct to answer with, or None for what is no error of ours."""
    if not isinstance(error, ColumnarError):
        return None
    if isinstance(error, ScannerNotFound) and method == "closeScanner":
        return NO_ERROR  # closing an unknown scanner is no error, as in HBase 2.6.1
    declared = {field[2].__name__ for number, field in SERVICE2.signatures[method].result.items() if number}
    if isinstance(error, ScannerNotFound) and "TIllegalArgument" in declared:
        return hbase2.TIllegalArgument(message=f"Invalid scanner Id: {error.scanner_id} is closed or expired")
    if "TIOError" in declared:
        return hbase2.TIOError(message=error.wire_message, canRetry=not isinstance(error, CallerError))
    return None
