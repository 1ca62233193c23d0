"""``wikka import``: import a MediaWiki dump, with a progress bar and a summary."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import BinaryIO, cast

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from wikka_port.commands.import_records import FORMS, MEDIAWIKI, form_of, import_records
from wikka_port.commands.store_options import StoreOptions, errors, progress_bar, settled_after, store_options
from wikka_port.dump import DumpError
from wikka_port.importer import Importer, ImportSummary

_SETTLE_S = 600.0  # for the triggers, at the end
_NAMED = 20  # lines
_COLUMNS = (BarColumn(), DownloadColumn(), TextColumn("{task.fields[pages]:,} pages"), TimeRemainingColumn())
_MISMATCHES = 5  # lines on mismatches


@click.command("import")
@click.argument("file", type=click.Path(exists=True, allow_dash=True))
@store_options
@click.option("--namespaces", default="", metavar="N,N", help="Only these, by number or by name. All if left out.")
@click.option("--limit", type=click.IntRange(1), help="Stop after so many pages.")
@click.option("--licence", help="What the attribution says of it; Wikimedia's is known.")
@click.option(
    "--pictures",
    default="",
    metavar="URL",
    help="Address of the folder with the site's files: pictures are shown from there. Else links lead to the site.",
)
@click.option("--from", "form", type=click.Choice(FORMS), help="The form of FILE; its first bytes say it, too.")
@click.option(
    "--files",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with the contents of files, of “wikka export --files”.",
)
@click.option("--restart", is_flag=True, help="Begin at the beginning where an earlier import was stopped.")
def import_dump(
    file: str,
    store: StoreOptions,
    namespaces: str,
    limit: int | None,
    licence: str | None,
    pictures: str,
    form: str | None,
    folder: Path | None,
    restart: bool,
) -> None:
    """Bring the pages of FILE into the wiki, with all their revisions.

    \b
    A dump of a MediaWiki:
      wikka import simplewiki.xml.bz2
    What "wikka export" wrote; both sides are compared at the end:
      wikka import wiki.jsonl.gz

    FILE is a MediaWiki export, plain or compressed (.bz2, .gz); - is the standard input. Forms of "wikka export"
    are recognised: JSON lines, a stream of "git fast-export --all", a folder of Markdown. The options --namespaces,
    --limit, --licence and --pictures are for MediaWiki. An import that was stopped goes on where it was (from the
    standard input, at the beginning); one that is repeated changes nothing. Revisions come into a page's history by
    their times, whatever it has: what was written here stays in it, and the text of the latest is shown.
    """
    is_piped = file == "-"
    form = form or (MEDIAWIKI if is_piped else form_of(Path(file)))
    if is_piped and form != MEDIAWIKI:
        raise click.UsageError("An export of this program is read several times: name its file.")
    if form != MEDIAWIKI:
        import_records(Path(file), form, folder, restart=restart, store=store)
        return
    size = 0 if is_piped else os.path.getsize(file)
    with store.open_wiki(pool=16) as wiki, click.open_file(file, "rb") as stream:
        wiki.prepare()
        begun = time.monotonic()
        with progress_bar(*_COLUMNS, total=size or None, pages=0) as show:
            importer = Importer.begun(
                wiki,
                cast(BinaryIO, stream),
                origin=f"{os.path.basename(file)}:{size}",
                namespaces=[name.strip() for name in namespaces.split(",") if name.strip()],
                limit=limit,
                licence=licence,
                pictures=pictures,
                restart=restart or is_piped,  # the next stream may be a different dump
                progress=lambda read_bytes, pages: show(completed=read_bytes, pages=pages),
            )
            if importer.resumed_after:
                errors.print(f"going on behind page {importer.resumed_after:,}")
            try:
                summary = importer.run()
            except DumpError as damage:
                raise click.ClickException(f"{'standard input' if is_piped else file}: {damage}") from None
        seconds = time.monotonic() - begun
        settled = settled_after(wiki, _SETTLE_S)
    _print_summary(summary, seconds, settled)


def _print_summary(summary: ImportSummary, seconds: float, settled_s: float | None) -> None:
    counts, stored = summary.counts, summary.stored
    console = Console(highlight=False)
    table = Table(show_header=False, box=None)
    table.add_column(justify="right")
    table.add_column()
    rows = [
        (counts.pages, "pages"),
        (counts.revisions, "revisions"),
        (counts.redirects, "redirects"),
        (counts.links, "links"),
        (stored.revisions, "revisions stored"),
        (stored.already, "revisions that were there"),
        (len(stored.kept), "pages whose newest text was written here: it stays the newest"),
        (len(stored.covered), "pages with a text that was written here and has a newer one of the dump above it now"),
        (len(stored.deleted), "pages that were deleted here: not brought back"),
        (len(stored.busy), "pages that were saved or moved meanwhile: import again"),
        (counts.passed_over, "pages of other namespaces"),
        (len(counts.refused), "pages refused"),
        (len(stored.too_big), "revisions left out: over the bound"),
        (counts.mismatches, "texts of another size or checksum than the dump says: taken as they are"),
        (len(counts.cut), "pages over a bound: kept whole, shown and indexed up to it"),
        (len(counts.confusable_names), "names that look like another: kept"),
        (sum(counts.unconverted.values()), "constructs not converted"),
    ]
    for number, what in rows:
        table.add_row(f"{number:,}", what)
    for kind, number in counts.unconverted.most_common():
        table.add_row("", f"  {number:,} {kind}")
    console.print(table)
    for line in _named(summary)[:_NAMED]:
        console.print(f"  {line}", markup=False)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    indexes = f"indexes complete {settled_s:.1f} s later" if settled_s is not None else "indexes not complete yet"
    console.print(f"{seconds:.1f} s ({summary.waited_s:.1f} s of it for triggers), {indexes}, at most {peak_mb:.0f} MB")


def _named(summary: ImportSummary) -> list[str]:
    """Return lines on pages that a person should check, the most serious first."""
    counts, stored = summary.counts, summary.stored
    of_pages = (
        (stored.busy, "saved or moved meanwhile: import again"),
        (stored.covered, "what was written here has a newer text of the dump above it"),
        (stored.deleted, "deleted here: not brought back"),
    )
    said = [f"{name}: {what}" for names, what in of_pages for name in sorted(names)]
    written_here = [f"{name}: written here" for name in sorted(stored.kept)]
    differing = counts.mismatched[:_MISMATCHES]
    if counts.mismatches > len(differing):
        differing.append(f"and {counts.mismatches - len(differing):,} other texts that are not as the dump says")
    ours = [*counts.cut, *counts.confusable_names, *written_here]
    return [*counts.refused, *stored.too_big, *said, *differing, *ours]
