"""``columnar changes``: follow the changes of a table."""

from __future__ import annotations

import json
import os
import re
import select
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import click

from columnar.client.changes import Changes, Idle, Start, StreamEvent
from columnar.client.consuming import STORE_ERRORS, LeaseRenewal
from columnar.client.debezium import Debezium
from columnar.client.group_changes import CommitRefused, GroupChanges
from columnar.errors import IllegalArgument
from columnar.model.change_stream import BEGINNING, NOW
from columnar.model.debezium import ValueForms, forms_of
from columnar.shell.change_lines import event_in_json, event_line, position_of, text_of_position
from columnar.shell.completion import complete_column, table_argument
from columnar.shell.connecting import Server, with_server
from columnar.shell.shell_output import Output
from columnar.shell.text import moment_of, typed
from columnar.storage.durable_files import write_durably

if TYPE_CHECKING:
    from columnar.client import Connection

POLL_MS: Final = 5_000  # after so long without a change the command looks whether its output still has a reader
PRINT_S: Final = 300.0  # for the lines of a reply to a group's member; a reader that takes longer counts as hanging
LEAVE_MS: Final = 5_000  # to leave a group at the end; after that the lease ends by itself
POSITION_BYTES: Final = 16 * 1024 * 1024  # of a file; a position has some 40 bytes for each region
_TIME: Final = re.compile(r"\d{1,18}|\d{1,9}[smhd]|\d{4}-.*", re.ASCII)
_WORDS: Final = (NOW, BEGINNING)
Form = Callable[[StreamEvent], Sequence[str]]  # the lines of an event


@click.command()
@table_argument
@click.option(
    "--from", "from_where", default=NOW, show_default=True, metavar="now|beginning|TIME|POSITION",
    help="beginning: the rows that are there, then their changes. TIME: 2026-01-31T12:00, milliseconds since 1970, or "
    "15m for 15 minutes ago, as far as the table's log goes back. POSITION: as a line of --json has it.",
)  # fmt: skip
@click.option(
    "--position-file", type=click.Path(dir_okay=False), metavar="FILE",
    help="Go on where FILE says, if it is there, and keep the position in it; --from is for the first time.",
)  # fmt: skip
@click.option(
    "--columns", multiple=True, metavar="C[,C]", help="Changes of these: FAMILY or FAMILY:QUALIFIER; may be repeated.",
    shell_complete=complete_column,
)  # fmt: skip
@click.option(
    "--where", multiple=True, metavar="CONDITION",
    help="Changes after which the row meets it: f:q=value, !=, number(f:q)>=10, 'f:q exists', 'f:q absent'. Several "
    "must all hold.",
)  # fmt: skip
@click.option("--rows", metavar="A:B", help="Rows from A on, below B; either may be empty. A colon in them is \\x3A.")
@click.option("--part", metavar="I/N", help="One of N parts of the rows, counted from 0: 0/4, 1/4, 2/4 and 3/4.")
@click.option(
    "--group", metavar="GROUP",
    help="Share the changes with all readers of this group, which keeps how far they were printed; --from is for the "
    "first reader.",
)  # fmt: skip
@click.option("--before", is_flag=True, help="With the row's cells before the change.")
@click.option("--after", is_flag=True, help="With the row's cells after the change.")
@click.option(
    "--snapshot", is_flag=True,
    help="Where the log no longer reaches back: say which rows to forget and show them as they are, instead of ending.",
)  # fmt: skip
@click.option("--consolidate", is_flag=True, help="Changes of a row that come together as one, to catch up faster.")
@click.option(
    "--format", "form", type=click.Choice(["debezium"]),
    help="Messages of Debezium's JSON form, one a line: key, value, and the position. It needs CHANGE_LOG_IMAGES.",
)  # fmt: skip
@click.option(
    "--value", "values", multiple=True, metavar="[COLUMN=]FORM",
    help="Of --format debezium: values, or those of FAMILY:QUALIFIER, of a whole FAMILY: or of the row's key (row=) "
    "are text, base64 or json; text where nothing is said.",
)  # fmt: skip
@click.option("--follow/--no-follow", default=True, show_default=True, help="Wait for more, or end with the log.")
@with_server
def changes(
    server: Server,
    table: str,
    from_where: str,
    position_file: str | None,
    group: str | None,
    follow: bool,
    form: str | None,
    values: tuple[str, ...],
    **asked: Any,
) -> None:
    """Follow the changes of a table.

    Shows a line for each change, until Ctrl-C. The table keeps its changes by the attribute CHANGE_LOG; --before,
    --after and --where need CHANGE_LOG_IMAGES, too.

    \b
      columnar alter pages --set CHANGE_LOG=86400
      columnar changes pages
      columnar changes pages --from 15m --no-follow
      columnar changes pages --from beginning --columns meta,text:body --rows A:N --json
      columnar alter pages --set CHANGE_LOG_IMAGES=true
      columnar changes pages --where meta:state=ready --before --after

    \b
    For programs that read Debezium's topics; 'columnar alter pages --set CHANGE_LOG_IMAGES=true' makes it possible:
      columnar changes pages --from beginning --format debezium --value meta:tags=json --value photo:=base64

    \b
    A script that goes on where it was, whatever was restarted; at most the last lines come again:
      while sleep 1; do
        columnar changes pages --from beginning --position-file pages.position --json | ./index_pages
      done

    \b
    Several of them, on any machines, that share the rows; the store keeps how far each has printed:
      columnar changes pages --group search --json | ./index_pages
    """
    if group is not None:
        _check_member(group, from_where, position_file, asked["part"])
    wanted = asked | {
        "columns": [typed(one) for text in asked["columns"] for one in text.split(",") if one],
        "rows": _rows(asked["rows"]),
        "part": _part(asked["part"]),
    }
    start = (_saved(position_file) if position_file else None) or _start(from_where)
    lines, images = _form(server.output, table, form, values, asked)
    wanted |= images
    # A connection of its own: whoever interrupts the command leaves an answer under way.
    with closing(server.patient(POLL_MS / 1_000)) as connection, suppress(KeyboardInterrupt):
        if group is None:
            stream = connection.changes(typed(table), start=start, **wanted)
            _show(stream, server.output.write, lines, _position_kept(stream, position_file), follow=follow)
        else:
            member = connection.changes(typed(table), start=start, group=group, **wanted)
            assert isinstance(member, GroupChanges), "it has a group"
            _show_member(connection, member, server.output, lines, follow=follow)


def _form(
    output: Output, table: str, form: str | None, values: Sequence[str], asked: Mapping[str, Any]
) -> tuple[Form, dict[str, bool]]:
    """Return the lines' form, and the images that it needs beside those that are asked for.  Raises IllegalArgument."""
    if form is None:
        if values:
            raise IllegalArgument("--value is for --format debezium; other lines have bytes as they are typed")
        return _plain(output, before=asked["before"], after=asked["after"]), {}
    if asked["snapshot"]:
        raise IllegalArgument("--snapshot goes without --format debezium, which cannot say which rows to forget")
    return _debezium(table, value_forms(values)), {"before": True, "after": True}


def _plain(output: Output, *, before: bool, after: bool) -> Form:
    def lines(event: StreamEvent) -> list[str]:
        if output.as_json:
            return [json.dumps(event_in_json(event, before=before, after=after), ensure_ascii=False)]
        return [event_line(event, before=before, after=after, for_people=output.is_terminal)]

    return lines


def _debezium(table: str, forms: ValueForms) -> Form:
    messages = Debezium(table, forms)

    def lines(event: StreamEvent) -> list[str]:
        position = text_of_position(event.position)
        made = messages.messages_of(event, round(time.time() * 1_000))
        return [
            json.dumps({"key": one.key, "value": one.value, "position": position}, ensure_ascii=False) for one in made
        ]

    return lines


def value_forms(texts: Sequence[str]) -> ValueForms:
    """Parse FORM, row=FORM, FAMILY:=FORM and FAMILY:QUALIFIER=FORM as typed.  Raises IllegalArgument."""
    return forms_of(latin_forms(texts))


def latin_forms(texts: Sequence[str]) -> list[str]:
    """Return the forms of values as ``debezium.forms_of`` reads them."""
    split = [text.rpartition("=") for text in texts]
    return [typed(name).decode("latin-1") + equals + form for name, equals, form in split]


def _check_member(group: str, from_where: str, position_file: str | None, part: str | None) -> None:
    """Raise IllegalArgument if a member of a group was given a place or a share of its own."""
    if not group:
        raise IllegalArgument("--group: name the group, with letters, digits, dots, hyphens and underscores")
    given = ("--position-file" if position_file else "") or ("--part" if part else "")
    if not given and not isinstance(_start(from_where), bytes):
        return
    raise IllegalArgument(
        f"{given or '--from POSITION'} goes without --group: a group keeps its positions and shares the rows itself"
    )


def _show_member(connection: Connection, stream: GroupChanges, output: Output, form: Form, *, follow: bool) -> None:
    """Print the lines of each reply, then commit it; leave the group at the end."""
    with GroupOutput(connection, stream, output) as group:
        _show(stream, group.write, form, group.commit, follow=follow)


class GroupOutput:
    """The output of a member: a context, which leaves the group at its end.

    A reply's lines are committed when they are flushed to stdout.  While a slow reader of the output holds up the
    write, a thread renews the member's lease, as it does for a consumer's handler.
    """

    def __init__(self, connection: Connection, stream: GroupChanges, output: Output) -> None:
        self._connection = connection
        self._stream = stream
        self._output = output
        self._renewal = LeaseRenewal(connection, stream, PRINT_S)

    def __enter__(self) -> Self:
        self._renewal.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._renewal.__exit__(kind, error, trace)
        if self._stream.position:  # else it never became a member
            self._leave()

    def write(self, text: str) -> None:
        self._renewal.work.begin_work()
        self._output.write(text)  # flushed

    def commit(self) -> None:
        """Commit what was written.  Changes that went to others meanwhile are a line on stderr."""
        try:
            self._stream.commit()
        except CommitRefused as refused:
            click.echo(f"columnar: {refused}", err=True)
        finally:
            self._renewal.work.end_work()

    def _leave(self) -> None:
        """Leave the group, over another connection: an interrupt may have left an answer under way on the member's."""
        try:
            with self._connection.another(LEAVE_MS) as connection:
                self._stream.leave_group(connection)
        except STORE_ERRORS as error:
            click.echo(f"columnar: group {self._stream.group} is left when the lease ends, in 30 s: {error}", err=True)


def _show(stream: Changes, write: Callable[[str], None], form: Form, keep: Callable[[], None], *, follow: bool) -> None:
    """Print the lines of each reply, then keep its position."""
    while not stream.is_at_end or follow:
        events = stream.poll(POLL_MS if follow and stream.position else 0)  # the first one only says where it begins
        lines = [line for event in events if not isinstance(event, Idle) for line in form(event)]
        if lines:
            write("".join(f"{line}\n" for line in lines))  # flushed
        elif follow:
            _check_reader()
        keep()


def _position_kept(stream: Changes, position_file: str | None) -> Callable[[], None]:
    """Return what keeps the stream's position in a file, if there is one."""
    kept = b""

    def keep() -> None:
        nonlocal kept
        if position_file and stream.position != kept:
            kept = stream.position
            write_durably(position_file, f"{text_of_position(kept)}\n".encode())

    return keep


def _check_reader() -> None:
    """Raise BrokenPipeError if stdout is a pipe that nobody reads any more: without a change no write finds it out."""
    try:
        out = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):  # a stand-in that is no file
        return
    poll = select.poll()
    poll.register(out, 0)
    if any(events & select.POLLERR for _, events in poll.poll(0)):
        raise BrokenPipeError(32, os.strerror(32))


def _saved(path: str) -> bytes | None:
    """Return the position that the file has; None if it is not there."""
    try:
        with open(path, "rb") as file:
            text = file.read(POSITION_BYTES)
    except FileNotFoundError:
        return None
    try:
        return position_of(text.decode("ascii", "replace").strip())
    except IllegalArgument:
        raise IllegalArgument(
            f"{path} has no position of 'columnar changes'; remove it to begin at --from, or name another file"
        ) from None


def _start(text: str) -> Start:
    if text in _WORDS:
        return text
    if _TIME.fullmatch(text):
        return _time(text)
    try:
        return position_of(text)
    except IllegalArgument:
        raise IllegalArgument(
            f"--from {text}: write now, beginning, a time (2026-01-31T12:00, milliseconds since 1970, or 15m for 15 "
            "minutes ago), or the 'position' of an earlier line of --json"
        ) from None


def _time(text: str) -> datetime:
    try:
        return datetime.fromtimestamp(moment_of(text, round(time.time() * 1_000)) / 1_000, UTC)
    except (ValueError, OverflowError, OSError):
        raise IllegalArgument(f"--from {text}: that time is outside the calendar") from None


def _rows(text: str | None) -> tuple[bytes, bytes] | None:
    if text is None:
        return None
    first, colon, stop = text.partition(":")
    if not colon or ":" in stop:
        raise IllegalArgument(f"--rows {text}: write FIRST:STOP with one colon, as A:N; a colon in a row is \\x3A")
    return typed(first), typed(stop)


def _part(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
    if found is None:
        raise IllegalArgument(f"--part {text}: write I/N, as 0/4 for the first of four parts")
    return int(found[1]), int(found[2])
