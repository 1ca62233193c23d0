"""Obstacles: causes of a call's failure that are no fault of its change.

Obstacles are a module that cannot be imported, a table that is disabled or takes no writes, a region that is
unavailable, and a quota that is used up.  No attempt is counted for an obstacle.  The change is delivered again after a
pause; meanwhile the trigger's status says that the trigger is blocked, and why.

``obstacle_in`` recognizes an obstacle in an exception that a function raised, ``retry_state.is_obstacle`` in an error
that the store met.
"""

from __future__ import annotations

from typing import Final

from columnar.client.errors import IOError as ClientError
from columnar.client.errors import hbase_class
from columnar.errors import (
    CallQueueTooBig,
    ForwardToMaster,
    NotServingRegion,
    RetryLater,
    TableNotEnabled,
    TableReadOnly,
    Throttled,
)

_PASSING: Final = frozenset(
    kind.hbase_class
    for kind in (RetryLater, CallQueueTooBig, NotServingRegion, ForwardToMaster, Throttled, TableNotEnabled)
)
_READ_ONLY: Final = TableReadOnly.wording.partition("{}")[0]


class NotLoaded(Exception):
    """The function cannot be loaded: its module cannot be imported, or lacks the function."""


class NotReadable(LookupError):
    """A row of another table cannot be read now."""


def obstacle_in(raised: BaseException) -> str:
    """Return the obstacle as one line; an empty text if the function raised an error of its own."""
    if isinstance(raised, NotLoaded | NotReadable):
        return str(raised)
    if isinstance(raised, ClientError):
        said: object = raised.message or b""  # functions raise it, too, and may say anything
        text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        if hbase_class(raised) in _PASSING or _READ_ONLY in text:
            return f"the store cannot do now what the function asks for: {text}"
    return ""
