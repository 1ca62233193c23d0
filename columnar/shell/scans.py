"""``columnar scan`` and ``columnar count``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click

from columnar.model.key_parts import after_prefix
from columnar.shell.cell_options import CellOptions, add_cell_options
from columnar.shell.completion import complete_column, complete_filter, table_argument
from columnar.shell.connecting import Misused, Server, with_server
from columnar.shell.progress import counting
from columnar.shell.text import typed

BATCH_ROWS: Final = 500
COUNT_BATCH_ROWS: Final = 5_000
_KEYS_ONLY: Final = b"FirstKeyOnlyFilter() AND KeyOnlyFilter()"


@click.command()
@table_argument
@click.option("--start", default="", metavar="ROW", help="First row (the last one, with --reversed).")
@click.option("--stop", default="", metavar="ROW", help="First row that is not shown any more.")
@click.option("--prefix", default="", help="Rows that begin so.")
@click.option(
    "--columns",
    multiple=True,
    metavar="C[,C]",
    help="FAMILY or FAMILY:QUALIFIER; may be repeated.",
    shell_complete=complete_column,
)
@click.option(
    "--filter", "filter_text", metavar="TEXT", help="A filter string of HBase.", shell_complete=complete_filter
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most N rows.")
@click.option("--reversed", "backwards", is_flag=True, help="From the last row to the first.")
@with_server
@add_cell_options
def scan(server: Server, table: str, *, look: CellOptions, limit: int | None, **asked: Any) -> None:
    """Show many rows, in the order of their keys.

    TIME is milliseconds since 1970, a date (2026-01-31T12:00, local time), or an age such as 15m, 2h, 7d. A filter sees
    the newest cells before --until; rows without a cell since --since are left out. More than one version costs a call
    for each cell. Values are shown as by 'columnar get'.

    \b
      columnar scan pages --limit 10
      columnar scan pages --prefix Home --columns text:body,meta
      columnar scan pages --start M --stop N --reversed
      columnar scan pages --since 2h --ts
      columnar scan counters --as counter
      columnar scan pages --filter "SingleColumnValueFilter('meta','author',=,'binary:me')"
    """
    opened = server.connection.table(typed(table))
    # Rows that --since leaves out do not count: then the limit is kept here.
    at_most = None if look.since_ms else limit
    shown = 0
    with server.output.paged() as output:
        for row, found in _rows(server, table, before_ms=look.before_ms, limit=at_most, **asked):
            cells = list(look.cells(opened, row, found))
            if not cells:
                continue
            output.row(row, cells, timestamps=look.timestamps, full=look.full, form=look.form)
            shown += 1
            if shown == limit:
                return


def _rows(
    server: Server,
    table: str,
    *,
    start: str,
    stop: str,
    prefix: str,
    columns: tuple[str, ...],
    filter_text: str | None,
    before_ms: int | None,
    limit: int | None,
    backwards: bool,
) -> Iterator[tuple[bytes, dict[bytes, Any]]]:
    """Yield the rows of a scan.

    A reversed scan of a prefix is cut here, because the API's stop row is exclusive and its start row inclusive.
    """
    if prefix and (start or stop):
        raise Misused("--prefix goes without --start and --stop")
    wanted = typed(prefix)
    first: bytes | None = typed(start) or None
    last: bytes | None = typed(stop) or None
    if wanted:
        first, last = (after_prefix(wanted), None) if backwards else (wanted, after_prefix(wanted))
    found = server.connection.table(typed(table)).scan(
        row_start=first,
        row_stop=last,
        columns=[typed(one) for text in columns for one in text.split(",") if one] or None,
        filter=filter_text.encode("utf-8", "surrogateescape") if filter_text else None,
        batch_size=min(BATCH_ROWS, limit or BATCH_ROWS),
        limit=None if wanted and backwards else limit,
        timestamp=before_ms,
        reverse=backwards,
        include_timestamp=True,
    )
    shown = 0
    for row, cells in found:
        if wanted and backwards:
            if row < wanted:
                return
            if not row.startswith(wanted):
                continue
        yield row, cells
        shown += 1
        if shown == limit:
            return


@click.command()
@table_argument
@click.option("--prefix", default="", help="Rows that begin so.")
@with_server
def count(server: Server, table: str, prefix: str) -> None:
    """Count rows: reads every key once, so it takes its time on large tables.

    \b
      columnar count pages
      columnar count pages --prefix Home
    """
    rows = server.connection.table(typed(table)).scan(
        row_prefix=typed(prefix) or None, filter=_KEYS_ONLY, batch_size=COUNT_BATCH_ROWS
    )
    total = 0
    with counting(f"counting {table}", "rows") as advance:
        for _ in rows:
            total += 1
            if total % BATCH_ROWS == 0:
                advance(total)
    server.output.json({"table": table, "rows": total}) if server.output.as_json else click.echo(total)
