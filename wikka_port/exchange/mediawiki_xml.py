"""A wiki as MediaWiki's XML, valid against export-0.11, with our own records in processing instructions.

    <mediawiki ...><siteinfo>...</siteinfo>
      <?wikka-export {"version":1,"rights":true,"lists":{"":{"write":"+"}}}?>
      <page><title>Harbour</title><ns>0</ns><id>1</id>
        <?wikka-page {"name":"Harbour","owner":"Ada"}?>
        <revision>... <text>wikitext</text><sha1>...</sha1><?wikka-revision {"number":1,"body":"..."}?></revision>
        <?wikka-file {"name":"pier.png",...}?><?wikka-content {"data":"base64"}?>
      </page>
    </mediawiki>
    <?wikka-end {"pages":1}?>

The text of an imported revision is the original wikitext.  The text of a revision that was written here is converted
(``markup.wikitext_writing``).  A hidden revision has no text in MediaWiki's sense.  A deleted page has no element: it
is in instructions alone, behind all others.

MediaWiki's schema has no room for further elements.  Processing instructions are valid everywhere, and MediaWiki's
importer passes over them.  Their JSON is ASCII, and ``?`` in it is written ``\\u003f``, so ``?>`` and characters that
XML refuses never occur.  Fields are those of ``records``, as in ``json_lines``; the original text is in the JSON only
if XML cannot carry it.

Titles have no characters that MediaWiki refuses: these become their full-width forms.  The instruction has the name.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from xml.sax.saxutils import escape

from wikka_port.exchange.export_file import ExportFile
from wikka_port.exchange.json_lines import VERSION, record_fields
from wikka_port.exchange.records import (
    CommentRecord,
    DigestingSource,
    Digests,
    PageRecord,
    RecordedFile,
    RecordSource,
    RevisionRecord,
)
from wikka_port.markup.wikitext_writing import to_wikitext

MARK: Final = b"<?wikka-export "
NAMESPACES: Final[Mapping[int, str]] = {
    -2: "Media",
    -1: "Special",
    0: "",
    1: "Talk",
    2: "User",
    3: "User talk",
    4: "Project",
    5: "Project talk",
    6: "File",
    7: "File talk",
    8: "MediaWiki",
    9: "MediaWiki talk",
    10: "Template",
    11: "Template talk",
    12: "Help",
    13: "Help talk",
    14: "Category",
    15: "Category talk",
}
_BY_NAME: Final = {name.lower(): number for number, name in NAMESPACES.items() if number > 0}
_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FULL_WIDTH: Final = str.maketrans({char: chr(ord(char) + 0xFEE0) for char in "#<>[]{}|"})
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_SHA1_DIGITS: Final = 31
_DIGESTS: Final = "digests"  # of a checkpoint
_PAGES: Final = "pages"
_REVISIONS: Final = "revisions"
_HEAD: Final = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    ' xsi:schemaLocation="http://www.mediawiki.org/xml/export-0.11/ http://www.mediawiki.org/xml/export-0.11.xsd"'
    ' version="0.11" xml:lang="en">\n'
)

Write = Callable[[bytes], object]


def write_mediawiki(source: RecordSource, out: ExportFile) -> Digests:
    """Write the whole document."""
    digesting = DigestingSource(out.rest_of(source), Digests(out.values.get(_DIGESTS)))
    writer = _XmlWriter(out.write, out.values)
    if not out.is_continued:
        site = source.site()
        writer.begin({"version": VERSION, "rights": site is not None, "lists": site.lists if site is not None else {}})
    out.keep_values(lambda: {_DIGESTS: digesting.digests.values(), **writer.values()})
    for page in digesting.pages():
        writer.begin_page(page.record)
        for one in page.revisions():
            if page.record.is_deleted:
                writer.write_exact_revision(one)
            else:
                writer.write_revision(one)
        for file in page.files():
            writer.write_file(file)
        for comment in page.comments():
            writer.write_comment(comment)
        writer.end_page(page.record)
    writer.end()
    return digesting.digests


class _XmlWriter:
    def __init__(self, write: Write, values: Mapping[str, Any]) -> None:
        """Go on from the ``values`` of a checkpoint; {} for none."""
        self._write = write
        self._pages = int(values.get(_PAGES, 0))
        self._revisions = int(values.get(_REVISIONS, 0))
        self._parent = 0  # id of the revision before, 0 for a page's first

    def values(self) -> dict[str, int]:
        return {_PAGES: self._pages, _REVISIONS: self._revisions}

    def _put(self, text: str) -> None:
        self._write(text.encode("utf-8", "replace"))

    def begin(self, head: Mapping[str, Any]) -> None:
        names = "".join(
            f'<namespace key="{number}" case="case-sensitive">{name}</namespace>' for number, name in NAMESPACES.items()
        )
        self._put(_HEAD)
        self._put(
            "<siteinfo><sitename>Wikka</sitename><generator>wikka export</generator><case>case-sensitive</case>"
            f"<namespaces>{names}</namespaces><namespacealiases></namespacealiases></siteinfo>\n"
        )
        self._put(_instruction("wikka-export", head) + "\n")

    def begin_page(self, page: PageRecord) -> None:
        self._pages += 1
        self._parent = 0
        title = title_of(page.name)
        if not page.is_deleted:
            self._put(f"<page><title>{escape(title)}</title><ns>{namespace_of(title)}</ns><id>{self._pages}</id>\n")
        self._put(_instruction("wikka-page", record_fields(page)) + "\n")

    def write_exact_revision(self, one: RevisionRecord) -> None:
        """Write a revision for the way back alone."""
        self._put(_instruction("wikka-revision", record_fields(one)) + "\n")

    def write_revision(self, one: RevisionRecord) -> None:
        self._revisions += 1
        parent = f"<parentid>{self._parent}</parentid>" if self._parent else ""
        self._parent = self._revisions
        text, values = _text_of(one)
        at = datetime.fromtimestamp(one.time_ms // 1000, UTC)
        data = text.encode("utf-8", "replace")
        written = f'<text bytes="{len(data)}" xml:space="preserve">{_escaped(text)}</text><sha1>{_sha1(data)}</sha1>'
        if one.hidden:
            written = '<text deleted="deleted" /><sha1></sha1>'
        self._put(
            f"<revision><id>{self._revisions}</id>{parent}<timestamp>{at:%Y-%m-%dT%H:%M:%SZ}</timestamp>"
            f"<contributor><username>{_escaped(_line(one.author) or 'Unknown')}</username><id>0</id></contributor>"
            f"{'<minor/>' if one.minor else ''}<comment>{_escaped(_line(one.note))}</comment>"
            "<model>wikitext</model><format>text/x-wiki</format>"
            f"{written}\n"
            f"{_instruction('wikka-revision', values)}</revision>\n"
        )

    def write_file(self, file: RecordedFile) -> None:
        self._put(_instruction("wikka-file", record_fields(file.record)) + "\n")
        for piece in file.content or ():
            self._put(_instruction("wikka-content", {"data": base64.b64encode(piece).decode()}) + "\n")

    def write_comment(self, one: CommentRecord) -> None:
        self._put(_instruction("wikka-comment", record_fields(one)) + "\n")

    def end_page(self, page: PageRecord) -> None:
        self._put("" if page.is_deleted else "</page>\n")

    def end(self) -> None:
        self._put("</mediawiki>\n" + _instruction("wikka-end", {"pages": self._pages}) + "\n")


def title_of(name: str) -> str:
    """Return a title that MediaWiki takes, as far as its characters decide."""
    return name.translate(_FULL_WIDTH)


def namespace_of(title: str) -> int:
    space, colon, rest = title.partition(":")
    return _BY_NAME.get(space.strip().lower(), 0) if colon and rest.strip() else 0


def _text_of(one: RevisionRecord) -> tuple[str, dict[str, Any]]:
    """Return the wikitext, and the fields of the instruction.

    ``"source":true`` says that the text is the original; a text that XML cannot carry is in the field itself.
    """
    values = record_fields(one)
    if one.source is None:
        return _NO_XML.sub("\ufffd", to_wikitext(one.body, autolink=one.autolink, markup=one.markup)), values
    if not one.hidden and not _NO_XML.search(one.source):
        values["source"] = True
    return _NO_XML.sub("\ufffd", one.source), values


def _escaped(text: str) -> str:
    return escape(_NO_XML.sub("\ufffd", text), {"\r": "&#13;"})


def _line(text: str) -> str:
    return " ".join(text.split())


def _instruction(target: str, values: Mapping[str, Any]) -> str:
    text = json.dumps(values, separators=(",", ":")).replace("?", "\\u003f")
    return f"<?{target} {text}?>"


def _sha1(data: bytes) -> str:
    number, digits = int.from_bytes(hashlib.sha1(data, usedforsecurity=False).digest(), "big"), ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits.rjust(_SHA1_DIGITS, "0")
