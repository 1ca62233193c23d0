"""The wiki's data in a dictionary: what ``wikka_port.pages.Wiki`` offers to the handlers, without a store.

``away = True`` makes every call raise StoreUnavailable, as if the store were unavailable.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, Never

from columnar.triggers.api import Put
from tests.support import brute_search
from tests.support.brute_search import SearchedPage
from tests.support.memory_notices import derive_watchers, notify_author, notify_of_comment, notify_watchers
from tests.support.memory_rows import MemoryRows
from wikka_port import schema
from wikka_port.accounts.tables import NETWORK, NETWORKS
from wikka_port.comments import comment_lists
from wikka_port.comments.comment_rows import (
    COMMENTS,
    OP,
    comment_of,
    comments_in,
    parse_comment_row,
)
from wikka_port.comments.recent_comments import ListedComment, ListStep
from wikka_port.comments.stored_comments import StoredComments
from wikka_port.config import FileConfig
from wikka_port.editing.kept_drafts import Drafts
from wikka_port.editing.suggestions import Suggestions
from wikka_port.file_uses import key_of_file, key_of_name, targets_of_files
from wikka_port.files.file_rows import CurrentFile, file_column, files_in
from wikka_port.files.stored_files import StoredFiles
from wikka_port.listings import RecentChange
from wikka_port.maintenance import Letter, TriggerState
from wikka_port.markup.file_slots import names_file
from wikka_port.markup.formats import tokens
from wikka_port.markup.links import files_named
from wikka_port.markup.links import links as parsed_links
from wikka_port.moving.refusals import Busy
from wikka_port.names import normalise, page_key
from wikka_port.notices.stored_notices import StoredNotices
from wikka_port.page_rows import is_revision
from wikka_port.pages import Conflict, Page, PageTooBig, Revision, Saved, StoredPage, StoreUnavailable
from wikka_port.rights.rules import RULES_ROW, PageRights, page_rights
from wikka_port.rights.stored import StoredRights
from wikka_port.schema import NO_HEAD, Head, change_row, folded, name_row, parse_head, revision_token
from wikka_port.search.found_documents import Readable, Rights
from wikka_port.search.nearest import ranked
from wikka_port.search.page_text import Places, headings
from wikka_port.search.query import Query
from wikka_port.search.searching import ALL, COUNTED, PER_PAGE, Hit, Results
from wikka_port.search.snippets import marked, passage, spot
from wikka_port.search.suggesting import HeadingOf

links = lru_cache(maxsize=10_000)(parsed_links)  # the lists ask for those of all pages again and again


class NoMover:
    """A mover without a store: it answers that others are changing the page, so that the form is shown again."""

    def rename(self, name: str, *_: object, **__: object) -> Never:
        raise Busy(name)

    delete = undelete = purge = hide = page_row = finish = rename


class MemoryPageRows:
    """The rows of the pages, as files need them; no page of them is ever renamed."""

    def __init__(self, row: Callable[[bytes], dict[bytes, bytes]]) -> None:
        self._row = row

    def page_row(self, name: str) -> dict[bytes, bytes]:
        return dict(self._row(page_key(name)))

    def place_of(self, name: str) -> tuple[bytes, bytes]:
        return schema.PAGES, page_key(name)

    def renamed_to(self, move_id: bytes) -> str:
        return ""


class MemoryLists:
    """The lists of comments, written at once."""

    def __init__(self, rows: MemoryRows) -> None:
        self._rows = rows

    def list_page(self, key: bytes, row: Mapping[bytes, bytes], put: Mapping[bytes, bytes]) -> None:
        self._write(comment_lists.page_effects(key, row, {**row, **put}, careful=True))
        notify_of_comment(self._rows, key, row, put)

    def list_comment(self, row: bytes, before: Mapping[bytes, bytes], now: Mapping[bytes, bytes], at_ms: int) -> None:
        self._write(comment_lists.comment_effects(row, before, now))

    def _write(self, effects: Iterable[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Put):
                self._rows.put(effect.table, effect.row, effect.cells)
            else:
                self._rows.delete(effect.table, effect.row, effect.columns)


class MemoryMaintenance:
    """Triggers as a store would have them; ``done`` notes what was asked of it."""

    has_triggers = True

    def __init__(self) -> None:
        self.states = [TriggerState("wiki-indexes", "running", 3, 1.5, 1, "it failed", 0.0)]
        self.dead = [Letter("wiki-indexes", page_key("HomePage"), "HomePage", 1_000, 8, "ValueError: no number")]
        self.done: list[tuple[str, str, bytes]] = []

    def triggers(self) -> list[TriggerState]:
        return self.states if self.has_triggers else []

    def letters(self) -> list[Letter]:
        return self.dead if self.has_triggers else []

    def retry(self, trigger: str, row: bytes = b"") -> int:
        self.done.append(("retry", trigger, row))
        return 1

    def discard(self, trigger: str, row: bytes = b"") -> int:
        self.done.append(("discard", trigger, row))
        return 1

    def table_bytes(self, table: bytes) -> int:
        return 100


class MemoryWiki:
    def __init__(self, start_ms: int = 1_750_000_000_000) -> None:
        self.away = False
        self.settled: list[str] = []
        self.calls: list[str] = []
        self._lock = threading.RLock()
        self._pages: dict[str, list[Page]] = {}
        self._now_ms = start_ms
        self.rows = MemoryRows(self._asked)
        self.drafts = Drafts(self.rows)
        self.suggestions = Suggestions(self.rows, lambda row, now: notify_author(self.rows, row, now))
        self.maintenance = MemoryMaintenance()
        self.mover = NoMover()
        self.files = StoredFiles(self.rows, MemoryPageRows(self._row), FileConfig(), lambda: self._now_ms)
        lists = MemoryLists(self.rows)
        self.comments = StoredComments(self.rows, MemoryPageRows(self._row), lambda: self._now_ms, lists=lists)
        self.notices = StoredNotices(
            self.rows,
            MemoryPageRows(self._row),
            lambda: self._now_ms,
            lambda changed: derive_watchers(self.rows, changed),
        )
        self.clock_s = 0.0  # of what is held of rights
        self.wall_ms = 0  # by which blocks end
        self.rights = StoredRights(self.rows, lambda: self.clock_s, now_ms=lambda: self.wall_ms)

    def _asked(self, what: str) -> None:
        self.calls.append(what)
        if self.away:
            raise StoreUnavailable("memory", "it is away")

    # -- pages
    def page(self, name: str) -> Page | None:
        self._asked("page")
        asked = self.rights.memory.asking()
        if asked is not None:
            self.rights.memory.take(self._row(RULES_ROW), asked)
        found = self._pages.get(normalise(name))
        return self._with_rights(found[-1]) if found else None

    def stored_page(self, name: str) -> StoredPage:
        return StoredPage(self.page(name), {}, NO_HEAD)

    def _row(self, row: bytes) -> dict[bytes, bytes]:
        return self.rows.data.setdefault(schema.PAGES, {}).setdefault(row, {})

    def _with_rights(self, page: Page) -> Page:
        row = self._row(page_key(page.name))
        rights = page_rights(row, page.owner.encode())
        return replace(page, rights=rights, owner=rights.owner, files=files_in(row), comments=comments_in(row))

    def existing(self, names: Collection[str]) -> frozenset[str]:
        self._asked("existing")
        return frozenset(name for name in names if normalise(name) in self._pages)

    def files_of(self, names: Collection[str]) -> dict[str, tuple[PageRights, Mapping[str, CurrentFile]]]:
        self._asked("files_of")
        found = {name: self._with_rights(self._pages[name][-1]) for name in names if name in self._pages}
        return {name: (page.rights, page.files) for name, page in found.items()}

    def attach(self, name: str, file: str, **given: Any) -> CurrentFile:
        """Give a page a file, as it stands in the page's row."""
        kept = self._row(page_key(name))
        made = CurrentFile(**{"number": 1, "token": "0" * 16, "sha256": "a" * 64, "size_bytes": 3_400, **given})
        kept[file_column(file)] = made.pack()
        return made

    def revision(self, name: str, number: int, token: str = "") -> Revision | None:
        found = self.revisions(name, below=number + 1, limit=1, bodies=True)
        return found[0] if found and is_revision(found[0], number, token) else None

    def source(self, name: str, number: int | None = None) -> str | None:
        """Return None, because no page here was imported."""
        self._asked("source")
        return None

    def revision_at(self, name: str, time_ms: int) -> Revision | None:
        found = self.revisions(name, limit=10**9, bodies=True)
        return next((revision for revision in found if revision.time_ms <= time_ms), None)

    def revisions(
        self, name: str, *, below: int | None = None, limit: int = 50, bodies: bool = False
    ) -> list[Revision]:
        self._asked("revisions")
        kept = self._pages.get(normalise(name), [])
        shown = [page for page in reversed(kept) if below is None or page.number < below][:limit]
        found = [Revision(**{one.name: getattr(page, one.name) for one in fields(Revision)}) for page in shown]
        return found if bodies else [replace(one, body=None) for one in found]

    def save(
        self,
        name: str,
        body: str,
        *,
        author: str,
        note: str = "",
        base: int,
        base_token: str = "",
        time_ms: int | None = None,
        autolink: bool | None = None,
        attribution: str | None = None,
        owner: str | None = None,
        signed: str = "",
        markup: str | None = None,
        minor: bool = False,
        language: str | None = None,
        allow: Callable[[PageRights, bool], None] | None = None,
        stored: StoredPage | None = None,
        notify: str | None = None,
        mentions: tuple[str, ...] = (),
        before_save: Callable[[Head], object] = lambda head: None,
    ) -> Saved:
        self._asked("save")
        name = normalise(name)
        if len(body.encode()) > 4 * 1024 * 1024:
            raise PageTooBig(len(body.encode()))
        with self._lock:
            kept = self._pages.get(name, [])
            current = self._with_rights(kept[-1]) if kept else None
            if allow is not None:
                allow(current.rights if current else page_rights(self._row(page_key(name)), b""), current is not None)
            if not is_revision(current, base, base_token) if current else base:
                raise Conflict(name, current)
            self._now_ms += 61_000
            old = current or Page(name, 0, 0, "", "", "")
            page = replace(
                old,
                number=base + 1,
                time_ms=self._now_ms if time_ms is None else time_ms,
                author=author,
                note=note,
                body=body,
                autolink=old.autolink if autolink is None else autolink,
                attribution=old.attribution if attribution is None else attribution,
                owner=old.owner if owner is None else owner,
                signed=signed,
                markup=old.markup if markup is None else markup,
                minor=minor,
                grown=len(body) - len(old.body),
                language=old.language if language is None or (language == "en" and not old.language) else language,
            )
            token = revision_token(name, page.number, page.time_ms, author, note, body, old.token.encode())
            before_save(Head(page.number, token))
            page = replace(page, token=token.decode())
            self._pages[name] = [*kept, page]
            self._put_cells(page)
            if notify is not None:
                notify_watchers(self.rows, page, parse_head(head_cell(page)), notify, mentions)
            return Saved(page.number, page.time_ms, f"sequence-{len(self.settled)}", page.token)

    def _put_cells(self, page: Page) -> None:
        head, key = head_cell(page), page_key(page.name)
        cells = {schema.VERSIONCOUNT: head, schema.HEAD: head, schema.BODY: page.body.encode("utf-8", "replace")}
        cells |= {schema.USER: page.author.encode(), schema.TIME: b"%d" % page.time_ms}
        cells |= {schema.SIGNED: page.signed.encode(), schema.NAME: page.name.encode()}
        self._row(key).update({**cells, schema.OWNER: page.owner.encode()})
        self.rows.data.setdefault(schema.NAMES, {})[name_row(page.name)] = {schema.NAME: page.name.encode()}

    def rename_edits(self, name: str, new: str) -> int:
        self._asked("rename_edits")
        renamed = 0
        for kept in self._pages.values():
            for number, page in enumerate(kept):
                if page.author == name and page.signed == "account":
                    kept[number] = replace(page, author=new)
                    renamed += 1
        return renamed

    def settle(self, sequence: str, timeout_s: float = 2.0) -> bool:
        self.settled.append(sequence)
        return True

    def networks_noted(self) -> set[str]:
        """Return the networks from which visitors without an account wrote."""
        return {cells[NETWORK].decode() for cells in self.rows.data.get(NETWORKS, {}).values()}

    def is_up(self) -> bool:
        return not self.away

    # -- lists

    def _newest(self) -> list[Page]:
        return [self._pages[name][-1] for name in sorted(self._pages, key=name_row)]

    def backlinks(self, name: str, *, after: str = "", limit: int = 500) -> list[str]:
        self._asked("backlinks")
        target = normalise(name)
        found = [
            page.name
            for page in self._newest()
            if target in links(page.body, autolink=page.autolink, markup=page.markup)
        ]
        rest = [source for source in sorted(found, key=page_key) if not after or page_key(source) > page_key(after)]
        return rest[:limit] if after or len(rest) >= limit else found

    def linking(self, names: Collection[str]) -> dict[str, list[str]]:
        self._asked("linking")
        linked = [(page.name, self._links(page)) for page in self._newest()]
        return {name: found for name in names if (found := [one for one, targets in linked if name in targets])}

    @staticmethod
    def _links(page: Page) -> list[str]:
        return links(page.body, autolink=page.autolink, markup=page.markup)

    def names(self, *, start: str = "", prefix: str = "", limit: int = 500) -> list[str]:
        self._asked("names")
        found = [page.name for page in self._newest() if folded(page.name).startswith(folded(prefix))]
        return [name for name in found if not start or name_row(name) >= name_row(start)][:limit]

    def changes(self, *, before: str = "", limit: int = 50) -> tuple[list[RecentChange], str]:
        self._asked("changes")
        every = sorted((page for kept in self._pages.values() for page in kept), key=lambda page: -page.time_ms)
        rest = [page for page in every if not before.isdigit() or page.time_ms < int(before)]
        shown = rest[:limit]
        token = str(shown[-1].time_ms) if len(rest) > limit else ""
        return [_recent(page) for page in shown], token

    def changes_since(self, place: bytes, *, limit: int) -> tuple[list[tuple[bytes, RecentChange]], bool]:
        self._asked("changes")
        placed = [
            (change_row(page_key(p.name), p.time_ms, p.number)[1:], _recent(p))
            for kept in self._pages.values()
            for p in kept
        ]
        rest = sorted((one for one in placed if one[0] < place), key=lambda one: one[0], reverse=True)
        return rest[:limit], len(rest) > limit

    def recent_comments(self, *, user: str = "", before: str = "", limit: int) -> ListStep:
        self._asked("recent_comments")
        rows = self.rows.data.get(COMMENTS, {})
        found = []
        for name in self._pages:
            for row, cells in rows.items():
                if row.startswith(page_key(name)) and OP in cells:
                    one = comment_of(parse_comment_row(row)[1], cells)
                    token = f"{schema.TIME_MAX_MS - one.time_ms:013d}{row.decode()}"
                    if not user or (one.is_of_account and folded(one.author) == folded(user)):
                        found.append(ListedComment(name, one, token))
        rest = [one for one in sorted(found, key=lambda one: one.token) if one.token > before]
        onward = rest[limit - 1].token if len(rest) > limit else ""
        return ListStep([one for one in rest[:limit] if one.comment.is_visible], onward)

    def comment_counts(self, *, after: str = "") -> tuple[dict[str, int], str]:
        self._asked("comment_counts")
        counts = {name: comments_in(self._row(page_key(name))).count for name in self._pages}
        return {name: count for name, count in counts.items() if count}, ""

    def naming(self, page: str, file: str, *, shared: bool, after: str = "", limit: int) -> list[tuple[str, bool]]:
        self._asked("naming")
        found = []
        for one in sorted(self._newest(), key=lambda one: page_key(one.name)):
            read = tokens(one.body, autolink=one.autolink, markup=one.markup)
            named = targets_of_files(one.name, files_named(read))
            is_sure = key_of_file(page, file) in named
            is_possible = key_of_name(file) in named and (shared or one.name.startswith(f"{page}/"))
            if (is_sure or is_possible) and (not after or page_key(one.name) > page_key(after)):
                found.append((one.name, is_sure))
        return found[:limit]

    def wanted(self, *, after: str = "", limit: int = 200) -> list[tuple[str, int]]:
        self._asked("wanted")
        targets = (target for page in self._newest() for target in self._links(page))
        counts = Counter(one for one in targets if one not in self._pages and not names_file(one))
        rest = sorted(counts.items(), key=lambda item: page_key(item[0]))
        return [item for item in rest if not after or page_key(item[0]) > page_key(after)][:limit]

    def owned(self, owner: str, *, limit: int) -> list[str]:
        self._asked("owned")
        return [page.name for page in map(self._with_rights, self._newest()) if page.owner == owner][:limit]

    def count_changes(self) -> int:
        self._asked("count_changes")
        return sum(len(kept) for kept in self._pages.values())

    def some_page(self, key: str) -> str | None:
        self._asked("some_page")
        ordered = sorted(self._pages, key=page_key)
        return next((name for name in ordered if page_key(name) >= key.encode()), ordered[0] if ordered else None)

    def most_wanted(self, *, limit: int = 200) -> list[tuple[str, int]]:
        return sorted(self.wanted(limit=10**9), key=lambda item: (-item[1], name_row(item[0])))[:limit]

    def initials(self, *, limit: int = 200) -> list[str]:
        self._asked("initials")
        return list(dict.fromkeys(folded(page.name)[:1] for page in self._newest()))[:limit]

    def orphaned(self, *, after: str = "", limit: int = 200) -> list[str]:
        self._asked("orphaned")
        linked = {target for page in self._newest() for target in self._links(page) if target != page.name}
        rest = [page.name for page in self._newest() if page.name not in linked]
        return [name for name in rest if not after or name_row(name) > name_row(after)][:limit]

    def search_titles(self, text: str, *, limit: int = 100) -> list[str]:
        self._asked("search_titles")
        return [page.name for page in self._newest() if folded(text) in folded(page.name)][:limit]

    def search(self, query: Query, *, page: int = 1, pages: int = 0, rights: Rights = ALL) -> Results:
        """Search pages by their names, without ranking; neither comments nor files."""
        self._asked("search")
        newest = {one.name: one for one in self._newest()}
        names = sorted(
            brute_search.found(
                query,
                [
                    SearchedPage(one.name, one.body, one.author, one.time_ms, self._links(one))
                    for one in newest.values()
                    if rights.pages is None or rights.pages([one.name])
                ],
            )
        )
        wanted = query.stems()
        hits = [self._hit(newest[name], wanted) for name in names[(page - 1) * PER_PAGE : page * PER_PAGE]]
        return Results(hits, min(len(names), COUNTED), len(names) > COUNTED, is_cut=False)

    @staticmethod
    def _hit(page: Page, wanted: Collection[str]) -> Hit:
        at = spot(page.body, wanted)
        place = at and Places(10**9).heading_at(page.body, at.start, autolink=page.autolink, markup=page.markup)
        shown = passage(page.body, wanted, markup=page.markup)
        title = marked(page.name, wanted)
        return Hit(page.name, page.time_ms, page.author, title, shown, page.language or "en", place)

    def languages(self) -> list[str]:
        self._asked("languages")
        return ["en", *sorted({page.language for page in self._newest()} - {"", "en"})]

    def suggested(self, typed: str, *, most: int = 8) -> list[str]:
        self._asked("suggested")
        asked = folded(" ".join(typed.split()))
        names = [page.name for page in self._newest()]
        return [name for name in names if asked and folded(name).startswith(asked)][:most]

    def suggested_headings(self, typed: str, *, most: int, readable: Readable | None = None) -> list[HeadingOf]:
        self._asked("suggested_headings")
        found = [
            HeadingOf(page.name, heading.text, heading.id)
            for page in self._newest()
            if readable is None or readable([page.name])
            for heading in headings(page.body, autolink=page.autolink, markup=page.markup)
            if typed and folded(typed) in folded(heading.text)
        ]
        return found[:most]

    def nearest(self, name: str, *, pages: int) -> list[str]:
        self._asked("nearest")
        return ranked(name, (page.name for page in self._newest()))

    def count_pages(self) -> int:
        self._asked("count_pages")
        return len(self._pages)

    def count_pages_roughly(self) -> int:
        self._asked("count_pages_roughly")
        return len(self._pages)


def head_cell(page: Page) -> bytes:
    return b"%d:%d" % (page.number, page.time_ms)


def _recent(p: Page) -> RecentChange:
    return RecentChange(p.name, p.number, p.time_ms, p.author, p.note, p.number == 1, p.signed, p.minor, p.grown)
