"""``wikka import-wikkawiki``: move a WikkaWiki here, and compare both sides at the end."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from wikka_port.commands.store_options import StoreOptions, errors, progress_bar, settled_after, store_options
from wikka_port.dump_bytes import DumpBytes, DumpError
from wikka_port.importer import Importer, ImportSummary
from wikka_port.pages import Wiki
from wikka_port.wikkawiki.comparison import Compared, compare_pages
from wikka_port.wikkawiki.source_database import NoWikkaWiki, Source, copied, opened
from wikka_port.wikkawiki.source_pages import SourcePages
from wikka_port.wikkawiki.sql_text import SqlDumpError

_SETTLE_S: Final = 600.0  # for the triggers, at the end
_NAMED: Final = 20  # lines of each kind
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
    prefix: str | None
    folder: str | None

    @property
    def origin(self) -> str:
        """A name of this source as it is now, by which a stopped import is continued."""
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
                with click.open_file(self.dump or "", "rb") as stream:
                    source = copied(DumpBytes(cast(BinaryIO, stream)), Path(folder) / "wikkawiki.sqlite", self.prefix)
                yield source
                source.database.close()
        except (SqlDumpError, DumpError) as damage:
            raise click.ClickException(f"{self.dump}: {damage}") from None
        except NoWikkaWiki as unfit:
            raise click.ClickException(f"{self.dump or self.sqlite}: {unfit}") from None


@click.command("import-wikkawiki")
@click.option(
    "--dump", type=click.Path(exists=True, dir_okay=False), help="A dump of the database, plain, .gz or .bz2."
)
@click.option("--sqlite", type=click.Path(exists=True, dir_okay=False), help="The database of a wiki on SQLite.")
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
@click.option("--restart", is_flag=True, help="Begin at the beginning where an earlier import was stopped.")
@store_options
def import_wikkawiki(
    dump: str | None,
    sqlite: str | None,
    prefix: str | None,
    zone: ZoneInfo,
    folder: str | None,
    restart: bool,
    store: StoreOptions,
) -> None:
    """Move a WikkaWiki (1.1.6 to 1.4) here: its pages with all their revisions.

    \b
    From a dump, plain or compressed:
      mysqldump --default-character-set=utf8mb4 DATABASE > wikka.sql
      wikka import-wikkawiki --dump wikka.sql --zone Europe/Berlin
    From a wiki on SQLite:
      wikka import-wikkawiki --sqlite wikka.db

    The old wiki may go on meanwhile. Call the command again with a newer dump: what is here already is left alone, so
    that the old wiki has to be closed only for the last, short run. An import that was stopped goes on where it was.
    At the end both sides are read again and compared; the exit status is 1 if they differ.
    """
    if (dump is None) == (sqlite is None):
        raise click.UsageError("Say where the old wiki is: either --dump FILE or --sqlite FILE.")
    given = _Given(dump, sqlite, prefix, folder)
    with given.source() as source, store.open_wiki(pool=16) as wiki:
        wiki.prepare()
        moved = _move(wiki, source, zone, given.origin, restart)
        _print_summary(source, moved)
    if not moved.compared.is_equal:
        raise SystemExit(1)


@dataclass(frozen=True, slots=True)
class _Moved:
    pages: SourcePages
    summary: ImportSummary
    compared: Compared
    seconds: float
    settled_s: float | None


def _move(wiki: Wiki, source: Source, zone: ZoneInfo, origin: str, restart: bool) -> _Moved:
    begun = time.monotonic()
    made: list[SourcePages] = []

    def parts(done: int) -> SourcePages:
        made.append(SourcePages.ordered(source, zone, skip_pages=done))
        return made[-1]

    with progress_bar(*_COLUMNS, total=source.counts["pages"], pages=0) as show:
        importer = Importer.from_parts(
            wiki,
            parts,
            origin=origin,
            restart=restart,
            progress=lambda revisions, pages: show(completed=revisions, pages=pages),
        )
        if importer.resumed_after:
            errors.print(f"going on behind page {importer.resumed_after:,}")
        summary = importer.run()
    pages = made[0]
    compared = compare_pages(wiki, pages, summary.stored.deleted)
    return _Moved(pages, summary, compared, time.monotonic() - begun, settled_after(wiki, _SETTLE_S))


# --- the summary -------------------------------------------------------------------------------


def _print_summary(source: Source, moved: _Moved) -> None:
    console = Console(highlight=False, soft_wrap=True)
    stored, pages = moved.summary.stored, moved.pages
    waiting = source.counts.get("comments", 0)
    table = Table(show_header=False, box=None)
    table.add_column(justify="right")
    table.add_column()
    rows = [
        (moved.summary.counts.pages, "pages"),
        (stored.revisions, "revisions stored"),
        (stored.already, "revisions that were here"),
        (source.repaired, "texts in UTF-8 that were encoded twice: repaired"),
        (source.damaged, "texts that are not in the dump's character set: taken as Windows-1252"),
        (waiting, "comments: they wait in the old wiki, for this one has none yet"),
    ]
    for number, what in rows:
        if number or what == "pages":
            table.add_row(f"{number:,}", what)
    console.print(table)
    tags = pages.tags
    for what, lines in (
        ("tags that cannot be names here: their pages are left out", tags.refused),
        ("tags that are written in another way here", tags.renamed),
        ("tags that were one page", tags.merged),
        ("pages whose names differ in case alone: links of another case lead to the other page", tags.alike),
        ("pages with an unclear newest revision", tags.unpublished),
        ("revisions without a time: they come first", pages.without_time),
        ("revisions over the bound: left out", stored.too_big),
        ("pages over a bound: kept whole, shown and indexed up to it", moved.summary.counts.cut),
        ("pages deleted here: not brought back", sorted(stored.deleted)),
        ("pages with newer texts that were written here", sorted(stored.kept)),
        ("pages with a text written here that has a newer one above it now", sorted(stored.covered)),
        ("pages saved or moved meanwhile: import again", sorted(stored.busy)),
    ):
        _print_lines(console, what, lines)
    _print_compared(console, moved.compared)
    settled = f"indexes complete {moved.settled_s:.1f} s later" if moved.settled_s is not None else "indexes still lag"
    console.print(f"{moved.seconds:.1f} s, {settled}")


def _print_lines(console: Console, what: str, lines: list[str]) -> None:
    if lines:
        console.print(f"{len(lines):,} {what}:", markup=False)
        for line in lines[:_NAMED]:
            console.print(f"  {line}", markup=False)
        if len(lines) > _NAMED:
            console.print(f"  and {len(lines) - _NAMED:,} more")


def _print_compared(console: Console, compared: Compared) -> None:
    counts = f"{compared.in_source:,} there, {compared.in_store:,} here"
    if compared.is_equal:
        console.print(f"{compared.kind}: {counts}, equal: {compared.source_digest}")
    else:
        console.print(f"{compared.kind}: {counts}, DIFFERENT: {compared.source_digest} there,")
        console.print(f"  {compared.store_digest} here")
        _print_lines(console, "that differ", compared.named)
