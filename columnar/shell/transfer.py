"""``columnar export | import | digest | bulk-load``: write tables to folders, and read them from folders and files.

The commands run on the server's machine: rows go through files, not through the port.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from columnar.backup.bulk_load import BulkLoad
from columnar.backup.cell_blocks import MAGIC, ExportedCell, read_cells
from columnar.backup.load_inputs import FORMATS, cells_in, checked, sorted_cells
from columnar.backup.table_export import build_table, digest_of, export_table, part_cells, read_manifest
from columnar.client import Connection
from columnar.errors import CallerError, ColumnarError
from columnar.runtime.file_errors import files_in
from columnar.shell.completion import table_argument
from columnar.shell.connecting import Refused, Server, with_server
from columnar.shell.progress import progress_bar
from columnar.shell.text import readable, typed
from columnar.storage.rocks import RocksEngine

LONGEST_S = 3_600.0  # copies and adoptions of large tables


@contextmanager
def patient(server: Server) -> Iterator[Connection]:
    """Yield a connection that waits long; errors of the command's own storage are reported as refusals."""
    connection = server.patient(LONGEST_S)
    try:
        yield connection
    except CallerError:
        raise
    except ColumnarError as error:
        raise Refused(error.text) from None
    finally:
        connection.close()


@click.command()
@table_argument
@click.argument("folder", type=click.Path(file_okay=False))
@with_server
def export(server: Server, table: str, folder: str) -> None:
    """Write TABLE into a new FOLDER: schema, every version of every cell, checksums.

    The table serves meanwhile; each row is written as it was at one moment. Prints the numbers of rows and cells and
    their digest, which 'columnar digest' and 'columnar import' print too. Runs on the server's machine.

    \b
      columnar export pages /backup/pages
    """
    began = time.monotonic()
    with (
        patient(server) as connection,
        connection.snapshots.staged("copy", typed(table)) as copy,
        files_in(folder),
        progress_bar(f"exporting {table}", None) as progress,
    ):
        done = export_table(RocksEngine(), copy.path, folder, progress)
    _print_summary(server, table, done.rows, done.cells, done.digest, began, bytes=done.size_bytes, folder=folder)


@click.command("import")
@click.argument("folder", type=click.Path(file_okay=False, exists=True))
@click.argument("table", required=False)
@with_server
def import_(server: Server, folder: str, table: str | None) -> None:
    """Make a new table out of an exported FOLDER, under its own name or as TABLE.

    The table appears when it is whole: an import that was cut off left nothing, and can be begun again. A table
    that is there already is not touched: add to it with 'columnar bulk-load'. Runs on the server's machine.

    \b
      columnar import /backup/pages
      columnar import /backup/pages pages_old
    """
    began = time.monotonic()
    with patient(server) as connection:
        exported = read_manifest(folder)
        name = typed(table) if table is not None else exported.table.name.encode()
        if name in connection.tables():
            raise Refused(
                f"table {readable(name)} is there already; name another, or add the rows to it with "
                f"'columnar bulk-load {readable(name)} {folder}'"
            )
        with connection.snapshots.staged("empty") as staged:
            with files_in(staged.path), progress_bar(f"importing {readable(name)}", None) as progress:
                done = build_table(RocksEngine(), folder, exported, staged.path, progress)
            connection.snapshots.adopt_staged(staged, name)
    _print_summary(server, readable(name), done.rows, done.cells, done.hex, began)


@click.command()
@table_argument
@with_server
def digest(server: Server, table: str) -> None:
    """Count the rows and cells of TABLE and reckon their digest: equal digests, equal tables.

    Every version that a reader could see counts, with its timestamp and time to live. Runs on the server's machine.

    \b
      columnar digest pages
    """
    began = time.monotonic()
    with (
        patient(server) as connection,
        connection.snapshots.staged("copy", typed(table)) as copy,
        progress_bar(f"reading {table}", None) as progress,
    ):
        done = digest_of(RocksEngine(), copy.path, progress)
    _print_summary(server, table, done.rows, done.cells, done.hex, began)


def _print_summary(
    server: Server, table: str, rows: int, cells: int, hex_digest: str, began: float, **more: object
) -> None:
    facts: dict[str, object] = {"table": table, "rows": rows, "cells": cells, "digest": hex_digest, **more}
    server.output.facts({**facts, "seconds": round(time.monotonic() - began, 1)})


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

    Into empty ranges of a table that no trigger follows, each region gets its rows at once, all or none. Otherwise the
    rows are ordinary writes: triggers see them, and existing cells are compared by timestamp. An interrupted load can
    be repeated; cells without timestamps in the files then get new ones. Runs on the server's machine.

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
    """Yield all cells in the order of the files, because of two cells with one timestamp the later one counts."""
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
