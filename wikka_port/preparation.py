"""The wiki's tables and triggers in a store: created if they are missing, and brought to this version's form.

    a new store             the tables are created, and the trigger is added from the beginning of the log
    missing families        are added to their tables
    an older registration   is changed in place: the trigger keeps its position in the logs, and the new function
                            delivers the pending changes (until then the old function delivers)
    format 0                pages that include others are listed as linking there (``list_includes``)
    below format 5          files that texts name are listed (``list_named_files``), and the words of comments and
                            files are indexed (``index_beside_pages``)
    an older wiki's texts   those under review get the rows by which their authors find them (``list_reviews``)
    below format 6          the words of Chinese, Japanese and Korean texts are indexed anew (``index_characters``)
    triggers of OLDER       the new trigger is added from the beginning, so it gets every page.  Then each old trigger
                            is removed when it has delivered its changes; it stays if that takes over OLDER_WAIT_MS

Old and new triggers may run side by side: they write the same cells (``triggers``).  The folder's format
(``folder_format``) is checked first and written last.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from columnar.client import Connection
from columnar.client.errors import AlreadyExists
from columnar.errors import CallerError
from columnar.triggers.api import Change, ChangedCell
from wikka_port import folder_format, schema, triggers
from wikka_port.accounts.tables import TABLES as ACCOUNT_TABLES
from wikka_port.application_indexes import carry_out, index_comment, index_file, run_indexes
from wikka_port.comments.comment_lists import TABLES as LIST_TABLES
from wikka_port.comments.comment_rows import CELLS_FAMILY, COMMENTS, OP, op_ms
from wikka_port.comments.comment_rows import TABLES as COMMENT_TABLES
from wikka_port.editing.kept_drafts import TABLES as DRAFT_TABLES
from wikka_port.editing.suggestions import OWN, SUGGESTIONS, own_rows
from wikka_port.editing.suggestions import TABLES as SUGGESTION_TABLES
from wikka_port.file_uses import is_of_file
from wikka_port.files.file_rows import FILE, FILE_FAMILY, FILES
from wikka_port.files.file_rows import TABLES as FILE_TABLES
from wikka_port.files.thumbnails import TABLES as THUMB_TABLES
from wikka_port.link_index import targets_of
from wikka_port.moving.journal import TABLES as MOVE_TABLES
from wikka_port.notices.notice_rows import TABLES as NOTICE_TABLES
from wikka_port.page_changes import alone
from wikka_port.page_rows import Cells, is_there, stamp_of
from wikka_port.schema import TableSpec
from wikka_port.search import indexing
from wikka_port.search.beside_pages import key_of_file, kind_of, page_of_file, row_of_comment
from wikka_port.search.postings import STEMS
from wikka_port.search.words import PAIRED

OLDER_WAIT_MS: Final = 10_000
_OF_FILES: Final = (*FILE_TABLES, *THUMB_TABLES)
_OF_COMMENTS: Final = (*COMMENT_TABLES, *LIST_TABLES)
_BESIDE_PAGES: Final = (*DRAFT_TABLES, *SUGGESTION_TABLES, *MOVE_TABLES, *_OF_FILES, *_OF_COMMENTS, *NOTICE_TABLES)
TABLES: Final = (*schema.TABLES, *ACCOUNT_TABLES, *_BESIDE_PAGES)
_STEPS: Final = tuple(b"%02x" % number for number in range(256))  # beginnings of keys
_CALL: Final = rb"\{\{\s*[iI][nN][cC][lL][uU][dD][eE]\s"
_FILE: Final = rb"\.[A-Za-z0-9]{1,10}[^A-Za-z0-9.,;:]"  # the end of a file's name, if it may be in a link
_FILTER: Final = b"SingleColumnValueFilter('body', 'latest', =, 'regexstring:%s', true, true)"
_CONTENT: Final = (b"meta", b"body", b"user", b"note")
_IN_PAIRS: Final = "".join(one if one == "-" else rf"\x{{{ord(one):x}}}" for one in PAIRED).encode()
_WITH_PAIRS: Final = b"SingleColumnValueFilter('d', 'stems', =, 'regexstring:[%s]{2}', true, true)" % _IN_PAIRS


def prepare(connection: Connection, *, with_triggers: bool) -> list[str]:
    """Prepare the store; a second call changes nothing.  Raises NewerFolder.

    Returns the names of older triggers that stay, since they still have changes to deliver.
    """
    folder = folder_format.read_folder(connection, TABLES)
    _make_tables(connection)
    if with_triggers:
        _register(connection)
    if folder.number < folder_format.INCLUDES_LISTED and schema.PAGES.decode() not in folder.missing:
        list_includes(connection)
    if folder.number < folder_format.FILES_NAMED and schema.PAGES.decode() not in folder.missing:
        list_named_files(connection)
        index_beside_pages(connection)
    if folder.number < folder_format.CHARACTERS_INDEXED and schema.PAGES.decode() not in folder.missing:
        index_characters(connection)
    if SUGGESTIONS.decode() not in folder.missing:
        list_reviews(connection)
    folder_format.note(connection, is_new=schema.PAGES.decode() in folder.missing)
    return _older_that_stay(connection) if with_triggers else []


def _make_tables(connection: Connection) -> None:
    there = set(connection.tables())
    add_missing_families(connection, [table for table in TABLES if table.name in there])
    for table in TABLES:
        if table.name in there:
            continue
        attributes, families = None, table.families
        if connection.is_columnar:
            attributes = table.attributes
            families = {name: {**options, **table.family_attributes} for name, options in families.items()}
        with contextlib.suppress(AlreadyExists):  # another process prepares at the same time
            connection.create_table(table.name, families, attributes=attributes)


def _register(connection: Connection) -> None:
    """Register the triggers by a sync, which changes a trigger of older settings and keeps its position in the logs."""
    present = {one.name: one.registration for one in connection.triggers.list()}
    registrations = [one.store_registration for one in (*triggers.REGISTRATIONS, *triggers.OF_OTHER_TABLES)]
    for wanted in registrations:
        there = present.get(wanted.name)
        if there is None or there != replace(wanted, from_where=there.from_where):
            connection.triggers.sync(registrations)
            return


def _older_that_stay(connection: Connection) -> list[str]:
    stay = []
    for one in connection.triggers.list():
        if one.name not in triggers.OLDER:
            continue
        if connection.triggers.wait(one.name, timeout_ms=OLDER_WAIT_MS):
            connection.triggers.remove(one.name)
        else:
            stay.append(one.name)
    return stay


class FamiliesMissing(CallerError):
    """A table of an older wiki in a plain HBase lacks families, which its administrator has to add."""

    def __init__(self, table: bytes, families: Sequence[str]) -> None:
        commands = "; ".join(f"alter '{table.decode()}', NAME => '{family}', VERSIONS => 1" for family in families)
        super().__init__(f"The table {table.decode()} is that of an older wiki. In hbase shell, enter: {commands}")


def add_missing_families(connection: Connection, tables: Iterable[TableSpec]) -> None:
    """Add the families that ``tables`` lack.  Raises FamiliesMissing on a plain HBase.

    Columnar adds families while the table serves.  HBase's Thrift has no call for it; so there the administrator
    has to add them, and the message says how.
    """
    for table in tables:
        present = {name.rstrip(b":").decode() for name in connection.table(table.name).families()}
        missing = {name: given for name, given in table.families.items() if name not in present}
        if missing and not connection.is_columnar:
            raise FamiliesMissing(table.name, sorted(missing))
        if missing:
            connection.admin.alter_table(table.name, add=missing)


def list_includes(connection: Connection) -> int:
    """Add included pages to the links of all pages that include others; return the number of such pages.

    Older programs did not list included pages in ``backlinks``, so a rename did not update the pages that include them.
    The store filters the pages by their texts, in steps that are short even for a large wiki.  A second call changes
    nothing.  O(all texts).
    """
    count = 0
    for change in _pages_with(connection, _CALL):
        run_indexes(connection, change)
        count += 1
    return count


def list_named_files(connection: Connection) -> int:
    """Add the files that texts name to ``backlinks``; return the number of pages that name any.

    Older programs did not list them.  A second call changes nothing.  O(all texts), filtered by the store.
    """
    count = 0
    for change in _pages_with(connection, _FILE):
        if any(map(is_of_file, targets_of(change.now))):
            carry_out(connection, triggers.backlinks(change, connection), change.timestamp)
            count += 1
    return count


def list_reviews(connection: Connection) -> None:
    """Put the rows by which authors find their texts under review.  A second call changes nothing.

    Older programs put none.  O(suggestions and texts under review), which end after 30 days.
    """
    for own, at_ms in own_rows(connection):
        connection.table(SUGGESTIONS).put(own, {OWN: b"yes"}, timestamp=at_ms)


def index_beside_pages(connection: Connection) -> None:
    """Add comments and files to the index of words, which had pages alone.  A second call changes nothing.

    O(comments, files and the beginnings of their texts).
    """
    there = set(connection.tables())
    if COMMENTS in there:
        for row, cells in connection.table(COMMENTS).scan(columns=[CELLS_FAMILY], batch_size=200):
            if OP in cells:
                index_comment(connection, row, {}, cells, op_ms(cells[OP]))
    columns = [FILE_FAMILY, schema.VERSIONCOUNT]
    scanned = connection.table(schema.PAGES).scan(columns=columns, include_timestamp=True, batch_size=200)
    for row, stamped in scanned if FILES in there else ():
        for column, (_, at_ms) in stamped.items():
            if column.startswith(FILE):
                index_file(connection, row, column[len(FILE) :].decode(), at_ms)


def index_characters(connection: Connection) -> int:
    """Write all words of documents with Chinese, Japanese or Korean words; return the number of such documents.

    Older programs indexed pairs of characters alone.  Each document is written a millisecond after its last change, so
    that no deletion of that change hides what is written, and later changes have later timestamps.  A second call
    changes nothing.  O(all stems), filtered by the store, and O(these documents).
    """
    count = 0
    for begin in _STEPS:
        found = connection.table(schema.DOCS).scan(
            row_prefix=begin, columns=[STEMS], filter=_WITH_PAIRS, batch_size=200, include_timestamp=True
        )
        changed = {key: stamped[STEMS][1] for key, stamped in found}
        for key, at_ms in changed.items():
            _INDEX_ANEW[kind_of(key)](connection, key, at_ms + 1)
        count += len(changed)
    return count


def _index_page(connection: Connection, key: bytes, at_ms: int) -> None:
    change = _whole(key, connection.table(schema.PAGES).row(key, columns=list(_CONTENT)))
    if change is not None:
        carry_out(connection, alone(indexing.index([change], connection)), at_ms)


def _index_comment(connection: Connection, key: bytes, at_ms: int) -> None:
    row = row_of_comment(key)
    cells = connection.table(COMMENTS).row(row, columns=[CELLS_FAMILY])
    if OP in cells:
        index_comment(connection, row, {}, cells, at_ms)


def _index_file(connection: Connection, key: bytes, at_ms: int) -> None:
    page = page_of_file(key)
    for column in connection.table(schema.PAGES).row(page, columns=[FILE_FAMILY]):
        name = column[len(FILE) :].decode() if column.startswith(FILE) else ""
        if name and key_of_file(page, name) == key:
            index_file(connection, page, name, at_ms)


_INDEX_ANEW: Final = {"page": _index_page, "comment": _index_comment, "file": _index_file}


def _pages_with(connection: Connection, pattern: bytes) -> Iterator[Change]:
    """Yield the pages whose texts match ``pattern``, as changes after which all index cells are written."""
    for begin in _STEPS:
        found = connection.table(schema.PAGES).scan(
            row_prefix=begin, columns=list(_CONTENT), filter=_FILTER % pattern, batch_size=50
        )
        for row, cells in found:
            change = _whole(row, cells)
            if change is not None:
                yield change


def _whole(row: bytes, cells: Cells) -> Change | None:
    """Return a page as a change after which all index cells are written, or None if there is no page."""
    if not is_there(cells):
        return None
    at_ms = stamp_of(cells)
    steps = tuple(ChangedCell("put", column, at_ms, value) for column, value in cells.items())
    # attempt=2: all index cells are written, whatever the indexes have
    return Change(schema.PAGES, row, at_ms, "", steps, cells, {}, attempt=2)
