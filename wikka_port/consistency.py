"""Recompute every index from the pages, compare it with the stored index, and repair.

A scan of ``pages`` beside ``revisions`` finds index cells that are missing or wrong; a scan of each derived table
finds cells that should not exist.  All scans are streams: memory holds a few hundred rows, and the differences.

Further checks (``pages`` and ``revisions`` are the truth, so few of their faults can be found):
    a page's cells are those of its newest revision
    every number up to the newest has its row, on the chain
    rows of revisions on no chain were staged by a save that lost to another save, or that crashed.  Rows above the
    newest number may belong to a save that runs right now, and are ignored for ``GRACE_MS``
    a crash may have left incomplete changes of accounts (``accounts.account_check``)
    each move stands in the list of moves, and the last one of each page is noted (``moving.moved_list``)

A difference counts only if a second check finds it again; all other differences came from concurrent edits.
A repair writes at the store's time from before the check.  That time is later than all that triggers had written
when the check read, and earlier than the effects of any later edit.  If the application keeps the indexes, a repair
writes at the time of the revision, as the application does.  After a repair the check runs again; cells that still
differ are written at the current time, which is later than any delete marker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Final

from columnar.client import Connection, Expect, Put
from wikka_port import schema
from wikka_port.accounts import account_check
from wikka_port.application_indexes import make_smaller_pictures
from wikka_port.comments.comment_check import CommentCheck, is_of_comments
from wikka_port.comments.comment_lists import LISTS
from wikka_port.comments.comment_rows import COMMENTS
from wikka_port.differences import Difference, Kind, cell_differences, groups_of
from wikka_port.editing.suggestions import OWN, SUGGESTIONS, own_rows
from wikka_port.files.file_check import FileCheck, is_of_files
from wikka_port.files.file_rows import FILES
from wikka_port.files.thumbnails import THUMBS
from wikka_port.link_check import LinkCheck
from wikka_port.moving import moved_list
from wikka_port.moving.journal import DELETED, MOVES
from wikka_port.names import page_key
from wikka_port.notices import notice_check
from wikka_port.notices.notice_rows import INBOX, WATCHERS, WATCHES
from wikka_port.page_languages import LANGUAGES_ROW, column
from wikka_port.page_rows import (
    Cells,
    entry_of_revision,
    head_of,
    hidden_in,
    is_stale,
    is_there,
    language_of,
    number_in,
    page_cells_of_revision,
    revision_cells_of_page,
    time_of,
    without_rights,
)
from wikka_port.pages import Wiki, clock_ms
from wikka_port.schema import NO_HEAD, Head, parse_head
from wikka_port.search.recount import Recount, repair_postings

GRACE_MS: Final = 10 * 60 * 1000  # a save takes seconds; one that staged its rows longer ago has crashed
_GROUP: Final = 50  # pages, with their bodies
_REVIEWS_TOGETHER: Final = 200
Row = tuple[bytes, Cells]


@dataclass(frozen=True, slots=True)
class CheckReport:
    pages: int
    revisions: int
    links: int
    differences: tuple[Difference, ...]  # found by the check
    left: tuple[Difference, ...]  # still there after the repair; without a repair, all that were found
    spare: tuple[Difference, ...] = ()  # cells that no reader needs, and that a repair removes; no differences

    def counts(self) -> Counter[tuple[str, str]]:
        """Count the differences by table and kind."""
        return Counter((found.table.decode(), found.kind.value) for found in self.differences)


def check(
    wiki: Wiki,
    *,
    repair: bool = False,
    settle: Callable[[], object] = lambda: None,
    progress: Callable[[str, int], None] = lambda step, done: None,
    clock: Callable[[], int] = clock_ms,
    with_contents: bool = False,
) -> CheckReport:
    """Check all tables, and repair them if ``repair``.  Raises StoreUnavailable.  O(all that is stored).

    ``settle`` must wait for the triggers; it is called before each check of a difference.  The bytes of files are read
    only ``with_contents``.
    """

    def run() -> CheckReport:
        return _CheckPass(wiki, progress, clock(), with_contents=with_contents).run()

    wiki.mover.finish_all()
    settle()
    first = run()
    if first.differences:
        settle()
        again = run()
        before = frozenset(first.differences)
        lasting = tuple(one for one in again.differences if one in before)
        first = replace(again, differences=lasting, left=lasting)
    if not repair or not (first.differences or first.spare):
        return first
    settle()  # an account that ends is renamed in what the triggers write, too
    account_check.finish_leavings(wiki)
    _repair(wiki, [*first.differences, *first.spare], clock())
    second = run()
    if second.differences:
        now = _store_time(wiki) or clock()
        _repair(wiki, [replace(one, at_ms=max(now, one.at_ms)) for one in second.differences], clock())
        second = run()
    return replace(first, left=second.differences)


class _CheckPass:
    def __init__(
        self, wiki: Wiki, progress: Callable[[str, int], None], now_ms: int, *, with_contents: bool = False
    ) -> None:
        self._wiki = wiki
        self._with_contents = with_contents
        self._progress = progress
        self._now = now_ms
        self._stamp: int | None = None
        self._pages = self._revisions = 0

    def run(self) -> CheckReport:
        self._stamp = _store_time(self._wiki)
        found, links = self._wiki.store.run(self._all)
        self._progress("files", 0)
        found += _of_files(self._wiki, self._now, with_contents=self._with_contents)
        self._progress("comments", 0)
        found += _of_comments(self._wiki, self._now, self._at)
        self._progress("watches", 0)
        found += _of_notices(self._wiki, self._now, self._at)
        self._progress("moves", 0)
        found += _of_moves(self._wiki, self._now)
        differences = tuple(one for one in found if one.kind is not Kind.SPARE)
        spare = tuple(one for one in found if one.kind is Kind.SPARE)
        return CheckReport(self._pages, self._revisions, links, differences, differences, spare)

    def _all(self, connection: Connection) -> tuple[list[Difference], int]:
        self._pages = self._revisions = 0
        check, words = LinkCheck(connection, self._at), Recount(connection, self._at)
        found: list[Difference] = []
        spoken = set[str]()
        for group in self._page_groups(connection, found):
            found += check.of_pages(group)
            found += words.of_pages(group)
            found += self._names_of_pages(connection, group)
            spoken |= {language_of(cells) for cells in group.values()} - {""}
            self._progress("pages", self._pages)
        found += _languages(connection, spoken, self._at(self._now))
        for step, differences in (
            ("links", check.of_tables()),
            ("names", _names_without_page(connection)),
            ("changes", _changes_without_revision(connection)),
            ("accounts", account_check.differences(connection, self._now)),
            ("reviews", _unlisted_reviews(connection)),
            ("comments and files", words.beside_pages(self._now)),
            ("words", words.of_tables()),
        ):
            self._progress(step, 0)
            found += differences
        return found, check.links

    def _at(self, source_ms: int) -> int:
        """Return the timestamp at which a repair writes cells that follow from a source of the time ``source_ms``."""
        return source_ms if self._stamp is None else self._stamp

    # --- pages and revisions side by side ----------------------------------------------------------

    def _page_groups(self, connection: Connection, found: list[Difference]) -> Iterator[dict[bytes, Cells]]:
        """Yield groups of pages with the cells they should have; faults of pages and revisions go to ``found``."""
        pages = iter(connection.table(schema.PAGES).scan(batch_size=_GROUP))
        rows = connection.table(schema.REVISIONS).scan(columns=[b"meta"], batch_size=500)
        revisions = groupby(rows, lambda row: row[0][: schema.KEY_BYTES])
        group: dict[bytes, Cells] = {}
        claimed: set[bytes] = set()  # keys of histories that lie under the key of a different page
        unclaimed: set[bytes] = set()
        entries: dict[bytes, tuple[Cells, int]] = {}
        for key, page, its in _side_by_side(pages, revisions):
            newest = head_of(page)
            if newest.history:
                claimed.add(newest.history)
            if newest.history or not newest.number:
                if its:
                    unclaimed.add(key)  # the history of a different page, of a deleted one, or of none
                its = _rows_of(connection, newest.history) if newest.history else ()
            chain, bad = _chain(key, newest, _listed(its), page, self._now)
            found += bad
            self._revisions += len(chain)
            hidden = hidden_in(page)
            for head, cells in chain:
                if head.number in hidden:
                    continue
                row, entry = entry_of_revision(key, page.get(schema.NAME, b""), head, cells)
                entries[row] = (entry, self._at(max(time_of(cells), number_in(page, schema.STAMP))))
                if len(entries) >= 500:
                    found += _entries(connection, entries)
                    entries = {}
            if not newest.number:
                continue
            self._pages += 1
            group[key] = self._as_newest(connection, key, newest, page, found)
            if len(group) >= _GROUP:
                yield group
                group = {}
        found += _entries(connection, entries)
        found += self._of_no_page(connection, unclaimed - claimed)
        yield group

    def _of_no_page(self, connection: Connection, histories: set[bytes]) -> Iterator[Difference]:
        """Yield the revisions whose history belongs to no page and to no deleted page."""
        kept: set[bytes] = set()
        if histories and DELETED in connection.tables():  # not in an older wiki's folder, before it is prepared
            deleted = connection.table(DELETED).scan(columns=[schema.VERSIONCOUNT], batch_size=500)
            kept = {head_of(cells).history for _, cells in deleted}
        for history in sorted(histories - kept):
            yield from _chain(history, NO_HEAD, _listed(_rows_of(connection, history)), {}, self._now)[1]

    def _as_newest(
        self, connection: Connection, key: bytes, newest: Head, page: Cells, found: list[Difference]
    ) -> Cells:
        row = connection.table(schema.REVISIONS).row(
            schema.revision_row(key, newest), columns=list(schema.CONTENT_FAMILIES)
        )
        if not row:
            return page  # the check of the chain reports the missing row
        expected = {**page_cells_of_revision(newest, row), schema.VERSIONCOUNT: newest.pack()}
        if page_key(expected[schema.NAME].decode()) != key and schema.NAME in page:
            expected[schema.NAME] = page[schema.NAME]  # it was renamed since that revision
        stamped = {column: (value, 0) for column, value in without_rights(page).items()}
        at_ms = max(time_of(row), number_in(page, schema.STAMP))
        found += cell_differences(schema.PAGES, key, expected, stamped, at_ms)
        return expected

    def _names_of_pages(self, connection: Connection, pages: Mapping[bytes, Cells]) -> Iterator[Difference]:
        named = (cells for cells in pages.values() if schema.NAME in cells)
        wanted = {schema.name_row(cells[schema.NAME].decode()): cells for cells in named}
        stored = dict(connection.table(schema.NAMES).rows(list(wanted), include_timestamp=True)) if wanted else {}
        for row, cells in wanted.items():
            expected = {schema.NAME: cells[schema.NAME]}
            yield from cell_differences(schema.NAMES, row, expected, stored.get(row, {}), self._at(time_of(cells)))


def _file_check(wiki: Wiki, now_ms: int, *, with_contents: bool) -> FileCheck:
    return FileCheck(
        wiki.rows,
        wiki.files.contents,
        wiki.files.sweep,
        now_ms,
        lambda sha256: wiki.store.run(lambda c: make_smaller_pictures(c, sha256, now_ms)),
        with_contents=with_contents,
    )


def _of_files(wiki: Wiki, now_ms: int, *, with_contents: bool) -> list[Difference]:
    if not wiki.store.run(lambda c: {FILES, THUMBS} <= set(c.tables())):  # an older folder, before it is prepared
        return []
    return list(_file_check(wiki, now_ms, with_contents=with_contents).differences())


def _of_comments(wiki: Wiki, now_ms: int, at: Callable[[int], int]) -> list[Difference]:
    if not wiki.store.run(lambda c: {COMMENTS, LISTS} <= set(c.tables())):  # an older folder, before it is prepared
        return []
    return list(CommentCheck(wiki.rows, wiki.comments, now_ms, at).differences())


def _of_notices(wiki: Wiki, now_ms: int, at: Callable[[int], int]) -> list[Difference]:
    tables = {WATCHES, WATCHERS, INBOX}
    if not wiki.store.run(lambda c: tables <= set(c.tables())):  # an older folder, before it is prepared
        return []
    return list(notice_check.differences(wiki.rows, now_ms, at))


def _of_moves(wiki: Wiki, now_ms: int) -> list[Difference]:
    if not wiki.store.run(lambda c: MOVES in c.tables()):  # an older folder, before it is prepared
        return []
    return list(moved_list.differences(wiki.rows, now_ms, GRACE_MS))


def _unlisted_reviews(connection: Connection) -> Iterator[Difference]:
    """Yield the rows by which authors should find their texts under review."""
    if SUGGESTIONS not in connection.tables():  # an older folder, before it is prepared
        return
    table, wanted = connection.table(SUGGESTIONS), own_rows(connection)
    while step := dict(islice(wanted, _REVIEWS_TOGETHER)):
        stored = dict(table.rows(list(step), columns=[OWN], include_timestamp=True))
        for row, at_ms in step.items():
            yield from cell_differences(SUGGESTIONS, row, {OWN: b"yes"}, stored.get(row, {}), at_ms)


def _languages(connection: Connection, spoken: Collection[str], at_ms: int) -> Iterator[Difference]:
    """Yield the languages of pages that the list for searches lacks.  A listed language without pages is no fault."""
    stored = connection.table(schema.PAGES).row(LANGUAGES_ROW)
    expected = {column(code): b"" for code in spoken}
    listed = {one: (value, 0) for one, value in stored.items() if one in expected}
    yield from cell_differences(schema.PAGES, LANGUAGES_ROW, expected, listed, at_ms)


def _side_by_side(
    pages: Iterator[Row], revisions: Iterator[tuple[bytes, Iterator[Row]]]
) -> Iterator[tuple[bytes, Cells, Iterable[Row]]]:
    """Merge both streams by key: yield each key once, with its page (or no cells) and its revisions (or none)."""
    page, revision = next(pages, None), next(revisions, None)
    while page is not None or revision is not None:
        if revision is None or (page is not None and page[0] < revision[0]):
            assert page is not None, "one of them is there"
            yield page[0], page[1], ()
            page = next(pages, None)
        elif page is None or revision[0] < page[0]:
            yield revision[0], {}, revision[1]
            revision = next(revisions, None)
        else:
            yield page[0], page[1], revision[1]
            page, revision = next(pages, None), next(revisions, None)


def _rows_of(connection: Connection, history: bytes) -> Iterable[Row]:
    """Return the revisions under the key ``history``, without their bodies."""
    rows: Iterable[Row] = connection.table(schema.REVISIONS).scan(
        row_start=history, row_stop=schema.revisions_end(history), columns=[b"meta"], batch_size=500
    )
    return rows


def _listed(rows: Iterable[Row]) -> list[tuple[Head, bytes, Cells]]:
    return [(schema.parse_revision_row(row)[1], row, cells) for row, cells in rows]


def _chain(
    key: bytes, newest: Head, listed: list[tuple[Head, bytes, Cells]], page: Cells, now_ms: int
) -> tuple[list[tuple[Head, Cells]], list[Difference]]:
    """Return the revisions on the page's chain, newest first, and the faults of their rows."""
    chain: list[tuple[Head, Cells]] = []
    bad: list[Difference] = []
    by_number = {number: list(rows) for number, rows in groupby(listed, lambda one: one[0].number)}
    token: bytes | None = newest.token
    for number in range(newest.number, 0, -1):
        rows = by_number.pop(number, [])
        on_chain = next((one for one in rows if token is None or one[0].token == token), None)
        bad += [_staged(one[1], one[2]) for one in rows if one is not on_chain]
        if on_chain is None:
            bad += _lost(key, newest, number, token, page)
            token = page.get(schema.PREVIOUS) if number == newest.number and not is_stale(page) else None
            continue
        chain.append((replace(on_chain[0], history=newest.history), on_chain[2]))
        token = on_chain[2].get(schema.PREVIOUS)
        if token == b"":
            break  # a history may begin with a higher number than 1
    for rows in by_number.values():  # above the newest
        bad += [_staged(row, cells) for _, row, cells in rows if abs(now_ms - time_of(cells)) > GRACE_MS]
    return chain, bad


def _staged(row: bytes, cells: Cells) -> Difference:
    return Difference(Kind.STALE, schema.REVISIONS, row, b"", None, cells.get(schema.NAME, b""), time_of(cells))


def _lost(key: bytes, newest: Head, number: int, token: bytes | None, page: Cells) -> list[Difference]:
    if number == newest.number and not is_stale(page):
        row = schema.revision_row(key, newest)
        cells = revision_cells_of_page(page)
        return [Difference(Kind.MISSING, schema.REVISIONS, row, c, v, None, time_of(page)) for c, v in cells.items()]
    row = schema.revision_row(key, Head(number, token or b"?", newest.history))
    return [Difference(Kind.LOST, schema.REVISIONS, row, b"", None, None, 0)]


# --- lists -------------------------------------------------------------------------------------


def _names_without_page(connection: Connection) -> Iterator[Difference]:
    table = connection.table(schema.PAGES)
    for rows in groups_of(connection.table(schema.NAMES).scan(include_timestamp=True, batch_size=200)):
        keys = {row: schema.page_key_of_name_row(row) for row in rows}
        wanted = [key for key in keys.values() if key]
        stored = table.rows(wanted, columns=[schema.VERSIONCOUNT]) if wanted else []
        there = {key for key, cells in stored if is_there(cells)}
        for row, cells in rows.items():
            if keys[row] not in there:
                yield from cell_differences(schema.NAMES, row, {}, cells, 0)


def _entries(connection: Connection, entries: Mapping[bytes, tuple[Cells, int]]) -> Iterator[Difference]:
    """Compare rows of ``changes`` with the entries that the revisions should have there."""
    stored = dict(connection.table(schema.CHANGES).rows(list(entries), include_timestamp=True)) if entries else {}
    for row, (cells, at_ms) in entries.items():
        yield from cell_differences(schema.CHANGES, row, cells, stored.get(row, {}), at_ms)


def _changes_without_revision(connection: Connection) -> Iterator[Difference]:
    revisions, pages = connection.table(schema.REVISIONS), connection.table(schema.PAGES)
    for rows in groups_of(connection.table(schema.CHANGES).scan(include_timestamp=True, batch_size=200)):
        named = {row: one for row, cells in rows.items() if (one := _revision_of_entry(row, cells)) is not None}
        keys = {key for key, _ in named.values()}
        wanted = [schema.revision_row(key, head) for key, head in named.values()]
        stored = pages.rows(list(keys), columns=[schema.VERSIONCOUNT, schema.HIDDEN]) if keys else []
        newest = {key: (head_of(cells), hidden_in(cells)) for key, cells in stored}
        times = {row: time_of(cells) for row, cells in revisions.rows(wanted, columns=[schema.TIME])} if wanted else {}
        for row, cells in rows.items():
            key, head = named.get(row, (b"", NO_HEAD))
            last, hidden = newest.get(key, (NO_HEAD, frozenset()))
            time_ms = times.get(schema.revision_row(key, head))
            is_of_page = head.place(key) == last.place(key) and 0 < head.number <= last.number
            is_backfilled = is_of_page and head.number not in hidden and time_ms is not None
            if is_backfilled and row == schema.change_row(key, time_ms or 0, head.number):
                continue
            yield from cell_differences(schema.CHANGES, row, {}, cells, 0)


def _revision_of_entry(row: bytes, cells: Mapping[bytes, tuple[bytes, int]]) -> tuple[bytes, Head] | None:
    """Return the page's key and the revision that an entry of ``changes`` names, or None if it names none."""
    key = schema.page_key_of_change_row(row)
    try:
        head = parse_head(cells.get(schema.HEAD, (b"", 0))[0])
    except ValueError:
        return None
    return None if key is None or head == NO_HEAD else (key, head)


# --- repair ------------------------------------------------------------------------------------


def _store_time(wiki: Wiki) -> int | None:
    """Return the current time of the store, which stamps the effects of triggers.

    Returns None if the application writes the indexes.
    """
    if wiki.indexes == "application":
        return None
    nobody, never = bytes(schema.KEY_BYTES), [Expect(schema.VERSIONCOUNT, b"never")]
    put = [Put(schema.VERSIONCOUNT, b"never")]  # the condition is false, so nothing is written
    return wiki.store.run(lambda c: c.table(schema.PAGES).check_and_mutate(nobody, never, put)).timestamp


def _repair(wiki: Wiki, differences: Sequence[Difference], now_ms: int) -> None:
    """Repair with one call for each row and timestamp; accounts that end are ``account_check.finish_leavings``'."""
    differences = [one for one in differences if not account_check.is_of_leaving(one)]
    wanted: dict[tuple[bytes, bytes, int], list[Difference]] = {}
    files = [one for one in differences if is_of_files(one)]
    if files:
        _file_check(wiki, now_ms, with_contents=False).repair(files)
    comments = [one for one in differences if is_of_comments(one)]
    if comments:
        CommentCheck(wiki.rows, wiki.comments, now_ms).repair(comments)
    differences = [one for one in differences if not (is_of_files(one) or is_of_comments(one))]
    terms = [one for one in differences if one.table == schema.TERMS]
    for one in differences:
        if one.table != schema.TERMS:
            wanted.setdefault((one.table, one.row, one.at_ms), []).append(one)
    for (table, row, at_ms), group in wanted.items():
        wiki.store.run(lambda c, t=table, r=row, at=at_ms, g=group: _repair_row(c, t, r, at, g))  # type: ignore[misc]
    if terms:
        wiki.store.run(lambda connection: repair_postings(connection, terms))


def _repair_row(connection: Connection, name: bytes, row: bytes, at_ms: int, group: list[Difference]) -> None:
    table = connection.table(name)
    puts = {one.column: one.expected for one in group if one.expected is not None}
    if puts:
        table.put(row, puts, timestamp=at_ms)
    stale = [one for one in group if one.kind in (Kind.STALE, Kind.SPARE)]
    if any(not one.column for one in stale):
        table.delete(row)
    elif stale:
        table.delete(row, [one.column for one in stale], timestamp=at_ms)
