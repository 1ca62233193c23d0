"""``columnar queue``: look at queues, push and take messages, and look after dead ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict

import click

from columnar.client.queues import QueueMessage, QueueStats
from columnar.shell.connecting import Server, require_confirmation, with_server
from columnar.shell.served_queues import pause, resume, serve, served, unserve
from columnar.shell.shell_output import time_text
from columnar.shell.text import age_text, readable, seconds_of, typed

_PRINTED_BYTES = 200  # of a body in a table

name_argument = click.argument("name", metavar="QUEUE")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
count_option = click.option("--count", type=click.IntRange(1, 1_000), default=10, show_default=True)


@click.group()
def queue() -> None:
    """Look at queues, push and take messages, and look after dead ones.

    A queue keeps messages until somebody has done the work that they stand for; it needs no creation.

    \b
      columnar queue push thumbs a.png
      columnar queue pop thumbs --commit
      columnar queue list
    """


for _command in (serve, unserve, served, pause, resume):
    queue.add_command(_command)


@queue.command("list")
@click.option("--prefix", default="", help="Only queues whose names begin so.")
@with_server
def list_(server: Server, prefix: str) -> None:
    """List the queues: messages that are ready, in flight, delayed and dead, and the age of the oldest ready one.

    \b
      columnar queue list
    """
    connection = server.connection
    found = [(name, connection.queue(name).stats()) for name in connection.queues.names(typed(prefix))]
    server.output.records(
        found,
        lambda one: {"queue": readable(one[0]), **_stats(one[1])},
        ("Queue", "Ready", "In flight", "Delayed", "Dead", "Oldest"),
        lambda one: (readable(one[0]), *_counts(one[1]), server.output.for_people(_age, one[1].oldest_ms)),
        numbers=(1, 2, 3, 4),
        nothing="There are no queues.",
    )


@queue.command()
@name_argument
@with_server
def stats(server: Server, name: str) -> None:
    """Show a queue's counts, how many messages a second come and are committed, and its settings.

    \b
      columnar queue stats thumbs
    """
    server.output.facts(_stats(server.connection.queue(typed(name)).stats()))


@queue.command()
@name_argument
@click.argument("bodies", metavar="BODY...", nargs=-1)
@click.option("--stdin", "from_stdin", is_flag=True, help="Push each line of standard input as a message.")
@click.option("--group", default="", help="The group of the messages; groups take turns.")
@click.option("--priority", type=click.IntRange(0, 255), default=0, help="The highest is popped first.")
@click.option("--delay", default="0", metavar="TIME", help="Until then nobody gets them: 90s, 15m, 12h.")
@with_server
def push(
    server: Server, name: str, bodies: Sequence[str], from_stdin: bool, group: str, priority: int, delay: str
) -> None:
    """Push messages; prints their ids when they are on disk.

    \b
      columnar queue push thumbs a.png b.png
      columnar queue push thumbs --stdin < names
    """
    if bool(bodies) == from_stdin:
        raise click.UsageError("give messages, or --stdin")
    target, delay_ms = server.connection.queue(typed(name)), seconds_of(delay) * 1_000
    lines = (line.removesuffix(b"\n") for line in sys.stdin.buffer) if from_stdin else map(typed, bodies)
    for body in lines:
        pushed = target.push(body, group=typed(group), priority=priority, delay_ms=delay_ms)
        if server.output.as_json:
            server.output.json({"id": pushed.id})
        else:
            server.output.line(pushed.id)


@queue.command()
@name_argument
@count_option
@click.option("--wait", default="0", metavar="TIME", help="For the first message: up to 20s.")
@click.option("--lease", default="", metavar="TIME", help="Nobody else gets them so long; 30s, or as the queue says.")
@click.option("--commit", is_flag=True, help="Commit them once they are printed; else they come again.")
@with_server
def pop(server: Server, name: str, count: int, wait: str, lease: str, commit: bool) -> None:
    """Take messages, and print them.

    \b
      columnar queue pop thumbs --count 1 --wait 20s --commit
    """
    target = server.connection.queue(typed(name))
    found = target.pop(count, wait_ms=seconds_of(wait) * 1_000, lease_ms=seconds_of(lease) * 1_000 if lease else 0)
    _show(server, found, "No message is ready.")
    if commit and found:
        sys.stdout.flush()
        target.settle(found)


@queue.command()
@name_argument
@count_option
@with_server
def peek(server: Server, name: str, count: int) -> None:
    """Show messages without taking them: those that are next, then those that somebody has.

    \b
      columnar queue peek thumbs
    """
    _show(server, server.connection.queue(typed(name)).peek(count), "The queue is empty.")


@queue.command()
@name_argument
@count_option
@click.option("--after", default="", metavar="ID", help="Only those with higher ids.")
@with_server
def dead(server: Server, name: str, count: int, after: str) -> None:
    """Show dead messages, oldest first, with their last errors.

    A message is dead when it was popped as often as the queue allows (configure --attempts) without a commit.

    \b
      columnar queue dead thumbs
    """
    _show(server, server.connection.queue(typed(name)).dead(count, after), "There are no dead messages.")


@queue.command()
@name_argument
@click.argument("ids", metavar="[ID...]", nargs=-1)
@with_server
def redrive(server: Server, name: str, ids: Sequence[str]) -> None:
    """Bring dead messages back, without their attempts: those named, or all.

    \b
      columnar queue redrive thumbs
    """
    number = server.connection.queue(typed(name)).redrive(list(ids) or None)
    server.output.done(f"{number:,} messages of {name} are back", {"queue": name, "messages": number})


@queue.command("remove-dead")
@name_argument
@click.argument("ids", metavar="[ID...]", nargs=-1)
@yes_option
@with_server
def remove_dead(server: Server, name: str, ids: Sequence[str], yes: bool) -> None:
    """Remove dead messages for ever: those named, or all.

    \b
      columnar queue remove-dead thumbs 1795868882562873
    """
    which = f"{len(ids)} dead messages" if ids else "all dead messages"
    require_confirmation(f"Remove {which} of queue {name} for ever?", yes)
    number = server.connection.queue(typed(name)).remove_dead(list(ids) or None)
    server.output.done(f"{number} dead messages of {name} are gone", {"queue": name, "messages": number})


@queue.command()
@name_argument
@click.option("--lease", default=None, metavar="TIME", help="Of a pop that names none: 30s.")
@click.option("--attempts", type=int, help="After so many pops without a commit a message is dead; 0: never.")
@click.option("--retention", default=None, metavar="TIME", help="Older messages are removed: 4d; 0: never.")
@click.option("--dead-to", metavar="QUEUE", help="The queue to which dead messages are moved; '': they stay.")
@click.option("--fifo/--no-fifo", default=None, help="One message of a group at a time, in order; of an empty queue.")
@with_server
def configure(
    server: Server,
    name: str,
    lease: str | None,
    attempts: int | None,
    retention: str | None,
    dead_to: str | None,
    fifo: bool | None,
) -> None:
    """Change settings of a queue; what is not named stays.

    \b
      columnar queue configure thumbs --attempts 5 --lease 2m --retention 4d
    """
    if all(one is None for one in (lease, attempts, retention, dead_to, fifo)):
        raise click.UsageError("name a setting: --lease, --attempts, --retention, --dead-to, --fifo")
    server.connection.queue(typed(name)).configure(
        lease_ms=None if lease is None else seconds_of(lease) * 1_000,
        attempts=attempts,
        fifo=fifo,
        retention_s=None if retention is None else seconds_of(retention),
        dead_to=None if dead_to is None else typed(dead_to),
    )
    server.output.done(f"queue {name} is configured")


@queue.command()
@name_argument
@yes_option
@with_server
def purge(server: Server, name: str, yes: bool) -> None:
    """Remove all messages but the dead ones, also those that somebody has popped.

    \b
      columnar queue purge thumbs
    """
    require_confirmation(f"Remove all messages of queue {name}, also those that are out?", yes)
    number = server.connection.queue(typed(name)).purge()
    server.output.done(f"{number:,} messages of {name} are gone", {"queue": name, "messages": number})


@queue.command()
@name_argument
@yes_option
@with_server
def drop(server: Server, name: str, yes: bool) -> None:
    """Remove a queue with its messages, dead messages and settings.

    \b
      columnar queue drop thumbs
    """
    require_confirmation(f"Remove queue {name} with all its messages and settings?", yes)
    if not server.connection.queue(typed(name)).drop_queue():
        raise click.ClickException(f"messages were pushed to {name} meanwhile, which are there: end its users first")
    server.output.done(f"queue {name} is gone")


def _stats(found: QueueStats) -> dict[str, object]:
    rates = {"push_rate_per_s": round(found.push_rate_per_s, 1), "commit_rate_per_s": round(found.commit_rate_per_s, 1)}
    return {**asdict(found), **rates, "dead_to": readable(found.dead_to)}


def _counts(found: QueueStats) -> tuple[int, int, int, int]:
    return found.ready, found.in_flight, found.delayed, found.dead


def _age(age_ms: int) -> str:
    return age_text(age_ms) if age_ms else ""


def _show(server: Server, found: Sequence[QueueMessage], nothing: str) -> None:
    output = server.output
    most = _PRINTED_BYTES if output.is_terminal else None
    output.records(
        found,
        _as_json,
        ("Id", "Pushed", "Attempts", "Group", "Body", "Error"),
        lambda one: (
            one.id, output.for_people(time_text, one.pushed_ms), one.attempts, readable(one.group),
            readable(one.body, most), readable(one.error),
        ),
        numbers=(2,),
        nothing=nothing,
    )  # fmt: skip


def _as_json(one: QueueMessage) -> dict[str, object]:
    return {
        "id": one.id,
        "body": readable(one.body),
        "name": readable(one.name),
        "group": readable(one.group),
        "priority": one.priority,
        "attempts": one.attempts,
        "pushed_ms": one.pushed_ms,
        "until_ms": one.until_ms,
        "headers": {readable(key): readable(value) for key, value in one.headers.items()},
        "error": readable(one.error),
    }
