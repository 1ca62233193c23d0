"""The functions that keep the derived tables: run by Columnar after each change of a page, or by ``pages``.

    backlinks   links of the text  -> ``backlinks`` (both directions), and the source's cells in ``wanted``
    wanted      a page begins or ends to exist -> the target's row in ``wanted``
    names       a page begins or ends to exist -> ``names``
    changes     a revision -> ``changes``
    indexes     all of these, in one delivery with one reading of the page
    indexes_of_batch    the same for the changes of many pages together; this is the registered function
    comments    the comments of a page -> the name in ``comment_lists``, in ``indexes``; a comment -> its rows there,
                and its words, by the separate trigger ``wiki-comments`` (``comments.comment_lists``)
    notices     an edit of a person, a comment -> the inboxes of watchers; a watch -> ``watchers`` (``notices.fan_out``)
                a move -> the inboxes of watchers (``notices.move_notices``); a decision -> that of the text's author
    words       the words of a page and its files -> ``terms`` and ``docs`` (``search.indexing``); a separate trigger:
                it costs more

The functions yield effects.  Columnar writes these in its own batches; if the application keeps the indexes,
``application_indexes`` writes them through a client.

All functions follow the three rules of ``columnar.triggers.api``.  Each index cell follows from one page.  All cells
that a change of that page writes or deletes get the change's own timestamp, and the timestamps of a page's changes
rise.  So the newest change of its page decides each cell, however often, late or out of order the functions run.  The
state of a page is read from its present row, not from the steps of the change: a delete may have left cells that were
written ahead of the clock.  On a normal delivery a function writes the difference between the page before the change
and the page now; changes in between have their own deliveries.  If the function may have run before, or does not know
what changed (a backfill, a retried dead letter), it writes all index cells of the present page, and deletes all others
that the index still has of the page.  The family ``to`` of ``backlinks`` lists the targets of these cells.  A Barrier
follows the puts of ``to`` and precedes its deletes, so that after any crash ``to`` lists at least all cells in the
tables.

A cell of ``wanted`` depends on two pages, and no write can be conditional on both.  So the rows of ``wanted`` are
candidates, and their reader checks whether the page of each exists (the module ``wanted``).  Row T has
    from:S     written by page S, the source: S links to T, and found no page T when it read T's row
    from:gone  written by page T, the mark: T existed and has ended
S puts its cell if its read finds no page T, and deletes the cell together with its link.  T puts the mark when it ends,
and deletes all cells that its row has when it begins.  When all changes are delivered:
    W1. If S links to T and T does not exist, row T has S's cell or the mark.
    W2. S's cell means that S links to T.
    W3. If T does not exist and has no mark, row T has the cells of all pages that link to it.
W1: S read T after its commit.  If it found T, T has ended since, so T's function has put the mark at its highest
timestamp, and no lower timestamp removes it.  If it found no T, it put its cell.  That cell is gone only if T began
later and deleted it; then T has ended since, and has put the mark.  W3: without the mark T never began, so every source
found no page, and no cell was deleted.  W2: only S writes its cell; T only deletes it.
A cell whose page T exists is spare: the reader ignores it.  T deletes the cells that it finds when it begins, so spare
cells are few: those of sources that read just before and wrote just after, or whose clock is ahead of T's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from columnar.client import Connection
from columnar.client import Registration as StoreRegistration
from columnar.triggers.api import Change, Delete, Put
from wikka_port import history, schema
from wikka_port.accounts.tables import USERS
from wikka_port.comments import comment_lists
from wikka_port.comments.comment_rows import COMMENT_FAMILY, COMMENTS
from wikka_port.editing.suggestions import REVIEW, SUGGESTIONS
from wikka_port.files import thumbnail_trigger
from wikka_port.files.file_rows import BLOBS
from wikka_port.files.thumbnails import THUMBS
from wikka_port.interwiki_file import load_from_environment
from wikka_port.link_index import index_links
from wikka_port.moving.journal import MOVES, NOTIFIED, STATE
from wikka_port.notices import fan_out, move_notices
from wikka_port.notices.notice_rows import INBOX, OUTGOING, WATCH_FAMILY, WATCHERS, WATCHES
from wikka_port.page_changes import Effects, PageChange, Steps, alone, page_change, put_by
from wikka_port.page_rows import ENTRY_COLUMNS, change_entry, entry_of_revision, head_of, hidden_in, time_of
from wikka_port.schema import Head, parse_head
from wikka_port.search import indexing

PICTURES_BATCH: Final = 4  # contents; one of them is in memory at a time
BATCH: Final = 32  # at most so many pending changes in one call; a call never waits for more


@dataclass(frozen=True, slots=True)
class Registration:
    name: str
    call: Callable[..., Any]  # of the changes of a batch, or if ``batch`` is 0 of one change; returns its effects
    families: tuple[bytes, ...]
    before: bool
    batch: int
    writes: tuple[bytes, ...]  # tables, for the graph of flows
    table: bytes = schema.PAGES
    columns: tuple[bytes, ...] = ()  # a change has to touch one of them; (): any
    from_where: str = "beginning"
    allow_expiry: bool = False  # the cells end by themselves, and what is derived from them is of no use then

    @property
    def store_registration(self) -> StoreRegistration:
        """The trigger as the store registers it; an older registration of its name is changed in place."""
        return StoreRegistration(
            name=self.name,
            table=self.table.decode(),
            function=f"{self.call.__module__}:{self.call.__name__}",
            families=tuple(sorted(family.decode() for family in self.families)),
            before=self.before,
            from_where=self.from_where,
            batch=self.batch,
            columns=tuple(sorted(column.decode() for column in self.columns)),
            writes=tuple(sorted(table.decode() for table in self.writes)),
            of_module=self.call.__module__,
            allow_expiry=self.allow_expiry,
        )


def indexes(change: Change, client: Connection) -> Effects:
    """Yield the effects on all indexes.

    Wikis of earlier versions registered this function; ``prepare`` changes the registration to ``indexes_of_batch``.
    """
    return alone(indexes_of_batch([change], client))


def indexes_of_batch(batch: Sequence[Change], client: Connection) -> Steps:
    """Yield the effects on all indexes; the changes of a batch share one read of linked pages, and their barriers."""
    seen = [(change, one) for change in batch if (one := page_change(change)) is not None]
    for change, one in seen:
        for effect in (*_names(one), *_wanted(change.row, one)):
            yield change, effect
        for effect in _changes(change, one, client):
            yield change, effect
    for change in batch:
        for effect in (*_hiding(change, client), *_comments(change)):
            yield change, effect
    yield from index_links(seen, client)


def _comments(change: Change) -> Effects:
    """Yield the effects on the name of a page with comments."""
    if len(change.row) == schema.KEY_BYTES:
        careful = change.attempt > 1 or not change.changes
        yield from comment_lists.page_effects(change.row, change.before, change.now, careful=careful)


def words_of_batch(batch: Sequence[Change], client: Connection) -> Steps:
    """Yield the effects on the index of words."""
    return indexing.index(batch, client)


# --- links -------------------------------------------------------------------------------------


def backlinks(change: Change, client: Connection) -> Effects:
    seen = page_change(change)
    if seen is not None:
        yield from alone(index_links([(change, seen)], client))


def wanted(change: Change) -> Effects:
    """Update the page's row of ``wanted``: a page that begins is wanted no more; one that ends gets the mark."""
    seen = page_change(change)
    if seen is not None:
        yield from _wanted(change.row, seen)


def _wanted(key: bytes, seen: PageChange) -> Effects:
    if seen.is_update:
        return
    if seen.now:
        yield Delete(schema.WANTED, key, [schema.WANTED_FAMILY])
    else:
        yield Put(schema.WANTED, key, {schema.GONE: seen.name})


# --- lists -------------------------------------------------------------------------------------


def names(change: Change) -> Effects:
    seen = page_change(change)
    if seen is not None:
        yield from _names(seen)


def _names(seen: PageChange) -> Effects:
    if seen.is_update or not seen.name:
        return
    row = schema.name_row(seen.name.decode())
    if seen.now:
        yield Put(schema.NAMES, row, {schema.NAME: seen.name})
    else:
        yield Delete(schema.NAMES, row, [schema.NAME])


def changes(change: Change, client: Connection) -> Effects:
    """Yield the effects on ``changes``, which has a row for each revision of existing pages that is not hidden."""
    seen = page_change(change)
    if seen is not None:
        yield from _changes(change, seen, client)
    yield from _hiding(change, client)


def _changes(change: Change, seen: PageChange, client: Connection) -> Effects:
    """Yield the entry of a new revision; if a page comes or goes with its history, yield all its entries."""
    key, before, put = change.row, head_of(seen.before), put_by(change)
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
    """Yield the entries after an import merged revisions into the history; entries of the old chain are deleted."""
    key, put = change.row, put_by(change)
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
    """Yield the entries of a page's revisions under its present ``name``; they may have been saved under others."""
    for head, found in history.chain(client, key, newest, newest.number, bodies=False):
        row, entry = entry_of_revision(key, name, head, found)
        yield Delete(schema.CHANGES, row, ENTRY_COLUMNS) if head.number in hidden else Put(schema.CHANGES, row, entry)


def _no_entries(client: Connection, key: bytes, newest: Head) -> Effects:
    if newest.number:
        for head, found in history.chain(client, key, newest, newest.number, bodies=False):
            yield Delete(schema.CHANGES, schema.change_row(key, time_of(found), head.number), ENTRY_COLUMNS)


def _hiding(change: Change, client: Connection) -> Effects:
    """Yield the effects of hiding revisions or showing them again."""
    put = put_by(change)
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


# One delivery of each change, with one reading of the page's row, serves all indexes; a batch costs one lookup and one
# wait for each of its barriers.
_READ: Final = (b"body", b"meta", b"user", b"note", COMMENT_FAMILY)
_DERIVED: Final = (schema.BACKLINKS, schema.CHANGES, schema.NAMES, schema.WANTED, comment_lists.LISTS)


def comments_of_batch(changes: Sequence[Change], client: Connection) -> Steps:
    """Yield the rows of comments in their lists (``comments.comment_lists``), and their words."""
    yield from comment_lists.lists_of_batch(changes)
    yield from indexing.index_comments(changes, client)


def pictures_of_batch(changes: Sequence[Change], client: Connection) -> Steps:
    """Yield the smaller versions of pictures (``files.thumbnail_trigger``)."""
    for change in changes:
        yield from ((change, effect) for effect in thumbnail_trigger.pictures(change, client))


def watchers_of_batch(changes: Sequence[Change], client: Connection) -> Steps:
    """Yield the watchers of watches (``notices.fan_out``)."""
    return fan_out.watchers_of_batch(changes)


def notices_of_change(change: Change, client: Connection) -> Effects:
    """Yield the notices of a change of a page, of a move or a job's moves, or of a decision on a text."""
    of_table = {MOVES: move_notices.notices, SUGGESTIONS: fan_out.notice_of_decision}
    return of_table.get(change.table, fan_out.notices)(change, client)


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
PICTURES: Final = Registration(
    "wiki-pictures",
    pictures_of_batch,
    thumbnail_trigger.FAMILIES,
    before=True,
    batch=PICTURES_BATCH,
    writes=(THUMBS,),
    table=BLOBS,
)
COMMENTS_OF_PAGES: Final = Registration(
    "wiki-comments",
    comments_of_batch,
    comment_lists.FAMILIES,
    before=True,
    batch=BATCH,
    writes=(comment_lists.LISTS, schema.DOCS, schema.TERMS),
    table=COMMENTS,
)
WATCHERS_OF_PAGES: Final = Registration(
    "wiki-watchers",
    watchers_of_batch,
    (WATCH_FAMILY,),
    before=False,
    batch=BATCH,
    writes=(WATCHERS,),
    table=WATCHES,
)
# One change at a time: its watchers may be many, and only a function without a batch keeps a checkpoint.
NOTICES: Final = Registration(
    "wiki-notices",
    notices_of_change,
    (b"meta", COMMENT_FAMILY),
    before=True,
    batch=0,
    writes=(INBOX, OUTGOING, USERS),
    columns=fan_out.FOLLOWED,
    from_where="now",
)
NOTICES_OF_MOVES: Final = replace(
    NOTICES, before=False, name="wiki-moves", families=(b"m",), table=MOVES, columns=(STATE, NOTIFIED)
)
NOTICES_OF_DECISIONS: Final = replace(
    NOTICES,
    before=False,
    name="wiki-decisions",
    allow_expiry=True,
    families=(b"at",),
    table=SUGGESTIONS,
    columns=(REVIEW,),
)
_OF_PEOPLE: Final = (NOTICES, NOTICES_OF_MOVES, NOTICES_OF_DECISIONS)
OF_OTHER_TABLES: Final = (PICTURES, COMMENTS_OF_PAGES, WATCHERS_OF_PAGES, *_OF_PEOPLE)

# The triggers of older wikis, until ``Wiki.prepare`` removes them; they run the functions of these names above.
OLDER: Final = ("wiki-backlinks", "wiki-wanted", "wiki-names", "wiki-changes")

# The store's worker imports only this module of the wiki; so the prefixes of other wikis are loaded here.
load_from_environment()
