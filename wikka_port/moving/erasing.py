"""A single revision of a page is erased: it is hidden, then its text, note and original leave the store.

The row of the revision stays with its number, author and time, so that the chain is whole; ``meta:erased`` marks it.
The newest revision cannot be erased: a newer text has to be saved before.  After a crash between both steps the
revision is hidden, and the same call finishes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from columnar.client import Connection
from wikka_port import schema
from wikka_port.history import chain
from wikka_port.moving.mover import Mover
from wikka_port.moving.refusals import BadRevision, NothingThere
from wikka_port.names import page_key
from wikka_port.page_rows import head_of, is_there, time_of
from wikka_port.store import Store
from wikka_port.texts import _

ERASED: Final = b"meta:erased"
_SOURCE_FAMILY: Final = schema.SOURCE.partition(b":")[0]


def erase_revision(store: Callable[[], Store], mover: Mover, name: str, number: int) -> None:
    """Erase a revision for good; a second call changes nothing.  Raises NotMoved."""
    row, at_ms, _erased = _found(store, mover, name, number)
    mover.hide(name, number, hidden=True)
    mover.on_step_done("hidden")
    blank = {schema.REVISION_BODY: b"", schema.REVISION_NOTE: b"", ERASED: b"yes"}

    def work(connection: Connection) -> None:
        revisions = connection.table(schema.REVISIONS)
        revisions.put(row, blank, timestamp=at_ms)  # a put at the time of the cells replaces them
        revisions.delete(row, [_SOURCE_FAMILY])

    store().run(work)


def check_not_erased(store: Callable[[], Store], mover: Mover, name: str, number: int) -> None:
    """Raise BadRevision if the revision was erased: there is nothing that could be shown again."""
    if _found(store, mover, name, number)[2]:
        raise BadRevision(name, _("Revision {number} of {name} was erased for good.", name=name, number=number))


def _found(store: Callable[[], Store], mover: Mover, name: str, number: int) -> tuple[bytes, int, bool]:
    """Return the row of a revision, its time, and whether it was erased.  Raises NothingThere, BadRevision."""
    page, key = mover.page_row(name), page_key(name)
    if not is_there(page):
        raise NothingThere(name)
    newest = head_of(page)

    def work(connection: Connection) -> tuple[bytes, int, bool] | None:
        for head, cells in chain(connection, key, newest, number, bodies=False, expected=1):
            return (schema.revision_row(key, head), time_of(cells), ERASED in cells) if head.number == number else None
        return None

    found = store().run(work) if 1 <= number <= newest.number else None
    if found is None:
        raise BadRevision(name, _("{name} has no revision {number}.", name=name, number=number))
    return found
