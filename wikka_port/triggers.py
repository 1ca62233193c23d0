"""The functions that keep the derived tables: run by Columnar after each change of a page, or by ``pages``.

    backlinks   links of the text  -> ``backlinks`` (both directions), and ``wanted`` seen from the source
    wanted      a page begins (or ends) to be -> ``wanted`` seen from the target
    names       a page begins (or ends) to be -> ``names``
    changes     a revision -> ``changes``
    indexes     all of them, in one delivery with one reading of the page
    indexes_of_batch    the same for the changes of many pages together: what is registered
    words       the words of a page -> ``terms`` and ``docs`` (``search.indexing``); a trigger of its own: it costs more

They yield what is to be written.  Columnar writes it in batches of its own; where the application keeps the indexes,
``application_indexes`` writes it through a client.

All follow the three rules of ``columnar.triggers.api``.  A cell has one page that it comes from, and all that a
change of that page writes or deletes bears the change's own stamp; the stamps of a page's changes rise.  So each
cell ends as the newest of its page's changes that touched it says, however often, late or out of
order they run.  The state of a page follows from its row as it is now, not from the steps of the change: a delete
may have spared what was written ahead of the clock.  On a normal delivery a function writes the difference
between the page before the change and now; what happened in between comes with its own change.  When it
may have run before, or does not know what changed (a backfill, a retried dead letter), it writes all
that the page says now, and takes back what the index still knows of it: that is what the family
``to`` of ``backlinks`` is for.  A Barrier stands after the puts of ``to`` and before its deletes, so
it never knows less than the tables have, whatever crashes.

``wanted`` hangs on two pages, and no write can be made to depend on both.  So its rows are candidates, and its
reader checks whether the page of each is there (the module ``wanted``).  Row T has
    from:S     comes from page S, the source: it links to T, and found no page T when it read T's row
    from:gone  comes from page T: it was there and has ended
S puts its cell if its read finds no T, and deletes it with its link.  T puts the mark when it ends, and deletes
what is there of its row when it begins.  When all is delivered:
    W1. A page that is not there and that S links to has S's cell or the mark.
    W2. S's cell says that S links to T.
    W3. Without the mark, a page that is not there has the cells of all that link to it.
W1: S read T after its commit.  If it found T, T has ended since, so T's function has put the mark at its highest stamp,
and nothing of a lower stamp removes it.  If it found none, it put its cell.  That cell is gone only if T began later
and deleted it; then T has ended since, and has put the mark.  W3: without the mark T never began, so every source
found no page and its cell was not deleted.  W2: S alone writes its cell, but for T's deletes.
A cell whose page is there is spare: the reader passes over it.  T deletes those that it finds when it begins, so there
are few: those of sources that read just before and wrote just after, or whose clock is ahead of T's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from columnar.client import Connection
from columnar.client import Registration as StoreRegistration
from columnar.triggers.api import Barrier, Change, Delete, Effect, Put
from wikka_port import history, schema
from wikka_port.interwiki_file import load_from_environment
from wikka_port.markup.links import links
from wikka_port.names import page_key
from wikka_port.page_rows import Cells, autolink_of, head_of, hidden_in, is_minor, is_there, markup_of, time_of
from wikka_port.schema import Head, parse_head
from wikka_port.search import indexing
from wikka_port.store import rows_in_steps
from wikka_port.wanted import existing

Effects = Iterator[Effect]
Steps = Iterator[tuple[Change, Effect] | Barrier]  # of a batch
Targets = Mapping[bytes, str]  # key of the page -> its name
BATCH: Final = 32  # changes of one call: those that are there, none is waited for


@dataclass(frozen=True, slots=True)
class Registration:
    name: str
    call: Callable[[Sequence[Change], Connection], Steps]
    families: tuple[bytes, ...]
    before: bool
    batch: int
    writes: tuple[bytes, ...]  # tables, for the graph of flows

    @property
    def store_registration(self) -> StoreRegistration:
        """The triggers that the wiki registers.  A registration of this name is changed to it in its place."""
        return StoreRegistration(
            name=self.name,
            table=schema.PAGES.decode(),
            function=f"{self.call.__module__}:{self.call.__name__}",
            families=tuple(sorted(family.decode() for family in self.families)),
            before=self.before,
            from_where="beginning",
            batch=self.batch,
            writes=tuple(sorted(table.decode() for table in self.writes)),
            of_module=self.call.__module__,
        )


@dataclass(frozen=True, slots=True)
class _Seen:
    """A change as the functions see it."""

    now: Cells  # the page as it is, maybe after later changes; empty: it is gone
    before: Cells
    careful: bool  # it may have run before, or what changed is unknown
    revision: Cells  # what the change put; empty if it made no revision

    @property
    def name(self) -> bytes:
        """Empty where nothing says it: the row is gone, and what it was is unknown."""
        return (self.now or self.before).get(schema.NAME, b"")

    @property
    def is_update(self) -> bool:
        """The page was there before and is there now: an index of which pages there are stays as it is."""
        return not self.careful and bool(self.before) and bool(self.now)


def _seen(change: Change) -> _Seen | None:
    """None: the change has nothing to do with revisions."""
    if len(change.row) != schema.KEY_BYTES:
        return None  # the row of the site's rules
    now = change.now if is_there(change.now) else {}
    before = change.before if is_there(change.before) else {}
    put = _put_by(change)
    if change.changes and schema.HEAD not in put:
        if not _ends(change, put):
            return None
        put = {}
    if not now and not before and schema.WAS in change.now:  # what changed is unknown
        was, _, name = change.now[schema.WAS].partition(b" ")
        before = {schema.VERSIONCOUNT: was, schema.NAME: name}
    return _Seen(now, before, change.attempt > 1 or not change.changes, put)


def _put_by(change: Change) -> dict[bytes, bytes]:
    return {cell.column: cell.value for cell in change.changes if cell.kind == "put"}


def _ends(change: Change, put: Cells) -> bool:
    """The page was deleted or moved, or its row was removed."""
    if schema.VERSIONCOUNT in put:
        return not is_there(put)
    return any(cell.kind != "put" and cell.column in (schema.VERSIONCOUNT, b"meta") for cell in change.changes)


def alone(steps: Steps) -> Effects:
    """Yield the effects of a batch of one change."""
    for step in steps:
        yield step if isinstance(step, Barrier) else step[1]


def indexes(change: Change, client: Connection) -> Effects:
    """All indexes.  Wikis of earlier versions registered it; ``prepare`` changes that to ``indexes_of_batch``."""
    return alone(indexes_of_batch([change], client))


def indexes_of_batch(batch: Sequence[Change], client: Connection) -> Steps:
    """Yield all indexes.  A batch reads the pages that it links to once, and its barriers together."""
    seen = [(change, one) for change in batch if (one := _seen(change)) is not None]
    for change, one in seen:
        for effect in (*_names(one), *_wanted(change.row, one)):
            yield change, effect
        for effect in _changes(change, one, client):
            yield change, effect
    for change in batch:
        for effect in _hiding(change, client):
            yield change, effect
    yield from _backlinks(seen, client)


def words_of_batch(batch: Sequence[Change], client: Connection) -> Steps:
    """Return the index of words."""
    return indexing.index(batch, client)


# --- links -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Links:
    """The effects of a change on the links of its page."""

    name: bytes  # of the page
    column: bytes  # of the page, in the rows of what it links to
    added: Targets  # where nothing is taken for granted, all that it links to
    removed: Targets


def backlinks(change: Change, client: Connection) -> Effects:
    seen = _seen(change)
    if seen is not None:
        yield from alone(_backlinks([(change, seen)], client))


def _backlinks(seen: Sequence[tuple[Change, _Seen]], client: Connection) -> Steps:
    found = _links_of_changes(seen, client)
    there = existing(client, {target: None for _, one in found for target in one.added})
    for change, one in found:
        if one.added:
            cells = {schema.TO + target: name.encode() for target, name in one.added.items()}
            yield change, Put(schema.BACKLINKS, change.row, cells)
    if any(one.added for _, one in found):
        yield Barrier()
    for table in (schema.BACKLINKS, schema.WANTED):
        for change, one in found:
            for target, name in one.added.items():
                if table == schema.BACKLINKS:
                    yield change, Put(table, target, {one.column: one.name})
                elif target not in there:
                    yield change, Put(table, target, {one.column: name.encode()})
            for target in one.removed:
                yield change, Delete(table, target, [one.column])
    if any(one.removed for _, one in found):
        yield Barrier()
    for change, one in found:
        if one.removed:
            yield change, Delete(schema.BACKLINKS, change.row, [schema.TO + target for target in one.removed])


def _links_of_changes(seen: Sequence[tuple[Change, _Seen]], client: Connection) -> list[tuple[Change, _Links]]:
    careful = [change.row for change, one in seen if one.careful]
    known = dict(rows_in_steps(client.table(schema.BACKLINKS), dict.fromkeys(careful), schema.TO_FAMILY))
    found = []
    for change, one in seen:
        after, before = _links(one.now), _links(one.before)
        added, removed = _without(after, before), _without(before, after)
        if one.careful:
            stored = known.get(change.row, {})
            ever = {column[len(schema.TO) :]: name.decode() for column, name in stored.items()}
            added, removed = after, _without({**before, **ever}, after)
        found.append((change, _Links(one.name, schema.FROM + change.row, added, removed)))
    return found


def _links(cells: Cells) -> Targets:
    body = cells.get(schema.BODY)
    if not body:
        return {}
    names = links(body.decode(errors="replace"), autolink=autolink_of(cells), markup=markup_of(cells))
    return {page_key(name): name for name in names}


def _without(some: Targets, others: Targets) -> Targets:
    return {key: name for key, name in some.items() if key not in others}


def wanted(change: Change) -> Effects:
    """A page that begins to be is wanted no more; one that ends is wanted by all that link to it."""
    seen = _seen(change)
    if seen is not None:
        yield from _wanted(change.row, seen)


def _wanted(key: bytes, seen: _Seen) -> Effects:
    if seen.is_update:
        return
    if seen.now:
        yield Delete(schema.WANTED, key, [schema.WANTED_FAMILY])
    else:
        yield Put(schema.WANTED, key, {schema.GONE: seen.name})


# --- lists -------------------------------------------------------------------------------------


def names(change: Change) -> Effects:
    seen = _seen(change)
    if seen is not None:
        yield from _names(seen)


def _names(seen: _Seen) -> Effects:
    if seen.is_update or not seen.name:
        return
    row = schema.name_row(seen.name.decode())
    if seen.now:
        yield Put(schema.NAMES, row, {schema.NAME: seen.name})
    else:
        yield Delete(schema.NAMES, row, [schema.NAME])


def changes(change: Change, client: Connection) -> Effects:
    """Yield a row for each revision of a page that is there, but for those that are hidden."""
    seen = _seen(change)
    if seen is not None:
        yield from _changes(change, seen, client)
    yield from _hiding(change, client)


def _changes(change: Change, seen: _Seen, client: Connection) -> Effects:
    """A page that comes or goes with its history brings or takes all its entries."""
    key, before, put = change.row, head_of(seen.before), _put_by(change)
    if not change.changes:
        if seen.now:
            yield from _entries(client, key, seen.name, head_of(seen.now), hidden_in(seen.now))
        else:
            yield from _no_entries(client, key, before)
        return
    after = head_of(put)
    has_left = before.number > 0 and schema.VERSIONCOUNT in put and after.place(key) != before.place(key)
    if has_left or (schema.VERSIONCOUNT in put and not after.number):
        yield from _no_entries(client, key, before)
    if seen.revision:
        head = parse_head(seen.revision[schema.HEAD])
        yield Put(schema.CHANGES, *change_entry(key, head, seen.revision, schema.USER, schema.NOTE))
        if seen.revision.get(schema.PREVIOUS) and (has_left or not before.number):
            yield from _entries(client, key, seen.revision[schema.NAME], head, hidden_in(put))
        elif before.number and seen.revision.get(schema.PREVIOUS) != before.token and head.token != before.token:
            yield from _merged_entries(client, change, before, head)


def _merged_entries(client: Connection, change: Change, before: Head, newest: Head) -> Effects:
    """Yield an import put revisions into the history: entries of the chain of before go where its revisions went."""
    key, put = change.row, _put_by(change)
    name, hidden = put[schema.NAME], hidden_in({**change.before, **put})
    was = history.chain(client, key, before, before.number, bodies=False)
    old = next(was, None)
    rows: set[bytes] = set()
    stale: dict[bytes, None] = {}
    for head, found in history.chain(client, key, newest, newest.number, bodies=False):
        while old is not None and old[0].number > head.number:
            stale[schema.change_row(key, time_of(old[1]), old[0].number)] = None
            old = next(was, None)
        if old is not None and (old[0].number, old[0].token) == (head.number, head.token):
            break
        if head.number not in hidden:
            row, entry = entry_of_revision(key, name, head, found)
            rows.add(row)
            yield Put(schema.CHANGES, row, entry)
        if old is not None and old[0].number == head.number:
            stale[schema.change_row(key, time_of(old[1]), old[0].number)] = None
            old = next(was, None)
    for row in stale:
        if row not in rows:
            yield Delete(schema.CHANGES, row, ENTRY_COLUMNS)


def _entries(client: Connection, key: bytes, name: bytes, newest: Head, hidden: Collection[int]) -> Effects:
    """``name``: of the page now; its revisions may have been saved under others."""
    for head, found in history.chain(client, key, newest, newest.number, bodies=False):
        row, entry = entry_of_revision(key, name, head, found)
        yield Delete(schema.CHANGES, row, ENTRY_COLUMNS) if head.number in hidden else Put(schema.CHANGES, row, entry)


def _no_entries(client: Connection, key: bytes, newest: Head) -> Effects:
    if newest.number:
        for head, found in history.chain(client, key, newest, newest.number, bodies=False):
            yield Delete(schema.CHANGES, schema.change_row(key, time_of(found), head.number), ENTRY_COLUMNS)


def _hiding(change: Change, client: Connection) -> Effects:
    """Revisions were hidden, or are shown again."""
    put = _put_by(change)
    newest = head_of(change.before)
    if schema.HIDDEN not in put or schema.HEAD in put or not newest.number:
        return
    was, now = hidden_in(change.before), hidden_in(put)
    for number in sorted(was ^ now):
        for head, found in history.chain(client, change.row, newest, number, bodies=False, expected=1):
            if head.number == number:
                row, entry = entry_of_revision(change.row, change.before.get(schema.NAME, b""), head, found)
                yield Put(schema.CHANGES, row, entry) if number in was else Delete(schema.CHANGES, row, ENTRY_COLUMNS)
            break


def change_entry(
    key: bytes, head: Head, cells: Cells, author_column: bytes, note_column: bytes
) -> tuple[bytes, dict[bytes, bytes]]:
    """Return the row of ``changes`` for a revision, from its cells or from its page's."""
    signed = cells.get(schema.SIGNED)
    return schema.change_row(key, time_of(cells), head.number), {
        schema.NAME: cells.get(schema.NAME, b""),
        schema.HEAD: head.pack(),
        schema.TIME: b"%d" % time_of(cells),
        schema.REVISION_AUTHOR: cells.get(author_column, b""),
        schema.REVISION_NOTE: cells.get(note_column, b""),
        **({schema.SIGNED: signed} if signed else {}),
        **({schema.MINOR: b"yes"} if is_minor(cells) else {}),
    }


def entry_of_revision(key: bytes, name: bytes, head: Head, cells: Cells) -> tuple[bytes, dict[bytes, bytes]]:
    """As ``change_entry``, from the revision's cells; ``name``: of the page now."""
    named = {**cells, schema.NAME: name or cells.get(schema.NAME, b"")}
    return change_entry(key, head, named, schema.REVISION_AUTHOR, schema.REVISION_NOTE)


ENTRY_COLUMNS: Final = (
    schema.NAME,
    schema.HEAD,
    schema.TIME,
    schema.REVISION_AUTHOR,
    schema.REVISION_NOTE,
    schema.SIGNED,
    schema.MINOR,
)

# One delivery of each change, with one reading of the page's row, serves all indexes; a batch costs one lookup and one
# wait for each of its barriers.
_READ: Final = (b"body", b"meta", b"user", b"note")
_DERIVED: Final = (schema.BACKLINKS, schema.CHANGES, schema.NAMES, schema.WANTED)
REGISTRATIONS: Final = (
    Registration("wiki-indexes", indexes_of_batch, _READ, before=True, batch=BATCH, writes=_DERIVED),
    Registration(
        "wiki-words",
        words_of_batch,
        indexing.FAMILIES,
        before=True,
        batch=indexing.BATCH,
        writes=(schema.DOCS, schema.TERMS),
    ),
)
# The registrations of older wikis, until ``Wiki.prepare`` removes them; they run the functions above of their names.
OLDER: Final = ("wiki-backlinks", "wiki-wanted", "wiki-names", "wiki-changes")

# The store's worker imports this module and nothing else of the wiki: here it learns the prefixes that the wiki knows.
load_from_environment()
