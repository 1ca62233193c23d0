"""``columnar trigger ...``: the functions that run after changes, and their results."""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import Any, Final

import click

from columnar.errors import IllegalArgument
from columnar.model import flow_status
from columnar.model.trigger_registration import (
    BATCH_CHANGES,
    DEFAULT_SHARE,
    DEFAULT_SIDE_BY_SIDE,
    LONGEST_WITHIN_MS,
    MOST_SHARE,
    MOST_SIDE_BY_SIDE,
    start_at,
)
from columnar.shell.completion import completing, table_argument
from columnar.shell.connecting import Refused, Server, with_server
from columnar.shell.dead_letters import dead, retried
from columnar.shell.numbers import COUNT, Seconds
from columnar.shell.shell_output import last_line, plain_fields, remark_on_silent
from columnar.shell.text import moment_of, readable, typed
from columnar.shell.trigger_sync import reload, sync


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def trigger() -> None:
    """Look at triggers and change them.

    \b
    A trigger is a Python function that runs after each durable change of a table's rows:
      columnar standalone --trigger-modules my_triggers
      columnar trigger add pages my_triggers:backlinks --families text --before
      columnar trigger list
      columnar trigger wait --timeout 60
    """


trigger.add_command(dead)

_LISTED: Final = (
    "name", "table", "function", "families", "state", "lag_changes", "lag_seconds", "attempts", "timeout_ms",
    "parked_rows", "dead_letters", "last_error", "silent_servers", "owner",
)  # fmt: skip


@trigger.command("list")
@with_server
def list_triggers(server: Server) -> None:
    """List the triggers.

    Shows the table, the lag and the dead letters of each.
    """
    found = server.connection.triggers.list()
    headings = (
        "Trigger", "Table", "Families", "Function", "State", "Lag", "Seconds", "Retrying", "Dead", "Last error",
        "Settings",
    )  # fmt: skip
    server.output.records(
        found,
        lambda one: plain_fields(one, *_LISTED),
        headings,
        lambda one: (
            one.name,
            readable(one.table),
            ",".join(readable(family) for family in one.families),
            one.function,
            one.state,
            one.lag_changes,
            f"{one.lag_seconds:.1f}",
            one.parked_rows,
            one.dead_letters,
            last_line(one.last_error),
            f"owner={one.owner} {one.settings}".rstrip() if one.owner else one.settings,
        ),
        numbers=(5, 6, 7, 8),
        nothing="There are none. Register one: columnar trigger add TABLE MODULE:FUNCTION",
    )
    if found and not server.output.as_json:
        remark_on_silent(found[0].silent_servers)


@trigger.command()
@table_argument
@click.argument("function", metavar="MODULE:FUNCTION")
@click.option("--name", help="What to call it; TABLE-FUNCTION where nothing is said.")
@click.option(
    "--families",
    multiple=True,
    metavar="F[,F]",
    help="Whose changes count; all where nothing is said.",
    shell_complete=completing("family"),
)
@click.option(
    "--columns", multiple=True, metavar="F[:Q][,...]",
    help="Columns or families: a change must touch one, and carries them as they are after it.",
)  # fmt: skip
@click.option(
    "--where", multiple=True, metavar="CONDITION",
    help="Only where the row meets it after the change: f:q=value, !=, number(f:q)>=10, 'f:q exists', 'f:q absent'. "
    "Several must all hold.",
)  # fmt: skip
@click.option(
    "--look", multiple=True, metavar="NAME=TABLE,KEY",
    help="A row of another table comes along. KEY is made of the row: row, row[0:8], row.split('/', 0), f:user.",
)  # fmt: skip
@click.option("--before", is_flag=True, help="Changes carry the cells as they were.")
@click.option(
    "--from", "from_where", default="now", show_default=True, metavar="now|beginning|TIME",
    help="beginning: every row that is there counts as changed. 2026-01-31T12:00, milliseconds since 1970, or 15m for "
    "15 minutes ago: changes since then, as far as the table's log goes back (attribute CHANGE_LOG).",
)  # fmt: skip
@click.option("--timeout", type=Seconds(min_open=True), metavar="S", help="A run is ended after S seconds.")
@click.option("--attempts", type=COUNT, metavar="N", help="A row is given up after N failed runs.")
@click.option("--row/--no-row", default=True, help="Changes carry the row as it is, which costs a read each.")
@click.option(
    "--side-by-side", type=click.IntRange(1, MOST_SIDE_BY_SIDE), metavar="N",
    help=f"At most N runs at a time on each server; {DEFAULT_SIDE_BY_SIDE} where nothing is said.",
)  # fmt: skip
@click.option(
    "--share", type=click.IntRange(1, MOST_SHARE), metavar="N",
    help=f"Of the worker's time, beside the shares of others; {DEFAULT_SHARE} where nothing is said.",
)  # fmt: skip
@click.option("--rate", default="", metavar="N/s", help="So many runs begin at most, as 10/s, 600/min, 5/h or 1/d.")
@click.option(
    "--batch", type=click.IntRange(1, BATCH_CHANGES), metavar="N", help="A run gets a sequence of up to N changes."
)
@click.option(
    "--within", type=Seconds(LONGEST_WITHIN_MS / 1_000), metavar="S",
    help="A batch waits up to S seconds for more changes.",
)  # fmt: skip
@click.option("--process", default="", metavar="LABEL", help="A worker process of its own, for all of this label.")
@click.option(
    "--writes", multiple=True, metavar="T[/F][,...]",
    help="Where its effects go: T, T/F, queue:NAME, topic:NAME. It may be given anew while the trigger runs.",
)  # fmt: skip
@click.option("--allow-expiry", is_flag=True, help="Cells that it follows may expire: it does not hear of their end.")
@click.option("--allow-cycle", is_flag=True, help="It may run for its own changes, through others: 16 times at most.")
@with_server
def add(
    server: Server,
    table: str,
    function: str,
    name: str | None,
    families: tuple[str, ...],
    columns: tuple[str, ...],
    look: tuple[str, ...],
    from_where: str,
    timeout: float | None,
    within: float | None,
    writes: tuple[str, ...],
    **settings: Any,
) -> None:
    """Register a trigger.

    From then on MODULE:FUNCTION runs after each change of TABLE. The server imports only modules that
    its operator allowed with --trigger-modules.

    \b
      columnar trigger add pages my_triggers:backlinks --families text --before
      columnar trigger add pages my_triggers:index --from beginning --timeout 5 --attempts 10
      columnar trigger add photos my_triggers:thumbnail --columns f:original --where f:state=ready
      columnar trigger add tweets my_triggers:spread --look "fans=followers,row.split('/', 0)"
    """
    named = [typed(one).removesuffix(b":") for one in _listed(columns)]
    chosen = [typed(one) for one in _listed(families)] or sorted({column.partition(b":")[0] for column in named})
    if not chosen:
        chosen = [family.removesuffix(b":") for family in sorted(server.connection.table(typed(table)).families())]
    called = name or f"{table}-{function.rpartition(':')[2]}"
    server.connection.triggers.add(
        called,
        typed(table),
        function,
        chosen,
        columns=named,
        images=bool(named),
        look=[_parse_lookup(text) for text in look],
        from_where=_start(from_where),
        timeout_ms=0 if timeout is None else max(1, round(timeout * 1_000)),
        within_ms=round((within or 0.0) * 1_000),
        writes=_listed(writes),
        **{key: value for key, value in settings.items() if value is not None},
    )
    server.output.done(f"trigger {called} runs {function} on {table}", {"added": called})


def _listed(texts: tuple[str, ...]) -> list[str]:
    return [one for text in texts for one in text.split(",") if one]


def _parse_lookup(text: str) -> tuple[str, str, str]:
    """Parse NAME=TABLE,KEY. Raises IllegalArgument if ``text`` has a different form."""
    name, equals, rest = text.partition("=")
    table, comma, key = rest.partition(",")
    if not (equals and comma and name and table and key.strip()):
        raise IllegalArgument(f"--look '{text}': write NAME=TABLE,KEY, for example fans=followers,row.split('/', 0)")
    return name.strip(), table.strip(), key.strip()


@trigger.command()
@click.argument("name", shell_complete=completing("trigger"))
@with_server
def remove(server: Server, name: str) -> None:
    """Forget a trigger.

    Changes that were not yet delivered to it are dropped.
    """
    server.connection.triggers.remove(name)
    server.output.done(f"trigger {name} is gone", {"removed": name})


@trigger.command()
@click.argument("name", shell_complete=completing("trigger"))
@with_server
def pause(server: Server, name: str) -> None:
    """Deliver nothing for a while.

    Changes wait in the log until the trigger is resumed.
    """
    server.connection.triggers.pause(name)
    server.output.done(f"trigger {name} is paused", {"paused": name})


@trigger.command()
@click.argument("name", shell_complete=completing("trigger"))
@with_server
def resume(server: Server, name: str) -> None:
    """Go on where the trigger was paused."""
    server.connection.triggers.resume(name)
    server.output.done(f"trigger {name} goes on", {"resumed": name})


@trigger.command()
@click.argument("name", shell_complete=completing("trigger"))
@click.option(
    "--from", "from_when", required=True, metavar="TIME|beginning",
    help="2026-01-31T12:00, milliseconds since 1970, or 15m for 15 minutes ago. beginning: every row as it is now.",
)  # fmt: skip
@with_server
def replay(server: Server, name: str, from_when: str) -> None:
    """Deliver changes to a trigger again.

    Delivers the changes written since a time, as far back as the table's log goes (attribute CHANGE_LOG); with
    beginning, every row instead. Changes that arrive meanwhile wait behind them.

    \b
      columnar trigger replay backlinks --from 2h
      columnar trigger replay backlinks --from beginning
    """
    from_ms = 0 if from_when == "beginning" else moment_of(from_when, round(time.time() * 1_000))
    server.connection.triggers.replay(name, from_ms)
    what = "every row" if from_ms == 0 else "changes since then"
    server.output.done(f"trigger {name} is shown {what} again", {"replayed": name, "from_ms": from_ms})


@trigger.command()
@click.argument("name", shell_complete=completing("trigger"))
@click.argument("row", default="")
@click.option("--as-it-was", is_flag=True, help="With the change that failed, under a new sequence.")
@with_server
def retry(server: Server, name: str, row: str, as_it_was: bool) -> None:
    """Try dead rows again.

    Retries the letters of ROW, or all letters of the trigger, with the rows as they are now.
    """
    retried(server, name, row, as_it_was)


@trigger.command()
@click.argument("name", default="", shell_complete=completing("trigger"))
@click.option("--sequence", default="", metavar="TOKEN", help="Wait for this change; else for all written until now.")
@click.option("--timeout", default=30.0, show_default=True, type=Seconds(), metavar="S", help="Give up then.")
@with_server
def wait(server: Server, name: str, sequence: str, timeout: float) -> None:
    """Wait for deliveries.

    Returns when all changes written so far have been delivered; exit status 1 if the time is over first.

    \b
      columnar trigger wait --timeout 60 && columnar scan backlinks
    """
    with closing(server.patient(timeout)) as connection:
        delivered = connection.triggers.wait(name, sequence, round(timeout * 1_000))
    if not delivered:
        raise Refused(f"not delivered within {timeout:g} s; 'columnar trigger list' shows what is behind")
    server.output.done("delivered", {"delivered": True})


def _start(text: str) -> str:
    if text in ("now", "beginning"):
        return text
    return start_at(moment_of(text, round(time.time() * 1_000)))


trigger.add_command(sync)
trigger.add_command(reload)


@click.command()
@with_server
def flows(server: Server) -> None:
    """Show the flows of data.

    \b
    Each table, queue and topic, what follows it (triggers, views, feeds, outboxes), and where that writes:
      pages/text
      -> trigger links   12.0/s  lag 0
         backlinks/link
    Beside each: deliveries a second over the last minute, changes not yet delivered, rows that are tried again, and
    dead letters. A place that was written and that nobody declared is marked.
    """
    text = server.connection.flows()
    if server.output.as_json:
        server.output.json(json.loads(text))
        return
    flows, silent = flow_status.from_json(text)
    click.echo(flow_status.drawing_of(flows), nl=False)
    remark_on_silent(silent)
