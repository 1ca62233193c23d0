"""The outcome of a request, and whether the outcome is a failure (pure).

    kind      page | missing | edit-form | edit-save
    outcome   2xx, 3xx         answered
              404 expected     a page that is known not to exist
              conflict         somebody else saved first, or is editing; counted separately, no failure
              4xx, 5xx         failed
              timeout          failed
              broken           failed: connection lost, cut or malformed answer, form without the field, no redirect
              refused          failed: no connection
              unsent           failed: not sent before the drain ended
              interrupted      neither: the user ended the replay first

Knows nothing of HTTP libraries: the injector says what it saw.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    PAGE = "page"
    MISSING = "missing"
    EDIT_FORM = "edit-form"
    EDIT_SAVE = "edit-save"


class Outcome(StrEnum):
    OK = "2xx"
    REDIRECT = "3xx"
    EXPECTED_404 = "404 expected"
    CONFLICT = "conflict"
    CLIENT_ERROR = "4xx"
    SERVER_ERROR = "5xx"
    TIMEOUT = "timeout"
    BROKEN = "broken"
    REFUSED = "refused"
    UNSENT = "unsent"
    INTERRUPTED = "interrupted"


FAILED: Final = frozenset(
    {
        Outcome.CLIENT_ERROR,
        Outcome.SERVER_ERROR,
        Outcome.TIMEOUT,
        Outcome.BROKEN,
        Outcome.REFUSED,
        Outcome.UNSENT,
    }
)
_BY_HUNDREDS: Final = {2: Outcome.OK, 3: Outcome.REDIRECT, 4: Outcome.CLIENT_ERROR, 5: Outcome.SERVER_ERROR}


def classify(kind: Kind, status: int, *, expect_404: bool = False) -> Outcome:
    """Return the outcome of a whole answer with this status.

    With ``expect_404`` the trace does not know which pages exist.  A save's status alone does not say whether the page
    is saved (``targets.forms.judge_save``).
    """
    if status == 404 and (kind is Kind.MISSING or (expect_404 and kind is Kind.PAGE)):
        return Outcome.EXPECTED_404
    return _BY_HUNDREDS.get(status // 100, Outcome.BROKEN)
