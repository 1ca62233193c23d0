"""Bring a MediaWiki dump into the wiki: constant memory, several pages in flight, stopped and begun again.

The reading thread parses and converts; ``WORKERS`` threads save, so that the store's group commit
serves several at once.  At most ``IN_FLIGHT`` groups of pages wait.  The parts of one page are saved
one after another.

A row of ``imports`` says up to which page of the dump everything is stored; it is written behind
the pages and deleted at the end.  An import that was stopped goes on there, and what it had stored
beyond that it finds and leaves alone (``import_plan``), so nothing is stored twice.

When the triggers lag, the import waits for them, so that the change log does not grow without need.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from columnar.client import Connection
from wikka_port import history, schema
from wikka_port.dump import read_dump
from wikka_port.import_pages import Counts, PartReader
from wikka_port.import_plan import PagePart, plan
from wikka_port.names import page_key
from wikka_port.page_rows import Cells, Draft, head_of, is_stale, page_cells, time_of
from wikka_port.pages import Conflict, PageTooBig, Wiki, draft_after, fresh_cells

WORKERS: Final = 6
IN_FLIGHT: Final = 12  # groups
GROUP_PAGES: Final = 16
GROUP_CHARS: Final = 1_000_000
LAG_HIGH: Final = 4_000  # changes: above it the import waits
LAG_LOW: Final = 1_000  # until it is below this
LAG_LOOK_S: Final = 1.0
LAG_PAUSE_S: Final = 0.1
_DONE: Final = b"meta:pages"


@dataclass(slots=True)
class Stored:
    """What the import did to the store; owned by the reading thread."""

    revisions: int = 0
    already: int = 0  # revisions that were there
    kept: list[str] = field(default_factory=list)  # pages that were written here
    too_big: list[str] = field(default_factory=list)

    def add(self, other: Stored) -> None:
        self.revisions += other.revisions
        self.already += other.already
        self.kept += other.kept
        self.too_big += other.too_big


@dataclass(frozen=True, slots=True)
class ImportSummary:
    counts: Counts
    stored: Stored
    begun_behind: int  # pages that an earlier, stopped import had done
    waited_s: float  # for triggers


class Importer:
    def __init__(
        self,
        wiki: Wiki,
        stream: BinaryIO,
        *,
        origin: str,
        namespaces: Sequence[str] = (),
        limit: int | None = None,
        licence: str | None = None,
        restart: bool = False,
        progress: Callable[[int, int], None] = lambda read_bytes, pages: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``origin`` names the dump, so that a stopped import is found again."""
        self._wiki = wiki
        self._progress = progress
        self._clock = clock
        self._row = schema.import_row(origin)
        self._stored = Stored()
        self._waited_s = 0.0
        self._looked = clock()
        self._watch_lag = wiki.indexes == "triggers" and wiki.store.is_columnar
        self.begun_behind = 0 if restart else self._done_before()
        self._reader = read_dump(stream, skip_pages=self.begun_behind)
        self._parts = PartReader(self._reader, namespaces=namespaces, limit=limit, licence=licence)

    def run(self) -> ImportSummary:
        """Raises DumpError, StoreAway; what was stored until then stays, and the next import goes on."""
        pending: deque[tuple[int, Future[Stored]]] = deque()
        with ThreadPoolExecutor(WORKERS, thread_name_prefix="import") as pool:
            try:
                for group in self._groups():
                    pending.append((group[-1].ordinal + 1, pool.submit(self._save_group, group)))
                    lone = not group[-1].is_last or group[0].first > 1
                    self._collect(pending, most=0 if lone else IN_FLIGHT)
                    self._wait_for_triggers()
                self._collect(pending, most=0)
            finally:
                for _, future in pending:
                    future.cancel()
        self._forget()
        return ImportSummary(self._parts.counts, self._stored, self.begun_behind, self._waited_s)

    def _groups(self) -> Iterator[list[PagePart]]:
        """Parts to be saved together; a part of a longer page goes alone."""
        group: list[PagePart] = []
        chars = 0
        for part in self._parts:
            if part.first > 1 or not part.is_last:
                if group:
                    yield group
                    group, chars = [], 0
                yield [part]
                continue
            group.append(part)
            chars += sum(len(revision.body) for revision in part.revisions)
            if len(group) >= GROUP_PAGES or chars >= GROUP_CHARS:
                yield group
                group, chars = [], 0
        if group:
            yield group

    def _collect(self, pending: deque[tuple[int, Future[Stored]]], *, most: int) -> None:
        """Wait until at most ``most`` groups are in flight; note what is done without a gap."""
        done = None
        while pending and (len(pending) > most or pending[0][1].done()):
            ordinal, future = pending[0]
            self._stored.add(future.result())
            pending.popleft()
            done = ordinal
        if done is not None:
            self._note(done)
            self._progress(self._reader.bytes_consumed, self._parts.counts.pages)

    # --- saving ------------------------------------------------------------------------------------

    def _save_group(self, group: list[PagePart]) -> Stored:
        stored = Stored()
        keys = [page_key(part.name) for part in group]
        rows = self._wiki.store.run(lambda c: dict(c.table(schema.PAGES).rows(keys, columns=[b"meta"])))
        for part, key in zip(group, keys, strict=True):
            self._save_part(part, key, rows.get(key, {}), stored)
        return stored

    def _save_part(self, part: PagePart, key: bytes, row: Cells, stored: Stored) -> None:
        newest = head_of(row)
        if is_stale(row):
            row = {**row, **self._wiki.store.run(lambda c: fresh_cells(c, key, row))}
        times: dict[int, int] = {}
        if newest.number:
            times = self._wiki.store.run(lambda c: _stored_times(c, key, row, part))
        planned = plan(part, newest.number, times)
        if planned.kept:
            if part.name not in stored.kept:
                stored.kept.append(part.name)
            return
        stored.already += len(part.revisions) - len(planned.new)
        cells = row
        for _, revision in planned.new:
            try:
                draft = draft_after(
                    cells,
                    name=part.name,
                    body=revision.body,
                    author=revision.author,
                    note=revision.note,
                    time_ms=revision.time_ms,
                    autolink=False,
                    attribution=part.attribution,
                )
                cells = self._save_one(draft, cells)
            except PageTooBig as big:
                stored.too_big.append(f"{part.name}: {big}")
                return
            except Conflict:
                stored.kept.append(part.name)
                return
            stored.revisions += 1

    def _save_one(self, draft: Draft, before: Cells) -> Cells:
        self._wiki.stage([draft])
        self._wiki.commit(draft, before)
        return {**page_cells(draft), schema.VERSIONCOUNT: draft.head.pack()}

    # --- where to go on ----------------------------------------------------------------------------

    def _done_before(self) -> int:
        found = self._wiki.store.run(lambda c: c.table(schema.IMPORTS).row(self._row))
        value = found.get(_DONE, b"0")
        return int(value) if value.isdigit() else 0

    def _note(self, pages: int) -> None:
        self._wiki.store.run(lambda c: c.table(schema.IMPORTS).put(self._row, {_DONE: b"%d" % pages}))

    def _forget(self) -> None:
        self._wiki.store.run(lambda c: c.table(schema.IMPORTS).delete(self._row))

    # --- triggers ----------------------------------------------------------------------------------

    def _wait_for_triggers(self) -> None:
        if not self._watch_lag or self._clock() - self._looked < LAG_LOOK_S:
            return
        begun = self._clock()
        if self._lag() > LAG_HIGH:
            while self._lag() > LAG_LOW:
                time.sleep(LAG_PAUSE_S)
        self._looked = self._clock()
        self._waited_s += self._looked - begun

    def _lag(self) -> int:
        """Of the running ones: for a paused trigger the store itself sets the bound."""
        listed = self._wiki.store.run(lambda connection: connection.triggers.list())
        return max((one.lag_changes for one in listed if one.state == "running"), default=0)


def _stored_times(connection: Connection, key: bytes, row: Cells, part: PagePart) -> dict[int, int]:
    """Times by number of what is stored, from one before the part's first up to its last."""
    newest = head_of(row)
    wanted = range(max(part.first - 1, 1), part.last + 1)
    if newest.number in wanted and newest.number == wanted.start:
        return {newest.number: time_of(row)}
    times: dict[int, int] = {}
    for head, cells in history.chain(connection, key, newest, part.last, bodies=False, expected=len(wanted)):
        if head.number < wanted.start:
            break
        times[head.number] = time_of(cells)
    return times
