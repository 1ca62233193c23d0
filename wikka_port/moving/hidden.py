"""Single revisions that no reader sees: their numbers stand in the page's row, so they follow the page.

The newest revision cannot be hidden: another one has to be saved first.
"""

from __future__ import annotations

from wikka_port.limits import HIDDEN_MAX
from wikka_port.moving.mover import Mover
from wikka_port.moving.refusals import BadRevision, Busy, NothingThere
from wikka_port.page_rows import head_of, hidden_in, is_there
from wikka_port.texts import N_, _

_TRIES = 6


def hide(mover: Mover, name: str, number: int, *, hidden: bool) -> None:
    """Hide a revision, or show it again.  Doing it twice is doing it once.  Raises NotMoved."""
    for _attempt in range(_TRIES):
        row = mover.page_row(name)
        if not is_there(row):
            raise NothingThere(name)
        newest, hidden_before = head_of(row), hidden_in(row)
        if not 1 <= number <= newest.number:
            raise BadRevision(name, _("{name} has no revision {number}.", name=name, number=number))
        if number == newest.number and hidden:
            raise BadRevision(
                name, _("The newest revision cannot be hidden: save another text first, then hide this one.")
            )
        after = hidden_before | {number} if hidden else hidden_before - {number}
        if after == hidden_before:
            return
        if len(after) > HIDDEN_MAX:
            said = N_("{most} revisions of a page can be hidden at most: delete the page instead.")
            raise BadRevision(name, _(said, most=HIDDEN_MAX))
        if mover.put_hidden(name, row, b",".join(b"%d" % one for one in sorted(after))):
            return
    raise Busy(name)
