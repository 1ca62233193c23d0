"""(pure) A change of a page's row, as the functions of the indexes need it (``triggers``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from columnar.triggers.api import Barrier, Change, Effect
from wikka_port import schema
from wikka_port.page_rows import Cells, is_there

Effects = Iterator[Effect]
Steps = Iterator[tuple[Change, Effect] | Barrier]  # of a batch


@dataclass(frozen=True, slots=True)
class PageChange:
    """A change of a page, as the functions of the indexes need it."""

    now: Cells  # the page's present row, perhaps after later changes; empty if the page has ended
    before: Cells
    careful: bool  # the functions may have run for it before, or it does not tell what changed
    revision: Cells  # the cells that the change put; empty if it made no revision

    @property
    def name(self) -> bytes:
        """The page's name; empty if the row is gone and its former content is unknown."""
        return (self.now or self.before).get(schema.NAME, b"")

    @property
    def is_update(self) -> bool:
        """Whether the page existed before and exists now, so that an index of existing pages stays unchanged."""
        return not self.careful and bool(self.before) and bool(self.now)


def page_change(change: Change) -> PageChange | None:
    """Return the change of a page, or None if it concerns no revision."""
    if len(change.row) != schema.KEY_BYTES:
        return None  # the row of the site's rules
    now = change.now if is_there(change.now) else {}
    before = change.before if is_there(change.before) else {}
    put = put_by(change)
    if change.changes and schema.HEAD not in put:
        if not _ends(change, put):
            return None
        put = {}
    if not now and not before and schema.WAS in change.now:  # what changed is unknown
        was, _, name = change.now[schema.WAS].partition(b" ")
        before = {schema.VERSIONCOUNT: was, schema.NAME: name}
    return PageChange(now, before, change.attempt > 1 or not change.changes, put)


def put_by(change: Change) -> dict[bytes, bytes]:
    return {cell.column: cell.value for cell in change.changes if cell.kind == "put"}


def _ends(change: Change, put: Cells) -> bool:
    """Return whether the change deleted or moved the page, or removed its row."""
    if schema.VERSIONCOUNT in put:
        return not is_there(put)
    return any(cell.kind != "put" and cell.column in (schema.VERSIONCOUNT, b"meta") for cell in change.changes)


def alone(steps: Steps) -> Effects:
    """Yield the effects of a batch of one change."""
    for step in steps:
        yield step if isinstance(step, Barrier) else step[1]
