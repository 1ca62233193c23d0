"""The folders that ``wikka import`` reads, each opened and ready to be moved or previewed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import click

from wikka_port.commands.store_options import errors
from wikka_port.imports.dokuwiki_acl import TooManyLines
from wikka_port.imports.dokuwiki_conf import (
    UnreadSettings,
    conf_of,
    data_of,
    interwiki_in,
    settings_in,
    text_in_conf,
)
from wikka_port.imports.dokuwiki_folder import DokuWikiFolder, DokuWikiPages, DokuWikiReport
from wikka_port.imports.dokuwiki_people import DokuWikiPeople, PeopleReport, acl_of
from wikka_port.imports.folder_move import FolderSource
from wikka_port.imports.git_history import GitHistory, NoHistory, wiki_address
from wikka_port.imports.markdown_folder import (
    UNHIDDEN,
    FileTexts,
    MarkdownFolder,
    MarkdownPages,
    MarkdownReport,
    PageTexts,
)
from wikka_port.imports.markdown_names import NameOrigin
from wikka_port.imports.markdown_preview import differences
from wikka_port.imports.source_folder import SourceFolder
from wikka_port.imports.source_forms import DOKUWIKI
from wikka_port.markup.dokuwiki import from_dokuwiki
from wikka_port.pages import clock_ms
from wikka_port.rights.rules import Privilege
from wikka_port.wikkawiki.source_pages import NO_AUTHOR

Findings = list[tuple[str, list[str]]]
_UNNAMED: Final = "files that no page names: they belong to the pages of their folders"


@dataclass(frozen=True, slots=True)
class FolderOptions:
    """The options of an import from a folder."""

    form: str | None
    prefix: str
    root_page: str
    author: str
    names: str | None
    dry_run: bool
    restart: bool
    has_history: bool
    without_rights: bool
    address: str


@dataclass(frozen=True, slots=True)
class OpenedFolder:
    """A folder that was read."""

    source: FolderSource
    pages: int
    files: int
    hidden: int
    digest: str  # of names, sizes and times, by which a stopped import is continued
    main_page: str  # its main page, if that is not the wiki's; "": it has none
    preview: Callable[[], Iterator[tuple[str, list[str]]]]  # each page with what will look different
    findings: Callable[[], Findings]


@contextmanager
def opened_folder(folder: Path, form: str, given: FolderOptions, prefix: str, main_page: str) -> Iterator[OpenedFolder]:
    """Open a folder of a known form.  Raises click.ClickException if it cannot be read."""
    try:
        if form == DOKUWIKI:
            yield _dokuwiki(folder, given, prefix, main_page)
            return
        source = MarkdownFolder.read(
            SourceFolder(folder, UNHIDDEN),
            main_page=main_page,
            prefix=prefix,
            origin=cast(NameOrigin | None, given.names),
            address=given.address or (wiki_address(folder) if (folder / ".git").exists() else ""),
        )
    except OSError as problem:
        raise click.ClickException(f"{folder} cannot be read: {problem.strerror}") from None
    except (UnreadSettings, TooManyLines) as problem:
        raise click.ClickException(str(problem)) from None
    if not source.names:
        raise click.ClickException(f"{folder} has no files that end with .md or .markdown.")
    with _texts(source, given.author, has_history=given.has_history and not given.dry_run) as texts:
        yield _markdown(source, texts)


# --- Markdown ---------------------------------------------------------------------------------------


def _markdown(source: MarkdownFolder, texts: PageTexts) -> OpenedFolder:
    def preview() -> Iterator[tuple[str, list[str]]]:
        reader = MarkdownPages(source, texts)
        for _, path, name in reader.pages():
            for text in texts.revisions_of(path):
                revision = reader.revision(path, text)
                given = revision.body if revision.source is None else revision.source
                yield name, differences(given, lambda one, at=path: source.places.resolve(one, at))  # type: ignore[misc]

    main = source.places.folder.folder_page("")
    return OpenedFolder(
        source=FolderSource(
            lambda done: MarkdownPages(source, texts, skip_pages=done),
            source.folder,
            source.moved_files,
            source.report.refused,
        ),
        pages=len(source.names),
        files=len(source.places.files),
        hidden=source.report.folder.hidden,
        digest=source.origin_digest,
        main_page=source.names[main] if main is not None and "/" not in main else "",
        preview=preview,
        findings=lambda: _of_markdown(source.report),
    )


@contextmanager
def _texts(source: MarkdownFolder, author: str, *, has_history: bool) -> Iterator[PageTexts]:
    """Yield the versions of the files: their history in git, if there is one."""
    files = FileTexts(source.folder, source.files, clock_ms(), author or NO_AUTHOR)
    if not has_history or not _is_clone(source.folder.root):
        yield files
        return
    try:
        history = GitHistory.read(source.folder.root, files, source.names)
    except NoHistory as problem:
        errors.print(f"without the history of git: {problem}", markup=False)
        yield files
        return
    with history:
        if history.is_shallow:
            errors.print("The clone is shallow: its history begins late. “git fetch --unshallow” brings the rest.")
        if history.deleted:
            errors.print(f"{history.deleted:,} pages of the history were deleted there: they do not come")
        yield history


def _is_clone(folder: Path) -> bool:
    return any((one / ".git").exists() for one in (folder.resolve(), *folder.resolve().parents))


def _of_markdown(report: MarkdownReport) -> Findings:
    return [
        ("names that cannot be names here: their pages are left out", report.names.refused),
        ("pages of a name that was taken", report.names.renamed),
        ("pages whose names differ in case alone: they are different pages here", report.names.alike),
        ("texts that are left out", report.unread),
        ("texts that are not in UTF-8: read as Windows-1252", report.other_charset),
        ("files and folders that are left out", report.folder.left_out),
        ("files that this wiki does not take", report.refused),
        (_UNNAMED, report.unnamed),
    ]


# --- DokuWiki ---------------------------------------------------------------------------------------


def _dokuwiki(folder: Path, given: FolderOptions, prefix: str, main_page: str) -> OpenedFolder:
    """Raises OSError, UnreadSettings, TooManyLines."""
    data, conf = data_of(folder), conf_of(folder)
    if conf is None:
        errors.print("There is no folder conf/ beside the data: rights and accounts of this DokuWiki do not come.")
    settings = settings_in(conf)
    if conf is not None and "superuser" not in settings:
        errors.print("Its settings name no superuser: nobody becomes an administrator, and who is one here stays one.")
    users_text = "" if given.without_rights else text_in_conf(conf, "users.auth.php")
    acl = None if given.without_rights else acl_of(users_text, text_in_conf(conf, "acl.auth.php"), settings)
    if conf is not None and acl is None and not given.without_rights:
        errors.print("Its access control is off (useacl): everybody may read and write its pages, here too.")
    logins = [one.login for one in acl.users] if acl is not None else []
    source = DokuWikiFolder.read(
        data,
        settings,
        interwiki_in(conf),
        main_page=main_page,
        prefix=prefix,
        readers=lambda place: acl.lists(place, logins)[Privilege.READ] if acl is not None else "",
    )
    if not source.names:
        raise click.ClickException(f"{data} has no pages.")
    people = DokuWikiPeople(source, acl, users_text, settings.get("superuser"), prefix=prefix)

    def preview() -> Iterator[tuple[str, list[str]]]:
        for page, name in sorted(source.names.items()):
            yield name, list(from_dokuwiki(source.text_of(page), source.around(page)).lost)

    return OpenedFolder(
        source=FolderSource(
            lambda done: DokuWikiPages(source, skip_pages=done),
            source.media,
            source.moved_files,
            source.report.refused,
            None if given.without_rights or conf is None else people,
        ),
        pages=len(source.names),
        files=sum(1 for _ in source.moved_files()),
        hidden=0,
        digest=source.origin_digest,
        main_page=source.names.get(source.ids.start, ""),
        preview=preview,
        findings=lambda: [*_of_dokuwiki(source.report), *_of_people(people.report)],
    )


def _of_dokuwiki(report: DokuWikiReport) -> Findings:
    return [
        ("ids that cannot be names here: their pages are left out", report.names_refused),
        ("pages of a name that was taken", report.renamed),
        ("texts that are left out", report.unread),
        ("files and folders that are left out", report.folder.left_out),
        ("files that this wiki does not take", report.refused),
        ("files that others may read than the pages that show them: they do not come", report.unread_by),
        ("pages that others may read here, since their rights were changed here: left out", report.other_readers),
        (_UNNAMED, report.unnamed),
        (
            "kinds of gaps in the history",
            [f"{number:,} {what}" for what, number in sorted(report.counted.items()) if number],
        ),
        ("pages that were deleted there: they do not come", report.deleted),
    ]


def _of_people(report: PeopleReport) -> Findings:
    accounts, rights = report.accounts, report.rights
    made = [f"{number:,} {what}" for what, number in sorted(accounts.outcomes.items())]
    return [
        ("kinds of accounts", made),
        ("users who cannot have an account here", accounts.refused),
        ("users whose name belongs to somebody else here: not moved", accounts.taken),
        ("accounts without their mail address", accounts.without_address),
        ("accounts without a password: give each a link with “wikka user reset NAME”", accounts.without_password),
        ("accounts that were changed here", accounts.changed),
        ("administrators that end there, and stay here", accounts.kept),
        ("beginnings of names that got lists", report.prefixes),
        (
            "beginnings of names with lists of this wiki, which stay: pages that need others got their own",
            report.others,
        ),
        ("pages with rights of their own", rights.written),
        ("pages whose rights were changed here: they stay", rights.changed),
        ("places where people may edit there, and not here, since they may not upload there", report.weaker),
        ("places with a list that is too long: administrators alone pass now", report.too_long),
        ("rights without a level, which let nobody in", report.unread),
    ]
