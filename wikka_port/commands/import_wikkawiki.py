"""``wikka import-wikkawiki``: move a WikkaWiki here, and compare both sides at the end."""

from __future__ import annotations

import os
import shlex
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from wikka_port.commands.serving_options import accounts_of
from wikka_port.commands.store_options import StoreOptions, errors, progress_bar, settled_after, store_options
from wikka_port.dump_bytes import DumpBytes, DumpError
from wikka_port.wikkawiki.account_move import AccountReport, AccountSource
from wikka_port.wikkawiki.comparison import Compared
from wikka_port.wikkawiki.migration import ListsNotSet, Migration, Migrator, administrators_of
from wikka_port.wikkawiki.php_config import BadConfig, Config, read_config
from wikka_port.wikkawiki.preview import differences
from wikka_port.wikkawiki.server_rows import ServerError, copied_from, parse_address
from wikka_port.wikkawiki.site_move import OldSite, read_site
from wikka_port.wikkawiki.source_database import NoWikkaWiki, Source, copied, opened
from wikka_port.wikkawiki.source_pages import SourcePages, TagReport
from wikka_port.wikkawiki.sql_text import SqlDumpError

_PASSWORD: Final = "WIKKA_MYSQL_PASSWORD"  # noqa: S105 - the name of a variable
_SETTLE_S: Final = 600.0  # for the triggers, at the end
_NAMED: Final = 20  # lines of each kind
_UNCLEAR_LINKS: Final = (
    "pages with links that lead to their first word until WikkaWiki 1.3.6 and to a page of that name later, as here:"
    " give its wikka.config.php, which says the version"
)
_COLUMNS: Final = (
    BarColumn(),
    MofNCompleteColumn(),
    TextColumn("revisions, {task.fields[pages]:,} pages"),
    TimeRemainingColumn(),
)


class _Zone(click.ParamType[ZoneInfo]):
    name = "zone"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> ZoneInfo:
        try:
            return ZoneInfo(str(value))
        except (ZoneInfoNotFoundError, ValueError):
            self.fail(f"{value!r} is no time zone: write Europe/Berlin, for example", param, ctx)


@dataclass(frozen=True, slots=True)
class _Given:
    """The place of the old wiki."""

    dump: str | None
    sqlite: str | None
    dsn: str | None
    prefix: str | None
    folder: str | None

    @property
    def origin(self) -> str:
        """A name of this source as it is now, by which a stopped import is continued."""
        if self.dsn is not None:
            return f"wikkawiki:{self.dsn}"
        path = self.dump or self.sqlite or ""
        status = os.stat(path)
        return f"wikkawiki:{os.path.basename(path)}:{status.st_size}:{status.st_mtime_ns}"

    @contextmanager
    def source(self) -> Iterator[Source]:
        """Open the old wiki's tables; a copy of a dump lies in a temporary folder meanwhile."""
        try:
            if self.sqlite is not None:
                source = opened(Path(self.sqlite), self.prefix)
                yield source
                source.database.close()
                return
            with tempfile.TemporaryDirectory(prefix="wikka-import-", dir=self.folder) as folder:
                path = Path(folder) / "wikkawiki.sqlite"
                source = self._copied(path)
                with suppress(PermissionError):  # Windows
                    path.unlink()  # it is open; a command that is killed leaves no hashes of passwords behind
                yield source
                source.database.close()
        except (SqlDumpError, DumpError) as damage:
            raise click.ClickException(f"{self.dump}: {damage}") from None
        except NoWikkaWiki as unfit:
            raise click.ClickException(f"{self.dump or self.sqlite or self.dsn}: {unfit}") from None
        except (ServerError, ListsNotSet) as problem:
            raise click.ClickException(str(problem)) from None

    def _copied(self, path: Path) -> Source:
        if self.dsn is not None:
            server = parse_address(self.dsn)
            password = os.environ.get(_PASSWORD)
            if password is None:
                password = click.prompt(f"Password of {server.user}", hide_input=True, default="", show_default=False)
            return copied_from(replace(server, password=password), path, self.prefix)
        with click.open_file(self.dump or "", "rb") as stream:
            return copied(DumpBytes(cast(BinaryIO, stream)), path, self.prefix)


@click.command("import-wikkawiki")
@click.option(
    "--dump", type=click.Path(exists=True, dir_okay=False), help="A dump of the database, plain, .gz or .bz2."
)
@click.option("--sqlite", type=click.Path(exists=True, dir_okay=False), help="The database of a wiki on SQLite.")
@click.option(
    "--dsn",
    metavar="mysql://USER@HOST/DB",
    help=f"A running server. The password is asked for, or in the variable {_PASSWORD}. Needs columnar[mysql].",
)
@click.option(
    "--wikka-config",
    type=click.Path(exists=True, dir_okay=False),
    help="Its wikka.config.php, for administrators and default rights. It is read, and never run.",
)
@click.option(
    "--uploads", type=click.Path(exists=True, file_okay=False), help="Its folder with files: one folder for each page."
)
@click.option("--prefix", help="How the names of its tables begin, if there are several wikis: wikka_, for example.")
@click.option(
    "--zone", type=_Zone(), default="UTC", show_default=True, help="Time zone of the old wiki's database server."
)
@click.option(
    "--temporary",
    "folder",
    type=click.Path(exists=True, file_okay=False),
    help="Folder for the copy of a dump's tables, which goes at the end. The system's if left out.",
)
@click.option(
    "--dry-run", is_flag=True, help="Store nothing: say what is there, and per page what will look different."
)
@click.option("--restart", is_flag=True, help="Begin at the beginning where an earlier import was stopped.")
@store_options
def import_wikkawiki(
    dump: str | None,
    sqlite: str | None,
    dsn: str | None,
    wikka_config: str | None,
    uploads: str | None,
    prefix: str | None,
    zone: ZoneInfo,
    folder: str | None,
    dry_run: bool,
    restart: bool,
    store: StoreOptions,
) -> None:
    """Move a WikkaWiki (1.1.6 to 1.4) here: pages with all their revisions, accounts, rights, comments, files.

    \b
    From a dump, plain or compressed:
      mysqldump --default-character-set=utf8mb4 DATABASE > wikka.sql
      wikka import-wikkawiki --dump wikka.sql --wikka-config wikka.config.php --zone Europe/Berlin
    From a running server:
      wikka import-wikkawiki --dsn mysql://wikka@db.example.org/wikka --wikka-config wikka.config.php
    With the files of its folder uploads/:
      wikka import-wikkawiki --dump wikka.sql --wikka-config wikka.config.php --uploads uploads/
    From a wiki on SQLite:
      wikka import-wikkawiki --sqlite wikka.db --wikka-config wikka.config.php
    First see what will look different; this stores nothing:
      wikka import-wikkawiki --dump wikka.sql --dry-run

    The old wiki may go on meanwhile. Call the command again with a newer dump: what is here already is left alone, so
    that the old wiki has to be closed only for the last, short run. An import that was stopped goes on where it was.
    At the end both sides are read again and compared; the exit status is 1 if they differ.
    """
    if sum(one is not None for one in (dump, sqlite, dsn)) != 1:
        raise click.UsageError("Say where the old wiki is: --dump FILE, --sqlite FILE or --dsn mysql://USER@HOST/DB.")
    config = _config(wikka_config)
    site = read_site(config, Path(wikka_config).parent) if config is not None and wikka_config is not None else None
    folder_of_files = Path(uploads) if uploads is not None else None
    given = _Given(dump, sqlite, dsn, prefix, folder)
    if dry_run:
        with given.source() as found:
            _print_preview(_of_version(found, config), zone, config, site)
        return
    with given.source() as found, store.open_wiki(pool=16) as wiki:
        wiki.prepare()
        source = _of_version(found, config)
        begun = time.monotonic()
        with progress_bar(*_COLUMNS, total=source.counts["pages"], pages=0) as show:
            migrator = Migrator(
                wiki, accounts_of(wiki), source, zone=zone, config=config, site=site, uploads=folder_of_files
            )
            moved = migrator.run(
                origin=given.origin,
                restart=restart or dsn is not None,  # its pages may have another order by now
                progress=lambda revisions, pages: show(completed=revisions, pages=pages),
            )
        seconds = time.monotonic() - begun
        _Summary(source, moved, config).print_all(seconds, settled_after(wiki, _SETTLE_S))
    if not moved.is_equal:
        raise SystemExit(1)


def _config(path: str | None) -> Config | None:
    if path is None:
        return None
    try:
        return read_config(Path(path).read_text(encoding="utf-8", errors="replace"))
    except BadConfig as bad:
        raise click.ClickException(f"{path}: {bad}") from None


def _of_version(source: Source, config: Config | None) -> Source:
    return replace(source, version=config.values.get("wakka_version", "") if config is not None else "")


def _print_preview(source: Source, zone: ZoneInfo, config: Config | None, site: OldSite | None) -> None:
    """Print what a move would bring, and what will look different."""
    console = Console(highlight=False, soft_wrap=True)
    pages, accounts = SourcePages.ordered(source, zone), AccountReport()
    differing = 0
    for name, body in pages.newest():
        lines = differences(body)
        differing += bool(lines)
        for line in lines:
            console.print(f"{name}: {line}", markup=False)
    moved = list(AccountSource(source, zone, administrators_of(config), accounts))
    without = [f"{one.account.name}: {one.problem}" for one in moved if one.problem]
    console.print(f"{differing:,} pages will look different")
    for kind, number in source.counts.items():
        console.print(f"{number:,} {'revisions' if kind == 'pages' else kind}")
    for what, lines in (
        *_tag_lines(pages.tags),
        (_UNCLEAR_LINKS, pages.unclear_links()),
        ("users who cannot have an account here", accounts.refused),
        ("accounts without their mail address", accounts.without_address),
        ("accounts without a password", without),
        ("settings of the site", _site_lines(site or OldSite(), str(zone))),
    ):
        print_lines(console, what, lines)


def _site_lines(site: OldSite, zone: str) -> list[str]:
    """Return lines on what a move will set, and on what it will not."""
    zones = [] if zone == "UTC" else [f"old_zone: {zone}, for times in addresses of the old wiki"]
    words = {key: value if key != "words" else f"{len(value):,}" for key, value in site.policy.items()}
    return [
        *(f"{key}: {', '.join(entries)}" for key, entries in site.menus.items()),
        *(f"{key} of antispam: {value}" for key, value in words.items()),
        *zones,
        *site.notes,
    ]


def _tag_lines(tags: TagReport) -> list[tuple[str, list[str]]]:
    return [
        ("tags that cannot be names here: their pages are left out", tags.refused),
        ("tags that are written in another way here", tags.renamed),
        ("tags that were one page", tags.merged),
        ("pages whose names differ in case alone: links of another case lead to the other page", tags.alike),
        ("pages with an unclear newest revision", tags.unpublished),
    ]


def print_lines(console: Console, what: str, lines: list[str]) -> None:
    """Print the number of lines and the first of them."""
    if lines:
        console.print(f"{len(lines):,} {what}:", markup=False)
        for line in lines[:_NAMED]:
            console.print(f"  {line}", markup=False)
        if len(lines) > _NAMED:
            console.print(f"  and {len(lines) - _NAMED:,} more")


# --- the summary -------------------------------------------------------------------------------


class _Summary:
    def __init__(self, source: Source, moved: Migration, config: Config | None) -> None:
        self._source = source
        self._moved = moved
        self._config = config
        self._console = Console(highlight=False, soft_wrap=True)

    def print_all(self, seconds: float, settled_s: float | None) -> None:
        if self._moved.summary.resumed_after:
            errors.print(f"went on behind page {self._moved.summary.resumed_after:,}")
        self._print_figures()
        for what, lines in (*self._of_pages(), *self._of_people()):
            print_lines(self._console, what, lines)
        self._print_options()
        for compared in self._moved.compared:
            print_compared(self._console, compared)
        settled = f"indexes complete {settled_s:.1f} s later" if settled_s is not None else "indexes still lag"
        self._console.print(f"{seconds:.1f} s, {settled}")

    def _print_figures(self) -> None:
        source, stored, accounts = self._source, self._moved.summary.stored, self._moved.accounts
        table = Table(show_header=False, box=None)
        table.add_column(justify="right")
        table.add_column()
        rows = [
            (self._moved.summary.counts.pages, "pages"),
            (stored.revisions, "revisions stored"),
            (stored.already, "revisions that were here"),
            (accounts.outcomes["made"], "accounts made"),
            (accounts.outcomes["updated"], "accounts with something newer"),
            (accounts.outcomes["unchanged"], "accounts that were here"),
            (len(self._moved.rights.written), "pages whose rights were set"),
            (source.repaired, "texts in UTF-8 that were encoded twice: repaired"),
            (source.damaged, "texts that are not in the dump's character set: taken as Windows-1252"),
            (len(self._moved.uploads.stored), "files stored"),
            (len(self._moved.uploads.already), "files that were here"),
            (self._moved.comments.outcomes["added"], "comments stored"),
            (self._moved.comments.outcomes["already"], "comments that were here"),
            (self._moved.comments.outcomes["removed"], "comments that were deleted there since"),
        ]
        for number, what in rows:
            if number or what == "pages":
                table.add_row(f"{number:,}", what)
        self._console.print(table)

    def _of_pages(self) -> list[tuple[str, list[str]]]:
        stored, pages = self._moved.summary.stored, self._moved.pages
        return [
            *_tag_lines(pages.tags),
            (_UNCLEAR_LINKS, pages.unclear_links()),
            ("revisions without a time: they come first", pages.without_time),
            ("revisions over the bound: left out", stored.too_big),
            ("pages over a bound: kept whole, shown and indexed up to it", self._moved.summary.counts.cut),
            ("pages deleted here: not brought back", sorted(stored.deleted)),
            ("pages with newer texts that were written here", sorted(stored.kept)),
            ("pages with a text written here that has a newer one above it now", sorted(stored.covered)),
            ("pages saved or moved meanwhile: import again", sorted(stored.busy)),
            ("comments of pages that are not here", self._moved.comments.without_page),
            ("comments that could not be stored: import again", self._moved.comments.refused),
            ("comments that were deleted or brought back here: they stay so", self._moved.comments.changed),
        ]

    def _of_people(self) -> list[tuple[str, list[str]]]:
        accounts, rights = self._moved.accounts, self._moved.rights
        return [
            ("users who cannot have an account here", accounts.refused),
            ("users whose name belongs to somebody else here: not moved", accounts.taken),
            ("accounts without their mail address", accounts.without_address),
            ("accounts without a password: give each a link with “wikka user reset NAME”", accounts.without_password),
            ("accounts that were changed here", accounts.changed),
            ("administrators that end there, and stay here", accounts.kept),
            ("pages whose rights were changed here: they stay", rights.changed),
            ("pages with a list that is too long: nobody but owner and administrators passes now", rights.too_long),
            ("rights of pages that are not there", rights.without_page),
            ("files that this wiki does not take", self._moved.uploads.refused),
            ("folders and files without a page", self._moved.uploads.without_page),
            ("notes on rights and settings of the whole site", self._moved.site),
            ("settings that are expressions: not read", self._config.unread if self._config is not None else []),
        ]

    def _print_options(self) -> None:
        """Say which options of ``wikka serve`` follow from the old wiki's configuration."""
        values = self._config.values if self._config is not None else {}
        options = [
            f"{option} {shlex.quote(values[name])}"
            for name, option in (("wakka_name", "--site-name"), ("root_page", "--root-page"))
            if values.get(name)
        ]
        registration = {"0": "closed", "1": "open", "2": "invitation"}.get(values.get("allow_user_registration", ""))
        if registration is not None:
            options.append(f"--registration {registration}")
        if options:
            self._console.print(f"Serve it as before: wikka serve {' '.join(options)}", markup=False)


def print_compared(console: Console, compared: Compared) -> None:
    """Print the comparison of one kind of records, with those that differ."""
    counts = f"{compared.in_source:,} there, {compared.in_store:,} here"
    if compared.left_out:
        counts += f", {compared.left_out:,} left out"
    if compared.is_equal:
        console.print(f"{compared.kind}: {counts}, equal: {compared.source_digest}")
    else:
        console.print(f"{compared.kind}: {counts}, DIFFERENT: {compared.source_digest} there,")
        console.print(f"  {compared.store_digest} here")
        print_lines(console, "that differ", compared.named)
