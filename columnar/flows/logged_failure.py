"""(pure) Which failures of work that is retried are lines of the log: the first, each for another reason, and the end.

A failure may last for days, and a line at each retry would fill the log.

Knows nothing of the log and of the work.
"""

from __future__ import annotations


class LoggedFailure:
    __slots__ = ("_why",)

    def __init__(self) -> None:
        self._why = ""  # as the log has it; empty: the work succeeds

    def is_news(self, why: str) -> bool:
        """Note that the work failed; return whether the log has not got the failure with this reason yet."""
        before, self._why = self._why, why
        return why != before

    def has_ended(self) -> bool:
        """Note that the work succeeded; return whether the log has a failure that ended by it."""
        before, self._why = self._why, ""
        return before != ""
