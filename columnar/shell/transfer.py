"""``columnar export | import | digest | bulk-load``: tables into folders and files, and back.

They run on the server's machine: rows do not go through the port, but through files beside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from columnar.backup.exporting import digest_of, export_table, read_manifest
from columnar.backup.importing import build_table
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
    """A connection that waits long; errors of our own storage as refusals."""
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

    The table serves meanwhile; each row is written as it was at one moment. Prints how many rows and cells there
    are and their digest, which 'columnar digest' and 'columnar import' print too. Runs on the server's machine.

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
