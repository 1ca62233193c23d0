"""(pure) ``If-Match`` and ``If-None-Match`` of a change (RFC 9110, section 13): which state the caller has seen.

A change names the state that it begins from, so that nobody overwrites what he has not read:

    If-Match: ETAG        the state that was read          If-Match: *         whatever there is
    If-None-Match: *      there is nothing yet

Neither is 428, and a state that is not there any more 412.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from wikka_port.schema import is_token

_TAG: Final = re.compile(r'"([0-9]{1,10})\.([0-9a-f]{16})"')


@dataclass(frozen=True, slots=True)
class Precondition:
    """The two headers, of which a request has one; "" for an absent one."""

    match: str = ""
    none_match: str = ""

    @property
    def is_given(self) -> bool:
        return bool(self.match) != bool(self.none_match)

    @property
    def is_for_new(self) -> bool:
        """Whether the change may only make something new."""
        return self.none_match == "*"

    @property
    def is_for_any(self) -> bool:
        return self.match == "*"

    @property
    def revision(self) -> tuple[int, str] | None:
        """Number and token of the revision in ``If-Match``; None if it names none, so that it matches nothing."""
        found = _TAG.fullmatch(self.match)
        return (int(found[1]), found[2]) if found is not None and is_token(found[2]) else None


def precondition_in(if_match: str | None, if_none_match: str | None) -> Precondition | None:
    """Return the precondition of a change, or None if there is none, or both headers, or a bad one."""
    found = Precondition((if_match or "").strip(), (if_none_match or "").strip())
    if not found.is_given or (found.none_match and not found.is_for_new):
        return None
    return found
