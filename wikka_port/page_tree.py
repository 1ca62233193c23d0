"""(pure) The tree of the pages around a page: those above it, those beside it, and those right below it.

A page is below another one if its name begins with the other's name and a slash.  A page deeper than one step below is
not shown; a step without a page of its own is, as a page that is not there.

    Harbour                 above
      Harbour/Crane         beside
      Harbour/Pier          the page itself
        Harbour/Pier/Lamp   below
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from wikka_port.names import is_name, pages_above


@dataclass(frozen=True, slots=True)
class Leaf:
    """A page of the tree; ``depth`` is 0 for the highest, and ``label`` the last part of the name."""

    name: str
    label: str
    depth: int
    is_there: bool
    is_current: bool


def searched_prefix(name: str) -> str:
    """Return how the names begin from which the tree is made: of the pages below the page above, or below this one."""
    return f"{name.rpartition('/')[0] or name}/"


def tree_of(name: str, names: Sequence[str], existing: Collection[str] = ()) -> list[Leaf]:
    """Return the tree in order, of the names below ``searched_prefix``; ``existing``: others that are there.

    O(len(names) log len(names)).
    """
    there = {*names, *existing}
    above, parent = pages_above(name), name.rpartition("/")[0]
    beside = _right_below(parent, names) | {name} if parent else {name}
    found = [(one, depth) for depth, one in enumerate(above)]
    for one in sorted(beside, key=lambda each: (each.casefold(), each)):
        found.append((one, len(above)))
        if one == name:
            below = sorted(_right_below(name, names), key=lambda each: (each.casefold(), each))
            found += [(each, len(above) + 1) for each in below]
    return [Leaf(one, one.rpartition("/")[2] or one, depth, one in there, one == name) for one, depth in found]


def _right_below(above: str, names: Sequence[str]) -> set[str]:
    begin = f"{above}/"
    steps = (one[len(begin) :].partition("/")[0] for one in names if one.startswith(begin))
    return {one for one in {f"{begin}{step}" for step in steps if step} if is_name(one)}
