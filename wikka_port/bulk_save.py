"""Save many pages at once: several threads save groups of pages, so that the groups share the store's group commits.

``BulkSaver.put`` queues a group.  It waits only if ``IN_FLIGHT`` groups are in flight, if one of these groups
has a page of the new group (a dump may have a page twice), or if the triggers lag, so that the change log does not
grow without need.

A revision that is stored already is left alone (``import_plan``): saving the same again changes nothing.  With
``merges``, revisions that belong between stored revisions are inserted there (``history_merge``), and so is every
hidden revision, since a save of its own would show it as the newest.  Without ``merges``, a page with stored revisions
that differ from the dump's stays as it is.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from columnar.client import Connection
from wikka_port import history, schema
from wikka_port.history_merge import HistoryMerge, Merged, Staged, places, remove_left
from wikka_port.import_plan import MOVED_MS, ImportedRevision, Origin, PagePart, comes_before, plan
from wikka_port.limits import MERGED_LEFT
from wikka_port.moving.refusals import Busy
from wikka_port.names import page_key
from wikka_port.next_revision import draft_after
from wikka_port.page_rows import Cells, RevisionDraft, head_of, is_stale, page_cells, revision_cells, stamp_of, time_of
from wikka_port.pages import Conflict, PageTooBig, Wiki, fresh_cells
from wikka_port.schema import Head

WORKERS: Final = 12
IN_FLIGHT: Final = 24  # groups
CALL_CHARS: Final = 1_000_000  # of one call that stages or commits
LAG_HIGH: Final = 4_000  # changes; if the triggers lag more, the writer waits
LAG_LOW: Final = 1_000  # the writer waits until the lag is below this
LAG_CHECK_S: Final = 1.0
LAG_PAUSE_S: Final = 0.1
_MERGES: Final = 6  # attempts to merge a page that people save meanwhile
_SETTLE_S: Final = 20.0  # the longest wait for the triggers


@dataclass(slots=True)
class Stored:
    """The outcome of saving; owned by the thread that calls ``BulkSaver.put``."""

    revisions: int = 0
    already: int = 0  # revisions that were stored before
    kept: set[str] = field(default_factory=set)  # pages whose newest text was written here, and stays the newest
    covered: set[str] = field(default_factory=set)  # pages with a text written here, below a newer imported one now
    deleted: set[str] = field(default_factory=set)  # pages deleted in this wiki, which an import does not bring back
    busy: set[str] = field(default_factory=set)  # pages that were being moved or saved again and again
    too_big: list[str] = field(default_factory=list)  # revisions

    def add(self, other: Stored) -> None:
        self.revisions += other.revisions
        self.already += other.already
        self.kept |= other.kept
        self.covered |= other.covered
        self.deleted |= other.deleted
        self.busy |= other.busy
        self.too_big += other.too_big


_Step = tuple[RevisionDraft, Cells]  # a revision, and the page's row before it


class BulkSaver:
    """A context manager: leaving it waits for the groups being saved and drops the queued groups."""

    def __init__(
        self,
        wiki: Wiki,
        done: Callable[[int], None],
        clock: Callable[[], float] = time.monotonic,
        *,
        merges: bool = False,
    ) -> None:
        """Call ``done(mark)`` whenever all groups up to the one passed with ``mark`` are stored."""
        self.stored = Stored()
        self.waited_s = 0.0  # for triggers
        self._wiki = wiki
        self._done = done
        self._clock = clock
        self._lag_checked_s = clock()
        self._watch_lag = wiki.indexes == "triggers" and wiki.store.is_columnar
        self._pending: deque[tuple[int, Future[Stored], frozenset[str]]] = deque()  # mark, outcome, names of pages
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="bulk-save")
        self._merges = merges
        self._open: dict[str, HistoryMerge] = {}  # by page name; pages of several parts
        self._left: list[tuple[bytes, tuple[bytes, ...]]] = []  # key of a page, and its superfluous rows
        self._left_lock = threading.Lock()

    def __enter__(self) -> BulkSaver:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def put(self, group: Sequence[PagePart], mark: int) -> None:
        """Queue a group of pages.  Raises the exception with which saving an earlier group failed."""
        names = frozenset(part.name for part in group)
        if any(names & busy for _, _, busy in self._pending):
            self.drain()  # two threads that save one page would each undo the other's staged rows
        self._pending.append((mark, self._pool.submit(self._save_group, group), names))
        self._collect(most=IN_FLIGHT)
        self._wait_for_triggers()

    def drain(self) -> None:
        """Wait until all queued groups are stored."""
        self._collect(most=0)

    def clear(self) -> None:
        """Remove the rows that merges made superfluous.  Call it after ``drain``.

        The triggers read these rows until they have seen the merge; if they still lag after _SETTLE_S, all rows stay.
        """
        with self._left_lock:
            left, self._left = self._left, []
        if left and self._wiki.settle("", _SETTLE_S):
            for key, rows in left:
                remove_left(self._wiki, key, rows)
        else:
            self._left += left

    def _collect(self, *, most: int) -> None:
        mark = None
        while self._pending and (len(self._pending) > most or self._pending[0][1].done()):
            ended, future, _ = self._pending[0]
            self.stored.add(future.result())
            self._pending.popleft()
            mark = ended
        if mark is not None:
            self._done(mark)

    # --- saving ------------------------------------------------------------------------------------

    def _save_group(self, group: Sequence[PagePart]) -> Stored:
        stored = Stored()
        keys = [page_key(part.name) for part in group]
        rows = self._wiki.store.run(lambda c: dict(c.table(schema.PAGES).rows(keys, columns=[b"meta"])))
        steps = [self._steps_of(part, key, rows.get(key, {}), stored) for part, key in zip(group, keys, strict=True)]
        for together in _in_calls([step for of_part in steps for step in of_part]):
            self._wiki.stage([draft for draft, _ in together])
        self._commit(group, steps, stored)
        return stored

    def _steps_of(self, part: PagePart, key: bytes, row: Cells, stored: Stored) -> list[_Step]:
        """Return the revisions of the part that are new, in order; none if they were merged."""
        newest = head_of(row)
        if newest.token and not newest.number and not newest.mark:
            stored.deleted.add(part.name)
            return []
        if newest.mark and not self._merges:
            stored.busy.add(part.name)
            return []
        if newest.mark or part.name in self._open or any(one.hidden for one in part.revisions):
            self._merge(part, key, stored)
            return []
        known = _Known({}, {})
        if newest.number:
            row, known = self._wiki.store.run(lambda c: _stored_before(c, key, row, part))
        planned = plan(part, newest.number, known.times)
        is_other = planned.kept or not known.agrees(part) or not known.is_before(planned.new)
        if is_other or (planned.new and newest.number and planned.new[0][1].time_ms <= stamp_of(row) - MOVED_MS):
            if self._merges:
                self._merge(part, key, stored)
            else:
                stored.kept.add(part.name)
            return []
        stored.add(Stored(already=len(part.revisions) - len(planned.new)))
        if self._merges and newest.number and not planned.new and _has_newer(part, newest, row):
            stored.kept.add(part.name)
        if newest.number and planned.new and schema.BODY not in row:  # the first new text is compared with it
            row = {**row, **self._wiki.store.run(lambda c: c.table(schema.PAGES).row(key, columns=[schema.BODY]))}
        steps: list[_Step] = []
        for _, revision in planned.new:
            try:
                draft = _draft(part, revision, row)
            except PageTooBig as big:
                stored.too_big.append(f"{part.name}: {big}")
                continue
            steps.append((draft, row))
            row = {**page_cells(draft), schema.VERSIONCOUNT: draft.head.pack()}
        return steps

    # --- merging -----------------------------------------------------------------------------------

    def _merge(self, part: PagePart, key: bytes, stored: Stored) -> None:
        """Insert the part's revisions between the stored ones.  The last part of the page commits the new chain."""
        merge = self._open.pop(part.name, None)
        try:
            if merge is not None and not merge.takes(part.revisions):
                self._end(merge, part.name, stored)
                merge = None
            if merge is None:
                self._merge_anew(part, key, stored)
                return
            merge.add(part.revisions)
            if part.is_last:
                self._end(merge, part.name, stored)
            else:
                self._open[part.name] = merge
        except (Busy, Conflict):
            stored.busy.add(part.name)

    def _merge_anew(self, part: PagePart, key: bytes, stored: Stored) -> None:
        """Start a merge with this part, again if somebody saves meanwhile.  Raises Busy after _MERGES attempts."""
        for _ in range(_MERGES):
            row = self._wiki.mover.free((schema.PAGES, key))
            newest = head_of(row)
            if not newest.number:
                stored.deleted.add(part.name)
                return
            there = self._wiki.store.run(lambda c, n=newest: places(c, key, n))  # type: ignore[misc]
            merge = HistoryMerge(self._wiki, part.name, key, row, there, _drawer(part, row))
            merge.add(part.revisions)
            if not part.is_last:
                self._open[part.name] = merge
                return
            try:
                self._end(merge, part.name, stored)
            except Conflict:
                continue
            return
        raise Busy(part.name)

    def _end(self, merge: HistoryMerge, name: str, stored: Stored) -> None:
        """Finish the merge and count its outcome.  Raises Conflict."""
        try:
            merged: Merged = merge.finish()
        finally:
            self._note_left(merge)
        covered, kept = ({name} if merged.covers else set()), ({name} if merged.stays else set())
        stored.add(Stored(merged.new, merged.already, kept, covered, too_big=list(merged.too_big)))

    def _note_left(self, merge: HistoryMerge) -> None:
        if not merge.left:
            return
        with self._left_lock:
            self._left.append((merge.key, merge.left))
            is_much = sum(len(rows) for _, rows in self._left) > MERGED_LEFT
        if is_much:
            self.clear()

    def _commit(self, group: Sequence[PagePart], steps: list[list[_Step]], stored: Stored) -> None:
        """Commit the first staged revision of each part, then the second of each: a page's revisions stay in order."""
        again: list[PagePart] = []
        left = {number: deque(of_part) for number, of_part in enumerate(steps) if of_part}
        while left:
            heads = [(number, of_part.popleft()) for number, of_part in left.items()]
            numbers = iter(number for number, _ in heads)
            for together in _in_calls([step for _, step in heads]):
                for outcome, number in zip(self._wiki.commit_all(together), numbers, strict=False):
                    if not isinstance(outcome, Conflict):
                        stored.add(Stored(revisions=1))
                        continue
                    if self._merges:
                        again.append(group[number])
                    else:
                        stored.kept.add(group[number].name)  # the failed commit has removed its own staged row
                    if left[number]:
                        self._wiki.unstage([draft for draft, _ in left[number]])
                        left[number].clear()
            left = {number: of_part for number, of_part in left.items() if of_part}
        for part in again:
            self._merge(part, page_key(part.name), stored)

    # --- triggers ----------------------------------------------------------------------------------

    def _wait_for_triggers(self) -> None:
        if not self._watch_lag or self._clock() - self._lag_checked_s < LAG_CHECK_S:
            return
        begun = self._clock()
        if self._lag() > LAG_HIGH:
            while self._lag() > LAG_LOW:
                time.sleep(LAG_PAUSE_S)
        self._lag_checked_s = self._clock()
        self.waited_s += self._lag_checked_s - begun

    def _lag(self) -> int:
        """Return the largest lag of a running trigger.  The store itself bounds the lag of a paused one."""
        listed = self._wiki.store.run(lambda connection: connection.triggers.list())
        return max((one.lag_changes for one in listed if one.state == "running"), default=0)


def _in_calls(steps: Sequence[_Step]) -> Iterator[list[_Step]]:
    """Yield groups of a bounded size, each for one call.

    If a dump has a page twice, its equal revision numbers go into two calls: the second conflicts.
    """
    together: list[_Step] = []
    heads: set[tuple[str, int]] = set()
    chars = 0
    for step in steps:
        draft = step[0]
        head = (draft.name, draft.head.number)
        if together and (chars + len(draft.body) > CALL_CHARS or head in heads):
            yield together
            together, heads, chars = [], set(), 0
        together.append(step)
        heads.add(head)
        chars += len(draft.body)
    if together:
        yield together


def _draft(part: PagePart, revision: ImportedRevision, before: Cells, begin: Head | None = None) -> RevisionDraft:
    """Make the draft of an imported revision after the row ``before``.  Raises PageTooBig."""
    return draft_after(
        before,
        name=part.name,
        body=revision.body,
        author=revision.author,
        note=revision.note,
        time_ms=revision.time_ms,
        autolink=part.autolink if revision.kept is None else revision.kept.autolink,
        attribution=part.attribution if revision.attribution is None else revision.attribution,
        owner=revision.owner,
        signed=revision.signed,
        language=(part.language or None) if revision.kept is None else revision.kept.language,
        markup=revision.markup,  # even if the page has another format by now
        minor=revision.minor,
        source=revision.source,
        origin=revision.origin.pack() if revision.origin is not None else b"",
        begin=begin,
    )


def _has_newer(part: PagePart, newest: Head, row: Cells) -> bool:
    """Return whether a page that has all revisions of ``part`` has a newer text, which no import has brought."""
    if part.attribution:
        return not row.get(schema.ATTRIBUTION)
    return part.is_last and newest.number > part.last


def _drawer(part: PagePart, row: Cells) -> Callable[[ImportedRevision, Cells, Head | None], Staged]:
    """Return a function that makes revisions of ``part``, all with the page's owner from ``row``."""
    owner = row.get(schema.OWNER, b"")

    def draw(revision: ImportedRevision, before: Cells, begin: Head | None) -> Staged:
        draft = _draft(part, revision, before, begin)
        return Staged(draft.head, {**revision_cells(draft), schema.OWNER: owner})

    return draw


@dataclass(frozen=True, slots=True)
class _Known:
    """Times and origins of stored revisions by number, from the one before a part to the part's last."""

    times: dict[int, int]
    origins: dict[int, Origin | None]

    def is_before(self, new: Sequence[tuple[int, ImportedRevision]]) -> bool:
        """Return whether the first new revision comes after the stored one before it; at equal times ids decide."""
        if not new:
            return True
        stored, given = self.origins.get(new[0][0] - 1), new[0][1].origin
        return stored is None or given is None or comes_before(stored.order, given.order)

    def agrees(self, part: PagePart) -> bool:
        """Return whether no stored revision comes from a different revision than the part's of the same number."""
        for number, revision in enumerate(part.revisions, part.first):
            stored = self.origins.get(number)
            if stored is not None and revision.origin is not None and not stored.is_of(revision.origin):
                return False
        return True


def _stored_before(connection: Connection, key: bytes, row: Cells, part: PagePart) -> tuple[Cells, _Known]:
    """Return the page's cells as of its newest revision, and the stored revisions that ``plan`` compares, by number."""
    newest = head_of(row)
    if is_stale(row):
        row = {**row, **fresh_cells(connection, key, row)}
    first = max(part.first - 1, 1)
    if newest.number == first and part.first > 1 and all(time_of(row) < one.time_ms for one in part.revisions[:1]):
        return row, _Known({first: time_of(row)}, {})
    known = _Known({}, {})
    found = history.chain(
        connection,
        key,
        newest,
        part.last,
        bodies=False,
        expected=part.last - first + 1,
        further=(schema.ORIGIN,),
    )
    for head, cells in found:
        if head.number < first:
            break
        known.times[head.number] = time_of(cells)
        known.origins[head.number] = Origin.parse(cells.get(schema.ORIGIN))
    return row, known
