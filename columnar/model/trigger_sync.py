"""(pure) Compares the triggers that a module declares with the existing ones: what a sync adds, changes and removes.

A sync is for the triggers of one module.  A sync takes over a trigger of the same name that was made by hand, but never
a trigger of a different module.  A sync removes only triggers that an earlier sync of the module made.

    changed     keeps its place in the logs, so waiting changes are delivered with the new settings.  If the trigger now
                needs images that the records of waiting changes lack, these changes carry the row as it is now, and
                nothing of the row before.  The user who syncs becomes its owner, because the code is that user's
    refused     a change to a different table, in whose logs the trigger's place means nothing

``start`` has an effect only when a trigger is added; for a running trigger it changes nothing.

Knows nothing of modules, of the catalogue and of owners of regions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from columnar.errors import IllegalArgument
from columnar.model.trigger_registration import Registration

_WORDS: Final = {
    "timeout_ms": "timeout", "within_ms": "within", "where": "where", "of_module": "made by a sync of",
    "side_by_side": "side by side", "allow_cycle": "allow cycle",
    "allow_expiry": "allow expiry",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    current: Registration
    wanted: Registration

    def words(self) -> list[str]:
        """Return a line for people about each setting that differs."""
        old, new = asdict(self.current), asdict(self.wanted)
        lines = [
            f"{_WORDS.get(key, key)}: {_text(old[key])} -> {_text(new[key])}" for key in old if old[key] != new[key]
        ]
        if self.needs_more_images:
            lines.append("changes that wait come with the row as it is, and without what it was before")
        return lines

    @property
    def needs_more_images(self) -> bool:
        """Whether the records of earlier changes may lack images that the new settings request."""
        held, wanted = self.current, self.wanted
        if wanted.before and not held.before:
            return True
        there, asked = held.scope().images, wanted.scope().images
        for family, qualifiers in asked.items():
            known = there.get(family, frozenset())
            if known is not None and (qualifiers is None or not qualifiers <= known):
                return True
        return False


@dataclass(frozen=True, slots=True)
class Plan:
    added: tuple[Registration, ...]
    changed: tuple[Change, ...]
    removed: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.changed or self.removed)


def no_more_declared(held: Iterable[Registration], wanted: Sequence[Registration], module: str) -> tuple[str, ...]:
    """Return the triggers that an earlier sync of the module made and the module no longer declares."""
    names = {one.name for one in wanted}
    return tuple(sorted(one.name for one in held if one.of_module == module and one.name not in names))


def plan_of(held: Iterable[Registration], wanted: Sequence[Registration], removed: Sequence[str]) -> Plan:
    """Return the plan of a sync.  Raises IllegalArgument, with the remedy, if there is none."""
    there = {one.name: one for one in held}
    modules = {one.of_module for one in wanted}
    if "" in modules or len(modules) > 1 or len({one.name for one in wanted}) < len(wanted):
        raise IllegalArgument("a sync is of one module, whose triggers have names of their own")
    for name in removed:
        if name not in there or not there[name].of_module or (modules and {there[name].of_module} != modules):
            raise IllegalArgument(f"trigger {name} was made by no sync of this module; columnar trigger remove {name}")
        if any(one.name == name for one in wanted):
            raise IllegalArgument(f"trigger {name} cannot be removed and declared at once")
    added = tuple(one for one in wanted if one.name not in there)
    pairs = [_change(there[one.name], one) for one in wanted if one.name in there]
    return Plan(added, tuple(pair for pair in pairs if pair.current != pair.wanted), tuple(sorted(set(removed))))


def _change(held: Registration, wanted: Registration) -> Change:
    if held.of_module not in ("", wanted.of_module):
        raise IllegalArgument(
            f"trigger {held.name} was made by a sync of {held.of_module}; give the function of {wanted.of_module} "
            "another name with name="
        )
    if held.table != wanted.table:
        raise IllegalArgument(
            f"trigger {held.name} is on table {held.table}, not {wanted.table}, and cannot keep its place in the logs: "
            f"give the function another name with name=, or columnar trigger remove {held.name}"
        )
    same_start = replace(wanted, from_where=held.from_where, owner=held.owner)
    if same_start == held or not wanted.owner:  # nothing else differs, or rights are off
        return Change(held, same_start)
    return Change(held, replace(same_start, owner=wanted.owner))


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) or "none"
