"""Causes for which a call cannot be made, or not end well, that are no fault of its change.

A module that cannot be imported, a table that is disabled or takes no writes, a region that is unavailable, a quota
that is used up: no attempt is counted for any of these.  The change comes again after a pause, and the trigger says
meanwhile that it is blocked, and why.

``obstacle_in`` recognizes such a cause in what a function raised.  ``blocks`` is the store's side.
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
    """The function cannot be had: its module cannot be imported, or lacks it."""


class NotReadable(LookupError):
    """A row of another table cannot be read now."""


def obstacle_in(raised: BaseException) -> str:
    """Return the cause as one line; empty if the function raised an error of its own."""
    if isinstance(raised, NotLoaded | NotReadable):
        return str(raised)
    if isinstance(raised, ClientError):
        said: object = raised.message or b""  # functions raise it, too, and may say anything
        text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        if hbase_class(raised) in _PASSING or _READ_ONLY in text:
            return f"the store cannot do now what the function asks for: {text}"
    return ""
