"""The functions that keep the derived tables: run by Columnar after each change of a page, or by ``pages``.

    backlinks   links of the text  -> ``backlinks`` (both directions), and ``wanted`` seen from the source
    wanted      a page begins (or ends) to be -> ``wanted`` seen from the target
    names       a page begins (or ends) to be -> ``names``
    changes     a revision -> ``changes``

All follow the three rules of ``columnar.triggers.api``.  A cell names its source, and all that a
change writes or deletes bears the change's own stamp; the stamps of a page's changes rise.  So each
cell ends as the newest of its source's changes that touched it says, however often, late or out of
turn they run.  What a page is follows from its row as it is now, not from the steps of the change: a delete
may have spared what was written ahead of the clock.  On a normal delivery a function writes the difference
between the page before the change and now; what happened in between comes with its own change.  When it
may have run before, or is not told what changed (a backfill, a retried dead letter), it writes all
that the page says now, and takes back what the index still knows of it: that is what the family
``to`` of ``backlinks`` is for.  ``to`` is written before all else and deleted after all else, so it
never knows less than the tables hold.

``wanted`` hangs on two pages: row T has a cell of S while S links to T and T is not there.  Let
S's function be "put, then look whether T is there now, and if so delete" and T's be "T is there:
delete all cells that are there, each at its own time".  Whatever the interleaving, a cell that S put
does not stay when T is there: either T's commit came before S's second look, then S deletes; or after
it, then T's function, which runs after T's commit, finds the cell that was put before that look.
Nor does a cell stay away when T is not there: it is deleted at its own time only, and when T goes,
T's function puts the cells of ``backlinks`` of T back at their times and looks again; a source that
wrote its backlink too late for that looks at T after it wrote.  A put at a deleted cell's very own
time shows again; an older one does not (design D5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from columnar.client import Connection, Delete
from columnar.triggers.api import Change
from wikka_port import history, schema
from wikka_port.limits import ROWS_PER_CALL
from wikka_port.markup.links import links
from wikka_port.names import page_key
from wikka_port.page_rows import Cells, autolink_of, head_of, time_of
from wikka_port.schema import Head, parse_head
from wikka_port.store import rows_in_steps


@dataclass(frozen=True, slots=True)
class Registration:
    name: str
    call: Callable[[Change, Connection], None]
    families: tuple[bytes, ...]
    before: bool

    @property
    def function(self) -> str:
        return f"{self.call.__module__}:{self.call.__name__}"


@dataclass(frozen=True, slots=True)
class _Seen:
    """A change as the functions see it."""

    now: Cells  # the page as it is, maybe after later changes; empty: it is gone
    before: Cells
    at_ms: int  # what is written and deleted is stamped with it
    careful: bool  # it may have run before, or nobody knows what changed
    revision: Cells  # what the change put; empty where it made no revision


def _seen(change: Change) -> _Seen | None:
    """None: the change has nothing to do with revisions."""
    now = change.now if schema.VERSIONCOUNT in change.now else {}
    put = {cell.column: cell.value for cell in change.changes if cell.kind == "put"}
    if change.changes and schema.HEAD not in put:
        if all(cell.kind == "put" or cell.column not in (schema.VERSIONCOUNT, b"meta") for cell in change.changes):
            return None
        put = {}
    return _Seen(now, change.before, change.timestamp, change.attempt > 1 or not change.changes, put)


# --- links -------------------------------------------------------------------------------------


def backlinks(change: Change, client: Connection) -> None:
    seen = _seen(change)
    if seen is None:
        return
    source = (seen.now or seen.before).get(schema.NAME, b"").decode()
    after, before = _links(seen.now), _links(seen.before)
    added, removed = _without(after, before), _without(before, after)
    if seen.careful:
        known = client.table(schema.BACKLINKS).row(change.row, columns=[b"to"])
        ever = {column[len(schema.TO) :]: name.decode() for column, name in known.items()}
        added, removed = after, _without({**before, **ever}, after)
    _write_backlinks(client, change.row, source, added, removed, seen.at_ms)
    _write_wanted(client, change.row, added, removed, seen.at_ms)
    if removed:
        columns = [schema.TO + target for target in removed]
        client.table(schema.BACKLINKS).delete(change.row, columns, timestamp=seen.at_ms)


Targets = Mapping[bytes, str]  # key of the page -> its name


def _links(cells: Cells) -> Targets:
    body = cells.get(schema.BODY)
    if not body:
        return {}
    names = links(body.decode(errors="replace"), autolink=autolink_of(cells))
    return {page_key(name): name for name in names}


def _without(some: Targets, others: Targets) -> Targets:
    return {key: name for key, name in some.items() if key not in others}


def _write_backlinks(client: Connection, key: bytes, source: str, added: Targets, removed: Targets, at_ms: int) -> None:
    table = client.table(schema.BACKLINKS)
    from_column = schema.FROM + key
    if added:
        with table.batch(timestamp=at_ms) as batch:
            batch.put(key, {schema.TO + target: name.encode() for target, name in added.items()})
        with table.batch(batch_size=ROWS_PER_CALL, timestamp=at_ms) as batch:
            for target in added:
                batch.put(target, {from_column: source.encode()})
    if removed:
        with table.batch(batch_size=ROWS_PER_CALL, timestamp=at_ms) as batch:
            for target in removed:
                batch.delete(target, [from_column])


def _write_wanted(client: Connection, key: bytes, added: Targets, removed: Targets, at_ms: int) -> None:
    """The cells of one source, for links that it has now and for links that it has no more."""
    table = client.table(schema.WANTED)
    column = schema.FROM + key
    there = _existing(client, added)
    missing = {target: name for target, name in added.items() if target not in there}
    if missing:
        with table.batch(batch_size=ROWS_PER_CALL, timestamp=at_ms) as batch:
            for target, name in missing.items():
                batch.put(target, {column: name.encode()})
    # An earlier run may have fallen between its put and its second look, so all of ``added`` is looked at.
    left = {row for row, _ in rows_in_steps(table, there, column)}
    gone = [*removed, *left, *_existing(client, missing)]
    if gone:
        with table.batch(batch_size=ROWS_PER_CALL, timestamp=at_ms) as batch:
            for target in gone:
                batch.delete(target, [column])


def _existing(client: Connection, keys: Iterable[bytes]) -> set[bytes]:
    return {row for row, _ in rows_in_steps(client.table(schema.PAGES), keys, schema.VERSIONCOUNT)}


def wanted(change: Change, client: Connection) -> None:
    """A page that begins to be is wanted no more; one that ends is wanted by all that link to it."""
    seen = _seen(change)
    if seen is None or _goes_on(seen):
        return
    if not _existing(client, [change.row]):
        stamped = _stamped(client, schema.BACKLINKS, change.row)
        names = _names_by_source(client, change.row, [column[len(schema.FROM) :] for column in stamped])
        for column, (_, at_ms) in stamped.items():
            name = names.get(column[len(schema.FROM) :])
            if name is not None:  # else the source has just taken its link back
                client.table(schema.WANTED).put(change.row, {column: name}, timestamp=at_ms)
        if not _existing(client, [change.row]):
            return
    _delete_stamped(client, schema.WANTED, change.row, _stamped(client, schema.WANTED, change.row))


def _names_by_source(client: Connection, key: bytes, sources: list[bytes]) -> dict[bytes, bytes]:
    """The page's name as each source's link has it."""
    column, table = schema.TO + key, client.table(schema.BACKLINKS)
    found: dict[bytes, bytes] = {}
    for first in range(0, len(sources), ROWS_PER_CALL):
        rows = table.rows(sources[first : first + ROWS_PER_CALL], columns=[column])
        found.update((source, cells[column]) for source, cells in rows)
    return found


def _goes_on(seen: _Seen) -> bool:
    """The page was there before and is there now: an index of which pages there are stays as it is."""
    return not seen.careful and schema.VERSIONCOUNT in seen.before and bool(seen.now)


def _stamped(client: Connection, table: bytes, row: bytes) -> Mapping[bytes, tuple[bytes, int]]:
    found: Mapping[bytes, tuple[bytes, int]] = client.table(table).row(row, columns=[b"from"], include_timestamp=True)
    return found


def _delete_stamped(client: Connection, name: bytes, row: bytes, cells: Mapping[bytes, tuple[bytes, int]]) -> None:
    """Delete each cell at its own time."""
    if not cells:
        return
    table = client.table(name)
    if client.is_columnar:
        table.mutate(row, [Delete(column, at_ms) for column, (_, at_ms) in cells.items()])
        return
    by_time: dict[int, list[bytes]] = {}
    for column, (_, at_ms) in cells.items():
        by_time.setdefault(at_ms, []).append(column)
    for at_ms, columns in by_time.items():
        table.delete(row, columns, timestamp=at_ms)


# --- lists -------------------------------------------------------------------------------------


def names(change: Change, client: Connection) -> None:
    seen = _seen(change)
    if seen is None or _goes_on(seen):
        return
    name = (seen.now or seen.before).get(schema.NAME)
    if name is None:
        return
    row = schema.name_row(name.decode())
    if seen.now:
        client.table(schema.NAMES).put(row, {schema.NAME: name}, timestamp=seen.at_ms)
    else:
        client.table(schema.NAMES).delete(row, [schema.NAME], timestamp=seen.at_ms)


def changes(change: Change, client: Connection) -> None:
    """One row for each revision; none ever goes."""
    seen = _seen(change)
    if seen is None:
        return
    table = client.table(schema.CHANGES)
    if seen.revision:
        head = parse_head(seen.revision[schema.HEAD])
        row, cells = change_entry(change.row, head, seen.revision, schema.USER, schema.NOTE)
        table.put(row, cells, timestamp=seen.at_ms)
        return
    if change.changes or not seen.now:
        return
    newest = head_of(seen.now)
    with table.batch(batch_size=ROWS_PER_CALL, timestamp=seen.at_ms) as batch:
        for head, found in history.chain(client, change.row, newest, newest.number, bodies=False):
            batch.put(*change_entry(change.row, head, found, schema.REVISION_AUTHOR, schema.REVISION_NOTE))


def change_entry(
    key: bytes, head: Head, cells: Cells, author_column: bytes, note_column: bytes
) -> tuple[bytes, dict[bytes, bytes]]:
    """The row of ``changes`` for a revision, from its cells or from its page's."""
    return schema.change_row(key, time_of(cells), head.number), {
        schema.NAME: cells.get(schema.NAME, b""),
        schema.HEAD: head.pack(),
        schema.TIME: b"%d" % time_of(cells),
        schema.REVISION_AUTHOR: cells.get(author_column, b""),
        schema.REVISION_NOTE: cells.get(note_column, b""),
    }


REGISTRATIONS: Final = (
    Registration("wiki-backlinks", backlinks, (b"body", b"meta"), before=True),
    Registration("wiki-wanted", wanted, (b"meta",), before=True),
    Registration("wiki-names", names, (b"meta",), before=True),
    Registration("wiki-changes", changes, (b"meta", b"user", b"note"), before=False),
)
