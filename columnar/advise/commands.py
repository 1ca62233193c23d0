"""``columnar advise``: a first design of tables, from a schema of SQL and a log of its queries."""

from __future__ import annotations

from pathlib import Path

import click

from columnar.shell.connecting import Misused, Refused

_DIALECTS = ("mysql", "postgres", "sqlite", "tsql", "oracle")


@click.command("advise")
@click.argument("schema", metavar="SCHEMA.SQL", type=click.Path(path_type=Path))
@click.option(
    "--queries", metavar="FILE", type=click.Path(path_type=Path),
    help="MySQL's or MariaDB's general log, or statements that end with ; or one a line; also .gz.",
)  # fmt: skip
@click.option(
    "--dialect", type=click.Choice(_DIALECTS), default="mysql", show_default=True, help="The SQL of both files."
)
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path), help="Write the page there, not to standard output."
)
def advise(schema: Path, queries: Path | None, dialect: str, out: Path | None) -> None:
    """Propose tables, triggers and calls for a schema of SQL.

    The page, in Markdown, has the tables with their families and keys, a trigger for each index, the commands that
    make them, and a line for every form of query: the call that serves it, or why none does and what to do instead. It
    ends with what was assumed and with questions that only a person can answer. No server is needed, and nothing is
    changed.

    Without --queries the keys are guessed from the indexes. Literals of the log are replaced before anything else, so
    no value of it comes into the page, and millions of statements become some hundred lines.

    Exit status: 0 the page was written, 1 a file cannot be used, 2 the command was used wrongly.

    \b
    mysqldump --no-data wiki > schema.sql
    mysql -e "SET GLOBAL general_log = 1"      # an hour of a usual day
    columnar advise schema.sql --queries general.log --out design.md
    Tables of another database, with statements of a program's tests:
    columnar advise schema.sql --queries statements.sql --dialect postgres
    """
    try:
        from columnar.advise.reading import NO_LOG, UnusableInput, read_schema, read_workload
    except ModuleNotFoundError as error:
        if error.name != "sqlglot":
            raise
        raise Misused("advise needs the package sqlglot: pip install 'columnar[advise]'") from None
    from columnar.advise.rules import design_of
    from columnar.advise.text import page

    try:
        tables = read_schema(schema, dialect)
        workload = read_workload(queries, tables, dialect) if queries is not None else NO_LOG
    except UnusableInput as error:
        raise Refused(error.text) from None
    text = page(design_of(tables, workload))
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refused(f"{out}: {error.strerror or error}") from None
    click.echo(
        f"{out}: {len(tables.tables)} tables, {len(workload.shapes)} shapes of queries; read its questions", err=True
    )
