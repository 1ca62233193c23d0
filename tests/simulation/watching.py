"""Which state machines a step has changed: their invariants are checked after it, and those of no other.

A machine changes by its events alone, so a check of one that took none in would give what the last one gave.
Whatever is not known to be a look counts as an event: a new method is checked too often, never too seldom.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from columnar.regions.life.hosting_state import HostingState

LOOKS = frozenset({"find", "state", "in_states", "epoch_of", "owns", "serving", "check"})


def watch(machine: HostingState, noted: Callable[[], None]) -> None:
    """Have ``noted`` called before each event of the machine."""
    for name in dir(type(machine)):
        event = getattr(machine, name)
        if not name.startswith("_") and name not in LOOKS and callable(event):
            setattr(machine, name, partial(_event, event, noted))


def _event(event: Callable[..., Any], noted: Callable[[], None], *args: Any, **about: Any) -> Any:
    noted()
    return event(*args, **about)
