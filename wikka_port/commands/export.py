"""``wikka export``: the pages of a wiki in a form that other programs read, and that ``wikka import`` reads again."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import click
from rich.progress import SpinnerColumn, TextColumn

from wikka_port.accounts.directory import Directory
from wikka_port.commands.serving_options import speak_the_language
from wikka_port.commands.store_options import StoreOptions, errors, progress_bar, store_options
from wikka_port.config import WikiConfig
from wikka_port.exchange.account_records import AccountRecord, account_records
from wikka_port.exchange.export_file import ExportCall, ExportFile, export_file, piped
from wikka_port.exchange.git_stream import write_git
from wikka_port.exchange.json_lines import write_lines
from wikka_port.exchange.markdown_folder import write_folder
from wikka_port.exchange.mediawiki_xml import write_mediawiki
from wikka_port.exchange.page_source import MayRead, StorePages
from wikka_port.exchange.records import Digests, ExportError
from wikka_port.exchange.static_site import OPERATOR, StaticReport, write_site
from wikka_port.exchange.whole_file import ContentFolder
from wikka_port.exchange.wikkawiki_sql import SqlReport, UploadFolder, write_wikkawiki
from wikka_port.files.refusals import MissingContent
from wikka_port.pages import Wiki
from wikka_port.rights.access import PageAccess
from wikka_port.rights.rules import Privilege
from wikka_port.visitors import NOBODY, Visitor

_ANONYMOUS: Final = "anonymous"
_NAMED: Final = 20  # files without content, by name
_COLUMNS: Final = (SpinnerColumn(), TextColumn("{task.fields[pages]:,} pages"))
WIKKAWIKI: Final = "wikkawiki"
HTML: Final = "html"
MEDIAWIKI: Final = "mediawiki"
JSON_LINES: Final = "json-lines"
FORMS: Final = (JSON_LINES, "git", "markdown", MEDIAWIKI, WIKKAWIKI, HTML)
_OF_FOLDERS: Final = ("markdown", WIKKAWIKI, HTML)
_READ_AND_WRITTEN: Final = TextColumn("{task.fields[pages]:,} pages read, {task.fields[written]:,} written")
_PIPE: Final = "-"
_CHECKPOINTS: Final = 1  # the version of what an export leaves for the next one; of another version it begins anew


def _site_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a static site; the command gets ``site``, a WikiConfig."""

    @click.option("--site-name", envvar="WIKKA_SITE_NAME", help="HTML: the name of the site.")
    @click.option("--root-page", envvar="WIKKA_ROOT_PAGE", help="HTML: the page at which readers begin.")
    @click.option("--language", envvar="WIKKA_LANGUAGE", metavar="CODE", help="HTML: what the site speaks: en, de.")
    @functools.wraps(command)
    def with_site(site_name: str | None, root_page: str | None, language: str | None, **given: Any) -> Any:
        named = {"site_name": site_name, "root_page": root_page, "language": language}
        site = WikiConfig(**{key: value for key, value in named.items() if value is not None})  # type: ignore[arg-type]
        return command(site=site, **given)

    return with_site


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--to", "form", type=click.Choice(FORMS), required=True, help="The form.")
@click.option(
    "--files",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="JSON lines: folder for the contents of files, each once; without it they lie within OUT. WikkaWiki: its"
    " folder of uploads.",
)
@click.option(
    "--readable-by",
    metavar="NAME",
    help=f"Only what this user may read; {_ANONYMOUS}: what everybody may. Rights, hidden revisions and removed"
    " comments stay here.",
)
@click.option("--convert", is_flag=True, help="Markdown: convert the pages in Wikka markup, too.")
@click.option(
    "--with-password-hashes",
    "with_hashes",
    is_flag=True,
    help="JSON lines: the accounts with the hashes of their passwords. Keep OUT as secret as the store.",
)
@click.option("--restart", is_flag=True, help="Begin anew where an earlier export was stopped.")
@_site_options
@store_options
def export(
    out: Path,
    form: str,
    folder: Path | None,
    readable_by: str | None,
    convert: bool,
    with_hashes: bool,
    restart: bool,
    store: StoreOptions,
    site: WikiConfig,
) -> None:
    """Write the pages of the wiki to OUT, with revisions, rights, files and comments.

    \b
    Everything, exactly, one record a line; .gz compresses it, and wikka import reads it:
      wikka export --to json-lines wiki.jsonl.gz
    The same with the contents of files in a folder beside it:
      wikka export --to json-lines wiki.jsonl --files wiki-files/
    The pages that everybody may read:
      wikka export --to json-lines --readable-by anonymous public.jsonl
    A repository of git, with a commit for each revision:
      git init wiki && wikka export --to git - | git -C wiki fast-import && git -C wiki checkout main
    A folder of texts for any editor; XML for a MediaWiki, with the texts converted:
      wikka export --to markdown wiki/
      wikka export --to mediawiki wiki.xml.gz
    The tables of a WikkaWiki 1.4, for its MySQL, and its folder of files:
      wikka export --to wikkawiki wikka.sql --files uploads/
    A static site:
      wikka export --to html --readable-by anonymous --site-name "Harbour" site/

    The command runs with the operator's rights: without --readable-by OUT has all pages, whatever their lists say, and
    all hidden revisions, marked as such. Keep it as you keep the store. Accounts are in json-lines and wikkawiki,
    drafts in none, deleted pages in all but wikkawiki and html.
    OUT is a file, or a folder for markdown and html; - is the standard output. OUT gets its name when it is whole; an
    export that was stopped leaves OUT.part, and the same command goes on there. At the end the command prints counts
    and a digest of each kind of record. An import prints the same digests, so that both sides can be compared.
    """
    _check_form(form, out, folder, convert)
    _check_hashes(form, readable_by, with_hashes)
    if form == HTML:
        _export_site(out, readable_by, store, site, restart=restart)
        return
    begun = time.monotonic()
    with store.open_wiki(pool=4) as wiki, progress_bar(*_COLUMNS, total=None, pages=0) as show:
        source = _source(wiki, readable_by, lambda pages: show(pages=pages))
        about = repr((_CHECKPOINTS, form, store.address, str(folder), readable_by, convert, with_hashes))
        call = ExportCall(about, restart or readable_by is not None, source.missing, _print_written)
        try:
            if form == WIKKAWIKI:
                report = _write_sql(out, wiki, source, folder, call, with_accounts=readable_by is None)
            else:
                people = _people(wiki, form, readable_by, with_hashes)
                digests = _write(out, form, source, folder, convert, people, call)
        except (ExportError, MissingContent) as problem:
            raise click.ClickException(str(problem)) from None
    if form == WIKKAWIKI:
        _print_report(report)
    else:
        _print_summary(digests, time.monotonic() - begun, form)
    _end_with(source.missing)


def _check_form(form: str, out: Path, folder: Path | None, convert: bool) -> None:
    """Raise click.UsageError if the form has no such option."""
    if (folder is not None and form not in (JSON_LINES, WIKKAWIKI)) or (convert and form != "markdown"):
        raise click.UsageError("--files is for json-lines and wikkawiki, and --convert for markdown.")
    if form in _OF_FOLDERS and str(out) == _PIPE:
        raise click.UsageError(f"The form {form} goes to a file or a folder: name it.")


def _check_hashes(form: str, readable_by: str | None, with_hashes: bool) -> None:
    if with_hashes and (form != JSON_LINES or readable_by is not None):
        raise click.UsageError("--with-password-hashes is for json-lines, without --readable-by.")


def _export_site(out: Path, readable_by: str | None, store: StoreOptions, site: WikiConfig, *, restart: bool) -> None:
    speak_the_language({"languages": None, "language": site.language})
    begun = time.monotonic()
    columns = (SpinnerColumn(), _READ_AND_WRITTEN)
    with store.open_wiki(pool=4) as wiki, progress_bar(*columns, total=None, pages=0, written=0) as show:
        visitor = OPERATOR if readable_by is None else _visitor(wiki, readable_by)
        try:
            report = write_site(
                wiki, visitor, site, out, lambda read, written: show(pages=read, written=written), restart=restart
            )
        except ExportError as problem:
            raise click.ClickException(str(problem)) from None
        deleted = StorePages(wiki).deleted_count() if readable_by is None else 0
    _print_site(report, time.monotonic() - begun)
    if deleted:
        click.echo(f"{deleted:,} deleted pages left out: a static site has no place for them", err=True)
    _end_with(report.missing)


def _print_site(report: StaticReport, seconds: float) -> None:
    click.echo(f"{report.pages:,} pages and {report.files:,} files in {seconds:.1f} s", err=True)
    if report.kept:
        click.echo(f"{report.kept:,} of the pages were written by an earlier export that was stopped", err=True)
    if report.kept_files:
        click.echo(f"{report.kept_files:,} of the files were copied by an earlier export that was stopped", err=True)


def _people(wiki: Wiki, form: str, readable_by: str | None, with_hashes: bool) -> Iterable[AccountRecord]:
    """Return the accounts for the forms that have them."""
    if form != JSON_LINES or readable_by is not None:
        return ()
    return account_records(Directory(wiki.rows, _now_ms).all(), with_hashes=with_hashes)


def _write(
    out: Path,
    form: str,
    source: StorePages,
    folder: Path | None,
    convert: bool,
    people: Iterable[AccountRecord],
    call: ExportCall,
) -> Digests:
    if form == "markdown":
        return write_folder(source, out, convert=convert, call=call)
    opened: AbstractContextManager[ExportFile] = (
        piped(sys.stdout.buffer.write) if str(out) == _PIPE else export_file(out, call, has_files=folder is not None)
    )
    with opened as to:
        if form == "git":
            return write_git(source, to)
        if form == MEDIAWIKI:
            return write_mediawiki(source, to)
        return write_lines(source, to, ContentFolder(folder).keep if folder is not None else None, people)


def _print_written(pages: int) -> None:
    errors.print(f"going on behind {pages:,} pages, which an earlier export has written")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _source(wiki: Wiki, readable_by: str | None, progress: Callable[[int], None]) -> StorePages:
    """Return the pages of the operator, who reads everything, or those of one visitor."""
    if readable_by is None:
        return StorePages(wiki, progress=progress)
    visitor = _visitor(wiki, readable_by)
    pages, comments = (_may_read(wiki, visitor, one) for one in (Privilege.READ, Privilege.COMMENT_READ))
    return StorePages(wiki, pages, progress, comments)


def _may_read(wiki: Wiki, visitor: Visitor, privilege: Privilege) -> MayRead:
    """Return the decision of one visitor's right to read pages, or comments."""
    decide: Callable[..., object] = PageAccess(wiki, visitor).decide
    return lambda page, rights: bool(decide(page, rights, True, privilege))


def _visitor(wiki: Wiki, name: str) -> Visitor:
    if name == _ANONYMOUS:
        return NOBODY
    account = Directory(wiki.rows, _now_ms).account(name)
    if account is None:
        raise click.ClickException(f"there is no user {name}; “{_ANONYMOUS}” stands for a visitor without an account")
    return Visitor(account.name, account.name, account.status, account.admin, "")


def _write_sql(
    out: Path, wiki: Wiki, source: StorePages, folder: Path | None, call: ExportCall, *, with_accounts: bool
) -> SqlReport:
    accounts = Directory(wiki.rows, _now_ms).all() if with_accounts else ()
    uploads = UploadFolder(folder) if folder is not None else None
    with export_file(out, call, has_files=uploads is not None) as to:
        return write_wikkawiki(source, accounts, to, uploads)


def _print_report(report: SqlReport) -> None:
    for number, what in (
        (report.pages, "pages"),
        (report.revisions, "revisions"),
        (report.lists, "pages with lists of rights"),
        (report.users, "users, without passwords: nobody can sign in until a new one is set"),
        (report.files, "files"),
        (report.comments, "comments"),
        (report.hidden, "hidden revisions left out: everybody could read them there"),
        (report.deleted, "deleted pages left out: WikkaWiki has no place for them"),
        (report.cut_notes, "notes cut"),
        (report.waiting, "comments that wait for an administrator left out: everybody could read them there"),
    ):
        click.echo(f"{number:,} {what}", err=True)
    for what, lines in (
        ("pages and files left out", report.without_room),
        ("pages with answers to such comments: they answer the comment above, or none", report.moved_answers),
        ("pages in Markdown, which WikkaWiki shows as their source", report.markdown),
        ("for its wikka.config.php", report.settings),
    ):
        if lines:
            click.echo(f"{len(lines):,} {what}:", err=True)
            click.echo("".join(f"  {line}\n" for line in lines), err=True, nl=False)


def _print_summary(digests: Digests, seconds: float, form: str) -> None:
    stream = sys.stderr
    click.echo(f"{digests.pages:,} pages in {seconds:.1f} s", file=stream)
    for line in digests.as_lines():
        click.echo(line, file=stream)
    if form == MEDIAWIKI and digests.counts["deleted"]:
        click.echo("the deleted pages are for “wikka import” alone: a MediaWiki does not take them", file=stream)


def _end_with(missing: list[str]) -> None:
    """Name the files without content; with some the exit status is 1."""
    for line in missing[:_NAMED]:
        errors.print(f"without its content, which the store does not have: {line}", markup=False)
    if missing:
        errors.print(f"{len(missing):,} contents are missing: wikka check names the damage")
        raise SystemExit(1)
