"""``columnar topic``: make, list, configure and drop topics, append records and read them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Final

import click

from columnar.client.topics import GroupLag, PartitionInfo, ReadRecord, Topic, TopicFailed
from columnar.model.topic import FOREVER, TopicDescription
from columnar.shell.connecting import Server, require_confirmation, with_server
from columnar.shell.shell_output import time_text
from columnar.shell.text import age_text, bytes_of, bytes_text, moment_of, readable, seconds_of, typed

_PRINTED_BYTES: Final = 200  # of a value in a line
_BATCH: Final = 500  # records of one append of --stdin
_WAIT_MS: Final = 1  # of a consumer without --follow

name_argument = click.argument("name", metavar="TOPIC")
retention_option = click.option("--retention", metavar="TIME", help="How long records stay: 7d, 12h, or forever.")
bytes_option = click.option(
    "--retention-bytes", metavar="SIZE", help="Of each partition, above which the oldest go: 1g, or unbounded."
)


@click.group()
def topic() -> None:
    """Make and look at topics, append records and read them.

    A topic is a log of records in partitions; each record has an offset, and stays until the topic's retention ends.

    \b
      columnar topic create edits --partitions 4 --retention 7d
      columnar topic produce edits hello --key Main_Page
      columnar topic consume edits
    """


@topic.command()
@name_argument
@click.option("--partitions", type=int, default=1, show_default=True)
@retention_option
@bytes_option
@with_server
def create(server: Server, name: str, partitions: int, retention: str | None, retention_bytes: str | None) -> None:
    """Make a topic.

    \b
      columnar topic create edits --partitions 8 --retention 7d --retention-bytes 1g
    """
    settings = {"retention_ms": _retention(retention), "retention_bytes": _bound(retention_bytes)}
    if not server.connection.topics.create(name, partitions, **settings):
        raise click.ClickException(f"there is a topic {name}: 'columnar topic configure' changes it")
    server.output.done(f"topic {name} has {partitions} partitions", {"topic": name, "partitions": partitions})


@topic.command()
@name_argument
@click.option("--partitions", type=int, default=0, help="More than there are; partitions are never removed.")
@retention_option
@bytes_option
@with_server
def configure(server: Server, name: str, partitions: int, retention: str | None, retention_bytes: str | None) -> None:
    """Change settings of a topic; what is not named stays.

    \b
      columnar topic configure edits --retention 30d
    """
    if not partitions and retention is None and retention_bytes is None:
        raise click.UsageError("name a setting: --partitions, --retention, --retention-bytes")
    settings = {"retention_ms": _retention(retention), "retention_bytes": _bound(retention_bytes)}
    if not server.connection.topics.configure(name, partitions=partitions, **settings):
        raise _unknown(name)
    server.output.done(f"topic {name} is configured", {"topic": name})


@topic.command("list")
@with_server
def list_(server: Server) -> None:
    """List the topics: partitions and retention.

    \b
      columnar topic list
    """
    server.output.records(
        list(server.connection.topics.list()),
        _as_json,
        ("Topic", "Partitions", "Retention", "Bytes of a partition"),
        lambda one: (one.name, one.partitions, _time_of(one), _size_of(one)),
        numbers=(1,),
        nothing="There are no topics.",
    )


@topic.command()
@name_argument
@with_server
def describe(server: Server, name: str) -> None:
    """Show the partitions of a topic: first offset, end, bytes, producers, time of the last append.

    \b
      columnar topic describe edits
    """
    with _topic_errors():
        found = server.connection.topic(name).partitions()
    server.output.records(
        found,
        _partition_as_json,
        ("Partition", "First", "End", "Size", "Producers", "Last append"),
        lambda one: (
            one.partition, one.first, one.end, bytes_text(one.size_bytes), one.producers,
            time_text(one.append_ms) if one.append_ms else "-",
        ),
        numbers=(0, 1, 2, 4),
        nothing="The topic has no partitions.",
    )  # fmt: skip


@topic.command()
@click.argument("name", metavar="TOPIC", required=False, default="")
@with_server
def groups(server: Server, name: str) -> None:
    """Show how far groups of consumers are in TOPIC, or in all topics: records between commits and ends.

    \b
      columnar topic groups
      columnar topic groups edits
    """
    with _topic_errors():
        found = list(server.connection.topics.groups(name))
    server.output.records(
        found,
        asdict,
        ("Group", "Topic", "Lag", "Partitions", "Farthest behind"),
        lambda one: (one.group, one.topic, one.lag, len(one.partitions), _slowest(one)),
        numbers=(2, 3),
        nothing="No group has committed an offset.",
    )


@topic.command()
@name_argument
@click.option("--group", default="", help="Whose commits count as consumed.")
@click.option("--window", default="60s", show_default=True, metavar="TIME", help="Of one line: 10s, 1m, 1h.")
@click.option("--windows", type=click.IntRange(1), default=10, show_default=True, help="How many, up to now.")
@with_server
def audit(server: Server, name: str, group: str, window: str, windows: int) -> None:
    """Count the records produced in windows of time, and those that a group's commits have passed.

    With --json also for each partition.

    \b
      columnar topic audit edits --group search
      columnar topic audit edits --group search --window 10s --windows 6 --json
    """
    found = server.connection.topics.audit(name, group, window_s=seconds_of(window), windows=windows)
    server.output.records(
        list(found),
        asdict,
        ("From", "Produced", "Consumed", "Missing"),
        lambda one: (time_text(one.from_ms), one.produced, one.consumed, one.produced - one.consumed),
        numbers=(1, 2, 3),
        nothing="There are no windows.",
    )


@topic.command()
@name_argument
@click.argument("values", metavar="VALUE...", nargs=-1)
@click.option("--stdin", "from_stdin", is_flag=True, help="Append each line of standard input as a record.")
@click.option("--key", default=None, help="Records of one key are in one partition, in their order.")
@click.option("--partition", type=int, default=None, help="Instead of that of the key, or each in turn.")
@with_server
def produce(
    server: Server, name: str, values: Sequence[str], from_stdin: bool, key: str | None, partition: int | None
) -> None:
    """Append records; prints partition and offset when they are on disk.

    \b
      columnar topic produce edits one two --key Main_Page
      columnar topic produce edits --stdin < lines
    """
    if bool(values) == from_stdin:
        raise click.UsageError("give records, or --stdin")
    target = server.connection.topic(name)
    for batch in _batches(values, from_stdin):
        with _topic_errors():
            place, offset = target.produce(batch, key=None if key is None else typed(key), partition=partition)
        server.output.done(
            f"{len(batch):,} records are in partition {place} from offset {offset} on",
            {"partition": place, "offset": offset, "records": len(batch)},
        )


@topic.command()
@name_argument
@click.option("--partition", type=int, default=None, help="Only this one; with --offset.")
@click.option("--offset", type=int, default=0, help="The first offset, of --partition.")
@click.option("--from", "start", default="earliest", metavar="WHEN", help="earliest, latest, 1h ago as 1h, or a time.")
@click.option("--count", type=click.IntRange(1), default=None, help="End after so many records.")
@click.option("--follow", is_flag=True, help="Wait for further records, until Ctrl-C.")
@with_server
def consume(
    server: Server, name: str, partition: int | None, offset: int, start: str, count: int | None, follow: bool
) -> None:
    """Print records: partition, offset, time, key and value of each, a line for each.

    \b
      columnar topic consume edits --count 10
      columnar topic consume edits --from latest --follow
      columnar topic consume edits --partition 0 --offset 42
    """
    target = server.connection.topic(name)
    with _topic_errors():
        for number, record in enumerate(_records(target, partition, offset, start, follow), start=1):
            if server.output.as_json:
                server.output.json(_record_as_json(record))
            else:
                key, value = (readable(one or b"", _PRINTED_BYTES) for one in (record.key, record.value))
                server.output.line(
                    f"{record.partition}\t{record.offset}\t{time_text(record.timestamp_ms)}\t{key}\t{value}"
                )
            sys.stdout.flush()
            if number == count:
                break


@topic.command()
@name_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_server
def drop(server: Server, name: str, yes: bool) -> None:
    """Delete a topic and all its records.

    \b
      columnar topic drop edits
    """
    require_confirmation(f"Delete topic {name} with its records?", yes)
    if not server.connection.topics.drop_topic(name):
        raise _unknown(name)
    server.output.done(f"topic {name} is gone", {"topic": name})


@contextmanager
def _topic_errors() -> Iterator[None]:
    try:
        yield
    except TopicFailed as failed:
        raise click.ClickException(str(failed)) from None


def _records(target: Topic, partition: int | None, offset: int, start: str, follow: bool) -> Iterator[ReadRecord]:
    wait_ms = None if follow else _WAIT_MS
    if partition is not None:
        return target.records(start={partition: offset}, wait_ms=wait_ms)
    if start in {"earliest", "latest"}:
        return target.records(start=start, wait_ms=wait_ms)
    return target.records(start=moment_of(start, time.time_ns() // 1_000_000), wait_ms=wait_ms)


def _batches(values: Sequence[str], from_stdin: bool) -> Iterator[list[bytes]]:
    if not from_stdin:
        yield [typed(value) for value in values]
        return
    batch: list[bytes] = []
    for line in sys.stdin.buffer:
        batch.append(line.removesuffix(b"\n"))
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _retention(text: str | None) -> int | None:
    if text is None:
        return None
    return FOREVER if text == "forever" else seconds_of(text) * 1_000


def _bound(text: str | None) -> int | None:
    if text is None:
        return None
    return FOREVER if text == "unbounded" else bytes_of(text)


def _slowest(one: GroupLag) -> str:
    slowest = max(one.partitions, key=lambda part: part.lag)
    return f"{slowest.partition} ({slowest.lag:,})" if slowest.lag else "-"


def _time_of(one: TopicDescription) -> str:
    found = one.settings.retention_ms
    return "forever" if found == FOREVER else age_text(found)


def _size_of(one: TopicDescription) -> str:
    found = one.settings.retention_bytes
    return "unbounded" if found == FOREVER else bytes_text(found)


def _unknown(name: str) -> click.ClickException:
    return click.ClickException(f"there is no topic {name}: 'columnar topic create {name}' makes it")


def _as_json(one: TopicDescription) -> dict[str, object]:
    return {
        "topic": one.name,
        "partitions": one.partitions,
        "retention_ms": one.settings.retention_ms,
        "retention_bytes": one.settings.retention_bytes,
    }


def _partition_as_json(one: PartitionInfo) -> dict[str, object]:
    return {
        "partition": one.partition,
        "first": one.first,
        "end": one.end,
        "size_bytes": one.size_bytes,
        "producers": one.producers,
        "append_ms": one.append_ms,
    }


def _record_as_json(one: ReadRecord) -> dict[str, object]:
    return {
        "partition": one.partition,
        "offset": one.offset,
        "timestamp_ms": one.timestamp_ms,
        "key": None if one.key is None else readable(one.key),
        "value": None if one.value is None else readable(one.value),
        "headers": {name: None if value is None else readable(value) for name, value in one.headers},
    }
