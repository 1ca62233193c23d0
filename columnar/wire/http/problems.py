"""(pure) Errors as HTTP answers: ``application/problem+json`` (RFC 9457).

    {"title": "Not Found", "status": 404, "error": "TableNotFound", "detail": "t"}

``error`` is the name of the class of ``columnar.errors``, for programs; ``detail`` is for people.  More members:

    "outcome": "unknown"      504: the write may or may not be there; we never repeat it
    "exception"               HBase's class of the error, for clients that know it

The status says who must act.

    400  the caller: the request is wrong                      429  time: a quota; Retry-After says how long
    401  403  404  409 (the present state forbids it)  413     503  time: a region or a server is unavailable
    500  the operator, or us: the log says more                504  nobody can know: read again first

Knows nothing of connections.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from columnar.errors import (
    AccessDenied,
    CallerError,
    CellTooBig,
    ColumnarError,
    ImageTooBig,
    NamespaceExists,
    NamespaceNotFound,
    NotAllowed,
    OutcomeUnknown,
    PutTooBig,
    RequestTooBig,
    RetryLater,
    RowTooBig,
    ScannerNotFound,
    SignInBusy,
    SignInRefused,
    SnapshotExists,
    SnapshotNotFound,
    TableExists,
    TableNotDisabled,
    TableNotEnabled,
    TableNotFound,
    TableReadOnly,
    Throttled,
)
from columnar.wire.http.answers import CHALLENGES, Headers, reason
from columnar.wire.http.exchange import Response

PROBLEM_TYPE: Final = "application/problem+json"
RETRY_S: Final = 1  # a region that moves is there again within a second
# The first class that fits decides.
_STATUSES: Final[tuple[tuple[type[ColumnarError], int], ...]] = (
    (SignInRefused, 401),
    (AccessDenied, 403),
    (TableNotFound, 404),
    (NamespaceNotFound, 404),
    (SnapshotNotFound, 404),
    (ScannerNotFound, 404),
    (TableExists, 409),
    (NamespaceExists, 409),
    (SnapshotExists, 409),
    (TableNotEnabled, 409),
    (TableNotDisabled, 409),
    (TableReadOnly, 409),
    (NotAllowed, 409),
    (RequestTooBig, 413),
    (CellTooBig, 413),
    (PutTooBig, 413),
    (RowTooBig, 413),
    (ImageTooBig, 413),
    (CallerError, 400),
    (Throttled, 429),
    (SignInBusy, 429),
    (RetryLater, 503),
    (OutcomeUnknown, 504),
)


class Problem(Exception):
    """An answer of a port's own, outside the error tree; ``members`` are further members of its JSON."""

    def __init__(
        self, status: int, detail: str, members: Mapping[str, Any] | None = None, *, headers: Headers = ()
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.members = dict(members or {})
        self.headers = tuple(headers)


def status_of(error: Exception) -> int:
    """Return the status of an error; 500 for one that is nobody's intention."""
    if isinstance(error, Problem):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def problem_response(error: Exception) -> Response:
    """Return the whole answer to a request that failed; the text of an unexpected error stays in the log."""
    status, headers = status_of(error), tuple[tuple[str, str], ...]()
    members: dict[str, Any] = {"title": reason(status), "status": status}
    if isinstance(error, Problem):
        members |= {"detail": error.detail, **error.members}
        headers = error.headers
    elif isinstance(error, ColumnarError):
        members |= {"error": type(error).__name__, "exception": error.hbase_class, "detail": error.text}
        if status == 401:
            headers = CHALLENGES
        elif status in (429, 503):
            headers = (("Retry-After", str(_wait_s(error))),)
        elif status == 504:
            members["outcome"] = "unknown"
    else:
        members["detail"] = "a fault of the program, see the server's log"
    return Response(status, (("Content-Type", PROBLEM_TYPE), *headers), json.dumps(members).encode())


def _wait_s(error: ColumnarError) -> int:
    """Return the seconds after which a retry makes sense: at least one."""
    if isinstance(error, Throttled):
        return max(1, math.ceil(error.wait_ms / 1_000))
    return max(1, error.wait_s) if isinstance(error, SignInBusy) else RETRY_S
