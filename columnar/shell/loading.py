"""``columnar bulk-load``: files of cells, or an export, into a table that serves."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import click

from columnar.backup.bulk_load import BulkLoad
from columnar.backup.cell_blocks import MAGIC, ExportedCell, read_cells
from columnar.backup.cell_sorting import sorted_cells
from columnar.backup.exporting import part_cells, read_manifest
from columnar.backup.load_inputs import FORMATS, cells_in, checked
from columnar.runtime.file_errors import files_in
from columnar.shell.completion import table_argument
from columnar.shell.connecting import Server, with_server
from columnar.shell.progress import progress_bar
from columnar.shell.text import typed
from columnar.shell.transfer import patient
from columnar.storage.rocks import RocksEngine


@click.command("bulk-load")
@table_argument
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--format", "form", type=click.Choice([*FORMATS, "auto"]), default="auto", show_default=True,
              help="Of text files; auto goes by their names: .tsv, .csv, .json, .jsonl.")  # fmt: skip
@with_server
def bulk_load(server: Server, table: str, files: tuple[str, ...], form: str) -> None:
    """Put many cells into TABLE: from text FILES, or from folders that 'columnar export' wrote.

    A line of text is row, family:qualifier, value and perhaps timestamp and time to live in milliseconds, separated
    by tabs (.tsv) or commas (.csv), or a JSON object with those names (.json). Bytes that are no text are \\xNN.

    Into empty ranges of a table that nobody watches, each region gets its rows at once, all or none. Elsewhere the
    rows are ordinary writes: triggers see them, existing cells are compared by timestamp. Cut off, it can be begun
    again; without timestamps in the files, the cells then get new ones. Runs on the server's machine.

    \b
      columnar bulk-load pages dump.tsv more.csv
      columnar bulk-load pages /backup/pages
    """
    began = time.monotonic()
    with patient(server) as connection, connection.snapshots.staged("empty") as staged:
        load = BulkLoad.begun(connection, RocksEngine(), typed(table), staged)
        cells = sorted_cells(_all_cells(files, form, time.time_ns() // 1_000_000), staged.path)
        with files_in(staged.path), progress_bar(f"loading {table}", None) as progress:
            done = load.run(cells, progress)
    facts: dict[str, object] = {"table": table, "rows": done.rows, "cells": done.cells}
    facts |= {"ingested_regions": done.ingested_regions, "written_regions": done.written_regions}
    if load.obstacles:
        facts["why_written"] = "; ".join(load.obstacles)
    server.output.facts({**facts, "seconds": round(time.monotonic() - began, 1)})


def _all_cells(files: tuple[str, ...], form: str, now_ms: int) -> Iterator[ExportedCell]:
    """In the order of the files: of two cells with one timestamp the later one counts."""
    for path in files:
        if os.path.isdir(path):
            for part in read_manifest(path).parts:
                yield from part_cells(path, part)
            continue
        with open(path, "rb") as file:
            if file.read(len(MAGIC)) == MAGIC:
                file.seek(0)
                yield from map(checked, read_cells(file, path))
                continue
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as lines:
            yield from cells_in(lines, _form_of(path, form), path, typed, now_ms)


def _form_of(path: str, form: str) -> str:
    if form != "auto":
        return form
    ending = os.path.splitext(path)[1].lower()
    return {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}.get(ending, "tsv")
