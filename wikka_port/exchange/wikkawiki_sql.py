"""A wiki as SQL for the MySQL of WikkaWiki 1.4.2: all tables of its schema: pages, lists, users, links, comments.

    SET NAMES utf8mb4;
    CREATE TABLE wikka_pages (id int(10) unsigned NOT NULL auto_increment, tag varchar(75) ...);
    INSERT INTO wikka_pages VALUES (1,'HomePage','HomePage','2012-07-01 12:00:00','text','Ada','Ada','Y','a note');

Tables are created and never dropped, so the statements fail in a database that has a WikkaWiki already.  Ids rise with
the times over the whole wiki: WikkaWiki lists changes by them.  Times are UTC.  Names, notes and lists of rights have
HTML entities, as WikkaWiki stores them.

WikkaWiki has no room for some things, which ``SqlReport`` names: a page whose name is over TAG_CHARS or has another
page of its spelling but case is left out, since MySQL holds them equal; notes are cut; hidden revisions are left out,
since everybody could read them there, and so are deleted pages; and comments that wait, whose answers then answer the
comment above; Markdown is shown as its source.
A page that a list of its own, of a prefix or of the site protects gets all four lists, so that it does not hang on the
settings there.  Accounts come without a password: no hash of this wiki is one that PHP checks.

Rows wait in the database of ``export_file``, to be sorted by time.
"""

from __future__ import annotations

import html
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from wikka_port.accounts.records import Account
from wikka_port.comments.comment_rows import REMOVED, VISIBLE
from wikka_port.exchange.export_file import ExportFile
from wikka_port.exchange.paths import safe_segment
from wikka_port.exchange.records import (
    LISTS,
    CommentRecord,
    FileRecord,
    PageRecord,
    RecordedPage,
    RecordSource,
    RevisionRecord,
)
from wikka_port.exchange.whole_file import ContentFolder
from wikka_port.markup.formats import MARKDOWN
from wikka_port.markup.links import links
from wikka_port.rights.rules import DEFAULT_LIST
from wikka_port.schema import folded

TAG_CHARS: Final = 75  # of names of pages and users, with entities
NOTE_CHARS: Final = 100
EMAIL_CHARS: Final = 50
PREFIX: Final = "wikka_"
_REPORT: Final = "report"  # of a checkpoint
_INSERT: Final = "INSERT INTO"
_INSERT_ONCE: Final = "INSERT IGNORE INTO"  # MySQL holds names equal that differ in case
_CONTENTS: Final = ".contents"  # within the folder of uploads, while it is written
_STATUSES: Final = ("invited", "signed-up", "pending", "active", "suspended", "banned", "deleted")
_ESCAPED: Final = {0: "\\0", 10: "\\n", 13: "\\r", 26: "\\Z", 34: '\\"', 39: "\\'", 92: "\\\\"}
_NAME: Final = "varchar(75) NOT NULL default ''"
_TIME: Final = "datetime NOT NULL default '1900-01-01 00:00:00'"
_ID: Final = "int(10) unsigned NOT NULL auto_increment"
_YES_NO: Final = "enum('Y','N') NOT NULL default"
_SCHEMA: Final[Mapping[str, str]] = {
    "pages": f"id {_ID}, tag {_NAME}, title {_NAME}, time {_TIME}, body mediumtext NOT NULL, owner {_NAME},"
    f" user {_NAME}, latest {_YES_NO} 'N', note varchar(100) NOT NULL default '', PRIMARY KEY (id), KEY idx_tag (tag),"
    " FULLTEXT KEY body (body), KEY idx_time (time), KEY idx_owner (owner), KEY idx_latest (latest)",
    "acls": f"page_tag {_NAME}, read_acl text NOT NULL, write_acl text NOT NULL, comment_read_acl text NOT NULL,"
    " comment_post_acl text NOT NULL, PRIMARY KEY (page_tag)",
    "links": f"from_tag {_NAME}, to_tag {_NAME}, UNIQUE KEY from_tag (from_tag,to_tag), KEY idx_to (to_tag)",
    "referrers": f"page_tag {_NAME}, referrer varchar(255) NOT NULL default '', time {_TIME},"
    " KEY idx_page_tag (page_tag), KEY idx_time (time)",
    "referrer_blacklist": "spammer varchar(255) NOT NULL default '', KEY idx_spammer (spammer)",
    "users": f"name {_NAME}, password varchar(255) NOT NULL default '', email varchar(50) NOT NULL default '',"
    " revisioncount int(10) unsigned NOT NULL default '20', changescount int(10) unsigned NOT NULL default '50',"
    f" doubleclickedit {_YES_NO} 'Y', signuptime {_TIME}, show_comments {_YES_NO} 'N',"
    f" status enum({','.join(map(repr, _STATUSES))}), theme varchar(50) default '',"
    " default_comment_display int(1) NOT NULL default '3', challenge varchar(8) default '',"
    " md5_password varchar(32) NOT NULL default '', force_password_reset boolean NOT NULL default false,"
    " PRIMARY KEY (name), KEY idx_signuptime (signuptime)",
    "comments": f"id {_ID}, page_tag {_NAME}, time {_TIME}, comment text NOT NULL, user {_NAME},"
    " parent int(10) unsigned default NULL, status enum('deleted') default NULL, deleted char(1) default NULL,"
    " PRIMARY KEY (id), KEY idx_page_tag (page_tag), KEY idx_time (time)",
    "sessions": "sessionid char(32) NOT NULL, userid varchar(75) NOT NULL, PRIMARY KEY (sessionid, userid),"
    " session_start datetime NOT NULL",
}

Write = Callable[[bytes], object]


@dataclass(slots=True)
class SqlReport:
    """Counts of what was written, and of what WikkaWiki cannot have; each entry of a list is a line for a person."""

    pages: int = 0
    revisions: int = 0
    lists: int = 0
    users: int = 0
    files: int = 0
    comments: int = 0
    without_room: list[str] = field(default_factory=list)  # pages and files that were left out
    markdown: list[str] = field(default_factory=list)
    hidden: int = 0  # revisions that were left out
    deleted: int = 0  # pages that were left out
    cut_notes: int = 0
    waiting: int = 0  # comments under review that were left out
    moved_answers: list[str] = field(default_factory=list)  # pages with answers to these
    settings: list[str] = field(default_factory=list)  # for wikka.config.php

    def count(self, *, pages: int = 0, revisions: int = 0, lists: int = 0, users: int = 0, comments: int = 0) -> None:
        self.pages += pages
        self.comments += comments
        self.revisions += revisions
        self.lists += lists
        self.users += users

    def note_files(self, stored: int, lost: list[str]) -> None:
        self.files += stored
        self.without_room += lost

    def note_waiting(self, page: str, waiting: int, answers: int) -> None:
        self.waiting += waiting
        if answers:
            self.moved_answers.append(f"{page}: {answers:,}")

    def note_loss(self, *, hidden: int = 0, cut_notes: int = 0, deleted: int = 0) -> None:
        self.hidden += hidden
        self.deleted += deleted
        self.cut_notes += cut_notes


def write_wikkawiki(
    source: RecordSource, accounts: Iterable[Account], out: ExportFile, uploads: UploadFolder | None = None
) -> SqlReport:
    """Write all statements, and the files that the pages have now to ``uploads``."""
    report = SqlReport(**out.values.get(_REPORT, {}))
    site = source.site()
    rights = {} if site is None else site.lists
    writer = _SqlWriter(out.database, out.write, report, rights)
    if not out.is_continued:
        writer.begin()
    out.keep_values(lambda: {_REPORT: asdict(report)})
    for page in out.rest_of(source).pages():
        if page.record.is_deleted:
            report.note_loss(deleted=1)
        elif writer.takes(page.record.name):
            writer.add_page(page.record, page.revisions())
            if uploads is not None:
                report.note_files(*uploads.add_page(page))
            writer.write_comments(page.record.name, page.comments())
    writer.write_pages()
    if uploads is not None:
        uploads.finish()
    for account in accounts:
        writer.write_user(account)
    of_site = rights.get("", {})
    report.settings.extend(f"'default_{one}_acl' => {_php(of_site.get(one, DEFAULT_LIST))}" for one in LISTS)
    out.write(b"-- end of the export\n")
    return report


class UploadFolder:
    """The folder of uploads of a WikkaWiki, which has a folder for each page."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._contents = ContentFolder(folder / _CONTENTS)

    def add_page(self, page: RecordedPage) -> tuple[int, list[str]]:
        """Store the files that the page has now; return their number, and a line on those without a place."""
        current: dict[str, FileRecord] = {}
        for file in page.files():
            if file.content is not None:
                self._contents.keep(file.record, file.content)
            current[file.record.name] = file.record
        there = [one for one in current.values() if one.sha256 and self._contents.path_of(one.sha256).is_file()]
        tag = page.record.name.replace(" ", "_")
        if there and ("/" in tag or safe_segment(tag) != tag):
            return 0, [f"{page.record.name}: its {len(there):,} files, since no folder can have its name"]
        for one in there:
            target = self._folder / tag / one.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self._contents.path_of(one.sha256), target)
        return len(there), []

    def finish(self) -> None:
        shutil.rmtree(self._folder / _CONTENTS, ignore_errors=True)


class _SqlWriter:
    def __init__(
        self, database: sqlite3.Connection, write: Write, report: SqlReport, rights: Mapping[str, Mapping[str, str]]
    ) -> None:
        """Take the site's lists by prefix."""
        self._database = database
        self._write = write
        self._report = report
        self._rights = rights

    def begin(self) -> None:
        self._put("-- wikka export, for WikkaWiki 1.4\nSET NAMES utf8mb4;\n")
        for table, columns in _SCHEMA.items():
            self._put(f"CREATE TABLE {PREFIX}{table} ({columns}) CHARACTER SET utf8mb4 ENGINE=MyISAM;\n")
        self._database.execute("CREATE TABLE IF NOT EXISTS tags (folded TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS rows (time_ms INTEGER, tag TEXT, place INTEGER, body TEXT, owner TEXT,"
            " user TEXT, latest TEXT, note TEXT, PRIMARY KEY (time_ms, tag, place))"
        )

    def _put(self, text: str) -> None:
        self._write(text.encode("utf-8", "replace"))

    def _insert(self, table: str, *values: object) -> None:
        self._put(f"{_INSERT} {PREFIX}{table} VALUES ({','.join(map(_literal, values))});\n")

    # --- pages -------------------------------------------------------------------------------------

    def takes(self, name: str) -> bool:
        """Return whether the page can be there."""
        if len(_tag(name)) > TAG_CHARS:
            self._report.without_room.append(f"{name}: its name is longer than {TAG_CHARS} characters")
            return False
        self._database.execute("INSERT OR IGNORE INTO tags VALUES (?, ?)", (folded(name), name))
        (there,) = self._database.execute("SELECT name FROM tags WHERE folded = ?", (folded(name),)).fetchone()
        if there != name:
            self._report.without_room.append(f"{name}: MySQL holds the name equal to {there}")
        return bool(there == name)

    def add_page(self, page: PageRecord, revisions: Iterable[RevisionRecord]) -> None:
        tag = _tag(page.name)
        newest: RevisionRecord | None = None
        for place, one in enumerate(revisions, 1):
            if one.hidden:
                self._report.note_loss(hidden=1)
                continue
            note = _entities(" ".join(one.note.split()))
            self._report.note_loss(cut_notes=len(note) > NOTE_CHARS)
            values = (one.body, _entities(page.owner)[:TAG_CHARS], _entities(one.author)[:TAG_CHARS], "N")
            row = (one.time_ms, tag, place, *values, _cut(note, NOTE_CHARS))
            self._database.execute("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            self._report.count(revisions=1)
            newest, last = one, (one.time_ms, tag, place)
        if newest is None:
            return
        self._database.execute("UPDATE rows SET latest = 'Y' WHERE time_ms = ? AND tag = ? AND place = ?", last)
        self._report.count(pages=1)
        if newest.markup == MARKDOWN:
            self._report.markdown.append(page.name)
        self._write_lists(page, tag)
        found = dict.fromkeys(map(_tag, links(newest.body, autolink=newest.autolink, markup=newest.markup)))
        for target in found:
            if len(target) <= TAG_CHARS:
                self._put(f"{_INSERT_ONCE} {PREFIX}links VALUES ({_literal(tag)},{_literal(target)});\n")

    def _write_lists(self, page: PageRecord, tag: str) -> None:
        begins = folded(page.name)
        prefixes = sorted((one for one in self._rights if begins.startswith(one)), key=len, reverse=True)
        if not page.lists and not prefixes:
            return  # nothing protects it
        found = []
        for privilege in LISTS:
            inherited = (self._rights[one][privilege] for one in prefixes if privilege in self._rights[one])
            found.append(page.lists[privilege] if privilege in page.lists else next(inherited, DEFAULT_LIST))
        self._insert("acls", tag, *map(_entities, found))
        self._report.count(lists=1)

    def write_comments(self, name: str, comments: Iterable[CommentRecord]) -> None:
        """Write a page's comments as WikkaWiki stores them: the typed text with entities, and a break in each line."""
        tag, ids = _tag(name), dict[int, int | None]()  # the id that an answer to a comment names
        waiting, answers = set[int](), 0
        for one in comments:
            above = ids.get(one.parent)
            if one.state not in (VISIBLE, REMOVED):
                waiting.add(one.number)
                ids[one.number] = above
                continue
            answers += one.parent in waiting
            self._report.count(comments=1)
            ids[one.number] = number = self._report.comments
            text = _entities(one.text).replace("\n", "<br />\n")
            state = "deleted" if one.state == REMOVED else None
            author = _entities(one.author)[:TAG_CHARS]
            self._insert("comments", number, tag, _time(one.time_ms), text, author, above, state, None)
        self._report.note_waiting(name, len(waiting), answers)

    def write_pages(self) -> None:
        found = self._database.execute(
            "SELECT time_ms, tag, body, owner, user, latest, note FROM rows ORDER BY time_ms, tag, place"
        )
        for number, (time_ms, tag, body, owner, user, latest, note) in enumerate(found, 1):
            self._insert("pages", number, tag, tag, _time(time_ms), body, owner, user, latest, note)

    # --- users -------------------------------------------------------------------------------------

    def write_user(self, account: Account) -> None:
        """Write an account without its password: an empty hash admits nobody until the user sets a new one."""
        name = _entities(account.name)
        if len(name) > TAG_CHARS or account.status not in _STATUSES:
            return
        email = _entities(account.email)
        email = email if len(email) <= EMAIL_CHARS else ""
        created = _time(account.created_ms)
        self._insert("users", name, "", email, 20, 50, "Y", created, "N", account.status, "", 3, "", "", 0)
        self._report.count(users=1)


def _tag(name: str) -> str:
    return _entities(name.replace(" ", "_"))


def _entities(text: str) -> str:
    return html.escape(text, quote=False).replace('"', "&quot;")


def _cut(text: str, most: int) -> str:
    """Return a text with entities, cut to ``most`` characters and not within an entity."""
    cut = text[:most]
    begin = cut.rfind("&")
    return cut[:begin] if len(text) > most and begin >= 0 and ";" not in cut[begin:] else cut


def _php(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _time(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%d %H:%M:%S}"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else f"'{str(value).translate(_ESCAPED)}'"
