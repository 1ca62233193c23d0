"""The options of the ports for other protocols, of every command that starts a store."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from columnar.shell.coordination_options import StoreSetting

F = TypeVar("F", bound=Callable[..., Any])


def check_address(_context: click.Context, _option: click.Parameter, said: str) -> str:
    """Return HOST:PORT, or "" where nothing was said."""
    host, _, port = said.rpartition(":")
    if said and (not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16):
        raise click.BadParameter(f"{said!r} is no address: HOST:PORT, as kafka.example:9092")
    return said


_OPTIONS: Final = (
    click.option(
        "--sqs-port",
        cls=StoreSetting,
        default=-1,
        show_default=True,
        type=click.IntRange(-1, 65535),
        help="Queues by the protocol of Amazon SQS; 0: any free one, -1: not served.",
    ),
    click.option(
        "--kafka-port",
        cls=StoreSetting,
        default=-1,
        show_default=True,
        type=click.IntRange(-1, 65535),
        help="Topics by the protocol of Kafka; 0: any free one, -1: not served.",
    ),
    click.option(
        "--kafka-advertise",
        cls=StoreSetting,
        default="",
        metavar="HOST:PORT",
        callback=check_address,
        help="What Kafka's clients are told to connect to.  [default: the address that they have connected to]",
    ),
    click.option(
        "--kafka-partitions",
        cls=StoreSetting,
        default=1,
        show_default=True,
        type=click.IntRange(1, 1_000),
        help="Of a topic that a Kafka client makes without saying how many.",
    ),
)


def with_protocols(command: F) -> Callable[..., Any]:
    """Give a command the options; it gets them as ``protocols``, the fields of ``config.ProtocolSettings``."""

    @functools.wraps(command)
    def run(sqs_port: int, kafka_port: int, kafka_advertise: str, kafka_partitions: int, **given: Any) -> Any:
        protocols = {
            "sqs_port": sqs_port,
            "kafka_port": kafka_port,
            "kafka_advertise": kafka_advertise,
            "kafka_partitions": kafka_partitions,
        }
        return command(protocols=protocols, **given)

    for option in reversed(_OPTIONS):
        option(run)
    return run


def check_without_users(protocols: dict[str, Any]) -> None:
    """Refuse the ports in a store with users, of which their clients would be none."""
    if protocols["sqs_port"] >= 0:
        raise click.UsageError(
            "--sqs-port is for stores without users: SQS's clients sign with a secret that the store does not have, "
            "and would be nobody. Leave --sqs-port or --rights out"
        )
    if protocols["kafka_port"] >= 0:
        raise click.UsageError(
            "--kafka-port is for stores without users: SASL is not built, so Kafka's clients cannot sign in, and "
            "would be nobody. Leave --kafka-port or --rights out"
        )
