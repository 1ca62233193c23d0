"""``columnar queue serve`` and its siblings: functions and URLs that get the messages of queues."""

from __future__ import annotations

import click

from columnar.client.queues import ServedQueue
from columnar.model.trigger_registration import DEFAULT_SIDE_BY_SIDE, MOST_SHARE, MOST_SIDE_BY_SIDE, settings_of
from columnar.shell.connecting import Server, with_server
from columnar.shell.shell_output import last_line
from columnar.shell.text import readable, seconds_of, typed

_name = click.argument("name", metavar="QUEUE")


@click.command()
@_name
@click.argument("target", metavar="MODULE:FUNCTION|URL")
@click.option("--rate", default="", help="Most messages begun: 50/s, 600/min, 5/h.")
@click.option(
    "--side-by-side", type=click.IntRange(1, MOST_SIDE_BY_SIDE),
    help=f"Most messages under way; {DEFAULT_SIDE_BY_SIDE} where nothing is said.",
)  # fmt: skip
@click.option("--timeout", default="", metavar="TIME", help="Of each message; 30s.")
@click.option("--attempts", type=int, help="After so many a message is dead; 0: never. A setting of the queue.")
@click.option("--share", type=click.IntRange(1, MOST_SHARE), help="Of the workers' time, as of triggers.")
@click.option("--process", default="", metavar="LABEL", help="The function's own worker process, as of triggers.")
@click.option("--writes", multiple=True, metavar="T[/F]|queue:Q", help="Where the function's effects go.")
@with_server
def serve(
    server: Server,
    name: str,
    target: str,
    rate: str,
    side_by_side: int | None,
    timeout: str,
    attempts: int | None,
    share: int | None,
    process: str,
    writes: tuple[str, ...],
) -> None:
    """Have the store give a queue's messages to a function, or post them to a URL.

    A queue that is served already is served so from now on.

    \b
      columnar queue serve thumbs jobs:make --rate 50/s --side-by-side 4
      columnar queue serve hooks http://127.0.0.1:8080/hook --timeout 10s
    """
    is_url = "://" in target
    server.connection.queues.serve(
        typed(name), "" if is_url else target, url=target if is_url else "", rate=rate, side_by_side=side_by_side or 0,
        timeout_s=seconds_of(timeout) if timeout else 0, attempts=attempts, share=share or 0, process=process,
        writes=writes,
    )  # fmt: skip
    server.output.done(f"queue {name} is served by {target}")


@click.command()
@_name
@with_server
def unserve(server: Server, name: str) -> None:
    """Give a queue's messages to its function or URL no more; those that are out end as usual.

    \b
      columnar queue unserve thumbs
    """
    server.connection.queues.unserve(typed(name))
    server.output.done(f"queue {name} is not served any more")


@click.command()
@with_server
def served(server: Server) -> None:
    """List the queues that are served: by what, and how that goes.

    \b
      columnar queue served
    """
    server.output.records(
        server.connection.queues.served(),
        _as_json,
        ("Queue", "Served by", "State", "Running", "Done/s", "Failed", "Last error", "Settings"),
        lambda one: (
            readable(one.queue), one.target, one.state, one.running, f"{one.rate_per_s:.1f}", one.failed,
            last_line(one.last_error), settings_of(one.registration),
        ),
        numbers=(3, 4, 5),
        nothing="No queue is served.",
    )  # fmt: skip


@click.command()
@_name
@with_server
def pause(server: Server, name: str) -> None:
    """Begin no more messages of a served queue, until it is resumed.

    \b
      columnar queue pause thumbs
    """
    server.connection.queues.pause_serving(typed(name))
    server.output.done(f"queue {name} is paused")


@click.command()
@_name
@with_server
def resume(server: Server, name: str) -> None:
    """Give messages to the function or URL of a paused queue again.

    \b
      columnar queue resume thumbs
    """
    server.connection.queues.resume_serving(typed(name))
    server.output.done(f"queue {name} is served again")


def _as_json(one: ServedQueue) -> dict[str, object]:
    return {
        "queue": readable(one.queue),
        "target": one.target,
        "state": one.state,
        "running": one.running,
        "rate_per_s": one.rate_per_s,
        "failed": one.failed,
        "last_error": one.last_error,
        "settings": settings_of(one.registration),
        "owner": one.registration.owner,
    }
