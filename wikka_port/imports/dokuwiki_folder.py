"""The data folder of a DokuWiki: its pages with all revisions, and its media.

    pages/ns/page.txt                   the text as it is
    attic/ns/page.TIME.txt.gz           the text of a revision; .bz2 and plain ones, too
    meta/ns/page.changes                a line for each change: time, address, kind, id, user, summary, with tabs
    media/ns/picture.png                a file

A revision of a page is a text of the attic; a line of ``.changes`` gives its author and note, if there is one.  A page
that was changed by another program has a last revision without a line.  A change whose text is not in the attic any
more is counted.  Deleted pages do not come.  Addresses of visitors do not come: they are "(visitor)".

Names are in small letters there, with ``_`` for a blank: ``my_notes:first_steps`` becomes "My notes/First steps".  The
page ``start`` of a namespace becomes the namespace's page.
"""

from __future__ import annotations

import bz2
import gzip
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path
from typing import IO, Final, cast
from urllib.parse import unquote

from wikka_port.confusable_names import find_confusable
from wikka_port.import_pages import PART_CHARS, PART_REVISIONS, Counts
from wikka_port.import_plan import ImportedRevision, Origin, PagePart
from wikka_port.imports.file_move import MovedFile
from wikka_port.imports.file_places import final_names, owners
from wikka_port.imports.source_folder import FolderReport, FoundFile, SourceFolder
from wikka_port.imports.source_text import decoded
from wikka_port.limits import CHANGES_BYTES_MAX
from wikka_port.markup.bounds import over_bounds
from wikka_port.markup.dokuwiki import from_dokuwiki
from wikka_port.markup.dokuwiki_inline import FileReference, Surroundings
from wikka_port.markup.formats import MARKDOWN
from wikka_port.names import InvalidName, normalise
from wikka_port.next_revision import BODY_BYTES_MAX
from wikka_port.wikkawiki.source_pages import NO_AUTHOR

VISITOR: Final = "(visitor)"
_ENDINGS: Final = (".txt.gz", ".txt.bz2", ".txt")
_ATTIC: Final = re.compile(r"(.+)\.([0-9]{6,11})(\.txt(?:\.gz|\.bz2)?)", re.DOTALL)
_SPECIAL: Final = re.compile(r"[\s!\"#$%&'()*+,/;<=>?@\[\\\]^`{|}~_]+")
_MEDIA: Final = re.compile(r"\{\{([^{}\n|]+)(?:\|[^{}\n]*)?\}\}")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f]")
_NOTE_CHARS: Final = 500
_DEFAULT_INTERWIKI: Final = {
    "wp": "https://en.wikipedia.org/wiki/{NAME}",
    "wpde": "https://de.wikipedia.org/wiki/{NAME}",
    "wpfr": "https://fr.wikipedia.org/wiki/{NAME}",
    "doku": "https://www.dokuwiki.org/",
    "rfc": "https://tools.ietf.org/html/rfc",
    "man": "http://man.cx/",
    "google": "https://www.google.com/search?q=",
    "phpfn": "https://secure.php.net/{NAME}",
    "amazon": "https://www.amazon.com/dp/{URL}",
}


@dataclass(slots=True)
class DokuWikiReport:
    """Findings in a folder; each entry of a list is a line for a person."""

    folder: FolderReport = field(default_factory=FolderReport)
    names_refused: list[str] = field(default_factory=list)
    renamed: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)  # files that no page names
    refused: list[str] = field(default_factory=list)  # files with names or contents that this wiki does not take
    other_readers: list[str] = field(default_factory=list)  # pages with other rights here
    unread_by: list[str] = field(default_factory=list)  # files that no page has the same readers as
    deleted: list[str] = field(default_factory=list)  # pages that were deleted there
    counted: Counter[str] = field(default_factory=Counter)  # revisions without a text, and without a line


@dataclass(frozen=True, slots=True)
class _Change:
    author: str
    note: str
    minor: bool


_NO_CHANGE: Final = _Change(NO_AUTHOR, "", False)


class DokuWikiIds:
    """The names of pages by their ids, and what links mean (``pageutils.php``)."""

    def __init__(self, names: Mapping[str, str], *, start: str, uses_slash: bool, main_page: str, prefix: str) -> None:
        self.names = names
        self.start = start
        self._uses_slash = uses_slash
        self._main_page = main_page
        self._prefix = prefix

    def clean(self, typed: str) -> str:
        """Return an id as DokuWiki writes it, with slashes for its colons."""
        text = typed.strip().lower().replace(";", ":")
        text = text.replace("/", ":") if self._uses_slash else text
        parts = [_SPECIAL.sub("_", part).strip("._-") for part in text.split(":")]
        return "/".join(part for part in parts if part)

    def resolve(self, typed: str, page: str) -> str:
        """Return the id that ``typed`` means on ``page``; it ends with a slash if it is a namespace."""
        text = typed.strip().replace("/", ":") if self._uses_slash else typed.strip()
        namespace = page.rpartition("/")[0].split("/") if "/" in page else []
        if text.startswith("."):
            text, namespace = _relative(text, namespace)
        elif text.startswith("~"):
            text, namespace = text[1:].lstrip(":"), page.split("/")
        elif ":" in text.rstrip(":") or text.startswith(":") or text.endswith(":"):
            namespace = []
        whole = "/".join([*namespace, *([found] if (found := self.clean(text)) else [])])
        return whole + "/" if text.endswith(":") or not whole else whole

    def page(self, typed: str, page: str) -> str:
        """Return the name of the page that a link leads to."""
        found = self.resolve(typed, page)
        if found.endswith("/") or found in ("", "/"):
            namespace = found.strip("/")
            last = namespace.rpartition("/")[2]
            tried = [f"{namespace}/{self.start}".lstrip("/"), f"{namespace}/{last}", namespace]
            found = next((one for one in tried if one in self.names), tried[0])
        return self.names.get(found) or self.name_of(found)

    def name_of(self, page: str) -> str:
        """Return the name that an id has here.  Raises InvalidName if it can be none."""
        parts = page.split("/")
        if parts[-1] == self.start:
            parts.pop()
        if not parts:
            return self._main_page or normalise(self.start.capitalize())
        titled = [part[:1].upper() + part[1:] for part in parts]
        return normalise("/".join([self._prefix, *titled] if self._prefix else titled))


def _relative(text: str, namespace: list[str]) -> tuple[str, list[str]]:
    while text.startswith("."):
        if text.startswith(".."):
            text, namespace = text[2:].lstrip(":"), namespace[:-1]
        else:
            text = text[1:].lstrip(":")
    return text, namespace


class DokuWikiFolder:
    """The names, media and changes of a data folder.  Constant once ``read``."""

    def __init__(self, data: Path, settings: Mapping[str, str], interwiki: Mapping[str, str]) -> None:
        self.report = DokuWikiReport()
        self.data = data
        self.media = SourceFolder(data / "media")
        self.files: dict[str, FoundFile] = {}  # pages by id
        self.origin_digest = ""
        self.interwiki = {**_DEFAULT_INTERWIKI, **interwiki}
        self._settings = settings
        self._attic: dict[str, list[tuple[int, str]]] = {}  # by id: time and ending
        self._places: dict[str, tuple[str, str]] = {}  # media -> id of its page, and its name there
        self._unnamed: frozenset[str] = frozenset()
        self._paths: dict[str, str] = {}  # media by id
        self._accounts: frozenset[str] = frozenset()
        self._left_out: frozenset[str] = frozenset()  # names
        self.ids = DokuWikiIds({}, start="start", uses_slash=True, main_page="", prefix="")

    @classmethod
    def read(
        cls,
        data: Path,
        settings: Mapping[str, str],
        interwiki: Mapping[str, str],
        *,
        main_page: str,
        prefix: str = "",
        readers: Callable[[str], str] = lambda place: "",
    ) -> DokuWikiFolder:
        """Read names, links to media and the list of the attic.  Raises OSError if the folder cannot be read.

        ``readers`` returns a text for a page or for "namespace:*", equal for equal readers: a file comes to a page only
        if both have the same.
        """
        made = cls(data, settings, interwiki)
        made._read_names(main_page, prefix)
        made._read_attic()
        made._read_media(readers)
        return made

    def note_accounts(self, names: Collection[str]) -> None:
        """Take the names of accounts, whose edits are signed by them."""
        self._accounts = frozenset(names)

    @property
    def names(self) -> Mapping[str, str]:
        return self.ids.names

    def _read_names(self, main_page: str, prefix: str) -> None:
        found = SourceFolder(self.data / "pages").files(self.report.folder)
        self.files = {_id_of(one.path.removesuffix(".txt")): one for one in found if one.path.endswith(".txt")}
        digest = sha1(usedforsecurity=False)
        for one in found:
            digest.update(repr((one.path, one.size_bytes, one.time_ms)).encode())
        self.origin_digest = digest.hexdigest()
        start = self._settings.get("start", "start") or "start"
        uses_slash = self._settings.get("useslash", "1") not in ("0", "false")
        names: dict[str, str] = {}
        self.ids = DokuWikiIds(names, start=start, uses_slash=uses_slash, main_page=main_page, prefix=prefix)
        taken: dict[str, str] = {}
        for page in sorted(self.files, key=lambda one: (one.rpartition("/")[2] == start, one)):
            try:
                name = self.ids.name_of(page)
                if name in taken and page.rpartition("/")[2] == start:
                    name = normalise(f"{name}/{start.capitalize()}")
                given, number = name, 1
                while name in taken:
                    number += 1
                    name = normalise(f"{given} ({number})")
            except InvalidName as invalid:
                self.report.names_refused.append(f"{page!a}: {invalid}")
                continue
            if name != self.ids.name_of(page):
                self.report.renamed.append(
                    f"{page!a}: called {name}, since {taken[self.ids.name_of(page)]!a} has its name"
                )
            taken[name] = page
            names[page] = name

    def _read_attic(self) -> None:
        attic: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for one in self._files_of("attic"):
            found = _ATTIC.fullmatch(one.path)
            if found is not None:
                attic[_id_of(found[1])].append((int(found[2]), found[3]))
        for times in attic.values():
            times.sort()
        self._attic = dict(attic)
        self.report.deleted.extend(sorted(page for page in attic if page not in self.files))

    def _files_of(self, folder: str) -> list[FoundFile]:
        try:
            return SourceFolder(self.data / folder).files(self.report.folder)
        except OSError:
            return []

    def _read_media(self, readers: Callable[[str], str]) -> None:
        media = [one.path for one in self._files_of("media") if one.path.rpartition("/")[2] != "_dummy"]
        paths = {_id_of(path).lower(): path for path in media}
        used: dict[str, set[str]] = defaultdict(set)
        for page in self.names:
            for found in _MEDIA.finditer(self.text_of(page)):
                path = paths.get(self._media_id(found[1], page))
                if path is not None:
                    used[path].add(page)
        of_page = {page: readers(page.replace("/", ":")) for page in self.names}
        of_folder: dict[str, str] = {}
        for path in media:
            namespace = _id_of(path).lower().rpartition("/")[0].replace("/", ":")
            if namespace not in of_folder:
                of_folder[namespace] = readers(f"{namespace}:*" if namespace else "*")
            used[path] = {page for page in used.get(path, ()) if of_page[page] == of_folder[namespace]}
            folder_page = self._folder_page(path)
            if not used[path] and (folder_page is None or of_page[folder_page] != of_folder[namespace]):
                self.report.unread_by.append(f"{path!a}")
        hidden = set(self.report.unread_by)
        owned = owners(self.names, [one for one in media if f"{one!a}" not in hidden], used, self._folder_page)
        self._places = final_names(self.media, owned, self.report.refused)
        self._unnamed = frozenset(path for path in self._places if not used.get(path))
        self.report.unnamed.extend(sorted(self._unnamed))
        self._paths = paths

    def _media_id(self, typed: str, page: str) -> str:
        source = typed.strip().partition("?")[0].strip()
        return "" if "://" in source or ">" in source else self.ids.resolve(source, page)

    def _folder_page(self, path: str) -> str | None:
        namespace = _id_of(path).rpartition("/")[0]
        start = self._settings.get("start", "start") or "start"
        while True:
            for one in (f"{namespace}/{start}".lstrip("/"), namespace):
                if one in self.names:
                    return one
            if not namespace:
                return min(self.names, default=None)
            namespace = namespace.rpartition("/")[0]

    def leave_out(self, names: Collection[str]) -> None:
        """Leave pages out, whose readers would be others than there."""
        self._left_out = frozenset(names)
        self.report.other_readers.extend(sorted(names))

    def moved_pages(self) -> Iterator[tuple[int, str, str]]:
        """Yield ordinal, id and name of each page."""
        for ordinal, (page, name) in enumerate(sorted(self.names.items())):
            if name not in self._left_out:
                yield ordinal, page, name

    def moved_files(self) -> Iterator[MovedFile]:
        """Yield all media, with their places here."""
        for path, (page, name) in sorted(self._places.items()):
            if self.names[page] in self._left_out:
                continue
            yield MovedFile(self.names[page], path, name, is_named=path not in self._unnamed)

    # --- texts --------------------------------------------------------------------------------------

    def around(self, page: str) -> Surroundings:
        """Return what links and media on ``page`` mean."""

        def file_of(typed: str) -> FileReference | None:
            place = self._places.get(self._paths.get(self._media_id(typed, page), ""))
            if place is None:
                return None
            return FileReference("" if place[0] == page else self.names[place[0]], place[1])

        def name_of(typed: str) -> str:
            try:
                return self.ids.page(typed, page)
            except InvalidName:
                return ""

        return Surroundings(name_of, file_of, self.interwiki)

    def text_of(self, page: str) -> str:
        """Return the text of a page as it is, or "" if it cannot be read, which is reported."""
        try:
            data = SourceFolder(self.data / "pages").read_bytes(self.files[page].path, BODY_BYTES_MAX + 1)
        except OSError as problem:
            self.report.unread.append(f"{page!a}: {problem.strerror or problem}")
            return ""
        return decoded(data)[0]

    def revisions_of(self, page: str, counted: Counter[str] | None = None) -> Iterator[ImportedRevision]:
        """Yield the revisions of a page, the oldest first; ``counted`` counts what is missing."""
        counted = Counter() if counted is None else counted
        changes = self._changes_of(page)
        attic = self._attic.get(page, [])
        now, last, time_s = self.text_of(page), None, 0
        for time_s, ending in attic:
            text = self._old_text(page, time_s, ending)
            if text is None:
                counted["texts of the attic that cannot be read"] += 1
                continue
            change = changes.pop(time_s, None)
            if change is None:
                counted["revisions without a line in the list of changes"] += 1
            last = text
            yield self._revision(page, time_s * 1000, text, change or _NO_CHANGE)
        later = max((one for one in changes if one > time_s), default=0)
        if last is None or last != now:
            file_ms = self.files[page].time_ms
            change = changes.pop(later, _NO_CHANGE)
            yield self._revision(page, later * 1000 if later else max(file_ms, time_s * 1000 + 1), now, change)
        elif later:
            yield self._revision(page, later * 1000, now, changes.pop(later))
        counted["changes whose text is not in the attic"] += len(changes)

    def _revision(self, page: str, time_ms: int, text: str, change: _Change) -> ImportedRevision:
        return ImportedRevision(
            time_ms=max(time_ms, 1),
            author=change.author,
            note=change.note,
            body=from_dokuwiki(text, self.around(page)).text,
            links=0,
            is_redirect=False,
            minor=change.minor,
            signed="account" if change.author in self._accounts else "",
            markup=MARKDOWN,
            source=text,
            origin=Origin(max(time_ms, 1), 0, sha1(text.encode(errors="replace"), usedforsecurity=False).hexdigest()),
        )

    def _changes_of(self, page: str) -> dict[int, _Change]:
        """Return the changes of a page by their times in seconds."""
        path = self.files[page].path.removesuffix(".txt")
        try:
            data = SourceFolder(self.data / "meta").read_bytes(f"{path}.changes", CHANGES_BYTES_MAX)
        except OSError:
            return {}
        found: dict[int, _Change] = {}
        for line in data.decode(errors="replace").splitlines():
            values = line.split("\t")
            if len(values) < 4 or not values[0].isdigit() or len(values[0]) > 11 or values[2] == "D":
                continue
            user = _CONTROL.sub("", values[4]).strip() if len(values) > 4 else ""
            note = _CONTROL.sub("", values[5]).strip()[:_NOTE_CHARS] if len(values) > 5 else ""
            found[int(values[0])] = _Change(user or VISITOR, note, values[2] == "e")
        return found

    def _old_text(self, page: str, time_s: int, ending: str) -> str | None:
        """Return a text of the attic, or None if it cannot be read."""
        path = f"{self.files[page].path.removesuffix('.txt')}.{time_s}{ending}"
        try:
            with SourceFolder(self.data / "attic").open_file(path) as stream:
                opened: IO[bytes] = stream
                if ending.endswith(".gz"):
                    opened = cast(IO[bytes], gzip.GzipFile(fileobj=stream))
                elif ending.endswith(".bz2"):
                    opened = cast(IO[bytes], bz2.BZ2File(stream))
                return decoded(opened.read(BODY_BYTES_MAX + 1))[0]
        except (OSError, EOFError, zlib.error):
            return None


def _id_of(path: str) -> str:
    """Return the id that a path of the file system stands for: letters beyond ASCII are percent-encoded there."""
    return unquote(path, errors="replace") if "%" in path else path


class DokuWikiPages:
    """A ``importer.PartSource``.  ``counts`` grows while it is iterated over."""

    def __init__(self, folder: DokuWikiFolder, *, skip_pages: int = 0) -> None:
        self.counts = Counts(refused=folder.report.names_refused)
        self.consumed = 0  # pages
        self.changed_links = 0
        self._folder = folder
        self._skip = skip_pages

    def is_timed(self, name: str) -> bool:
        """Return whether the times of a page's revisions are those of a history."""
        return True

    def __iter__(self) -> Iterator[PagePart]:
        for ordinal, page, name in self._folder.moved_pages():
            if ordinal < self._skip:
                continue
            self.counts.count(pages=1)
            like = find_confusable(name)
            if like is not None:
                self.counts.confusable_names.append(f"{name!a}: {like}")
            yield from self._parts_of(ordinal, page, name)
            self.consumed = ordinal + 1

    def histories(self) -> Iterator[tuple[str, Iterator[ImportedRevision]]]:
        """Yield all pages, also those that are skipped: the name of each, and its revisions, the oldest first."""
        for _, page, name in self._folder.moved_pages():
            yield name, self._folder.revisions_of(page)

    def _parts_of(self, ordinal: int, page: str, name: str) -> Iterator[PagePart]:
        revisions: list[ImportedRevision] = []
        chars, first = 0, 1
        for revision in self._folder.revisions_of(page, self._folder.report.counted):
            if len(revisions) >= PART_REVISIONS or chars >= PART_CHARS:
                yield PagePart(name, ordinal, first, tuple(revisions), "", False)
                first, revisions, chars = first + len(revisions), [], 0
            revisions.append(revision)
            chars += len(revision.body) + len(revision.source or "")
            self.counts.count(revisions=1)
        over = over_bounds(revisions[-1].body, autolink=False, markup=MARKDOWN) if revisions else None
        if over is not None:
            self.counts.cut.append(f"{name}: {over}")
        yield PagePart(name, ordinal, first, tuple(revisions), "", True)
