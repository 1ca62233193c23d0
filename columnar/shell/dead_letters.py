"""``columnar trigger dead ...``: show, retry and remove the changes that triggers gave up."""

from __future__ import annotations

from typing import Any

import click

from columnar.shell.completion import completing
from columnar.shell.connecting import Refused, Server, require_confirmation, with_server
from columnar.shell.numbers import COUNT
from columnar.shell.shell_output import as_plain, last_line, time_text
from columnar.shell.text import readable, typed


class _ListFirst(click.Group):
    """A group whose default subcommand is ``list``: ``dead``, ``dead NAME`` and ``dead --limit 5`` list letters."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_ListFirst, context_settings={"help_option_names": ["-h", "--help"]})
def dead() -> None:
    """Look at the changes that were given up, and retry or remove them.

    \b
      columnar trigger dead backlinks
      columnar trigger dead show backlinks page-7
      columnar trigger dead retry backlinks page-7 --as-it-was
      columnar trigger dead skip backlinks page-7
      columnar trigger dead purge backlinks
    """


@dead.command("list")
@click.argument("name", default="", shell_complete=completing("trigger"))
@click.option("--limit", default=100, show_default=True, type=COUNT, metavar="N", help="At most N.")
@with_server
def list_dead(server: Server, name: str, limit: int) -> None:
    """List the rows that were given up.

    The oldest come first, of one trigger or of all.
    """
    letters: Any = server.connection.triggers.dead_letters(name, limit)
    server.output.records(
        letters,
        lambda letter: as_plain(letter, leaving_out=("change",)),
        ("Trigger", "Table", "Row", "Attempts", "When", "Error"),
        lambda letter: (
            letter.trigger,
            readable(letter.table),
            readable(letter.row),
            letter.attempts,
            server.output.for_people(time_text, letter.timestamp_ms),
            last_line(letter.error),
        ),
        numbers=(3,),
        nothing="There are none.",
    )


@dead.command()
@click.argument("name", shell_complete=completing("trigger"))
@click.argument("row", default="")
@click.option("--limit", default=1, show_default=True, type=click.IntRange(1, 10), metavar="N", help="At most N.")
@with_server
def show(server: Server, name: str, row: str, limit: int) -> None:
    """Show a dead letter whole.

    The error with its traceback, the function's output, and the change: its steps and its images. The oldest
    letter of ROW, or of the trigger.
    """
    letters: Any = server.connection.triggers.show_dead(name, typed(row), limit)
    if server.output.as_json:
        server.output.json([as_plain(letter) for letter in letters])
        return
    if not letters:
        raise Refused(f"trigger {name} has no dead letter{f' of row {row}' if row else ''}")
    for letter in letters:
        click.echo(
            f"{letter.trigger}: row {readable(letter.row)} of {readable(letter.table)}, change {letter.sequence}"
        )
        click.echo(f"given up {time_text(letter.timestamp_ms)} after {letter.attempts} attempts")
        _show_change(letter.change)
        for heading, text in (("error", letter.error), ("output", letter.output)):
            if text.strip():
                click.echo(f"{heading}:")
                click.echo("\n".join(f"    {readable(line.encode())}" for line in text.rstrip().splitlines()))


def _show_change(change: Any) -> None:
    if change is None:
        click.echo("its change is not kept: it was too large, or an earlier version wrote the letter")
        return
    click.echo(f"stamp {change.stamp}, led to by {change.hops} changes")
    for heading, cells in (("steps", change.steps), ("before", change.before), ("after", change.after)):
        if cells:
            click.echo(f"{heading}:")
        for cell in cells:
            value = f" = {readable(cell.value)}" if cell.kind == "put" else ""
            click.echo(f"    {cell.kind} {readable(cell.column)} at {cell.timestamp}{value}")
    if change.lacks_images:
        click.echo("its images were too large to be kept")


@dead.command()
@click.argument("name", shell_complete=completing("trigger"))
@click.argument("row", default="")
@click.option("--as-it-was", is_flag=True, help="With the change that failed, under a new sequence.")
@with_server
def retry(server: Server, name: str, row: str, as_it_was: bool) -> None:
    """Try dead rows again.

    Retries the letters of ROW, or all letters of the trigger, with the rows as they are now.
    """
    retried(server, name, row, as_it_was)


def retried(server: Server, name: str, row: str, as_it_was: bool) -> None:
    taken = server.connection.triggers.retry(name, typed(row), as_it_was=as_it_was)
    server.output.json({"retried": taken}) if server.output.as_json else click.echo(f"{taken} rows are tried again")


@dead.command()
@click.argument("name", shell_complete=completing("trigger"))
@click.argument("row")
@with_server
def skip(server: Server, name: str, row: str) -> None:
    """Remove the letters of a row.

    Their changes are not delivered; later changes of the row are delivered as usual.
    """
    gone = server.connection.triggers.skip_dead(name, typed(row))
    server.output.done(f"{gone} dead letters of {row} are gone", {"removed": gone})


@dead.command()
@click.argument("name", shell_complete=completing("trigger"))
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_server
def purge(server: Server, name: str, yes: bool) -> None:
    """Remove all letters of a trigger.

    Their changes are not delivered. It asks first.
    """
    require_confirmation(f"All dead letters of trigger {name} go, and their changes are not delivered. Go on?", yes)
    gone = server.connection.triggers.purge_dead(name)
    server.output.done(f"{gone} dead letters are gone", {"removed": gone})
