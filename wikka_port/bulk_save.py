"""Save many pages at once: groups of them in several threads, so that the store's group commit serves all.

``BulkSaver.put`` hands a group over and waits only where ``IN_FLIGHT`` groups are on their way, or
where the triggers lag, so that the change log does not grow without need.  Two groups in flight must
not hold parts of the same page; ``drain`` between them.

What is stored already is found and left alone (``import_plan``): saving the same again changes nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from columnar.client import Connection
from wikka_port import history, schema
from wikka_port.import_plan import ImportedRevision, PagePart, plan
from wikka_port.markup.formats import WIKKA
from wikka_port.names import page_key
from wikka_port.next_revision import draft_after
from wikka_port.page_rows import Cells, Draft, head_of, is_stale, page_cells, time_of
from wikka_port.pages import Conflict, PageTooBig, Wiki, fresh_cells

WORKERS: Final = 12
IN_FLIGHT: Final = 24  # groups
CALL_CHARS: Final = 1_000_000  # of one call that stages or commits
LAG_HIGH: Final = 4_000  # changes: above it the writer waits
LAG_LOW: Final = 1_000  # until it is below this
LAG_LOOK_S: Final = 1.0
LAG_PAUSE_S: Final = 0.1


@dataclass(slots=True)
class Stored:
    """What came of it; owned by the thread that hands over."""

    revisions: int = 0
    already: int = 0  # revisions that were there
    kept: set[str] = field(default_factory=set)  # pages that were written here, and stay as they are
    too_big: list[str] = field(default_factory=list)

    def add(self, other: Stored) -> None:
        self.revisions += other.revisions
        self.already += other.already
        self.kept |= other.kept
        self.too_big += other.too_big


_Step = tuple[Draft, Cells]  # a revision, and the page's row before it


class BulkSaver:
    """A context: leaving it waits for what runs and drops what waits."""

    def __init__(self, wiki: Wiki, done: Callable[[int], None], clock: Callable[[], float] = time.monotonic) -> None:
        """``done(mark)`` is called once all groups up to the one handed over with ``mark`` are stored."""
        self.stored = Stored()
        self.waited_s = 0.0  # for triggers
        self._wiki = wiki
        self._done = done
        self._clock = clock
        self._looked = clock()
        self._watch_lag = wiki.indexes == "triggers" and wiki.store.is_columnar
        self._pending: deque[tuple[int, Future[Stored]]] = deque()
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="bulk-save")

    def __enter__(self) -> BulkSaver:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def put(self, group: Sequence[PagePart], mark: int) -> None:
        """Raises what an earlier group ran into."""
        self._pending.append((mark, self._pool.submit(self._save_group, group)))
        self._collect(most=IN_FLIGHT)
        self._wait_for_triggers()

    def drain(self) -> None:
        """Wait until all is stored."""
        self._collect(most=0)

    def _collect(self, *, most: int) -> None:
        mark = None
        while self._pending and (len(self._pending) > most or self._pending[0][1].done()):
            ended, future = self._pending[0]
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
        """The revisions of the part that are new, in order."""
        newest = head_of(row)
        if newest.mark or (newest.token and not newest.number):
            stored.kept.add(part.name)  # it is being moved, or was deleted here: it is not brought back
            return []
        times: dict[int, int] = {}
        if newest.number:
            row, times = self._wiki.store.run(lambda c: _stored_before(c, key, row, part))
        planned = plan(part, newest.number, times)
        if planned.kept:
            stored.kept.add(part.name)
            return []
        stored.already += len(part.revisions) - len(planned.new)
        steps: list[_Step] = []
        for _, revision in planned.new:
            try:
                draft = _draft(part, revision, row)
            except PageTooBig as big:
                stored.too_big.append(f"{part.name}: {big}")
                break
            steps.append((draft, row))
            row = {**page_cells(draft), schema.VERSIONCOUNT: draft.head.pack()}
        return steps

    def _commit(self, group: Sequence[PagePart], steps: list[list[_Step]], stored: Stored) -> None:
        """The first revision of each part that has one, then the second ones: a page's revisions follow each other."""
        left = {number: deque(of_part) for number, of_part in enumerate(steps) if of_part}
        while left:
            heads = [(number, of_part.popleft()) for number, of_part in left.items()]
            numbers = iter(number for number, _ in heads)
            for together in _in_calls([step for _, step in heads]):
                for outcome, number in zip(self._wiki.commit_all(together), numbers, strict=False):
                    if not isinstance(outcome, Conflict):
                        stored.revisions += 1
                        continue
                    stored.kept.add(group[number].name)  # it has removed its own staged row
                    if left[number]:
                        self._wiki.unstage([draft for draft, _ in left[number]])
                        left[number].clear()
            left = {number: of_part for number, of_part in left.items() if of_part}

    # --- triggers ----------------------------------------------------------------------------------

    def _wait_for_triggers(self) -> None:
        if not self._watch_lag or self._clock() - self._looked < LAG_LOOK_S:
            return
        begun = self._clock()
        if self._lag() > LAG_HIGH:
            while self._lag() > LAG_LOW:
                time.sleep(LAG_PAUSE_S)
        self._looked = self._clock()
        self.waited_s += self._looked - begun

    def _lag(self) -> int:
        """Of the running ones: for a paused trigger the store itself sets the bound."""
        listed = self._wiki.store.run(lambda connection: connection.triggers.list())
        return max((one.lag_changes for one in listed if one.state == "running"), default=0)


def _in_calls(steps: Sequence[_Step]) -> Iterator[list[_Step]]:
    """Those of one call, of a bounded size.  A page that a dump has twice is in two calls, so the second conflicts."""
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


def _draft(part: PagePart, revision: ImportedRevision, before: Cells) -> Draft:
    """PageTooBig."""
    return draft_after(
        before,
        name=part.name,
        body=revision.body,
        author=revision.author,
        note=revision.note,
        time_ms=revision.time_ms,
        autolink=False,
        attribution=part.attribution,
        language=part.language or None,
        markup=WIKKA,  # what an import makes, even of a page that is in Markdown by now
    )


def _stored_before(connection: Connection, key: bytes, row: Cells, part: PagePart) -> tuple[Cells, dict[int, int]]:
    """The page's cells of its newest revision, and the times that ``plan`` asks for, by number."""
    newest = head_of(row)
    if is_stale(row):
        row = {**row, **fresh_cells(connection, key, row)}
    first = max(part.first - 1, 1)
    if newest.number == first:
        return row, {first: time_of(row)}
    times: dict[int, int] = {}
    for head, cells in history.chain(connection, key, newest, part.last, bodies=False, expected=part.last - first + 1):
        if head.number < first:
            break
        times[head.number] = time_of(cells)
    return row, times
