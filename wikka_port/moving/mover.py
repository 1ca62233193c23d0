"""Rename, delete, undelete and purge: one protocol; any process that finds an unfinished move continues it.

    1. record: the list of moves has its place (``moved_list``), then the journal has the move
                                                              state intent
    2. mark: the page's ``meta:versioncount`` names the move; no other save writes the page from now on
    3. arrive: the page's new row has all its cells, and names the move, too
    4. decide: the journal says that the page has moved       state moved
       the move is noted as the page's last one (``moved_list``)
    5. leave: the page's old row becomes a redirect, or no page
    6. (application) the indexes of both rows are written
    7. the mark is removed from the new row; drafts and networks of edits follow
    8. a move of a job is added to those that its watchers are notified of; (application) else they are notified here
                                                      state done, which the trigger of notices follows

A page's row names the key of its history, so the revisions stay where they are.  Between 3 and 5 both names show the
page; at any time at least one of them does.

Several processes may continue one move at the same time, each delayed by any time.  So only the journal decides whether
the page has moved: its state becomes ``moved`` or ``abandoned`` once, and nothing is removed from the old row before.
If one process completes the move while another tries to abort it, the page stays in exactly one row.
Before the decision a process finds the finished steps from the two rows:
    the mark on the new row     1 to 3 are done
    the mark on the old row     1 and 2 are done
    no mark                     only 1 is done; if the page was edited since, the move is aborted
After the decision, steps 5 and 7 are conditional on the mark, and 6 may be repeated.  A save that finds a mark finishes
the move first; the next start of a wiki and ``wikka check`` finish all of ``Journal.opened``.

A move never overwrites an existing page: of two moves to one name one is refused, and its page is released where it
was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, TypeVar

from columnar.client import Connection, Expect
from columnar.triggers.api import Change, ChangedCell
from wikka_port import schema
from wikka_port.accounts.rows import Cells, Rows
from wikka_port.application_indexes import erase_comments, erase_watches, notify_of_moves, run_indexes
from wikka_port.comments.comment_rows import COMMENTS_HEAD
from wikka_port.files.contents import Contents
from wikka_port.files.file_rows import FILE, FILES
from wikka_port.files.sweeping import Sweep
from wikka_port.limits import HIDDEN_MAX
from wikka_port.moving import beside, moved_list
from wikka_port.moving.journal import (
    ABANDONED,
    DELETE,
    DELETED,
    DONE,
    INTENT,
    MOVED,
    MOVES,
    PURGE,
    RENAME,
    STATE,
    UNDELETE,
    Journal,
    Move,
    MovesOfJob,
    deleted_row,
    new_id,
    rights_cells,
)
from wikka_port.moving.refusals import (
    BadRevision,
    Busy,
    NameTaken,
    NotDeleted,
    NothingThere,
    OtherPage,
    OtherRevision,
    SameName,
    Unsettled,
)
from wikka_port.moving.steps import MoveSteps, Place, arriving_head, left_cells, put_hidden, read
from wikka_port.names import normalise, page_key
from wikka_port.page_rows import head_of, hidden_in, is_there, stamp_of, text_in
from wikka_port.rights.rules import REVISION, PageRights, page_rights
from wikka_port.schema import cells_of
from wikka_port.store import Store
from wikka_port.texts import N_, _, _w

ATTEMPTS: Final = 6
SETTLE_S: Final = 10.0  # the longest wait for the triggers before the texts of a deleted page are removed
_STEP: Final = 200  # rows in one call
Allow = Callable[[PageRights], None]  # raises if the move is not allowed on a page of these rights


@dataclass(frozen=True, slots=True)
class By:
    """The author of a move, and the reason."""

    name: str
    signed: str = ""
    reason: str = ""
    job: bytes = b""  # b"": none
    quiet: bool = False  # nobody is notified


T = TypeVar("T")


def _anybody(_rights: PageRights) -> None:
    """Allow every move: a command is run by the operator of the wiki, who may do everything."""


def _check_newest(name: str, row: Cells, newest: tuple[int, str] | None) -> None:
    """Raise OtherRevision unless the newest revision in the page's ``row`` has this number and token."""
    head = head_of(row)
    if newest is not None and (head.number, head.token.decode(errors="replace")) != newest:
        raise OtherRevision(name)


def _free_for_arrival(name: str, row: Cells, over: Allow) -> int:
    """Return the highest timestamp of ``row``, to which a page shall move.

    Raises NameTaken if the row is a page, and the exceptions of ``over``.
    """
    if is_there(row):
        raise NameTaken(name)
    over(page_rights(row, b""))
    return stamp_of(row)


class Mover:
    """Moves pages.  Thread-safe.  Every method may raise StoreUnavailable, InvalidName and what ``allow`` raises."""

    def __init__(
        self,
        store: Store,
        rows: Rows,
        indexes: Callable[[], str],
        clock_ms: Callable[[], int],
        on_step_done: Callable[[str], None] = lambda step: None,
    ) -> None:
        """Call ``on_step_done`` after each step, for tests that crash there."""
        self._store = store
        self._indexes = indexes
        self._clock = clock_ms
        self._rows = rows
        self.on_step_done = on_step_done
        self.journal = Journal(rows)

    # --- what can be requested ---------------------------------------------------------------------

    def rename(
        self,
        name: str,
        new: str,
        by: By,
        *,
        redirect: bool = True,
        allow: Allow = _anybody,
        over: Allow = _anybody,
        history: bytes = b"",
        newest: tuple[int, str] | None = None,
    ) -> Move:
        """Rename a page.  Raises NothingThere, NameTaken, SameName, Busy.

        ``over`` checks the rights in the row of the new name.  With ``history``, the key of a page's history, it raises
        OtherPage if a different page has the name; with ``newest``, number and token of a revision, OtherRevision if
        the page has a newer one.
        """
        source, target = normalise(name), normalise(new)
        if source == target:
            raise SameName(source)

        def intended() -> tuple[Move, Cells]:
            row, there = self.page_row(source), self.page_row(target)
            if not is_there(row):
                raise NothingThere(source)
            if history not in (b"", head_of(row).place(page_key(source))):
                raise OtherPage(source)
            allow(page_rights(row, row.get(schema.OWNER, b"")))
            _check_newest(source, row, newest)
            after = _free_for_arrival(target, there, over)
            return self._intended(RENAME, source, target, b"", row, by, after=after, redirect=redirect), row

        return self._attempted(source, intended)

    def delete(self, name: str, by: By, *, allow: Allow = _anybody, newest: tuple[int, str] | None = None) -> Move:
        """Delete a page.  Raises NothingThere, Busy; with ``newest``, as ``rename`` has it, OtherRevision."""
        source = normalise(name)

        def intended() -> tuple[Move, Cells]:
            row = self.page_row(source)
            if not is_there(row):
                raise NothingThere(source)
            allow(page_rights(row, row.get(schema.OWNER, b"")))
            _check_newest(source, row, newest)
            return self._intended(DELETE, source, source, b"", row, by), row

        return self._attempted(source, intended)

    def undelete(
        self, name: str, row: bytes, by: By, *, new: str = "", allow: Allow = _anybody, over: Allow = _anybody
    ) -> Move:
        """Bring back the deleted page in ``row``.  Raises NotDeleted, NameTaken, Busy."""
        source = normalise(name)
        target = normalise(new) if new else source

        def intended() -> tuple[Move, Cells]:
            cells = self._in_trash(source, row, allow)
            after = _free_for_arrival(target, self.page_row(target), over)
            return self._intended(UNDELETE, source, target, row, cells, by, after=after), cells

        return self._attempted(source, intended)

    def _attempted(self, name: str, intended: Callable[[], tuple[Move, Cells]]) -> Move:
        """Begin a move; read anew if the page changes before the move is in its row.  Raises Busy after ATTEMPTS."""
        for _attempt in range(ATTEMPTS):
            move, row = intended()
            if self._begin(move, row):
                return move
        raise Busy(name)

    def purge(self, name: str, row: bytes, by: By, *, allow: Allow = _anybody) -> int:
        """Erase a deleted page for good; return the number of its newest revision.

        Raises NotDeleted, Unsettled, Busy.
        """
        source = normalise(name)
        cells = self._in_trash(source, row, allow)
        if not self._settled():
            raise Unsettled(source)  # the functions of the triggers still read the revisions to be erased
        move = self._intended(PURGE, source, source, row, cells, by)
        if not self._begin(move, cells):
            raise Busy(source)
        return head_of(cells).number

    def _in_trash(self, name: str, row: bytes, allow: Allow) -> Cells:
        if not row.startswith(page_key(name)):
            raise NotDeleted(name)
        cells = self.free((DELETED, row))
        if not is_there(cells):
            raise NotDeleted(name)
        allow(page_rights(cells, cells.get(schema.OWNER, b"")))
        return cells

    def free(self, place: tuple[bytes, bytes]) -> Cells:
        """Return the row of a table and key without a mark; finish a move that marked it.  Raises Busy."""
        for _attempt in range(ATTEMPTS):
            row = self._store.run(lambda c: read(c, place))
            if not head_of(row).mark:
                return row
            self.finish(head_of(row).mark)
        raise Busy(text_in(row, schema.NAME))

    def page_row(self, name: str) -> Cells:
        """Return the row of a page without a mark; finish a move that marked it.  Raises Busy."""
        return self.free((schema.PAGES, page_key(name)))

    def place_of(self, name: str) -> Place:
        """Return the table and the row of a page."""
        return schema.PAGES, page_key(name)

    def renamed_to(self, move_id: bytes) -> str:
        """Return the name that a page got by a rename, or "" if the move was no rename."""
        found = self.journal.read(move_id)
        return found[0].target if found is not None and found[0].kind == RENAME else ""

    def _intended(
        self,
        kind: str,
        source: str,
        target: str,
        trash: bytes,
        row: Cells,
        by: By,
        *,
        after: int = 0,
        redirect: bool = False,
    ) -> Move:
        at_ms = min(max(self._clock(), stamp_of(row) + 1, after + 1), schema.TIME_MAX_MS)
        one = new_id()
        place = trash or (deleted_row(source, at_ms, one) if kind == DELETE else b"")
        note = _w("Renamed to {name}", name=target) if redirect else ""
        given = (one, kind, source, target, place, head_of(row), at_ms, by.name, by.signed, by.reason)
        return Move(*given, redirect, note, by.job, by.quiet)

    # --- hidden revisions ----------------------------------------------------------------------------

    def hide(self, name: str, number: int, *, hidden: bool) -> None:
        """Hide a revision, or show it again; a second call changes nothing.  Raises NotMoved.

        The newest revision cannot be hidden: a newer one has to be saved first.  The hidden numbers lie in the page's
        row, so they move with the page.
        """
        for _attempt in range(ATTEMPTS):
            row = self.page_row(name)
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
            if self._put_hidden(name, row, b",".join(b"%d" % one for one in sorted(after))):
                return
        raise Busy(name)

    def _put_hidden(self, name: str, row: Cells, value: bytes) -> bool:
        """Write ``meta:hidden`` if neither it nor the newest revision has changed; return False otherwise.

        On a plain HBase only the newest revision is compared.
        """
        plain = not self._store.is_columnar
        key = page_key(name)
        if not self._store.run(lambda c: put_hidden(c, key, row, value, plain=plain)):
            return False
        if self._indexes() == "application":
            self._store.run(
                lambda c: run_indexes(
                    c, _change(key, c.table(schema.PAGES).row(key), row, stamp_of(row) + 1, {schema.HIDDEN: value})
                )
            )
        return True

    # --- the protocol ------------------------------------------------------------------------------

    def _begin(self, move: Move, row: Cells) -> bool:
        """Run steps 1 to 7; return False, with nothing moved, if the page changed or its new name was taken."""
        stored = row.get(REVISION)
        rights = [Expect.absent(REVISION) if stored is None else Expect(REVISION, stored)]
        then = rights_cells(page_rights(row, row.get(schema.OWNER, b"")))
        self.journal.open(move.id, {STATE: INTENT, **cells_of(move), **then}, moved_list.listed_rows(move))
        self.on_step_done("intent")
        return self._continue_move(move, INTENT, rights)

    def finish(self, move_id: bytes) -> bool:
        """Continue a move; return False if it was aborted, and the page is where it was."""
        found = self.journal.read(move_id)
        if found is None:
            self.journal.close(move_id)
            return False
        return self._continue_move(*found, [])

    def finish_all(self) -> int:
        """Finish all moves that have not ended; return their number (0 for an older folder without the table)."""
        if not self._store.run(lambda c: MOVES in c.tables()):
            return 0
        moves = [one for one, kind in self.journal.opened().items() if kind in (RENAME, DELETE, UNDELETE, PURGE)]
        for one in moves:
            self.finish(one)
        return len(moves)

    def _continue_move(self, move: Move, state: bytes, rights: Collection[Expect]) -> bool:
        if state == INTENT:
            state = self._decided(move, MOVED if self._carried(move, rights) else ABANDONED)
        if state == MOVED:
            moved_list.note_last(self._rows, move)
            self.on_step_done("noted")
            if move.kind == PURGE:
                self._remove_for_good(move)
            else:
                self._leave(move)
                _notify(self._store, self._rows, move, is_application=self._indexes() == "application")
                self.on_step_done("notified")
            self.journal.pass_on(move.id, MOVED, DONE)
            self.on_step_done("done")
        elif state == ABANDONED:
            self._run(move, MoveSteps.withdraw)
        else:  # a delayed process may have marked a row again
            self._run(move, MoveSteps.let_go)
            self._run(move, MoveSteps.settle_down)
        self.journal.close(move.id)
        return state != ABANDONED

    def _run(self, move: Move, step: Callable[[MoveSteps], T]) -> T:
        return self._store.run(lambda c: step(MoveSteps(c, move, plain=not self._store.is_columnar)))

    def _read(self, place: Place) -> Cells:
        return self._store.run(lambda c: read(c, place))

    def _decided(self, move: Move, state: bytes) -> bytes:
        """Run step 4: return the state that the first process decided."""
        if not self.journal.pass_on(move.id, INTENT, state):
            found = self.journal.read(move.id)
            assert found is not None, "a move stays in the journal"
            state = found[1]
        self.on_step_done("given up" if state == ABANDONED else "moved")
        return state

    def _carried(self, move: Move, rights: Collection[Expect]) -> bool:
        """Run steps 2 and 3; return False if they cannot be done, or the move is past them: the journal decides."""
        source = self._read(move.source_place)
        if head_of(source) != move.marked:
            if move.kind != PURGE and head_of(self._read(move.target_place)) == arriving_head(move):
                return True
            if head_of(source) != move.head or stamp_of(source) > move.at_ms:  # the page came back after this move
                return False
            if not self._run(move, lambda steps: steps.mark(source, rights)):
                return False
            self.on_step_done("mark")
            source = self._read(move.source_place)
        if move.kind == PURGE:
            return True
        if head_of(source) != move.marked or not self._run(move, lambda steps: steps.arrive(source)):
            return False
        self.on_step_done("arrive")
        return True

    def _leave(self, move: Move) -> None:
        """Run steps 5 to 7."""
        self._run(move, MoveSteps.leave)
        self.on_step_done("leave")
        if self._indexes() == "application":
            self._store.run(lambda c: _index(c, move))
            self.on_step_done("index")
        self._run(move, MoveSteps.settle_down)
        self.on_step_done("settle")
        if move.kind != DELETE and move.source != move.target:
            self._store.run(lambda c: beside.follow(c, move))

    def _settled(self) -> bool:
        if self._indexes() == "application":
            return True
        return self._store.run(lambda c: c.triggers.wait(sequence="", timeout_ms=int(SETTLE_S * 1000)))

    def _remove_for_good(self, move: Move) -> None:
        """Remove drafts, suggestions, networks of a deleted page, its revisions, files, comments, watches, and row."""
        self._store.run(lambda c: beside.remove(c, move))
        self.on_step_done("beside")
        begin = move.head.place(page_key(move.source))
        self._store.run(lambda c: _remove_rows(c, schema.REVISIONS, begin))
        self.on_step_done("texts")
        if self._store.run(lambda c: FILES in c.tables()):  # not in an older folder before it is prepared
            Sweep(self._rows, Contents(self._rows, self._clock), self._clock, self.on_step_done).erase_versions(begin)
        self.on_step_done("files")
        self._store.run(lambda c: erase_comments(c, begin, plain=self._indexes() == "application"))
        self.on_step_done("comments")
        self._store.run(lambda c: erase_watches(c, begin, plain=self._indexes() == "application"))
        self.on_step_done("watches")
        self._run(move, MoveSteps.leave)


def _notify(store: Store, rows: Rows, move: Move, *, is_application: bool) -> None:
    """Run step 8: have those who watch the page notified, of a job's move when the job ends or stops."""
    if move.quiet:
        return
    if move.job:
        MovesOfJob(rows).add(move)
    elif is_application:
        store.run(lambda c: notify_of_moves(c, move.id, {STATE: DONE, **cells_of(move)}, STATE))


def _index(connection: Connection, move: Move) -> None:
    """Write the indexes of both rows, as triggers would for the two changes."""
    cells = read(connection, move.target_place)
    if head_of(cells) != arriving_head(move):
        return  # another process has finished the move, which writes the indexes before
    if move.target_place[0] == schema.PAGES:
        run_indexes(connection, _change(move.target_place[1], cells, {}, move.at_ms))
    if move.source_place[0] == schema.PAGES:
        key = move.source_place[1]
        before = {schema.NAME: move.source.encode(), schema.VERSIONCOUNT: move.head.pack()}
        before |= {COMMENTS_HEAD: cells[COMMENTS_HEAD]} if COMMENTS_HEAD in cells else {}
        now = read(connection, move.source_place)
        put = left_cells(move, cells)
        files = tuple(ChangedCell("delete", column, move.at_ms) for column in cells if column.startswith(FILE))
        run_indexes(connection, _change(key, now, before, move.at_ms, put, files))


def _change(
    key: bytes,
    now: Cells,
    before: Cells,
    at_ms: int,
    put: Cells | None = None,
    further: tuple[ChangedCell, ...] = (),
) -> Change:
    steps = tuple(ChangedCell("put", column, at_ms, value) for column, value in (now if put is None else put).items())
    return Change(schema.PAGES, key, at_ms, "", (*steps, *further), dict(now), dict(before), attempt=2)


def _remove_rows(connection: Connection, name: bytes, begin: bytes) -> None:
    table = connection.table(name)
    while rows := [row for row, _ in table.scan(row_prefix=begin, limit=_STEP, batch_size=_STEP)]:
        with table.batch() as batch:
            for row in rows:
                batch.delete(row)
