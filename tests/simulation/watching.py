"""The state machines that a step has changed, so that only their invariants are checked after it.

A machine changes only by its events, so without an event its check would give the same result again.  Every method that
is not known to be a read counts as an event, so that a new method is checked too often, never too seldom.
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
