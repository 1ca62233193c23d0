"""The whole move of a WikkaWiki: accounts, the site's lists, rights, pages, comments, files; then the comparison.

The order of the parts matters.  Accounts come first, so that the edits of their owners are signed by them.  Rights come
before the revisions of their pages, so that no text can be read before its list is there.  Each part leaves alone what
it did before, so a move that was killed is continued by calling it again.

The upload folder has one folder for each page, named like the page's tag; if there is none of exactly that name, the
page whose tag differs in case or in ``_`` for a blank alone, since MySQL finds pages so.  Folders within a page's
folder are passed over, and files whose names begin with a dot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path
from typing import Final

from wikka_port.accounts.factory import Accounts
from wikka_port.files.stored_files import StoredFiles
from wikka_port.importer import Importer, ImportSummary
from wikka_port.imports.file_move import FileMove, FileReport, MovedFile
from wikka_port.imports.source_folder import SourceFolder
from wikka_port.moving.mover import By
from wikka_port.pages import Wiki
from wikka_port.rights.acl import BadList
from wikka_port.rights.rules import NO_RULES, closed_lists
from wikka_port.rights.stored import RightsChanged
from wikka_port.schema import folded
from wikka_port.wikkawiki.account_move import AccountMove, AccountReport, AccountSource, compare_accounts
from wikka_port.wikkawiki.comment_move import CommentMove, CommentReport, CommentSource, compare_comments
from wikka_port.wikkawiki.comparison import Compared, compare_pages
from wikka_port.wikkawiki.php_config import Config
from wikka_port.wikkawiki.rights_move import (
    Lists,
    RightsMove,
    RightsReport,
    RightsSource,
    compare_rights,
    default_lists,
)
from wikka_port.wikkawiki.site_move import OldSite, bring_site
from wikka_port.wikkawiki.source_database import Source
from wikka_port.wikkawiki.source_pages import SourcePages

_OWNER: Final = "import-wikkawiki"  # of uploads under way
_BY: Final = By("WikkaWiki", "", "moved from WikkaWiki")
_SPREAD_S = 1.0  # until every process knows the new rights (``rights.stored``)


@dataclass(frozen=True, slots=True)
class Migration:
    """The outcome of a move."""

    pages: SourcePages
    summary: ImportSummary
    accounts: AccountReport
    rights: RightsReport
    site: list[str]  # lines on the lists of the whole site
    comments: CommentReport
    uploads: FileReport
    compared: list[Compared] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        return all(one.is_equal for one in self.compared)


class ListsNotSet(Exception):
    """The lists of the whole site cannot be written, so no page has come; ``str()`` says what to do."""


class Migrator:
    """Moves one source into one wiki."""

    def __init__(
        self,
        wiki: Wiki,
        accounts: Accounts,
        source: Source,
        *,
        zone: tzinfo,
        config: Config | None,
        site: OldSite | None = None,
        uploads: Path | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._wiki = wiki
        self._accounts = accounts
        self._source = source
        self._zone = zone
        self._config = config or Config()
        self._has_config = config is not None
        self._site = site or OldSite()
        self._uploads = uploads
        self._pause = pause
        self._account_report, self._rights_report = AccountReport(), RightsReport()

    def run(self, *, origin: str, restart: bool, progress: Callable[[int, int], None]) -> Migration:
        """Move everything; ``progress`` gets revisions and pages.  Raises StoreUnavailable and ListsNotSet."""
        self._move_accounts()
        known = self._wiki.rights.present_rules().cells
        site = [*self._said_of_administrators(), *self._move_default_lists()]
        site += bring_site(self._wiki, self._site, str(self._zone))
        whole = self._pages(0)
        rights, close = RightsMove(self._wiki.rights, self._rights_report), self._closing()
        rights.prepare(RightsSource(self._source, whole, self._rights_report, close))
        is_new = self._rights_report.added or self._rights_report.written
        if is_new or self._wiki.rights.present_rules().cells != known:
            self._pause(_SPREAD_S)
        importer = Importer.from_parts(self._wiki, self._pages, origin=origin, restart=restart, progress=progress)
        pages = importer.parts
        summary = importer.run()
        rights.finish(RightsSource(self._source, whole, RightsReport(), close))
        assert isinstance(pages, SourcePages)
        compared = [
            compare_pages(self._wiki, whole, summary.stored.deleted),
            compare_rights(
                self._wiki.rights, RightsSource(self._source, whole, RightsReport(), close), self._rights_report
            ),
            compare_accounts(self._accounts.directory, self._account_source(AccountReport()), self._account_report),
        ]
        comments = self._move_comments(whole, compared)
        files = self._move_files(whole, compared)
        return Migration(pages, summary, self._account_report, self._rights_report, site, comments, files, compared)

    def _move_comments(self, pages: SourcePages, compared: list[Compared]) -> CommentReport:
        report = CommentReport()
        source = CommentSource(self._source, self._zone, pages, report)
        CommentMove(self._wiki.comments, self._account_report.names, report).run(source)
        again = CommentSource(self._source, self._zone, pages, CommentReport())
        compared.append(compare_comments(self._wiki.comments, again, report))
        return report

    def _move_files(self, pages: SourcePages, compared: list[Compared]) -> FileReport:
        if self._uploads is None:
            return FileReport()
        move = upload_move(self._wiki.files, self._uploads, ((tag, name) for tag, name, _ in pages.owners()))
        move.run()
        compared.append(move.compare())
        return move.report

    def _pages(self, done: int) -> SourcePages:
        return SourcePages.ordered(self._source, self._zone, skip_pages=done, accounts=self._account_report.names)

    def _account_source(self, report: AccountReport) -> AccountSource:
        return AccountSource(self._source, self._zone, administrators_of(self._config), report)

    def _move_accounts(self) -> None:
        move = AccountMove(self._accounts.directory, self._accounts.registration.passwords, self._account_report)
        for moved in self._account_source(self._account_report):
            move.move(moved)

    def _said_of_administrators(self) -> list[str]:
        if administrators_of(self._config) is not None:
            return []
        return ["without admin_users of --wikka-config administrators stay as they are here: see “wikka user”"]

    def _move_default_lists(self) -> list[str]:
        """Set the lists of the whole site, unless it has some; return lines for a person.  Raises ListsNotSet."""
        if not self._has_config:
            return ["without --wikka-config pages without own lists have the lists of this wiki: see “wikka acl”"]
        lists, closed = default_lists(self._config)
        until = "administrators alone pass until “wikka acl set --site” says who"
        said = [f"{one} cannot be read: {until}" for one in closed]
        rules = self._wiki.rights.rules()
        there = {privilege: found.text for (privilege, prefix), found in rules.lists.items() if not prefix}
        if not lists or there == lists:
            return said
        if there:
            return ["the site has lists of its own already: pages that the source's close get these as their own"]
        try:
            self._wiki.rights.change_rules("", lists, rules, imported=True)
        except BadList as problem:
            raise ListsNotSet(f"the site's lists cannot be set, so no page is brought in: {problem}") from None
        except RightsChanged:
            raise ListsNotSet("somebody has just changed the lists of this wiki: call the command again") from None
        return said

    def _closing(self) -> Callable[[str, Lists], Lists]:
        """Return the lists of pages that come under the lists of this wiki, by name and own lists."""
        here = self._wiki.rights.present_rules()
        theirs = NO_RULES.with_lists("", default_lists(self._config)[0]) if self._has_config else NO_RULES
        return lambda name, lists: closed_lists(name, lists, theirs, here)


def administrators_of(config: Config | None) -> list[str] | None:
    """Return the names of administrators, or None if the configuration does not say who is one."""
    return config.listed("admin_users") if config is not None and "admin_users" in config.values else None


# --- files ------------------------------------------------------------------------------------------


class UploadFolder:
    """The files of an upload folder, each with the page that is here."""

    def __init__(self, folder: Path, tags: Iterable[tuple[str, str]], report: FileReport) -> None:
        """Take the ``folder`` of uploads, and each tag with the name of its page here."""
        self._folder = folder
        self._names = dict(_keyed(tags))
        self._report = report
        self._is_first = True

    def __call__(self) -> Iterator[MovedFile]:
        """Yield the files, ordered by path.  Raises OSError.

        The first call reports folders without a page, and those that are links, which may lead anywhere.
        """
        is_first, self._is_first = self._is_first, False
        for folder in sorted(one for one in self._folder.iterdir() if one.is_dir() and not one.name.startswith(".")):
            if folder.is_symlink():
                self._report.refused.extend([f"{folder.name}: it is a link to another place"] if is_first else [])
                continue
            page = self._names.get(folder.name) or self._names.get(_key(folder.name))
            if page is not None:
                files = (one for one in folder.iterdir() if one.is_file() and not one.name.startswith("."))
                for path in sorted(files):
                    name = os.fsencode(path.name).decode("utf-8", "replace")
                    yield MovedFile(page, f"{folder.name}/{path.name}", name, is_named=False)
            elif is_first and any(folder.iterdir()):
                self._report.without_page.append(folder.name)


def upload_move(files: StoredFiles, folder: Path, tags: Iterable[tuple[str, str]]) -> FileMove:
    """Return the move of the files in a folder of uploads."""
    report = FileReport()
    found = UploadFolder(folder, tags, report)
    return FileMove(files, SourceFolder(folder), found, _BY, report, owner=_OWNER)


def _keyed(tags: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the names of pages by their tags, and by the tags without case."""
    exact: Mapping[str, str] = dict(tags)
    for tag, name in exact.items():
        yield _key(tag), name
    yield from exact.items()


def _key(tag: str) -> str:
    return folded(tag.replace("_", " "))
