"""``columnar get`` and ``columnar put``."""

from __future__ import annotations

import click

from columnar.shell.connecting import Refused, Server, with_server
from columnar.shell.showing import Cell
from columnar.shell.text import cell_of, readable, typed


@click.command()
@click.argument("table")
@click.argument("row")
@click.argument("columns", metavar="[COLUMN]...", nargs=-1)
@click.option("--versions", default=1, type=click.IntRange(1), metavar="N", help="Up to N versions of each cell.")
@click.option("--ts", "timestamps", is_flag=True, help="Show the cells' timestamps.")
@click.option("--full", is_flag=True, help="At a terminal: do not cut long values.")
@with_server
def get(
    server: Server, table: str, row: str, columns: tuple[str, ...], versions: int, timestamps: bool, full: bool
) -> None:
    """Show one row: all of it, or the COLUMNs (FAMILY or FAMILY:QUALIFIER).

    Bytes that are no text are shown, and typed, as \\xNN. The exit status is 1 where there is nothing.

    \b
      columnar get pages HomePage
      columnar get pages HomePage text:body --versions 5 --ts
      columnar get counters '\\x00\\x01' --json
    """
    key = typed(row)
    held = server.connection.table(typed(table))
    found = held.row(key, columns=[typed(column) for column in columns] or None, include_timestamp=True)
    cells = []
    for column in sorted(found):
        if versions == 1:
            cells.append(Cell(column, *found[column]))
        else:
            cells += [Cell(column, *one) for one in held.cells(key, column, versions, include_timestamp=True)]
    if not cells:
        raise Refused(f"there is no such row in {table}" if not columns else f"row {row} has none of these columns")
    server.output.row(key, cells, timestamps=timestamps, full=full)


@click.command()
@click.argument("table")
@click.argument("row")
@click.argument("cells", metavar="COLUMN=VALUE...", nargs=-1, required=True)
@click.option("--timestamp", type=click.IntRange(0), metavar="MS", help="Milliseconds since 1970; else the server's.")
@with_server
def put(server: Server, table: str, row: str, cells: tuple[str, ...], timestamp: int | None) -> None:
    """Write cells of one row, all in one atomic step; returns when they are on disk.

    \b
      columnar put pages HomePage text:body='Hello' meta:author=me
      columnar put pages HomePage text:body="$(cat page.txt)"
      columnar put counters '\\x00\\x01' n:hits='\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05'
    """
    data = dict(cell_of(cell) for cell in cells)
    server.connection.table(typed(table)).put(typed(row), data, timestamp=timestamp)
    server.output.done(f"{len(data)} cells of {readable(typed(row))} written", {"written": len(data)})
