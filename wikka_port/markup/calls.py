"""Calls of actions (pure): ``{{name attribute="value"}}``, the same in every format."""

from __future__ import annotations

import re
from typing import Final

from wikka_port.markup.targets import redirect_link
from wikka_port.markup.tokens import ActionCall, PageLink

_ACTION: Final = re.compile(
    r"\s*+([A-Za-z][A-Za-z0-9]*+)((?:\s++[A-Za-z][\w\-]*+\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'))*+)\s*+"
)
_ARGUMENT: Final = re.compile(r"([A-Za-z][\w\-]*+)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)')")


_NO: Final = frozenset({"", "0", "no", "false", "off"})


def is_set(value: str) -> bool:
    """The value of an attribute that is on or off."""
    return value.strip().lower() not in _NO


def read_action(text: str, start: int, end: int) -> ActionCall | PageLink | None:
    """Return the insides of ``{{..}}``; None if they are no call.  A redirect is a link."""
    call = _ACTION.fullmatch(text, start, end)
    if not call:
        return None
    arguments = tuple((a[1].lower(), a[2] if a[2] is not None else a[3]) for a in _ARGUMENT.finditer(call[2]))
    action = ActionCall(call[1].lower(), arguments)
    return redirect_link(action) or action
