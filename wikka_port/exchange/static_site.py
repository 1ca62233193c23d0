"""A static site of a wiki's pages, which a browser shows from a disk: no server, no script, no request to anywhere.

    index.html, index-2.html ...  all pages by their letters, STATIC_NAMES in a file
    style.css, icon.svg           of the wiki itself
    pages/, files/                ``static_places``

The pages are read twice.  The first reading notes their names and links and copies their files, so that the second
one, which renders, knows what each link leads to and which pages link to a page.  A page that is made between them is
left out; one that goes meanwhile gets a page that says so, and no link leads nowhere.

Pages, links, lists and actions are those that one visitor may read.  Memory: EXPORTED_ROWS texts, and the cache of
parsed pages.  The folder is written as OUT.part and renamed, so a folder of the name OUT is whole.  An export that was
killed is continued by the same command: all is read anew, files of the site whose bytes have the right digest stay, and
of the pages those are rendered that would be others now (``written_pages``).  Pages and files that are no part of the
site any more are removed.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from hashlib import file_digest, sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final

from wikka_port import schema
from wikka_port.config import FileConfig, WikiConfig
from wikka_port.exchange.paths import TakenPaths
from wikka_port.exchange.records import ExportError
from wikka_port.exchange.spool import spool_database
from wikka_port.exchange.static_html import as_address, in_folder
from wikka_port.exchange.static_places import INDEX, Link, ListedPage, PagePlaces, StaticPlaces
from wikka_port.exchange.whole_file import PART, clear_folder, remove_others, sync_all, sync_folder
from wikka_port.exchange.written_pages import WrittenPages
from wikka_port.files.file_rows import CurrentFile
from wikka_port.files.refusals import MissingContent
from wikka_port.history import fresh_cells
from wikka_port.limits import EXPORTED_ROWS, STATIC_LETTERS, STATIC_NAMES
from wikka_port.markup.links import links
from wikka_port.names import pages_above
from wikka_port.page_rows import Cells, Page, is_stale, is_there, stored_page_of
from wikka_port.pages import Wiki
from wikka_port.rendering import kept_document, page_html
from wikka_port.rights.rules import FAMILY, Privilege
from wikka_port.site import Site, make_site
from wikka_port.texts import _
from wikka_port.visitors import NOBODY, Visitor

# The visitor of an export without ``--readable-by``: an administrator whose name no account can have.
OPERATOR: Final = replace(NOBODY, name="", status="active", admin=True)
_MARK: Final = ".wikka"  # a folder in OUT.part, by which the next export recognises it
_COPIED: Final = "content"  # in that folder, a file while it is copied
_RECORD: Final = "written"  # in that folder (``written_pages``)
_OF_PAGES: Final = ("pages", "files")  # folders in which what is no part of the site goes at the end
_FORMAT: Final = 1  # of the site; another one's pages are rendered again
_ACTION: Final = "{{"  # a page with an action is always rendered again: it shows what is so at that moment
_CATEGORY: Final = "Category"
_SCANNED: Final = (schema.VERSIONCOUNT, schema.NAME, schema.OWNER, FAMILY)
_NO_PROGRESS: Final[Callable[[int, int], None]] = lambda read, written: None  # noqa: E731 - a default


def write_site(
    wiki: Wiki,
    visitor: Visitor,
    config: WikiConfig,
    out: Path,
    progress: Callable[[int, int], None] = _NO_PROGRESS,
    *,
    restart: bool = False,
) -> StaticReport:
    """Write the site as OUT.  Raises ExportError if there is something of its name, StoreUnavailable and OSError.

    ``progress`` is called with the numbers of pages that were read and written.  With ``restart`` nothing is taken of
    an export that was killed.
    """
    if out.exists():
        raise ExportError(f"{out} is there already: name another folder, or remove it")
    part = out.with_name(out.name + PART)
    _begin_folder(part, restart=restart)
    without_foreign = replace(config, files=FileConfig(foreign_pictures="none"))
    site = make_site(wiki, without_foreign, time.time)
    about = repr((_FORMAT, visitor.name, visitor.status, visitor.admin, site.settings.name, config.root_page))
    pages = part / _OF_PAGES[0]
    written = WrittenPages.opened(
        part / _MARK / _RECORD, part, f"{about} {config.language}", lambda: shutil.rmtree(pages, ignore_errors=True)
    )
    with closing(spool_database()) as database, closing(written):
        places = StaticPlaces(database, TakenPaths(database), config.root_page)
        places.create_tables()
        made = _StaticSite(wiki, site, visitor, places, part, progress, written)
        made.write_folder()
        # what a killed export has left of pages that are none of this one: this reader may not read them now
        for folder, has in zip(_OF_PAGES, (places.is_page_path, places.is_file_path), strict=True):
            remove_others(part, part / folder, has)
        made.report.note_kept(written.kept)
    written.remove()
    sync_all()
    part.rename(out)
    sync_folder(out.parent)
    (out / _MARK).rmdir()
    return made.report


def _begin_folder(part: Path, *, restart: bool) -> None:
    """Make the folder of an export, or take over what a killed one has left.  Raises ExportError."""
    if restart and (part / _MARK).is_dir():
        shutil.rmtree(part)
    if (part / _MARK).is_dir():  # perhaps of an export of another form, for another reader
        clear_folder(part, lambda name: name in (_MARK, *_OF_PAGES))
        clear_folder(part / _MARK, lambda name: name.startswith(_RECORD))
        return
    try:
        (part / _MARK).mkdir(parents=True)
    except (FileExistsError, NotADirectoryError):
        raise ExportError(f"{part} is there, and is none of an export: remove it") from None
    if any(one.name != _MARK for one in part.iterdir()):
        (part / _MARK).rmdir()
        raise ExportError(f"{part} is there, and is none of an export: remove it")


def _make_room(path: Path, top: Path) -> None:
    """Make the folder of a file below ``top``; what a killed export has left in its way goes."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        for above in path.relative_to(top).parents:
            if (top / above).is_file():
                (top / above).unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)


class StaticReport:
    def __init__(self) -> None:
        self.pages = 0
        self.kept = 0  # of these: written by an earlier export that was killed
        self.files = 0
        self.kept_files = 0  # of these: copied by an earlier export that was killed
        self.missing: list[str] = []  # files whose content is not in the store

    def count_page(self) -> int:
        """Count a page that was written; return the number of all of them."""
        self.pages += 1
        return self.pages

    def note_kept(self, number: int) -> None:
        self.kept = number

    def count_file(self, *, is_kept: bool) -> None:
        self.files += 1
        self.kept_files += is_kept


class _StaticSite:
    def __init__(
        self,
        wiki: Wiki,
        site: Site,
        visitor: Visitor,
        places: StaticPlaces,
        folder: Path,
        progress: Callable[[int, int], None],
        written: WrittenPages,
    ) -> None:
        self._written = written
        self.report = StaticReport()
        self._wiki = wiki
        self._site = site
        self._visitor = visitor
        self._places = places
        self._folder = folder
        self._progress = progress

    def write_folder(self) -> None:
        self._wiki.mover.finish_all()
        for name in ("wiki.css", "icon.svg"):
            content = self._site.assets[name].content
            (self._folder / {"wiki.css": "style.css"}.get(name, name)).write_bytes(content)
        for read, page in enumerate(self._pages(), 1):
            self._places.add_page(page, links(page.body, autolink=page.autolink, markup=page.markup))
            for name, file in page.files.items():
                if file.is_there:
                    self._add_file(page.name, name, file)
            self._progress(read, 0)
        self._places.finish_adding()
        self._write_pages()
        self._write_index()

    def _pages(self) -> Iterator[Page]:
        """Yield the pages that the visitor may read, EXPORTED_ROWS texts at a time."""
        access = self._site.for_visitor(self._visitor).wiki.access
        found = self._wiki.rows.scan(schema.PAGES, columns=_SCANNED)
        keys = (key for key, row in found if len(key) == schema.KEY_BYTES and is_there(row))
        while step := list(islice(keys, EXPORTED_ROWS)):
            rows = self._wiki.rows.rows(schema.PAGES, step)
            for key in step:
                page = self._page(key, rows.get(key, {}))
                if page is not None and access.decide(page.name, page.rights, True, Privilege.READ):
                    yield page

    def _page(self, key: bytes, row: Cells) -> Page | None:
        if is_there(row) and is_stale(row):
            row = self._wiki.store.run(lambda c: fresh_cells(c, key, row))
        return stored_page_of(row).page

    # --- files --------------------------------------------------------------------------------------

    def _add_file(self, page: str, name: str, file: CurrentFile) -> None:
        paths, equal = self._places.add_file(page, name, file)
        first = self._folder / (equal or paths.link)
        try:
            is_kept = bool(equal) or _is_content(first, file)
            if not is_kept:
                self._write_content(first, file)
        except MissingContent:
            self._places.forget_file(page, name, file)
            self.report.missing.append(f"{page}: {name}")
            return
        for path in dict.fromkeys(paths):
            self._link(first, self._folder / path)
        self.report.count_file(is_kept=is_kept and not equal)

    def _write_content(self, path: Path, file: CurrentFile) -> None:
        """Write a content beside the site and move it to its place: what is there may be a link to another file."""
        copied = self._folder / _MARK / _COPIED
        try:
            with copied.open("wb") as stream:
                for piece in self._wiki.files.content(file):
                    stream.write(piece)
        except MissingContent:
            copied.unlink()
            raise
        _make_room(path, self._folder)
        copied.replace(path)

    def _link(self, content: Path, path: Path) -> None:
        """Give a content a further path, or copy it where the disk has no links."""
        if path == content or (path.is_file() and path.samefile(content)):
            return
        _make_room(path, self._folder)
        path.unlink(missing_ok=True)
        try:
            os.link(content, path)
        except OSError:
            shutil.copyfile(content, path)

    # --- pages --------------------------------------------------------------------------------------

    def _write_pages(self) -> None:
        total = self._places.page_count
        files = self._places.digest_of_files()
        for page in self._pages():
            path = self._places.page_path(page.name)
            if path:  # else it was made after the first reading
                self._write_page(page, path, files)
                self._places.mark_written(page.name)
                self._progress(total, self.report.count_page())
        for name, path in self._places.unwritten():
            self._write_html(path, "static_gone.html", title=name)

    def _write_page(self, page: Page, path: str, files: str) -> None:
        """Write a page, unless its file is there; ``files`` is the digest of all files of the site."""
        site = self._site.for_visitor(self._visitor)  # of this page: what it remembers goes with it
        of_page = self._places.of_page(path)
        document = kept_document(site, page)
        existing = frozenset(name for name in document.links if self._places.page_path(name))
        inputs = self._inputs(page, existing, files)
        if _ACTION not in page.body and self._written.is_current(path, inputs):
            self._written.count_kept()
            return
        html = page_html(site, page, document, existing=existing)
        heading = document.headings[0] if document.headings else None
        above, target = pages_above(page.name), document.redirect or ""
        leads = of_page.links_to([(target, self._places.page_path(target))]) if target in existing else []
        self._write_html(
            path,
            "static_page.html",
            title=page.name if page.attribution else document.title or page.name,
            page=page,
            last=page.name.rpartition("/")[2] or page.name,
            above=[(name.rpartition("/")[2] or name, self._link_of(of_page, name)) for name in above],
            has_heading=heading is not None and heading.level == 1,
            content=in_folder(html, of_page),
            redirect=leads[0] if leads else None,
            lists=self._lists(of_page, page.name, sorted(existing)),
        )
        self._written.note(path, inputs)

    def _inputs(self, page: Page, existing: frozenset[str], files: str) -> str:
        """Return the digest of all that a page without actions is made from."""
        names = [*sorted(existing), *pages_above(page.name)]
        leads = [(name, self._places.page_path(name)) for name in names]
        parts = (page.name, page.number, page.token, page.attribution, leads, self._places.backlinks(page.name), files)
        return sha256(repr(parts).encode("utf-8", "replace")).hexdigest()

    def _link_of(self, of_page: PagePlaces, name: str) -> str:
        path = self._places.page_path(name)
        return of_page.up + as_address(path) if path else ""

    def _lists(self, of_page: PagePlaces, name: str, linked: list[str]) -> list[tuple[str, list[Link], int]]:
        categories = [(one, self._places.page_path(one)) for one in linked if one.startswith(_CATEGORY)]
        backlinks, left = self._places.backlinks(name)
        return [
            (_("Categories"), of_page.links_to(categories), 0),
            (_("Links here"), of_page.links_to(backlinks), left),
        ]

    def _write_html(self, path: str, template: str, **values: Any) -> None:
        up = "../" * path.count("/")
        frame = {
            "site_name": self._site.settings.name,
            "up": up,
            "start": up + as_address(self._places.start),
        }
        to = self._folder / path
        _make_room(to, self._folder)
        to.write_text(self._site.fragment(template, **frame, **values), encoding="utf-8", errors="replace")

    # --- the index ----------------------------------------------------------------------------------

    def _write_index(self) -> None:
        letters: dict[str, str] = {}  # an initial, and where it begins
        firsts: dict[str, str] = {}  # the initial of a file's first name, and the file
        for place, page in enumerate(self._places.pages()):
            file, initial = _index_file(place // STATIC_NAMES), _initial(page.name)
            letters.setdefault(initial, f"{file}#{_letter_id(initial)}")
            if place % STATIC_NAMES == 0:
                firsts.setdefault(initial, file)
        alphabet = letters if len(letters) <= STATIC_LETTERS else firsts
        pages, number = self._places.pages(), 0
        while (step := list(islice(pages, STATIC_NAMES))) or number == 0:
            more = (number + 1) * STATIC_NAMES < self._places.page_count
            self._write_html(
                _index_file(number),
                "static_index.html",
                title=_("All pages"),
                count=self._places.page_count,
                root=self._site.config.root_page if self._places.start != INDEX else "",
                alphabet=[(path, initial) for initial, path in alphabet.items()],
                letters=list(_by_letter(step)),
                onward=_index_file(number + 1) if more else "",
            )
            number += 1


def _index_file(number: int) -> str:
    return f"index-{number + 1}.html" if number else INDEX


def _initial(name: str) -> str:
    return schema.folded(name)[:1].upper()


def _letter_id(initial: str) -> str:
    return f"letter-{'-'.join(f'{ord(char):x}' for char in initial)}"


def _by_letter(pages: list[ListedPage]) -> Iterator[tuple[str, str, list[ListedPage]]]:
    found: dict[str, list[ListedPage]] = {}
    for page in pages:
        found.setdefault(_initial(page.name), []).append(page._replace(path=as_address(page.path)))
    for initial, of_letter in found.items():
        yield _letter_id(initial), initial, of_letter


def _is_content(path: Path, file: CurrentFile) -> bool:
    """Return whether the path has the bytes of a file.  O(bytes) of the path, if it has their number."""
    try:
        if path.stat().st_size != file.size_bytes or not path.is_file():
            return False
        with path.open("rb") as stream:
            return file_digest(stream, "sha256").hexdigest() == file.sha256
    except OSError:
        return False
