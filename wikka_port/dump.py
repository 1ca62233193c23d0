"""A MediaWiki XML export as a stream of events, in constant memory.

    events := DumpSite (PageStart Revision* PageEnd)*

A single revision is in memory at a time, however many revisions its page has.
The reader opens no file: it reads from a binary stream that the caller opened.  ``bytes_consumed``
is the position in that stream (before decompression), for a progress bar that need not know the number of pages.

Invariants:
    I1. An iteration ends without an exception only if ``</mediawiki>`` was read.
    I2. Every PageStart is followed by its PageEnd or by an exception.
    I3. A document type declaration is refused before any of its entities could be used.
    I4. Elements that one of MediaWiki's schemas (export-0.1 to 0.11) calls optional may be missing: ids, the site,
        numbers of namespaces (before 0.6, when titles imply them), models of content (before 0.8, when titles imply
        them, too).

Knows nothing of our tables, and nothing of markup beyond MediaWiki's own names of namespaces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import BinaryIO, Final, NoReturn
from xml.parsers import expat

from wikka_port.dump_bytes import DamagedDump, DumpBytes, DumpError, NotADump
from wikka_port.markup.mediawiki_titles import CANONICAL

__all__ = [
    "DamagedDump",
    "DumpError",
    "DumpEvent",
    "DumpReader",
    "DumpSite",
    "NotADump",
    "PageEnd",
    "PageStart",
    "Revision",
]

WIKITEXT: Final = "wikitext"
_USER: Final = 2
_MEDIAWIKI: Final = 8
_TEMPLATE: Final = 10
_MODULE: Final = 828
_ENDINGS: Final = {".css": "css", ".js": "javascript", ".json": "json"}
FIELD_CHARS_MAX: Final = 32 * 1024 * 1024  # one text; MediaWiki's own bound is 2 MB, files beyond are hostile
DEPTH_MAX: Final = 32  # the format needs 5
# The parser buffers a tag until its end, and a tag with an attribute of 600 MB may be 700 bytes of bzip2.  Tags of
# exports are short.
SILENT_BYTES_MAX: Final = 4 * 1024 * 1024  # of XML in which no tag and no text ends


@dataclass(frozen=True, slots=True)
class DumpSite:
    name: str
    base: str  # address of the main page, for the attribution
    language: str
    capitalised: bool  # whether the first letter of a title is always upper case
    namespaces: Mapping[str, int]  # name in the site's language -> number; "" is 0
    aliases: Mapping[str, int] = field(default_factory=dict)  # other names of namespaces
    cases: Mapping[int, bool] = field(default_factory=dict)  # ``capitalised`` of namespaces, if the dump states it


@dataclass(frozen=True, slots=True)
class PageStart:
    title: str  # with the namespace's name before it
    namespace: int
    page_id: int | None
    redirect_target: str | None  # "": a redirect whose target the dump does not give
    ordinal: int  # the first page of the file is 0; skipped pages count


@dataclass(frozen=True, slots=True)
class Revision:
    revision_id: int | None
    timestamp_ms: int  # UTC
    contributor: str | None  # user name or address; None if the site hid it
    anonymous: bool  # the contributor is an address
    comment: str
    text: str | None  # None if the site hid it
    sha1: str | None  # as the dump has it (base 36 of the text's SHA-1)
    minor: bool
    model: str  # "wikitext", "Scribunto", "css", ...
    size_bytes: int | None = None  # of the text, as the dump has it
    slots: int = 0  # number of texts beside the page's own; the reader skips these texts


@dataclass(frozen=True, slots=True)
class PageEnd:
    page_id: int | None
    revisions: int


DumpEvent = DumpSite | PageStart | Revision | PageEnd
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_Damage = Callable[[str], DamagedDump]

# Elements whose character data we keep, by their parent element.
_KEPT: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "siteinfo": frozenset({"sitename", "base", "case"}),
        "namespaces": frozenset({"namespace"}),
        "namespacealiases": frozenset({"namespace", "namespacealias"}),
        "page": frozenset({"title", "ns", "id"}),
        "revision": frozenset({"id", "timestamp", "comment", "text", "sha1", "model"}),
        "contributor": frozenset({"username", "ip"}),
    }
)


class DumpReader:
    """Iterator over the events of one dump, from the position of ``stream``; raises NotADump or DamagedDump.

    The first ``skip_pages`` pages are parsed, for the file has no index, but yield no events and build no strings.
    """

    def __init__(self, stream: BinaryIO, *, skip_pages: int = 0) -> None:
        self._bytes = DumpBytes(stream)
        self._document = _Document(skip_pages, self._damaged)
        self._parser = self._document.parser()
        self._silent = 0  # bytes since the parser last said something
        self._events = self._run()

    @property
    def bytes_consumed(self) -> int:
        return self._bytes.consumed

    def __iter__(self) -> Iterator[DumpEvent]:
        return self

    def __next__(self) -> DumpEvent:
        return next(self._events)

    def _run(self) -> Iterator[DumpEvent]:
        for piece in self._bytes:
            yield from self._parse(piece, final=False)
        yield from self._parse(b"", final=True)
        if self._document.is_log:
            raise NotADump("it is a dump of logs, which has no pages: take pages-articles or pages-meta-history")

    def _parse(self, piece: bytes, *, final: bool) -> Iterator[DumpEvent]:
        """Yield the events of one piece.  Events before some damage are delivered before the damage is raised."""
        failure = self._feed(piece, final=final)
        events = self._document.events
        while events:
            yield events.popleft()
        if failure is not None:
            raise failure

    def _feed(self, piece: bytes, *, final: bool) -> DumpError | None:
        said = self._document.said
        try:
            self._parser.Parse(piece, final)
        except DumpError as error:  # from our own callbacks
            return error
        except expat.ExpatError as error:
            why = expat.ErrorString(error.code)
            if not self._document.said:
                return NotADump(f"it is no XML ({why})")
            return self._damaged("the file ends before </mediawiki> (truncated?)" if final else why)
        except (ValueError, LookupError) as error:  # the dump names an encoding that Python does not have
            return NotADump(str(error))
        self._silent = 0 if self._document.said != said else self._silent + len(piece)
        if self._silent > SILENT_BYTES_MAX:
            why = f"a tag or a comment of over {SILENT_BYTES_MAX:,} bytes, which no export has"
            return self._damaged(why) if self._document.said else NotADump(f"it begins with {why}")
        return None

    def _damaged(self, why: str) -> DamagedDump:
        parser = self._parser
        return DamagedDump(
            why,
            file_byte=self._bytes.consumed,
            xml_byte=max(parser.CurrentByteIndex, 0),
            line=parser.CurrentLineNumber,
        )


class _SiteInfo:
    """The dump's description of its site, with all names of the site's namespaces."""

    def __init__(self, language: str) -> None:
        self._language = language
        self.is_known = False  # the element has ended, or is missing
        self._names: dict[str, dict[str, int]] = {"namespaces": {}, "namespacealiases": {}}
        self._cases: dict[int, bool] = {}
        self._numbers: dict[str, int] = {}  # by name in lower case

    def add_namespace(self, parent: str, name: str, number: int, case: str | None) -> None:
        self._names[parent][name] = number
        if parent == "namespaces" and case is not None:
            self._cases[number] = case == "first-letter"

    def end(self, fields: Mapping[str, str]) -> DumpSite:
        self.is_known = True
        namespaces, aliases = self._names["namespaces"], self._names["namespacealiases"]
        named = (*CANONICAL.items(), *aliases.items(), *namespaces.items())
        self._numbers = {name.lower(): number for name, number in named if name}
        return DumpSite(
            name=fields.get("sitename", ""),
            base=fields.get("base", ""),
            language=self._language,
            capitalised=fields.get("case", "first-letter") == "first-letter",
            namespaces=MappingProxyType(namespaces),
            aliases=MappingProxyType(aliases),
            cases=MappingProxyType(self._cases),
        )

    def namespace_of(self, title: str) -> int:
        """Return the namespace named before the title's colon; dumps before 0.6 state it nowhere else."""
        prefix, colon, rest = title.partition(":")
        return self._numbers.get(prefix.strip().replace("_", " ").lower(), 0) if colon and rest.strip() else 0


class _Document:
    """Turns the callbacks of expat into events.  Owned by one reader."""

    def __init__(self, skip_pages: int, damaged: _Damage) -> None:
        self.events: deque[DumpEvent] = deque()
        self.said = 0  # how often the parser has called; 0: the root element was not ours
        self._pages = 0
        self._log_items = 0
        self._skip_pages = skip_pages
        self._damaged = damaged
        self._path: list[str] = []
        self._chars: list[str] | None = None  # character data of the element being kept
        self._size = 0
        self._site = _SiteInfo("")
        self._fields: dict[str, str] = {}  # of the siteinfo, or of the page's head
        self._attributes: Mapping[str, str] = {}  # of the namespace that is open
        self._page: PageStart | None = None  # its head is complete
        self._passing = False  # this page is passed over
        self._revision: dict[str, str] = {}
        self._revisions = 0

    def parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = 256 * 1024
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        parser.StartDoctypeDeclHandler = self._doctype
        return parser

    def _doctype(self, *_: object) -> NoReturn:
        raise NotADump("it has a document type declaration, which exports never have and bombs need")

    @property
    def is_log(self) -> bool:
        return self._pages == 0 and self._log_items > 0

    # -- elements -------------------------------------------------------------------

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.said += 1
        path = self._path
        if not path:
            if name != "mediawiki":
                raise NotADump(f"the outermost element is <{name[:80]}>, not <mediawiki>")
            self._site = _SiteInfo(attributes.get("xml:lang", ""))
        parent = path[-1] if path else ""
        path.append(name)
        if len(path) > DEPTH_MAX:
            raise self._damaged(f"elements are nested more than {DEPTH_MAX} deep")
        if name == "page" and len(path) == 2:
            self._begin_page()
        elif self._passing:
            return
        elif name == "revision" and parent == "page":
            self._begin_revision()
        elif parent == "revision":
            self._start_of_revision(name, attributes)
        elif name == "redirect" and parent == "page":
            self._fields["redirect"] = attributes.get("title", "")
        elif parent in ("namespaces", "namespacealiases"):
            self._attributes = attributes
        elif name == "logitem":
            self._log_items += 1
        if not self._passing and name in _KEPT.get(parent, ()):
            if "deleted" not in attributes:
                self._chars, self._size = [], 0
        else:
            self._chars = None

    def _start_of_revision(self, name: str, attributes: dict[str, str]) -> None:
        fields = self._revision
        if name == "minor":
            fields["minor"] = "1"
        elif name == "content":
            fields["slots"] = str(int(fields.get("slots", "0")) + 1)
        elif name == "text" and "deleted" not in attributes:
            fields["bytes"], fields["text sha1"] = attributes.get("bytes", ""), attributes.get("sha1", "")
            if "id" in attributes or "location" in attributes:
                fields["elsewhere"] = "1"

    def _data(self, data: str) -> None:
        self.said += 1
        if self._chars is None:
            return
        self._size += len(data)
        if self._size > FIELD_CHARS_MAX:
            raise self._damaged(f"<{self._path[-1]}> is longer than {FIELD_CHARS_MAX} characters")
        self._chars.append(data)

    def _end(self, name: str) -> None:
        self.said += 1
        self._path.pop()
        parent = self._path[-1] if self._path else ""
        if name == "page" and parent == "mediawiki":
            self._end_page()
        elif self._passing:
            return
        elif self._chars is not None:
            self._keep(parent, name, "".join(self._chars))
        elif name == "revision" and parent == "page":
            self._end_revision()
        elif name == "siteinfo" and parent == "mediawiki":
            self._end_site()
        self._chars = None

    def _keep(self, parent: str, name: str, value: str) -> None:
        if parent in ("namespaces", "namespacealiases"):
            self._keep_namespace(parent, value)
        elif parent in ("revision", "contributor"):
            self._revision[name] = value
        else:
            self._fields[name] = value

    def _keep_namespace(self, parent: str, name: str) -> None:
        key = self._attributes.get("key", "")
        if parent == "namespaces" or key:
            number = self._integer(key, "key of a namespace")
            self._site.add_namespace(parent, name, number, self._attributes.get("case"))

    # -- what the elements mean -----------------------------------------------------

    def _end_site(self) -> None:
        fields, self._fields = self._fields, {}
        self.events.append(self._site.end(fields))

    def _begin_page(self) -> None:
        if not self._site.is_known:
            self._end_site()  # the element is optional, and missing before 0.3
        self._pages += 1
        self._fields, self._page, self._revisions = {}, None, 0
        self._passing = self._pages <= self._skip_pages

    def _start_page(self) -> PageStart:
        """Emit PageStart, when the page's first revision begins, or when the page ends without a revision."""
        title = self._fields.get("title", "")
        if not title:
            raise self._damaged("a page has no title")
        page_id = self._optional("id", f"id of page {title!r}")
        namespace = self._optional("ns", f"namespace of page {title!r}")
        if namespace is None:
            namespace = self._site.namespace_of(title)
        page = PageStart(title, namespace, page_id, self._fields.get("redirect"), self._pages - 1)
        self.events.append(page)
        return page

    def _optional(self, name: str, what: str) -> int | None:
        return self._integer(self._fields[name], what) if self._fields.get(name, "").strip() else None

    def _end_page(self) -> None:
        if not self._passing:
            self._page = self._page or self._start_page()
            self.events.append(PageEnd(self._optional("id", "id of a page"), self._revisions))
        self._passing, self._chars = False, None

    def _begin_revision(self) -> None:
        self._page = self._page or self._start_page()
        self._revision = {}

    def _end_revision(self) -> None:
        fields, self._revision = self._revision, {}
        page = self._page
        assert page is not None, "a revision has begun"
        self._revisions += 1
        size = self._integer(fields["bytes"], "size of a text") if fields.get("bytes") else None
        text = fields.get("text")
        if text == "" and size != 0 and "elsewhere" in fields:
            raise NotADump(
                f"it is a stub, which has no texts (page {page.title!r} is the first): "
                "take the dump with the texts, pages-articles or pages-meta-history"
            )
        self.events.append(
            Revision(
                revision_id=self._integer(fields["id"], "id of a revision") if fields.get("id", "").strip() else None,
                timestamp_ms=self._instant(fields.get("timestamp", "")),
                contributor=fields.get("username") or fields.get("ip") or None,
                anonymous="username" not in fields and "ip" in fields,
                comment=fields.get("comment", ""),
                text=text,
                # If a revision has several texts, its own checksum is that of all texts together.
                sha1=fields.get("text sha1") or (fields.get("sha1") if "slots" not in fields else None) or None,
                minor="minor" in fields,
                model=fields.get("model") or model_of_title(page.title, page.namespace),
                size_bytes=size,
                slots=int(fields.get("slots", "0")),
            )
        )

    def _integer(self, text: str, what: str) -> int:
        # The length is checked first: for very long numbers int() raises a different error.
        digits = text.strip()
        if not digits.removeprefix("-").isascii() or not digits.removeprefix("-").isdigit() or len(digits) > 18:
            raise self._damaged(f"the {what} is {text[:40]!r}, not a number")
        return int(digits)

    def _instant(self, text: str) -> int:
        """Return the time of an xsd:dateTime, which may have a fraction and a zone; without a zone it is UTC."""
        try:
            instant = datetime.fromisoformat(text.strip())
        except ValueError:
            raise self._damaged(f"the time of a revision is {text[:40]!r}") from None
        since = (instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)) - _EPOCH
        return since // timedelta(milliseconds=1)


def model_of_title(title: str, namespace: int) -> str:
    """Return MediaWiki's default content model of a page, for dumps before schema 0.8, which do not name the model.

    ``title`` begins with the namespace's name.  A style sheet that is read as wikitext would be destroyed.
    """
    name = title.lower()
    if namespace == _MODULE:
        return WIKITEXT if name.endswith("/doc") else "Scribunto"
    if namespace == _TEMPLATE and name.endswith("/styles.css"):
        return "sanitized-css"
    if namespace == _MEDIAWIKI or (namespace == _USER and "/" in name):
        return next((model for ending, model in _ENDINGS.items() if name.endswith(ending)), WIKITEXT)
    return WIKITEXT
