"""``columnar get | put | delete | incr | append | check-and-put``: the cells of one row."""

from __future__ import annotations

import time
from typing import Any

import click

from columnar.client import Expect, Put
from columnar.errors import IllegalArgument
from columnar.shell.cell_options import CellOptions, add_cell_options
from columnar.shell.completion import complete_column, table_argument
from columnar.shell.connecting import Refused, Server, with_server
from columnar.shell.text import moment_of, readable, typed
from columnar.shell.values import FORMS, Form, Values

_timestamp = click.option(
    "--timestamp", metavar="TIME", help="Milliseconds since 1970, 2026-01-31T12:00, or 15m for 15 minutes ago."
)
_form = click.option(
    "--as", "form", type=click.Choice(FORMS), default="text", show_default=True, help="How the values are typed."
)
_cells = click.argument("cells", metavar="COLUMN=VALUE...", nargs=-1, required=True, shell_complete=complete_column)


@click.command()
@table_argument
@click.argument("row")
@click.argument("columns", metavar="[COLUMN]...", nargs=-1, shell_complete=complete_column)
@with_server
@add_cell_options
def get(server: Server, table: str, row: str, columns: tuple[str, ...], look: CellOptions) -> None:
    """Show one row: all of it, or the COLUMNs (FAMILY or FAMILY:QUALIFIER).

    Bytes that are no text are shown, and typed, as \\xNN. The store does not know which cells are counters, so a
    value is a number only if you say so (--as counter, for values of 8 bytes); at a terminal 8 bytes that are no text
    are shown with the number that they would be. The exit status is 1 if nothing was found.

    TIME is milliseconds since 1970, a date (2026-01-31T12:00, local time), or 15m, 2h, 7d: so long ago.

    \b
      columnar get pages HomePage
      columnar get pages HomePage text:body --versions 5 --ts
      columnar get pages HomePage --at 2026-01-31T12:00
      columnar get pages HomePage --since 2h --versions 100
      columnar get counters HomePage n:hits --as counter
      columnar get counters '\\x00\\x01' --json
    """
    key = typed(row)
    opened = server.connection.table(typed(table))
    found = opened.row(
        key, columns=[typed(column) for column in columns] or None, timestamp=look.before_ms, include_timestamp=True
    )
    cells = list(look.cells(opened, key, found))
    if not cells:
        of_then = " of that time" if look.before_ms is not None or look.since_ms else ""
        what = f"row {row} has none of these columns{of_then}" if columns else f"there is no such row{of_then}"
        raise Refused(what if columns else f"{what} in {table}")
    with server.output.paged() as output:
        output.row(key, cells, timestamps=look.timestamps, full=look.full, form=look.form)


@click.command()
@table_argument
@click.argument("row")
@_cells
@_form
@_timestamp
@with_server
def put(server: Server, table: str, row: str, cells: tuple[str, ...], form: Form, timestamp: str | None) -> None:
    """Write cells of one row, all in one atomic step; returns when they are on disk.

    A VALUE of - is the content of standard input, @FILE the content of the file; type a leading @ as \\x40.

    \b
      columnar put pages HomePage text:body='Hello' meta:author=me
      columnar put pages HomePage text:body=@page.txt
      make-page | columnar put pages HomePage text:body=-
      columnar put counters HomePage n:hits=5 --as counter
    """
    values = Values(form)
    data = dict(_pairs(values, row, cells))
    server.connection.table(typed(table)).put(typed(row), data, timestamp=_moment(timestamp))
    server.output.done(f"{len(data)} cells of {readable(typed(row))} written", {"written": len(data)})


@click.command()
@table_argument
@click.argument("row")
@click.argument("columns", metavar="[COLUMN]...", nargs=-1, shell_complete=complete_column)
@_timestamp
@with_server
def delete(server: Server, table: str, row: str, columns: tuple[str, ...], timestamp: str | None) -> None:
    """Remove one row, or only the COLUMNs of it (FAMILY or FAMILY:QUALIFIER), in one atomic step.

    With --timestamp only versions that are not younger. A missing row or cell is no error.
    'columnar delete-rows' removes the rows of a range.

    \b
      columnar delete pages HomePage
      columnar delete pages HomePage meta:author text
      columnar delete pages HomePage text:body --timestamp 7d
    """
    wanted = [typed(column) for column in columns] or None
    server.connection.table(typed(table)).delete(typed(row), columns=wanted, timestamp=_moment(timestamp))
    what = f"{', '.join(columns)} of row {row}" if columns else f"row {row}"
    server.output.done(f"{what} deleted", {"deleted": readable(typed(row)), "columns": list(columns)})


@click.command(context_settings={"ignore_unknown_options": True})  # -5 is an amount
@table_argument
@click.argument("row")
@click.argument("column", shell_complete=complete_column)
@click.argument("amount", default=1, type=int)
@with_server
def incr(server: Server, table: str, row: str, column: str, amount: int) -> None:
    """Add AMOUNT (1 by default) to a counter and print its new value. A missing cell counts as 0.

    \b
      columnar incr counters HomePage n:hits
      columnar incr counters HomePage n:hits -5
    """
    if not -(1 << 63) <= amount < 1 << 63:
        raise IllegalArgument(f"{amount} is more than a counter holds: 64 bits with a sign")
    number = server.connection.table(typed(table)).counter_inc(typed(row), typed(column), value=amount)
    server.output.json({"value": number}) if server.output.as_json else click.echo(number)


@click.command()
@table_argument
@click.argument("row")
@_cells
@_form
@with_server
def append(server: Server, table: str, row: str, cells: tuple[str, ...], form: Form) -> None:
    """Append to cells of one row, all in one atomic step; a missing cell counts as empty.

    \b
      columnar append log 2026-01-31 e:lines='one more;'
      columnar append log 2026-01-31 e:lines=@more.txt
    """
    from Hbase_thrift import TAppend  # type: ignore[import-not-found]  # there once happybase is imported

    values = Values(form)
    pairs = _pairs(values, row, cells)
    call = TAppend(typed(table), typed(row), [column for column, _ in pairs], [one for _, one in pairs])
    kept = server.connection.client.append(call)
    size = sum(len(cell.value) for cell in kept)
    server.output.done(f"appended: now {size} bytes", {"appended": len(pairs), "bytes": size})


@click.command("check-and-put")
@table_argument
@click.argument("row")
@_cells
@click.option("--if", "equal", multiple=True, metavar="COLUMN=VALUE", help="Only if the cell is this.")
@click.option("--if-absent", "absent", multiple=True, metavar="COLUMN", help="Only if there is no such cell.")
@click.option("--if-exists", "exists", multiple=True, metavar="COLUMN", help="Only if there is such a cell.")
@_form
@_timestamp
@with_server
def check_and_put(server: Server, table: str, row: str, cells: tuple[str, ...], form: Form, **options: Any) -> None:
    """Write cells of one row if all conditions on the row hold, in one atomic step.

    The exit status is 1 if a condition does not hold; then nothing is written.

    \b
      columnar check-and-put pages HomePage meta:rev=5 text:body=@new.txt --if meta:rev=4
      columnar check-and-put locks job-7 l:owner=me --if-absent l:owner
    """
    values = Values(form)
    expected = [(text, Expect(*values.cell(text))) for text in options["equal"]]
    expected += [(f"--if-absent {text}", Expect.absent(typed(text))) for text in options["absent"]]
    expected += [(f"--if-exists {text}", Expect.exists(typed(text))) for text in options["exists"]]
    if not expected:
        raise IllegalArgument("say what is expected: --if COLUMN=VALUE, --if-absent COLUMN or --if-exists COLUMN")
    moment = _moment(options["timestamp"])
    puts = [Put(column, value, moment) for column, value in _pairs(values, row, cells)]
    opened = server.connection.table(typed(table))
    done = opened.check_and_mutate(typed(row), [one for _, one in expected], puts)
    if not done.applied:
        raise Refused(f"nothing is written: {expected[done.failed_condition or 0][0]} does not hold")
    server.output.done(f"{len(puts)} cells of {readable(typed(row))} written", {"written": len(puts)})


def _pairs(values: Values, row: str, cells: tuple[str, ...]) -> list[tuple[bytes, bytes]]:
    if ":" in row.partition("=")[0] and "=" in row and any("=" not in cell for cell in cells):
        raise IllegalArgument(f"the row comes before the cells: is '{row}' one of them?")
    return [values.cell(cell) for cell in cells]


def _moment(text: str | None) -> int | None:
    return moment_of(text, time.time_ns() // 1_000_000) if text is not None else None
