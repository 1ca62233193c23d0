"""The way back of ``wikka export``: ``wikka import`` of a form that this program wrote."""

from __future__ import annotations

import gzip
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final, cast

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

from wikka_port.commands.import_wikkawiki import print_compared
from wikka_port.commands.serving_options import accounts_of
from wikka_port.commands.store_options import StoreOptions, errors, progress_bar, settled_after
from wikka_port.exchange import git_stream, markdown_folder, mediawiki_xml
from wikka_port.exchange.account_records import AccountImport
from wikka_port.exchange.git_reader import GitStream
from wikka_port.exchange.json_lines import MARK, JsonLines
from wikka_port.exchange.mediawiki_reader import MediaWikiExport
from wikka_port.exchange.record_import import Comparison, RecordImport, RecordsImported
from wikka_port.exchange.records import KINDS, ExportError, ReadSource
from wikka_port.exchange.whole_file import ContentFolder
from wikka_port.files.chunks import CHUNK_BYTES, CHUNKS_MAX
from wikka_port.files.content_types import ALL
from wikka_port.pages import Wiki
from wikka_port.wikkawiki.account_move import AccountReport
from wikka_port.wikkawiki.comparison import Compared

MEDIAWIKI: Final = "mediawiki"
JSON_LINES: Final = "json-lines"
GIT: Final = "git"
MARKDOWN: Final = "markdown"
OUR_MEDIAWIKI: Final = "mediawiki-exact"  # what "wikka export --to mediawiki" wrote, with its own records
FORMS: Final = (MEDIAWIKI, OUR_MEDIAWIKI, JSON_LINES, GIT, MARKDOWN)
_HEAD_BYTES: Final = 8_192  # of a file, which say its form
_GIT_HEADS: Final = (git_stream.MARK, b"blob\n", b"reset refs/")
_SETTLE_S: Final = 600.0  # for the triggers, at the end
_NAMED: Final = 20  # lines of each kind
_GZIP: Final = b"\x1f\x8b"
_COLUMNS: Final = (BarColumn(), DownloadColumn(), TextColumn("{task.fields[pages]:,} pages"), TimeRemainingColumn())


def is_export(path: Path) -> bool:
    """Return whether “wikka export --to markdown” wrote a folder."""
    return (path / markdown_folder.PAGES).is_file()


def form_of(path: Path) -> str:
    """Return the form of a file by its first bytes, or of a folder; MediaWiki's is the default."""
    if path.is_dir():
        if not is_export(path):
            raise click.ClickException(f"{path} is no folder that “wikka export --to markdown” wrote")
        return MARKDOWN
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
        if head.startswith(_GZIP):
            stream.seek(0)
            try:
                head = gzip.GzipFile(fileobj=stream).read(_HEAD_BYTES)
            except (OSError, EOFError):
                return MEDIAWIKI
    if head.startswith(_GIT_HEADS):
        return GIT
    if mediawiki_xml.MARK in head:
        return OUR_MEDIAWIKI
    return JSON_LINES if head.startswith(MARK) else MEDIAWIKI


def source_of(path: Path, form: str, folder: Path | None) -> ReadSource:
    def opened() -> BinaryIO:
        return cast(BinaryIO, path.open("rb"))

    if form == MARKDOWN:
        return markdown_folder.MarkdownFolder(path)
    if form == GIT:
        return GitStream(opened)
    if form == OUR_MEDIAWIKI:
        return MediaWikiExport(opened)
    return JsonLines(opened, ContentFolder(folder).find if folder is not None else None)


def import_records(path: Path, form: str, folder: Path | None, *, restart: bool, store: StoreOptions) -> None:
    """Bring in an export, print what came, and end with the status 1 if both sides differ."""
    source = source_of(path, form, folder)
    file = path / markdown_folder.PAGES if form == MARKDOWN else path
    size = os.path.getsize(file)
    begun = time.monotonic()
    with store.open_wiki(pool=16) as wiki:
        wiki.prepare()
        _take_all_files(wiki)
        try:
            people = _bring_accounts(wiki, source)
            with progress_bar(*_COLUMNS, total=size or None, pages=0) as show:
                done = RecordImport(wiki, source).run(
                    origin=f"{path.name}:{size}:{file.stat().st_mtime_ns}",
                    restart=restart,
                    progress=lambda read_bytes, pages: show(completed=read_bytes, pages=pages),
                )
        except ExportError as damage:
            raise click.ClickException(f"{path}: {damage}") from None
        finally:
            if isinstance(source, GitStream):
                source.close()
        seconds = time.monotonic() - begun
        settled = settled_after(wiki, _SETTLE_S)
    _print_summary(done, source.remarks, seconds, settled)
    _print_accounts(people)
    if not done.compared.is_equal or not people.compared.is_equal:
        raise SystemExit(1)


@dataclass(frozen=True)
class _People:
    report: AccountReport
    compared: Compared


def _bring_accounts(wiki: Wiki, source: ReadSource) -> _People:
    """Bring in the accounts before the pages whose lists name them.  Raises ExportError."""
    accounts = accounts_of(wiki)
    brought = AccountImport(accounts.directory, accounts.registration.passwords)
    compared = brought.run(source.accounts if isinstance(source, JsonLines) else tuple)
    return _People(brought.report, compared)


def _print_accounts(people: _People) -> None:
    console, report = Console(highlight=False, soft_wrap=True), people.report
    if not people.compared.in_source and not report.refused:
        return
    for outcome, what in (("made", "made"), ("updated", "with something newer"), ("unchanged", "that were here")):
        console.print(f"{report.outcomes[outcome]:,} accounts {what}")
    for what, lines in (
        ("accounts whose names cannot be names here", report.refused),
        ("accounts whose name belongs to somebody else here: not brought", report.taken),
        ("accounts without their mail address", report.without_address),
        ("accounts that were changed here: they stay", report.changed),
        ("administrators that end there, and stay here", report.kept),
    ):
        _print_lines(console, what, lines)
    print_compared(console, people.compared)


def _take_all_files(wiki: Wiki) -> None:
    """Take files of every type and size: the wiki from which they come has taken them."""
    most = CHUNK_BYTES * CHUNKS_MAX
    wiki.files.set_config(replace(wiki.files.config, types=frozenset({ALL}), bytes_max=most, per_page=10**6))


def _print_summary(done: RecordsImported, remarks: list[str], seconds: float, settled_s: float | None) -> None:
    console = Console(highlight=False, soft_wrap=True)
    counts, stored = done.summary.counts, done.summary.stored
    if done.summary.resumed_after:
        errors.print(f"went on behind page {done.summary.resumed_after:,}")
    for number, what in (
        (counts.pages, "pages"),
        (stored.revisions, "revisions stored"),
        (stored.already, "revisions that were here"),
        (len(done.rights.written), "pages whose rights were set"),
        (done.files.stored, "versions of files stored"),
        (done.files.already, "versions of files that were here"),
        (done.comments.stored, "comments stored"),
        (done.comments.already, "comments that were here"),
        (done.deleted.stored, "deleted pages stored"),
        (done.deleted.already, "deleted pages that were here"),
    ):
        console.print(f"{number:,} {what}")
    for what, lines in (
        ("remarks", remarks),
        ("lists of the site", done.site),
        ("pages whose rights were changed here: they stay", done.rights.changed),
        ("files that were not taken", done.files.refused),
        ("comments that were not taken", done.comments.refused),
        ("revisions left out", stored.too_big),
        ("deleted pages that were not taken", done.deleted.refused),
        ("deleted pages that were brought back here: left alone", _names(done.deleted.restored)),
        ("names that look like another: kept", counts.confusable_names),
        ("pages that were deleted here: not brought back", done.compared.left_out),
        ("pages saved or moved meanwhile: import again", sorted(stored.busy)),
        ("differences", done.compared.named),
    ):
        _print_lines(console, what, lines)
    _print_digests(console, done.compared)
    indexes = f"indexes complete {settled_s:.1f} s later" if settled_s is not None else "indexes not complete yet"
    console.print(f"{seconds:.1f} s, {indexes}")


def _names(identities: set[str]) -> list[str]:
    return sorted(one.partition("\0")[0] for one in identities)


def _print_lines(console: Console, what: str, lines: list[str]) -> None:
    if lines:
        console.print(f"{len(lines):,} {what}:", markup=False)
        for line in lines[:_NAMED]:
            console.print(f"  {line}", markup=False)
        if len(lines) > _NAMED:
            console.print(f"  and {len(lines) - _NAMED:,} more")


def _print_digests(console: Console, compared: Comparison) -> None:
    for kind in KINDS:
        there, here = compared.source, compared.store
        if there.digest(kind) == here.digest(kind):
            console.print(f"{kind}: {there.counts[kind]:,} there and here, equal: {there.digest(kind)}")
        else:
            console.print(f"{kind}: {there.counts[kind]:,} there, {here.counts[kind]:,} here, different:")
            console.print(f"  {there.digest(kind)} there\n  {here.digest(kind)} here")
