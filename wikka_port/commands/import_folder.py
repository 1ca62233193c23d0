"""``wikka import FOLDER``: bring in a folder of another wiki, and compare both sides at the end."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from wikka_port.commands.folder_forms import FolderOptions, OpenedFolder, opened_folder
from wikka_port.commands.import_wikkawiki import print_compared, print_lines
from wikka_port.commands.serving_options import accounts_of
from wikka_port.commands.store_options import StoreOptions, errors, progress_bar, settled_after
from wikka_port.imports.folder_move import FolderMove, FolderMover, root_is_free
from wikka_port.imports.source_forms import FORMS, form_of_folder
from wikka_port.moving.mover import By
from wikka_port.names import InvalidName, normalise

_SETTLE_S: Final = 600.0  # for the triggers, at the end
_GUESSED_FROM: Final = 20_000  # names of two levels by which the form of a folder is guessed
_COLUMNS: Final = (
    BarColumn(),
    MofNCompleteColumn(),
    TextColumn("pages, {task.fields[files]:,} files"),
    TimeRemainingColumn(),
)


def import_folder(path: str, given: FolderOptions, store: StoreOptions) -> None:
    """Import a folder.  Raises click.ClickException."""
    folder = Path(path)
    form = given.form or form_of_folder(_names_in(folder))
    if form is None:
        known = ", ".join(f"--from {name} ({words})" for name, words in FORMS.items())
        raise click.ClickException(f"{path} is no folder of a known form. If it is one all the same, say {known}.")
    if form not in FORMS:
        raise click.UsageError(f"{path} is a folder; --from {form} is for files.")
    try:
        prefix = normalise(given.prefix) if given.prefix else ""
    except InvalidName as invalid:
        raise click.BadParameter(str(invalid), param_hint="--prefix") from None
    if given.dry_run:
        with opened_folder(folder, form, given, prefix, prefix or given.root_page) as source:
            _print_preview(source)
        return
    with store.open_wiki(pool=16) as wiki:
        wiki.prepare()
        is_free = bool(prefix) or root_is_free(wiki, given.root_page)
        main_page = prefix or (given.root_page if is_free else "")
        with opened_folder(folder, form, given, prefix, main_page) as source:
            begun = time.monotonic()
            with progress_bar(*_COLUMNS, total=source.pages, files=0) as show:
                by = By(given.author or "Import", "", f"from {folder.resolve().name}")
                moved = FolderMover(wiki, accounts_of(wiki), source.source, by).run(
                    origin=f"{form}:{prefix}:{folder.resolve().name}:{source.digest}",
                    restart=given.restart,
                    main_page=main_page,
                    progress=lambda pages, files: show(completed=pages, files=files),
                )
            _print_summary(moved, source, time.monotonic() - begun, settled_after(wiki, _SETTLE_S))
            if source.main_page and not is_free:
                errors.print(
                    f"{given.root_page} was here already, so the folder's main page is {source.main_page}. It becomes"
                    f" the root page with: wikka serve --root-page {shlex.quote(source.main_page)}",
                    markup=False,
                )
    if not moved.is_equal:
        raise SystemExit(1)


def _names_in(folder: Path) -> list[str]:
    """Return the names of two levels, folders with a slash behind them."""
    found: list[str] = []
    try:
        for entry in os.scandir(folder):
            is_folder = entry.is_dir(follow_symlinks=False)
            found.append(f"{entry.name}/" if is_folder else entry.name)
            if is_folder and not entry.name.startswith("."):
                with os.scandir(entry.path) as inner:
                    found += [f"{entry.name}/{one.name}{'/' if one.is_dir() else ''}" for one in inner]
            if len(found) > _GUESSED_FROM:
                break
    except OSError as problem:
        raise click.ClickException(f"{folder} cannot be read: {problem.strerror}") from None
    return found


def _print_preview(source: OpenedFolder) -> None:
    console = Console(highlight=False, soft_wrap=True)
    differing = pages = 0
    for name, lines in source.preview():
        pages += 1
        differing += bool(lines)
        for line in lines:
            console.print(f"{name}: {line}", markup=False)
    console.print(f"{differing:,} of {pages:,} pages will look different, {source.files:,} files")
    for what, found in source.findings():
        print_lines(console, what, found)


def _print_summary(moved: FolderMove, source: OpenedFolder, seconds: float, settled_s: float | None) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if moved.summary.resumed_after:
        errors.print(f"went on behind page {moved.summary.resumed_after:,}")
    stored, counts = moved.summary.stored, moved.summary.counts
    table = Table(show_header=False, box=None)
    table.add_column(justify="right")
    table.add_column()
    rows = [
        (counts.pages, "pages"),
        (stored.revisions, "revisions stored"),
        (stored.already + moved.unchanged, "revisions that were here"),
        (moved.pages.changed_links, "pages with links that were changed"),
        (len(moved.files.stored), "files stored"),
        (len(moved.files.already), "files that were here"),
        (source.hidden, "hidden files and folders: left out"),
    ]
    for number, what in rows:
        if number or what == "pages":
            table.add_row(f"{number:,}", what)
    console.print(table)
    further = [
        ("revisions over the bound: left out", stored.too_big),
        ("pages over a bound: kept whole, shown and indexed up to it", counts.cut),
        ("names that look like another: kept", counts.confusable_names),
        ("pages deleted here: not brought back", sorted(stored.deleted)),
        ("pages with newer texts that were written here", sorted(stored.kept)),
        ("pages with a text written here that has a newer one above it now", sorted(stored.covered)),
        ("pages saved or moved meanwhile: import again", sorted(stored.busy)),
        ("files without a page", moved.files.without_page),
    ]
    for what, lines in (*source.findings(), *further):
        print_lines(console, what, lines)
    for compared in moved.compared:
        print_compared(console, compared)
    settled = f"indexes complete {settled_s:.1f} s later" if settled_s is not None else "indexes still lag"
    console.print(f"{seconds:.1f} s, {settled}")
