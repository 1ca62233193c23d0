"""JSON lines: the exact form of an export, one record a line, in UTF-8.

    {"kind":"wikka-export","version":1,"rights":true}                      the first line
    {"kind":"site","lists":{"":{"write":"+"}}}                             if the export has rights
    {"kind":"account","name":"Ada",...}                                    if it has accounts (``account_records``)
    {"kind":"page","name":"Harbour","owner":"Ada","lists":{"read":"*"}}
    {"kind":"revision","number":1,"time_ms":1267458429000,"author":"Ada","body":"..."}
    {"kind":"file","name":"Pier.png","number":1,"time_ms":1267458430000,"author":"Ada","sha256":"..."}
    {"kind":"content","data":"iVBORw0KGgo..."}                             base64, as many lines as the content needs
    {"kind":"comment","number":1,"time_ms":1267458431000,"author":"Visitor 7f3a","text":"..."}
    {"kind":"page","name":"Spam","deleted_ms":1267458432000,"deleted_by":"Ada","reason":"spam"}      a deleted page
    {"kind":"end","pages":1,"revisions":[1,"digest"],"rights":[1,"digest"],"files":[1,"digest"],...}

The fields of a line are those of its record (``records``); a field at its default is left out.  A page's lines follow
its page line: revisions, the oldest first, then files, then comments.  The lines "content" follow the file whose
content they are; with a folder of contents there are none, and FOLDER/ab/abcdef... has the content whose SHA-256 is
abcdef....

Invariants:
    J1. A file without its last line was cut off; reading it to the end raises DamagedExport.
    J2. A line has at most RECORD_LINE_BYTES.

A new version of the format has a new number; a reader refuses numbers that it does not know.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, BinaryIO, Final, TypeVar, cast, get_type_hints

from wikka_port.comments.comment_rows import STATES
from wikka_port.exchange.account_records import AccountRecord, checked_account
from wikka_port.exchange.export_file import ExportFile
from wikka_port.exchange.records import (
    KINDS,
    LISTS,
    CommentRecord,
    DigestingSource,
    Digests,
    ExportError,
    FileRecord,
    PageRecord,
    RecordedFile,
    RecordSource,
    RevisionRecord,
    SiteRecord,
)
from wikka_port.files.file_rows import is_sha256
from wikka_port.import_plan import Origin
from wikka_port.limits import RECORD_LINE_BYTES
from wikka_port.markup.formats import is_format
from wikka_port.names import InvalidName, normalise
from wikka_port.schema import TIME_MAX_MS

VERSION: Final = 1
MARK: Final = b'{"kind":"wikka-export"'  # the first bytes of every file
_GZIP: Final = b"\x1f\x8b"
_DIGESTS: Final = "digests"  # of a checkpoint
_PEOPLE: Final = "accounts"
_KIND: Final = re.compile(rb'\{"kind":"([a-z-]+)"')

Record = TypeVar("Record", PageRecord, RevisionRecord, FileRecord, CommentRecord, AccountRecord)
Keep = Callable[[FileRecord, Iterator[bytes]], None]  # stores a content beside the file
FindContent = Callable[[str], Iterator[bytes]]  # from a digest; raises FileNotFoundError


class DamagedExport(ExportError):
    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line:,}: {why}")
        self.line = line


# --- writing -----------------------------------------------------------------------------------


def write_lines(
    source: RecordSource,
    out: ExportFile,
    keep: Keep | None = None,
    accounts: Iterable[AccountRecord] = (),
) -> Digests:
    """Write all records of ``source``; contents of files go to ``keep``, or into lines without it.

    A continued export keeps the lists of the site and the accounts as they were written.
    """
    digesting = DigestingSource(out.rest_of(source), Digests(out.values.get(_DIGESTS)))
    people = int(out.values[_PEOPLE]) if out.is_continued else _write_head(source, out.write, accounts)
    out.keep_values(lambda: {_DIGESTS: digesting.digests.values(), _PEOPLE: people})
    write = out.write
    for page in digesting.pages():
        write(line_of("page", record_fields(page.record)))
        for revision in page.revisions():
            write(line_of("revision", record_fields(revision)))
        for file in page.files():
            write(line_of("file", record_fields(file.record)))
            if file.content is not None:
                _write_content(file.record, file.content, write, keep)
        for comment in page.comments():
            write(line_of("comment", record_fields(comment)))
    digests = digesting.digests
    sums = {kind: [digests.counts[kind], digests.digest(kind)] for kind in KINDS}
    write(line_of("end", {"pages": digests.pages, **({"accounts": people} if people else {}), **sums}))
    return digests


def _write_head(source: RecordSource, write: Callable[[bytes], object], accounts: Iterable[AccountRecord]) -> int:
    """Write the lines before the pages, and return the number of accounts."""
    site = source.site()
    write(line_of("wikka-export", {"version": VERSION, "rights": site is not None}))
    if site is not None:
        write(line_of("site", {"lists": site.lists}))
    people = 0
    for account in accounts:
        write(line_of("account", record_fields(account)))
        people += 1
    return people


def _write_content(
    record: FileRecord, content: Iterator[bytes], write: Callable[[bytes], object], keep: Keep | None
) -> None:
    if keep is not None:
        keep(record, content)
        return
    for piece in content:
        write(line_of("content", {"data": base64.b64encode(piece).decode()}))


def line_of(kind: str, values: Mapping[str, Any]) -> bytes:
    text = json.dumps({"kind": kind, **values}, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def record_fields(record: PageRecord | RevisionRecord | FileRecord | CommentRecord | AccountRecord) -> dict[str, Any]:
    """Return the fields of a record that are not at their default."""
    found = {}
    for one in fields(record):
        value = getattr(record, one.name)
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        if value != default:
            found[one.name] = dict(value) if isinstance(value, Mapping) else value
    return found


# --- reading -----------------------------------------------------------------------------------


class JsonLines:
    """A ``records.ReadSource``.  ``pages`` raises DamagedExport; it opens the file anew each time."""

    def __init__(self, opened: Callable[[], BinaryIO], find_content: FindContent | None = None) -> None:
        """Take the function that opens the file, and one that finds contents that are not in it."""
        self._opened = opened
        self._find_content = find_content
        self._stream: BinaryIO | None = None  # the one that is being read, or was read last
        self._consumed = 0

    @property
    def consumed(self) -> int:
        """The bytes of the file that were read."""
        if self._stream is not None and not self._stream.closed:
            self._consumed = self._stream.tell()
        return self._consumed

    @property
    def remarks(self) -> list[str]:
        return []

    def site(self) -> SiteRecord | None:
        with self._opened() as stream:
            lines = self._lines(stream)
            if not lines.values("wikka-export").get("rights", True):
                return None
            lines.next_line()
            if lines.kind != "site":
                return SiteRecord()
            return checked_site(lines.values("site").get("lists"), lines.damaged)

    def accounts(self) -> Iterator[AccountRecord]:
        with self._opened() as stream:
            lines = self._lines(stream)
            lines.next_line()
            if lines.kind == "site":
                lines.next_line()
            while lines.kind == "account":
                record = _checked(AccountRecord, lines.values("account"), lines.damaged)
                yield checked_account(record, lines.damaged)
                lines.next_line()

    def pages(self) -> Iterator[LinePage]:
        with self._opened() as stream:
            lines = self._lines(stream)
            lines.next_line()
            if lines.kind == "site":
                lines.next_line()
            accounts = 0
            while lines.kind == "account":
                accounts += 1
                lines.next_line()
            pages = 0
            while lines.kind == "page":
                yield LinePage.begun(lines, self._find_content)
                pages += 1
                while lines.kind in ("revision", "file", "content", "comment"):
                    lines.next_line()
            if lines.values("end").get("pages") != pages:
                raise lines.damaged(f"the last line counts other pages than the {pages:,} before it")
            if lines.values("end").get("accounts", 0) != accounts:
                raise lines.damaged(f"the last line counts other accounts than the {accounts:,} before it")

    def _lines(self, stream: BinaryIO) -> _Lines:
        self._stream = stream
        lines = _Lines.opened(stream)
        lines.next_line()
        version = lines.values("wikka-export").get("version")
        if version != VERSION:
            raise ExportError(f"it has version {version!r} of the form and this program reads {VERSION}")
        return lines


class _Lines:
    """A cursor over the lines; ``kind`` is the present line's, and "" behind the last."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._number = 0
        self._line = b""
        self.kind = ""

    @classmethod
    def opened(cls, stream: BinaryIO) -> _Lines:
        """Begin to read a file, whose first bytes say whether it is compressed."""
        is_packed = stream.read(len(_GZIP)) == _GZIP
        stream.seek(0)
        return cls(cast(BinaryIO, gzip.GzipFile(fileobj=stream)) if is_packed else stream)

    def next_line(self) -> None:
        try:
            self._line = self._stream.readline(RECORD_LINE_BYTES + 1)
        except (EOFError, OSError, ValueError) as damage:  # of gzip
            raise self.damaged(f"the compressed file is damaged or ends early ({damage})") from None
        self._number += 1
        if len(self._line) > RECORD_LINE_BYTES:
            raise self.damaged(f"it is longer than {RECORD_LINE_BYTES:,} bytes")
        if self._line and not self._line.endswith(b"\n"):
            raise self.damaged("the file ends within it: the export was cut off")
        found = _KIND.match(self._line)
        self.kind = found[1].decode() if found else str(self._parsed().get("kind", "")) if self._line else ""

    def values(self, kind: str) -> dict[str, Any]:
        """Return the fields of the present line.  Raises DamagedExport if it is of another kind."""
        if self.kind != kind:
            found = f"it is a line “{self.kind}”" if self._line else "the file ends: the export was cut off"
            raise self.damaged(f"{found}; expected was “{kind}”")
        values = self._parsed()
        values.pop("kind", None)
        return values

    def _parsed(self) -> dict[str, Any]:
        try:
            found = json.loads(self._line)
        except (ValueError, RecursionError) as error:
            raise self.damaged(f"it is no JSON ({error})") from None
        if not isinstance(found, dict):
            raise self.damaged("it is no record")
        return found

    def damaged(self, why: str) -> DamagedExport:
        return DamagedExport(self._number, why)


class LinePage:
    """A ``records.RecordedPage``."""

    def __init__(self, record: PageRecord, lines: _Lines, find_content: FindContent | None) -> None:
        self.record = record
        self._lines = lines
        self._find_content = find_content
        self._contents: set[str] = set()

    @classmethod
    def begun(cls, lines: _Lines, find_content: FindContent | None) -> LinePage:
        """Read the page's own line, which is the present one."""
        record = checked_page(lines.values("page"), lines.damaged)
        lines.next_line()
        return cls(record, lines, find_content)

    def revisions(self) -> Iterator[RevisionRecord]:
        last: RevisionRecord | None = None
        while self._lines.kind == "revision":
            one = checked_revision(self._lines.values("revision"), self._lines.damaged)
            if last is not None and one.time_ms <= last.time_ms:
                raise self._lines.damaged("the revision is not later than the one before it")
            yield one
            last = one
            self._lines.next_line()
        if last is None or last.hidden:
            raise self._lines.damaged("the page's newest revision is missing or hidden")

    def files(self) -> Iterator[RecordedFile]:
        while self._lines.kind in ("revision", "content"):
            self._lines.next_line()
        while self._lines.kind == "file":
            one = checked_file(self._lines.values("file"), self._lines.damaged)
            self._lines.next_line()
            yield RecordedFile(one, self._content_of(one))
            while self._lines.kind == "content":
                self._lines.next_line()

    def comments(self) -> Iterator[CommentRecord]:
        while self._lines.kind in ("revision", "content", "file"):
            self._lines.next_line()
        last = 0
        while self._lines.kind == "comment":
            one = checked_comment(self._lines.values("comment"), self._lines.damaged, last)
            yield one
            last = one.number
            self._lines.next_line()

    def _content_of(self, one: FileRecord) -> Iterator[bytes] | None:
        if not one.sha256 or one.sha256 in self._contents:
            return None
        self._contents.add(one.sha256)
        if self._lines.kind == "content" or not one.size_bytes:
            return self._pieces()
        if self._find_content is None:
            return None
        try:
            return self._find_content(one.sha256)
        except FileNotFoundError:
            return None

    def _pieces(self) -> Iterator[bytes]:
        while self._lines.kind == "content":
            try:
                yield base64.b64decode(str(self._lines.values("content").get("data", "")), validate=True)
            except binascii.Error as error:
                raise self._lines.damaged(f"the content is no base64 ({error})") from None
            self._lines.next_line()


# --- checks of records ---------------------------------------------------------------------------

Damaged = Callable[[str], ExportError]


@cache
def _types(record: Any) -> dict[str, tuple[Any, bool]]:
    """Return the type of each field, and whether it must be given."""
    hints = get_type_hints(record)
    required = {one.name: one.default is MISSING and one.default_factory is MISSING for one in fields(record)}
    return {name: (hints[name], needed) for name, needed in required.items()}


def _checked(record: type[Record], values: Mapping[str, Any], damaged: Damaged) -> Record:
    made: Any = record
    known = _types(made)
    for name, value in values.items():
        kind = known.get(name, (None, False))[0]
        if kind is None:
            raise damaged(f"there is no field {name!r}: was it written by a newer version?")
        fits = type(value) is kind if kind in (int, bool, str) else isinstance(value, str | dict)
        if not fits or (kind is int and value < 0):
            raise damaged(f"the field {name!r} has a value of another type")
    missing = [name for name, (_, needed) in known.items() if needed and name not in values]
    if missing:
        raise damaged(f"the field {missing[0]!r} is missing")
    return record(**values)


def checked_page(values: Mapping[str, Any], damaged: Damaged) -> PageRecord:
    page = _checked(PageRecord, values, damaged)
    try:
        if normalise(page.name) != page.name:
            raise damaged(f"{page.name!r} is not the form in which the name is stored: {normalise(page.name)!r}")
    except InvalidName as invalid:
        raise damaged(str(invalid)) from None
    _check_lists(page.lists, damaged)
    if page.deleted_ms > TIME_MAX_MS or (not page.is_deleted and (page.deleted_by or page.reason)):
        raise damaged("the time of the deletion is missing or too late")
    return page


def checked_revision(values: Mapping[str, Any], damaged: Damaged) -> RevisionRecord:
    one = _checked(RevisionRecord, values, damaged)
    if one.time_ms > TIME_MAX_MS:
        raise damaged("the time of the revision is too late")
    if not is_format(one.markup):
        raise damaged(f"there is no format {one.markup!r}: was it written by a newer version?")
    if one.origin and Origin.parse(one.origin.encode("utf-8", "replace")) is None:
        raise damaged(f"{one.origin!r} is no origin")
    return one


def checked_file(values: Mapping[str, Any], damaged: Damaged) -> FileRecord:
    one = _checked(FileRecord, values, damaged)
    if one.sha256 and not is_sha256(one.sha256):
        raise damaged(f"{one.sha256!r} is no SHA-256")
    return one


def checked_comment(values: Mapping[str, Any], damaged: Damaged, last: int) -> CommentRecord:
    """Return a comment of a page after the one of the number ``last``."""
    one = _checked(CommentRecord, values, damaged)
    if one.number <= last or one.parent >= one.number:
        raise damaged("a comment comes before one that it should follow")
    if one.time_ms > TIME_MAX_MS or one.edited_ms > TIME_MAX_MS:
        raise damaged("the time of the comment is too late")
    if one.state not in STATES:
        raise damaged(f"a comment has no state {one.state!r}: was it written by a newer version?")
    return one


def checked_site(lists: object, damaged: Damaged) -> SiteRecord:
    if not isinstance(lists, dict):
        raise damaged("the site's lists are missing")
    for of_prefix in lists.values():
        _check_lists(of_prefix, damaged)
    return SiteRecord(lists)


def _check_lists(lists: object, damaged: Damaged) -> None:
    if not isinstance(lists, Mapping) or not all(key in LISTS and isinstance(lists[key], str) for key in lists):
        raise damaged("the lists of rights are not by " + ", ".join(LISTS))
