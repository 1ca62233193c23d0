"""A folder of Markdown files: ``MarkdownFolder`` has its names and links, ``MarkdownPages`` is the source of pages.

The folder is read twice: first for its names, links and headings, of which a few hundred bytes for each file are kept;
then page by page, to be stored.  A text is stored as Markdown, with the links changed that would lead elsewhere
(``markdown_links``); the text as it was is kept beside a revision that was changed.

A page's ordinal is its place in the order of paths.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Final, Protocol

from wikka_port.confusable_names import find_confusable
from wikka_port.import_pages import PART_CHARS, PART_REVISIONS, Counts
from wikka_port.import_plan import ImportedRevision, Origin, PagePart
from wikka_port.imports.file_move import MovedFile
from wikka_port.imports.file_places import final_names, owners
from wikka_port.imports.markdown_classes import without_classes
from wikka_port.imports.markdown_links import references, rewritten
from wikka_port.imports.markdown_map import FolderMap, Places, heading_slugs
from wikka_port.imports.markdown_names import NameOrigin, NameReport, origin_of, page_names
from wikka_port.imports.source_folder import FolderReport, FoundFile, SourceFolder
from wikka_port.imports.source_text import author_in, decoded, front_matter, time_in
from wikka_port.markup.bounds import over_bounds
from wikka_port.markup.formats import MARKDOWN
from wikka_port.next_revision import BODY_BYTES_MAX
from wikka_port.page_languages import known

UNHIDDEN: Final = (".attachments",)  # of Azure's wikis
_SIGNS: Final = (".obsidian", ".order")
_NAMED_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class PageText:
    """A version of a file that is a page."""

    time_ms: int
    author: str
    note: str
    data: bytes


class PageTexts(Protocol):
    """The versions of files, by path."""

    def is_timed(self, path: str) -> bool:
        """Return whether the times of the versions are those of a history; else there is one version."""
        ...

    def revisions_of(self, path: str) -> Iterator[PageText]:
        """Yield the versions of a file, the oldest first.  Raises OSError."""
        ...


@dataclass(slots=True)
class MarkdownReport:
    """Findings in a folder; each entry of a list is a line for a person."""

    folder: FolderReport = field(default_factory=FolderReport)
    names: NameReport = field(default_factory=NameReport)
    unread: list[str] = field(default_factory=list)  # texts that are too long, or cannot be read
    other_charset: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)  # files that no page names
    refused: list[str] = field(default_factory=list)  # files with names or contents that this wiki does not take


class FileTexts:
    """The texts of files as they are now."""

    def __init__(self, folder: SourceFolder, files: Mapping[str, FoundFile], now_ms: int, author: str) -> None:
        self._folder = folder
        self._files = files
        self._now_ms = now_ms
        self._author = author

    def is_timed(self, path: str) -> bool:
        return False

    def revisions_of(self, path: str) -> Iterator[PageText]:
        data = self._folder.read_bytes(path, BODY_BYTES_MAX + 1)
        attributes = front_matter(decoded(data)[0])
        time_ms = time_in(attributes, self._now_ms) or min(self._files[path].time_ms, self._now_ms)
        yield PageText(max(time_ms, 1), author_in(attributes) or self._author, "", data)


class MarkdownFolder:
    """The names, links and files of a folder.  Constant once ``read``."""

    def __init__(
        self,
        folder: SourceFolder,
        files: dict[str, FoundFile],
        places: Places,
        report: MarkdownReport,
        unnamed: frozenset[str],
    ) -> None:
        self.folder = folder
        self.files = files
        self.places = places
        self.report = report
        self.origin_digest = _digest_of(files)
        self._unnamed = unnamed

    @property
    def names(self) -> Mapping[str, str]:
        """The names of the pages by their paths."""
        return self.places.folder.names

    @classmethod
    def read(
        cls,
        folder: SourceFolder,
        *,
        main_page: str,
        prefix: str = "",
        origin: NameOrigin | None = None,
        address: str = "",
    ) -> MarkdownFolder:
        """Read names, links and headings; ``address`` is where the pages were read.  Raises OSError for the folder."""
        report = MarkdownReport()
        files = {one.path: one for one in folder.files(report.folder)}
        hidden = [name for name in _SIGNS if (folder.root / name).exists()]
        found = origin or origin_of(files, hidden)
        names = page_names(files, found, report.names, main_page=main_page, prefix=prefix)
        others = [path for path in files if path not in names]
        of_folder = FolderMap(names, others, found)
        used: dict[str, set[str]] = defaultdict(set)
        slugs: dict[str, dict[str, str]] = {}
        for path in names:
            text = without_classes(_text_of(folder, path, report))
            for reference in references(text):
                target = of_folder.find(reference.path, path) if reference.path else None
                if target is not None and target not in names:
                    used[target].add(path)
            if (headings := heading_slugs(text)) != {}:
                slugs[path] = headings
        owned = owners(names, others, used, of_folder.folder_page)
        places = Places(of_folder, final_names(folder, owned, report.refused), slugs, address)
        unnamed = frozenset(path for path in places.files if path not in used)
        report.unnamed.extend(sorted(unnamed))
        return cls(folder, files, places, report, unnamed)

    def moved_files(self) -> Iterator[MovedFile]:
        """Yield all files that are no pages, with their places here."""
        for path, (page, name) in sorted(self.places.files.items()):
            yield MovedFile(self.names[page], path, name, is_named=path not in self._unnamed)


def _digest_of(files: Mapping[str, FoundFile]) -> str:
    digest = sha1(usedforsecurity=False)
    for one in files.values():
        digest.update(repr((one.path, one.size_bytes, one.time_ms)).encode())
    return digest.hexdigest()


def _text_of(folder: SourceFolder, path: str, report: MarkdownReport) -> str:
    """Return the text of a page, or "" if it cannot be read, which is reported."""
    try:
        data = folder.read_bytes(path, BODY_BYTES_MAX + 1)
    except OSError as problem:
        report.unread.append(f"{path!a}: {problem.strerror or problem}")
        return ""
    if len(data) > BODY_BYTES_MAX:
        report.unread.append(f"{path!a}: larger than {BODY_BYTES_MAX:,} bytes, which is the most of a page")
        return ""
    text, is_right = decoded(data)
    if not is_right and len(report.other_charset) < _NAMED_MAX:
        report.other_charset.append(f"{path!a}")
    return text


class MarkdownPages:
    """A ``importer.PartSource``.  ``counts`` grows while it is iterated over."""

    def __init__(self, folder: MarkdownFolder, texts: PageTexts, *, skip_pages: int = 0) -> None:
        self.counts = Counts(refused=folder.report.names.refused)
        self.consumed = 0  # pages
        self.changed_links = 0  # pages
        self._folder = folder
        self._texts = texts
        self._skip = skip_pages
        self._unread = {line.partition(": ")[0] for line in folder.report.unread}
        self._paths = {name: path for path, name in folder.names.items()}

    def is_timed(self, name: str) -> bool:
        return self._texts.is_timed(self._paths[name])

    def __iter__(self) -> Iterator[PagePart]:
        for ordinal, path, name in self.pages(self._skip):
            self.counts.count(pages=1)
            like = find_confusable(name)
            if like is not None:
                self.counts.confusable_names.append(f"{name!a}: {like}")
            yield from self._parts_of(ordinal, path, name)
            self.consumed = ordinal + 1

    def pages(self, skip: int = 0) -> Iterator[tuple[int, str, str]]:
        """Yield ordinal, path and name of each page."""
        for ordinal, (path, name) in enumerate(sorted(self._folder.names.items())):
            if ordinal >= skip and f"{path!a}" not in self._unread:
                yield ordinal, path, name

    def histories(self) -> Iterator[tuple[str, Iterator[ImportedRevision]]]:
        """Yield all pages, also those that are skipped: the name of each, and its revisions, the oldest first."""
        for _, path, name in self.pages():
            yield name, (self.revision(path, text) for text in self._texts.revisions_of(path))

    def _parts_of(self, ordinal: int, path: str, name: str) -> Iterator[PagePart]:
        revisions: list[ImportedRevision] = []
        chars, first, language, source = 0, 1, "", ""
        try:
            for text in self._texts.revisions_of(path):
                if len(revisions) >= PART_REVISIONS or chars >= PART_CHARS:
                    yield PagePart(name, ordinal, first, tuple(revisions), "", False)
                    first, revisions, chars = first + len(revisions), [], 0
                revisions.append(self.revision(path, text))
                chars += len(text.data)
                self.counts.count(revisions=1)
        except OSError as problem:
            self._folder.report.unread.append(f"{path!a}: {problem.strerror or problem}")
        if revisions:
            source = revisions[-1].body
            attributes = front_matter(source)
            language = known(attributes.get("lang", "") or attributes.get("language", ""))
            self.changed_links += revisions[-1].source is not None
            over = over_bounds(source, autolink=False, markup=MARKDOWN)
            if over is not None:
                self.counts.cut.append(f"{name}: {over}")
        yield PagePart(name, ordinal, first, tuple(revisions), "", True, language)

    def revision(self, path: str, given: PageText) -> ImportedRevision:
        """Make a revision of a version of a file."""
        text, _ = decoded(given.data)
        places = self._folder.places
        body = rewritten(
            without_classes(text),
            lambda reference: places.resolve(reference, path),
            words_first=places.folder.origin == "github",
        )
        return ImportedRevision(
            time_ms=given.time_ms,
            author=given.author,
            note=given.note,
            body=body,
            links=0,
            is_redirect=False,
            markup=MARKDOWN,
            source=None if body == text else text,
            origin=Origin(given.time_ms, 0, sha1(text.encode(errors="replace"), usedforsecurity=False).hexdigest()),
        )
