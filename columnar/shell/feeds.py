"""``columnar feed``: have the changes of a table written into a topic, list feeds, drop them."""

from __future__ import annotations

from collections.abc import Sequence

import click

from columnar.client.feeds import FeedStatus
from columnar.model.feeds import DEBEZIUM_JSON, FORMATS
from columnar.model.trigger_scope import column_of_latin
from columnar.shell.changes import latin_forms
from columnar.shell.completion import completing
from columnar.shell.connecting import Server, with_server
from columnar.shell.shell_output import last_line, remark_on_silent


@click.group()
def feed() -> None:
    """Have the changes of a table written into a topic.

    \b
      columnar feed add pages --topic pages.changes --partitions 4
      columnar feed list
      columnar topic consume pages.changes
    """


@feed.command()
@click.argument("table", shell_complete=completing("table"))
@click.option("--topic", required=True, help="Where the changes go.")
@click.option("--name", default="", help="Of the feed; without it that of the topic.")
@click.option("--format", "form", type=click.Choice(FORMATS), default=DEBEZIUM_JSON, show_default=True)
@click.option("--columns", multiple=True, metavar="COLUMNS", help="Only these: meta,text:body.  Without it all.")
@click.option("--value", "values", multiple=True, metavar="FORM", help="base64, meta:tags=json, row=base64, ...")
@click.option(
    "--from", "start", type=click.Choice(["now", "beginning"]), default="now", show_default=True,
    help="beginning: the rows that are there come first.",
)  # fmt: skip
@click.option("--partitions", type=click.IntRange(1), default=None, help="Of the topic, which is made if missing.")
@with_server
def add(
    server: Server,
    table: str,
    topic: str,
    name: str,
    form: str,
    columns: Sequence[str],
    values: Sequence[str],
    start: str,
    partitions: int | None,
) -> None:
    """Write each change of a table into a topic, from now on.

    A record has the row as its key, and as its value a message of Debezium's JSON form with the row before and after.
    The changes of a row are in one partition, in their order.

    \b
      columnar feed add pages --topic pages.changes --partitions 4 --from beginning
      columnar feed add pages --topic titles --columns meta:title --value meta:tags=json
    """
    is_made = server.connection.feeds.add(
        table,
        topic,
        name=name,
        format=form,
        columns=[column_of_latin(one) for text in columns for one in text.split(",") if one],
        values=latin_forms(values),
        start=start,
        partitions=partitions or 0,
    )
    made = f"topic {topic} is made; " if is_made else ""
    server.output.done(
        f"{made}feed {name or topic} writes the changes of {table} into topic {topic}",
        {"feed": name or topic, "table": table, "topic": topic, "made": is_made},
    )


@feed.command("list")
@with_server
def list_(server: Server) -> None:
    """List the feeds: table, topic, state, lag, and why one stands still.

    \b
      columnar feed list
    """
    found = list(server.connection.feeds.list())
    server.output.records(
        found,
        _as_json,
        ("Feed", "Table", "Topic", "State", "Lag", "Lag s", "Sent", "Error"),
        lambda one: (
            one.name, one.feed.table, one.feed.topic, one.state, one.lag_changes, f"{one.lag_seconds:.1f}",
            one.delivered, last_line(one.error) or "-",
        ),
        numbers=(4, 5, 6),
        nothing="There are no feeds.",
    )  # fmt: skip
    remark_on_silent(sorted({silent for one in found for silent in one.silent_servers}))


@feed.command()
@click.argument("name")
@with_server
def drop(server: Server, name: str) -> None:
    """Drop a feed; its records stay in the topic.

    \b
      columnar feed drop pages.changes
    """
    server.connection.feeds.drop(name)
    server.output.done(f"feed {name} is gone", {"feed": name})


def _as_json(one: FeedStatus) -> dict[str, object]:
    feed = one.feed
    return {
        "feed": feed.name,
        "table": feed.table,
        "topic": feed.topic,
        "format": feed.format,
        "columns": list(feed.columns),
        "values": list(feed.values),
        "from": feed.start,
        "state": one.state,
        "lag_changes": one.lag_changes,
        "lag_seconds": one.lag_seconds,
        "delivered": one.delivered,
        "error": one.error,
        "silent_servers": list(one.silent_servers),
    }
