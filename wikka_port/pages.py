"""Load and save pages: the only module that writes them.

The protocol of a save (``base`` is the number of the revision that the edit began from):

    1. read the page's row; raise Conflict, with nothing written, if its newest revision is not ``base``
    2. stage: put the row of revision base + 1 into ``revisions``
    3. commit: if ``meta:versioncount`` still has the value that was read, it becomes "base+1:token"
       Columnar: one ``check_and_mutate`` writes all cells of the page's row; an import's pages share a call
       plain HBase: one ``checkAndPut`` of that cell only, then
    4. (plain HBase) put the other cells of the page's row, ``meta:head`` among them
    5. (``indexes="application"``) run the functions of ``triggers`` for this change

The remains of a crash, and why no reader sees them:
    after 2  the revision's row is on no chain (``history``): it is never shown, and ``wikka check --repair`` removes it
    after 3  (plain) ``meta:head`` differs from ``meta:versioncount``: readers take the revision's own row,
              which was staged before; ``wikka check --repair`` writes the page's cells again
    after 4  (application) the indexes lack this change: ``wikka check --repair`` adds it

With ``allow``, a save calls it with the rights in the row of step 1, and the commit also requires that
``acl:revision`` is unchanged: if a right is lost in between, the save fails with no new revision.  A plain HBase can
check one cell only; so there the rights are read again before step 3.

Two concurrent saves stage different rows (the token is made from the content), and one of them
commits; the other removes its staged row and raises Conflict.  A save whose answer was lost is sent
again unchanged: if the revision on the chain has its token, the first attempt had succeeded.  So all
cells carry an explicit timestamp, the revision's time: the clock of the machine that saves, but
always later than the preceding revision.  So the changes of a page rise strictly for its triggers,
and an import, which brings its own times, changes nothing when it is repeated.

Invariants:
    I1. Every number up to the newest has exactly one row on the chain, staged before its commit.
    I2. The times of a page's revisions rise strictly with their numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, Unpack

from columnar.client import ClientTls, Connection, Expect, Put, puts
from columnar.triggers.api import Change, ChangedCell
from wikka_port import edit_signatures, history, page_languages, schema
from wikka_port.accounts.rows import Rows
from wikka_port.application_indexes import (
    DerivedLists,
    make_smaller_pictures,
    notify_watchers,
    rename_in_comment_lists,
    run_indexes,
)
from wikka_port.comments.stored_comments import StoredComments
from wikka_port.config import FileConfig
from wikka_port.counters import Counters
from wikka_port.editing.kept_drafts import Drafts
from wikka_port.editing.suggestions import Suggestions
from wikka_port.files.file_rows import FILE_FAMILY, CurrentFile, FileVersion, files_in
from wikka_port.files.stored_files import StoredFiles
from wikka_port.files.thumbnails import widths_of
from wikka_port.folder_format import Folder, read_folder
from wikka_port.history import Histories, fresh_cells, newest_of
from wikka_port.limits import ROWS_PER_CALL
from wikka_port.listings import Listings, RecentChange
from wikka_port.maintenance import Maintenance
from wikka_port.moving.mover import Mover
from wikka_port.moving.refusals import Busy
from wikka_port.names import normalise, page_key
from wikka_port.next_revision import PageTooBig, draft_after
from wikka_port.notices.stored_notices import StoredNotices
from wikka_port.page_languages import LANGUAGES_ROW
from wikka_port.page_rows import (
    Cells,
    Page,
    Revision,
    RevisionDraft,
    StoredPage,
    Writing,
    is_stale,
    is_there,
    language_of,
    notify_cell,
    page_cells,
    revision_cells,
    stored_page_of,
    time_of,
)
from wikka_port.preparation import TABLES, prepare
from wikka_port.rights.rules import FAMILY, REVISION, RULES_ROW, PageRights, page_rights
from wikka_port.rights.stored import StoredRights
from wikka_port.schema import Head
from wikka_port.store import TIMEOUT_MS, NotPrepared, Store, StoreUnavailable, check_and_put, rows_in_steps

__all__ = [
    "Conflict",
    "Page",
    "PageTooBig",
    "RecentChange",
    "Revision",
    "Saved",
    "StoreUnavailable",
    "StoredPage",
    "Wiki",
    "fresh_cells",
]

Indexes = Literal["triggers", "application"]
_NO_CELLS: Final[Cells] = MappingProxyType({})
_SAVES: Final = 4  # attempts if only the rights of the page changed meanwhile

BeforeSave = Callable[[Head], object]  # takes the revision to be saved
Allow = Callable[[PageRights, bool], None]  # takes the page's rights and whether it exists; raises if not allowed


def clock_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Saved:
    number: int
    time_ms: int
    sequence: str  # for ``settle``; "": no trigger to wait for
    token: str = ""  # of the revision


class Conflict(Exception):
    """Somebody else saved the page meanwhile; this save changed nothing."""

    def __init__(self, name: str, current: Page | None) -> None:
        super().__init__(f"{name} was changed meanwhile")
        self.name = name
        self.current = current  # None: there is no such page (any more)


class Wiki(Listings, Histories):
    """A wiki's pages in a store.  Thread-safe.  Every method may raise StoreUnavailable."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        pool: int = 16,
        indexes: Indexes = "triggers",
        clock: Callable[[], int] = clock_ms,
        tls: ClientTls | None = None,
        counters: Counters | None = None,
        files: FileConfig | None = None,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        super().__init__(Store(host, port, pool=pool, timeout_ms=timeout_ms, tls=tls, counters=counters))
        self.indexes: Indexes = indexes
        self.rows = Rows(self.store)  # of accounts
        self.drafts = Drafts(self.rows)
        self._clock = clock
        self._listed_languages: set[str] = set()
        self.mover = Mover(self.store, self.rows, lambda: self.indexes, clock)
        self.rights = StoredRights(self.rows, finish=self.mover.finish, now_ms=clock)
        lists = DerivedLists(self.store, lambda: self.indexes == "application")
        self.suggestions = Suggestions(self.rows, lists.notify_author)
        self.files = StoredFiles(
            self.rows,
            self.mover,
            files or FileConfig(),
            clock,
            on_committed=self.make_pictures_of,
            on_file_put=lists.index_file,
        )
        self.comments = StoredComments(self.rows, self.mover, clock, lists=lists)
        self.files.sweep.sweep_also(self.comments.sweep)
        self.maintenance = Maintenance(self.store, lambda: self.indexes == "triggers")
        self.notices = StoredNotices(self.rows, self.mover, clock, lists.derive_watchers)

    def make_pictures_of(self, version: FileVersion) -> None:
        """Make those of a file that was committed, if no trigger does."""
        if self.indexes == "application" and widths_of(version):
            self.store.run(lambda c: make_smaller_pictures(c, version.sha256, self._clock()))

    def prepare(self) -> list[str]:
        """Create the missing tables and register the triggers; a second call changes nothing.  Raises NewerFolder.

        Returns the names of an older wiki's triggers that still have changes to deliver; a later call removes them.
        """
        return self.store.run(lambda connection: prepare(connection, with_triggers=self.indexes == "triggers"))

    def folder(self) -> Folder:
        """Return the format and the tables of the folder.  Raises NewerFolder."""
        return self.store.run(lambda connection: read_folder(connection, TABLES))

    # --- reading -----------------------------------------------------------------------------------

    def page(self, name: str) -> Page | None:
        return self.stored_page(name).page

    def stored_page(self, name: str) -> StoredPage:
        """Read a page with its row.  The same call reads the site's rules if the rules in memory are too old."""
        key = page_key(name)
        begun = self.rights.memory.asking()
        if begun is None:
            return self.store.run(lambda c: _page_of(c, key, c.table(schema.PAGES).row(key)))
        return self.store.run(lambda c: self._page_and_rules(c, key, begun))

    def _page_and_rules(self, connection: Connection, key: bytes, begun: float) -> StoredPage:
        found: dict[bytes, Cells] = dict(connection.table(schema.PAGES).rows([key, RULES_ROW]))
        self.rights.memory.take(found.get(RULES_ROW, {}), begun)
        return _page_of(connection, key, found.get(key, {}))

    def existing(self, names: Collection[str]) -> frozenset[str]:
        """Return those of the ``names`` that are pages, as given.  Costs a call for each ROWS_PER_CALL names."""
        keys: dict[bytes, list[str]] = {}
        for name in names:
            keys.setdefault(page_key(name), []).append(name)
        if not keys:
            return frozenset()
        found = self.store.run(lambda c: list(rows_in_steps(c.table(schema.PAGES), keys, schema.VERSIONCOUNT)))
        return frozenset(name for key, cells in found if is_there(cells) for name in keys[key])

    def files_of(self, names: Collection[str]) -> dict[str, tuple[PageRights, Mapping[str, CurrentFile]]]:
        """Return rights and files of those of the ``names`` that are pages, with a call for ROWS_PER_CALL names.

        Pages of a folder that is not prepared for files have none.
        """
        keys = {page_key(name): name for name in names}
        columns = (FAMILY, schema.OWNER, schema.VERSIONCOUNT, FILE_FAMILY)
        try:
            found = self.store.run(lambda c: list(rows_in_steps(c.table(schema.PAGES), keys, *columns)))
        except NotPrepared:
            return {}
        return {keys[key]: (rights_in(cells), files_in(cells)) for key, cells in found if is_there(cells)}

    # --- writing -----------------------------------------------------------------------------------

    def save(
        self,
        name: str,
        body: str,
        *,
        base: int,
        base_token: str = "",
        time_ms: int | None = None,
        allow: Allow | None = None,
        stored: StoredPage | None = None,
        notify: str | None = None,
        mentions: Collection[str] = (),
        before_save: BeforeSave = lambda head: None,
        **given: Unpack[Writing],
    ) -> Saved:
        """Make ``body`` the newest revision, and return once it is on disk.

        ``before_save`` is called before step 2, at each attempt.

        ``notify`` is the account whose edit it is, "" for none: then watchers are notified, and the accounts
        ``mentions``; with None nobody is.

        ``base`` is the number of the revision that the edit began from, 0 for a new page, and ``base_token`` its token
        (``is_revision``).  ``stored`` is the page, if the caller has just read it.
        Raises Conflict, InvalidName, PageTooBig, and the exceptions of ``allow``.
        """
        name = normalise(name)
        at = self._clock() if time_ms is None else time_ms
        for _ in range(_SAVES):
            stored = self._page_to_save(name, base, base_token, allow, stored)
            draft = draft_after(stored.row, name=name, body=body, time_ms=at, stored=stored, **given)
            before_save(draft.head)
            self.stage([draft])
            try:
                further = {} if notify is None else notify_cell(draft, notify, mentions)
                return self.commit(draft, stored.row, allow=allow, further=further)
            except Conflict as conflict:
                stored = None
                if (conflict.current.number if conflict.current else 0) != base:
                    raise  # an unchanged number: the page's rights changed, or a move has marked it
        raise Conflict(name, self.page(name))

    def _page_to_save(
        self, name: str, base: int, token: str, allow: Allow | None, stored: StoredPage | None
    ) -> StoredPage:
        """Run step 1: return the page's row.  Raises Conflict, and the exceptions of ``allow``."""
        stored = stored or self.stored_page(name)
        if stored.head.mark:
            try:
                stored = stored_page_of(self.mover.free((schema.PAGES, page_key(name))))
            except Busy:
                raise Conflict(name, self.page(name)) from None
        newest = stored.head
        if allow is not None:
            allow(rights_in(stored.row) if stored.page is None else stored.page.rights, newest.number > 0)
        if newest.number != base or (token and newest.number and newest.token != token.encode()):
            raise Conflict(name, self.page(name))
        return stored

    def stage(self, drafts: Collection[RevisionDraft]) -> None:
        """Run step 2 for several revisions; on Columnar in one call."""
        self.stage_rows({_staged_row(draft): revision_cells(draft) for draft in drafts})

    def stage_rows(self, rows: Mapping[bytes, Cells]) -> None:
        """Stage finished rows of revisions, as ``stage`` does.  Languages that no page had are listed before."""
        self._list_languages({language_of(cells) for cells in rows.values()} - {""})
        stage = _put_together if self.store.is_columnar else _put_singly
        self.store.run(lambda connection: stage(connection, rows))

    def _list_languages(self, codes: Collection[str]) -> None:
        """List the languages that this process has not listed yet."""
        for code in sorted(set(codes) - self._listed_languages):
            self.rows.put(schema.PAGES, LANGUAGES_ROW, {page_languages.column(code): b""})
            self._listed_languages.add(code)

    def unstage(self, drafts: Collection[RevisionDraft]) -> None:
        """Remove the rows that ``stage`` put, of revisions that will not be committed."""

        self.remove_rows([_staged_row(draft) for draft in drafts])

    def remove_rows(self, rows: Collection[bytes]) -> None:
        """Remove rows of revisions that are on no chain."""

        def work(connection: Connection) -> None:
            with connection.table(schema.REVISIONS).batch(batch_size=ROWS_PER_CALL) as batch:
                for row in rows:
                    batch.delete(row)

        self.store.run(work)

    def commit(
        self, draft: RevisionDraft, before: Cells, *, allow: Allow | None = None, further: Cells = _NO_CELLS
    ) -> Saved:
        """Run steps 3 to 5; ``before`` is the page's row as it was read, ``further`` are cells put there as well.

        Raises Conflict.

        With ``allow`` the rights must be unchanged since ``before``; on a plain HBase it is called again instead.
        """
        key = page_key(draft.name)
        if allow is not None and not self.store.is_columnar:
            self._allow_again(key, draft, allow)
        sequence = self._commit_once(key, draft, before, further, guarded=allow is not None)
        return self._committed(key, draft, before, sequence, further)

    def _commit_once(
        self, key: bytes, draft: RevisionDraft, before: Cells, further: Cells, *, guarded: bool
    ) -> str | None:
        if not self.store.is_columnar:
            return self.store.run(lambda c: _commit_plainly(c, key, draft, before))
        rights = unchanged_rights(before) if guarded else []
        return self.store.run(lambda c: _commit_atomically(c, key, _step(draft, before, further), rights))

    def commit_all(self, steps: Sequence[tuple[RevisionDraft, Cells]]) -> list[Saved | Conflict]:
        """Commit drafts of different pages, each atomically on its own; in one call if triggers keep the indexes."""
        if not steps:
            return []
        by_key = {page_key(draft.name): (draft, before) for draft, before in steps}
        assert len(by_key) == len(steps), "a page has one newest revision"
        sequences: dict[bytes, str | None] = {}
        is_together = self.store.is_columnar and self.indexes == "triggers"
        if is_together:
            sequences = self.store.run(lambda connection: _commit_together(connection, by_key))
        outcomes: list[Saved | Conflict] = []
        for key, (draft, before) in by_key.items():
            try:
                saved = (
                    self._committed(key, draft, before, sequences[key]) if is_together else self.commit(draft, before)
                )
                outcomes.append(saved)
            except Conflict as conflict:
                outcomes.append(conflict)
        return outcomes

    def _committed(
        self, key: bytes, draft: RevisionDraft, before: Cells, sequence: str | None, further: Cells = _NO_CELLS
    ) -> Saved:
        """Run step 5 after a commit that returned ``sequence``.  Raises Conflict."""
        if sequence is None:
            sequence = self._lost_or_repeated(key, draft)
        if self.indexes == "application":
            self.store.run(lambda c: run_indexes(c, _change(key, page_cells(draft), draft, before)))
            if further:
                self.store.run(lambda c: notify_watchers(c, _change(key, further, draft, before)))
            sequence = ""
        return Saved(draft.head.number, draft.time_ms, sequence, draft.head.token.decode())

    def _allow_again(self, key: bytes, draft: RevisionDraft, allow: Allow) -> None:
        row = self.store.run(lambda c: c.table(schema.PAGES).row(key, columns=[FAMILY, schema.OWNER]))
        try:
            allow(rights_in(row), bool(draft.previous))
        except Exception:
            self.unstage([draft])
            raise

    def _lost_or_repeated(self, key: bytes, draft: RevisionDraft) -> str:
        """Handle a refused commit: raise Conflict, unless an earlier attempt at the same save had succeeded."""

        is_columnar = self.store.is_columnar

        def work(connection: Connection) -> bool:
            newest, _ = newest_of(connection, key)
            found = history.chain(connection, key, newest, draft.head.number, bodies=False, expected=1)
            head, _cells = next(found, (None, {}))
            if head == draft.head:
                if not is_columnar:  # step 4 may be missing; if it was done or is outdated, this put changes nothing
                    connection.table(schema.PAGES).put(key, page_cells(draft), timestamp=draft.time_ms)
                return True
            connection.table(schema.REVISIONS).delete(_staged_row(draft))
            return False

        if not self.store.run(work):
            raise Conflict(draft.name, self.page(draft.name))
        return ""

    def rename_edits(self, name: str, new: str) -> int:
        """Replace the signature ``name`` of an account by ``new``; return the number of edits.  O(all revisions)."""
        self.mover.finish_all()
        renamed = edit_signatures.rename_edits(self.store, name, new)
        if self.indexes == "application":
            self.store.run(lambda c: rename_in_comment_lists(c, name, new))
        return renamed

    def settle(self, sequence: str, timeout_s: float = 2.0) -> bool:
        """Wait until the triggers have delivered the change; return False if ``timeout_s`` passes before."""
        if self.indexes == "application":
            return True
        timeout_ms = int(timeout_s * 1000)
        return self.store.run(lambda c: c.triggers.wait(sequence=sequence, timeout_ms=timeout_ms))

    def is_up(self) -> bool:
        return self.store.is_up()


# --- one page ----------------------------------------------------------------------------------


def _page_of(connection: Connection, key: bytes, row: Cells) -> StoredPage:
    stored = stored_page_of(row)
    return stored_page_of(fresh_cells(connection, key, row)) if stored.page is not None and is_stale(row) else stored


def _staged_row(draft: RevisionDraft) -> bytes:
    return schema.revision_row(page_key(draft.name), draft.head)


def _put_together(connection: Connection, rows: Mapping[bytes, Cells]) -> None:
    connection.table(schema.REVISIONS).mutate_rows({row: puts(cells, time_of(cells)) for row, cells in rows.items()})


def _put_singly(connection: Connection, rows: Mapping[bytes, Cells]) -> None:
    for row, cells in rows.items():
        connection.table(schema.REVISIONS).put(row, cells, timestamp=time_of(cells))


def rights_in(row: Cells) -> PageRights:
    return page_rights(row, row.get(schema.OWNER, b""))


def unchanged_rights(before: Cells) -> list[Expect]:
    stored = before.get(REVISION)
    return [Expect.absent(REVISION) if stored is None else Expect(REVISION, stored)]


def _commit_atomically(
    connection: Connection, key: bytes, step: tuple[list[Expect], list[Put]], further: Collection[Expect]
) -> str | None:
    """Commit in one call; return the change's sequence, or None if the newest revision or a condition has changed."""
    conditions, puts = step
    result = connection.table(schema.PAGES).check_and_mutate(key, [*conditions, *further], puts)
    return result.sequence if result.applied else None


def _commit_together(
    connection: Connection, by_key: Mapping[bytes, tuple[RevisionDraft, Cells]]
) -> dict[bytes, str | None]:
    """Commit several pages, by key, each as ``_commit_atomically`` does."""
    results = connection.table(schema.PAGES).check_and_mutate_rows({key: _step(*step) for key, step in by_key.items()})
    return {key: result.sequence if result.applied else None for key, result in results.items()}


def _step(draft: RevisionDraft, before: Cells, further: Cells = _NO_CELLS) -> tuple[list[Expect], list[Put]]:
    """Return the condition on the page's row, and the cells to put if it holds."""
    expected = before.get(schema.VERSIONCOUNT)
    condition = Expect.absent(schema.VERSIONCOUNT) if expected is None else Expect(schema.VERSIONCOUNT, expected)
    cells = {**page_cells(draft), **further, schema.VERSIONCOUNT: draft.head.pack()}
    return [condition], puts(cells, draft.time_ms)


def _commit_plainly(connection: Connection, key: bytes, draft: RevisionDraft, before: Cells) -> str | None:
    """Commit on a plain HBase, in two steps; returns "" for the sequence, or None as ``_commit_atomically`` does."""
    expected = before.get(schema.VERSIONCOUNT)
    if not check_and_put(connection, schema.PAGES, key, schema.VERSIONCOUNT, expected, draft.head.pack()):
        return None
    connection.table(schema.PAGES).put(key, page_cells(draft), timestamp=draft.time_ms)
    return ""


def _change(key: bytes, put: Cells, draft: RevisionDraft, before: Cells) -> Change:
    """Return the change that the store would pass to a trigger of the cells ``put``."""
    now = {**put, schema.VERSIONCOUNT: draft.head.pack()}
    cells = tuple(ChangedCell("put", column, draft.time_ms, value) for column, value in now.items())
    # attempt=2: the index of an earlier save may be missing, so all index cells of the page are written.
    return Change(schema.PAGES, key, draft.time_ms, "", cells, now, dict(before), attempt=2)
