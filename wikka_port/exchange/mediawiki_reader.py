"""The way back of ``mediawiki_xml``: records from the processing instructions of its XML.

The document is parsed in pieces; a page's instructions are taken from a queue as they come, so memory holds one piece
and one revision.  The original text of a revision comes from its element ``text`` if the instruction says so.

Knows nothing of MediaWiki beside that: a file without our instructions is for ``dump``.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, NoReturn
from xml.parsers import expat

from wikka_port.dump_bytes import DumpBytes
from wikka_port.exchange.json_lines import (
    VERSION,
    checked_comment,
    checked_file,
    checked_page,
    checked_revision,
    checked_site,
)
from wikka_port.exchange.records import CommentRecord, ExportError, PageRecord, RecordedFile, RevisionRecord, SiteRecord

_TARGETS: Final = frozenset({"export", "page", "revision", "file", "content", "comment", "end"})


@dataclass(frozen=True, slots=True)
class _Instruction:
    kind: str  # of _TARGETS; "": the document has ended
    values: dict[str, Any]
    text: str = ""  # of the element before


class DamagedXml(ExportError):
    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line:,} of the XML: {why}")


class MediaWikiExport:
    """A ``records.ReadSource``."""

    def __init__(self, opened: Callable[[], BinaryIO]) -> None:
        self.consumed = 0
        self._opened = opened

    @property
    def remarks(self) -> list[str]:
        return []

    def site(self) -> SiteRecord | None:
        with self._opened() as stream:
            head = self._begun(stream).present.values
        if not head.get("rights", True):
            return None
        return checked_site(head.get("lists"), ExportError)

    def pages(self) -> Iterator[XmlPage]:
        with self._opened() as stream:
            cursor = self._begun(stream)
            cursor.next_instruction()
            pages = 0
            while cursor.present.kind == "page":
                record = checked_page(cursor.present.values, cursor.damaged)
                cursor.next_instruction()
                yield XmlPage(record, cursor)
                pages += 1
                while cursor.present.kind in ("revision", "file", "content", "comment"):
                    cursor.next_instruction()
                self.consumed = cursor.consumed
            if cursor.present.kind != "end" or cursor.present.values.get("pages") != pages:
                raise cursor.damaged("the document ends early: the export was cut off")

    def _begun(self, stream: BinaryIO) -> _Cursor:
        cursor = _Cursor(stream)
        cursor.next_instruction()
        if cursor.present.kind != "export":
            raise cursor.damaged("it is no export of this program")
        version = cursor.present.values.get("version")
        if version != VERSION:
            raise ExportError(f"it has version {version!r} of the form and this program reads {VERSION}")
        return cursor


class _Cursor:
    """The instructions of a document, one after another."""

    def __init__(self, stream: BinaryIO) -> None:
        self.present = _Instruction("", {})
        self._pieces = DumpBytes(stream)
        self._left = iter(self._pieces)
        self._found: deque[_Instruction] = deque()
        self._text: list[str] | None = None
        self._last_text = ""
        self._parser = self._made_parser()

    def _made_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate()
        handlers = {
            "buffer_text": True,
            "StartElementHandler": self._start,
            "EndElementHandler": self._end,
            "CharacterDataHandler": self._data,
            "ProcessingInstructionHandler": self._instruction,
            "StartDoctypeDeclHandler": self._doctype,
        }
        for name, handler in handlers.items():
            setattr(parser, name, handler)
        return parser

    @property
    def consumed(self) -> int:
        return self._pieces.consumed

    def next_instruction(self) -> None:
        while not self._found:
            piece = next(self._left, b"")
            try:
                self._parser.Parse(piece, not piece)
            except expat.ExpatError as error:
                why = "the document ends early: the export was cut off" if not piece else expat.ErrorString(error.code)
                raise self.damaged(why) from None
            if not piece and not self._found:
                self.present = _Instruction("", {})
                return
        self.present = self._found.popleft()

    def damaged(self, why: str) -> DamagedXml:
        return DamagedXml(self._parser.CurrentLineNumber, why)

    def _start(self, name: str, _attributes: dict[str, str]) -> None:
        self._text = [] if name == "text" else None

    def _end(self, name: str) -> None:
        if name == "text" and self._text is not None:
            self._last_text = "".join(self._text)
        self._text = None

    def _data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def _instruction(self, target: str, data: str) -> None:
        kind = target.removeprefix("wikka-")
        if kind == target or kind not in _TARGETS:
            return
        try:
            values = json.loads(data)
        except ValueError as error:
            raise self.damaged(f"the instruction {target} is no JSON ({error})") from None
        if not isinstance(values, dict):
            raise self.damaged(f"the instruction {target} is no record")
        self._found.append(_Instruction(kind, values, self._last_text if kind == "revision" else ""))

    def _doctype(self, *_: object) -> NoReturn:
        raise self.damaged("it has a document type declaration, which exports never have")


class XmlPage:
    """A ``records.RecordedPage``."""

    def __init__(self, record: PageRecord, cursor: _Cursor) -> None:
        self.record = record
        self._cursor = cursor

    def revisions(self) -> Iterator[RevisionRecord]:
        last: RevisionRecord | None = None
        while self._cursor.present.kind == "revision":
            values = self._cursor.present.values
            if values.get("source") is True:
                values["source"] = self._cursor.present.text
            one = checked_revision(values, self._cursor.damaged)
            if last is not None and one.time_ms <= last.time_ms:
                raise self._cursor.damaged("the revision is not later than the one before it")
            self._cursor.next_instruction()
            yield one
            last = one
        if last is None or last.hidden:
            raise self._cursor.damaged("the page's newest revision is missing or hidden")

    def files(self) -> Iterator[RecordedFile]:
        while self._cursor.present.kind in ("revision", "content"):
            self._cursor.next_instruction()
        while self._cursor.present.kind == "file":
            one = checked_file(self._cursor.present.values, self._cursor.damaged)
            self._cursor.next_instruction()
            is_first = self._cursor.present.kind == "content"
            yield RecordedFile(one, self._pieces() if is_first or (one.sha256 and not one.size_bytes) else None)
            while self._cursor.present.kind == "content":
                self._cursor.next_instruction()

    def comments(self) -> Iterator[CommentRecord]:
        while self._cursor.present.kind in ("revision", "content", "file"):
            self._cursor.next_instruction()
        last = 0
        while self._cursor.present.kind == "comment":
            one = checked_comment(self._cursor.present.values, self._cursor.damaged, last)
            self._cursor.next_instruction()
            yield one
            last = one.number

    def _pieces(self) -> Iterator[bytes]:
        while self._cursor.present.kind == "content":
            try:
                yield base64.b64decode(str(self._cursor.present.values.get("data", "")), validate=True)
            except binascii.Error as error:
                raise self._cursor.damaged(f"a content is no base64 ({error})") from None
            self._cursor.next_instruction()
