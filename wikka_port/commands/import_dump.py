"""``wikka import``: import a MediaWiki dump, with a progress bar and a summary; other forms have their modules."""

from __future__ import annotations

import os
import re
import resource
import shlex
import time
from pathlib import Path
from typing import BinaryIO, cast

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from wikka_port.commands.folder_forms import FolderOptions
from wikka_port.commands.import_folder import import_folder
from wikka_port.commands.import_records import FORMS, MARKDOWN, MEDIAWIKI, form_of, import_records, is_export
from wikka_port.commands.store_options import StoreOptions, errors, progress_bar, settled_after, store_options
from wikka_port.dump import DumpError
from wikka_port.importer import Importer, ImportSummary
from wikka_port.imports.dump_main_page import lead_root_page
from wikka_port.imports.markdown_names import ORIGINS
from wikka_port.imports.source_forms import DOKUWIKI
from wikka_port.pages import Wiki

_SETTLE_S = 600.0  # for the triggers, at the end
_NAMED = 20  # lines
_COLUMNS = (BarColumn(), DownloadColumn(), TextColumn("{task.fields[pages]:,} pages"), TimeRemainingColumn())
_MISMATCHES = 5  # lines on mismatches
_OF_DUMPS = ("namespaces", "limit", "licence", "templates", "pictures", "folder")  # options
_OF_FOLDERS = ("dry_run", "prefix", "author", "names", "address")


@click.command("import")
@click.argument("file", metavar="FILE|FOLDER", type=click.Path(exists=True, allow_dash=True))
@store_options
@click.option("--from", "form", type=click.Choice([*FORMS, DOKUWIKI]), help="What it is; the command guesses it, too.")
@click.option("--dry-run", is_flag=True, help="Store nothing: say per page what will look different. Of folders.")
@click.option("--prefix", default="", metavar="NAME", help="Bring the pages in below NAME/. Of folders.")
@click.option(
    "--root-page",
    default="HomePage",
    show_default=True,
    help="The wiki's root page, for the main page of a folder or a dump.",
)
@click.option("--author", default="", metavar="NAME", help="Author of texts that name none. Of folders.")
@click.option(
    "--names",
    type=click.Choice(ORIGINS),
    help="Whose rules make names of pages from names of files, where the command guesses wrong.",
)
@click.option(
    "--history/--no-history", "has_history", default=True, help="Revisions of files in git, or only their last texts."
)
@click.option(
    "--address",
    default="",
    metavar="URL",
    help="Where the pages of a folder were read: links out of it lead there. Known of clones of GitHub's wikis.",
)
@click.option("--without-rights", is_flag=True, help="Bring no rights and accounts of a DokuWiki.")
@click.option("--namespaces", default="", metavar="N,N", help="Only these, by number or by name. All if left out.")
@click.option("--limit", type=click.IntRange(1), help="Stop after so many pages.")
@click.option("--licence", help="What the attribution says of it; Wikimedia's is known.")
@click.option(
    "--templates",
    type=click.Choice(["include", "expand"]),
    help="Calls of simple templates that are a paragraph by themselves: includes of the template's page, or its text in"
    " each page. Includes if left out. Of MediaWiki.",
)
@click.option(
    "--pictures",
    default="",
    metavar="URL",
    help="Address of the folder with the site's files: pictures are shown from there. Else links lead to the site.",
)
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
    form: str | None,
    dry_run: bool,
    prefix: str,
    root_page: str,
    author: str,
    names: str | None,
    has_history: bool,
    address: str,
    without_rights: bool,
    folder: Path | None,
    restart: bool,
    **_of_dumps: object,
) -> None:
    """Bring the pages of FILE or FOLDER into the wiki, with all their revisions.

    \b
    A dump of a MediaWiki, plain or compressed (.bz2, .gz); - is the standard input:
      wikka import simplewiki.xml.bz2
    What "wikka export" wrote: JSON lines, a stream of "git fast-export --all", XML, a folder of Markdown:
      wikka import wiki.jsonl.gz
    A folder of Markdown files with pictures: an Obsidian vault, a clone of a GitHub wiki, an unpacked export of
    Notion or Outline. In a clone of git the history of each file comes along:
      wikka import vault/ --author Ada
    A DokuWiki, or its folder data/:
      wikka import /var/www/dokuwiki
    First see what of a folder will look different; this stores nothing:
      wikka import vault/ --dry-run
    Below a page, so that no names clash:
      wikka import notes/ --prefix Archive/Notes

    The options --namespaces, --limit, --licence, --templates and --pictures are for MediaWiki. An import that was
    stopped goes on where it was (from the standard input, at the beginning); one that is repeated changes nothing.
    Revisions come into a page's history by their times: what was written here stays in it, and the text of the latest
    is shown. At the end both sides are compared, except for dumps; the exit status is 1 if they differ.
    """
    if os.path.isdir(file) and not (form in (None, MARKDOWN) and is_export(Path(file))):
        _check_options(file, _OF_DUMPS)
        given = FolderOptions(
            form, prefix, root_page, author, names, dry_run, restart, has_history, without_rights, _checked(address)
        )
        import_folder(file, given, store)
        return
    _check_options(file, _OF_FOLDERS)
    form = form or (MEDIAWIKI if file == "-" else form_of(Path(file)))
    if form == DOKUWIKI or (form == MARKDOWN and not os.path.isdir(file)):
        raise click.UsageError(f"{file} is a file; --from {form} is for folders.")
    if file == "-" and form != MEDIAWIKI:
        raise click.UsageError("An export of this program is read several times: name its file.")
    if form != MEDIAWIKI:
        import_records(Path(file), form, folder, restart=restart, store=store)
        return
    with store.open_wiki(pool=16) as wiki, click.open_file(file, "rb") as stream:
        summary, seconds, settled = _imported_dump(wiki, file, cast(BinaryIO, stream))
        main_page = lead_root_page(wiki, root_page, summary.counts.main_page)
    _print_summary(summary, seconds, settled)
    if main_page:
        _print_main_page(root_page, main_page)


def _checked(address: str) -> str:
    """Return an address with a slash at its end.  Raises click.BadParameter."""
    if not address:
        return ""
    if not re.fullmatch(r"https?://[!-~]+", address):
        raise click.BadParameter("write https://github.com/OWNER/NAME/wiki/, for example", param_hint="--address")
    return address.rstrip("/") + "/"


def _print_main_page(root_page: str, main_page: str) -> None:
    said = f"{root_page} is not the wiki's own first text, so it stays. The dump's main page becomes the root page"
    errors.print(f"{said} with: wikka serve --root-page {shlex.quote(main_page)}", markup=False, soft_wrap=True)


def _check_options(file: str, of_others: tuple[str, ...]) -> None:
    """Raise click.UsageError for an option that is not for such a file or folder."""
    params = click.get_current_context().params
    found = next((name for name in of_others if params[name]), None)
    if found is not None:
        option = {"folder": "files"}.get(found, found).replace("_", "-")
        raise click.UsageError(f"--{option} is not for {file}: see wikka import --help.")


def _imported_dump(wiki: Wiki, file: str, stream: BinaryIO) -> tuple[ImportSummary, float, float | None]:
    """Import a MediaWiki's export, by the options of the command; return also seconds, and those of the triggers."""
    given = click.get_current_context().params
    is_piped = file == "-"
    size = 0 if is_piped else os.path.getsize(file)
    wiki.prepare()
    begun = time.monotonic()
    with progress_bar(*_COLUMNS, total=size or None, pages=0) as show:
        importer = Importer.begun(
            wiki,
            stream,
            origin=f"{os.path.basename(file)}:{size}",
            namespaces=[name.strip() for name in given["namespaces"].split(",") if name.strip()],
            limit=given["limit"],
            licence=given["licence"],
            pictures=given["pictures"],
            includes=given["templates"] != "expand",
            restart=given["restart"] or is_piped,  # the next stream may be a different dump
            progress=lambda read_bytes, pages: show(completed=read_bytes, pages=pages),
        )
        if importer.resumed_after:
            errors.print(f"going on behind page {importer.resumed_after:,}")
        try:
            summary = importer.run()
        except DumpError as damage:
            raise click.ClickException(f"{'standard input' if is_piped else file}: {damage}") from None
    seconds = time.monotonic() - begun
    return summary, seconds, settled_after(wiki, _SETTLE_S)


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
