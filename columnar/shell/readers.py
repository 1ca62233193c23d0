"""``columnar readers list | drop``: the groups of readers that share the changes of tables."""

from __future__ import annotations

from typing import Any, Final

import click

from columnar.client.errors import IOError, hbase_class
from columnar.model.reader_groups import GroupStatus
from columnar.shell.completion import completing, table_argument
from columnar.shell.connecting import Refused, Server, require_confirmation, with_server
from columnar.shell.shell_output import as_plain
from columnar.shell.text import age_text, readable, typed

_NOT_READ: Final = frozenset({"AccessDeniedException", "TableNotEnabledException", "TableNotFoundException"})
_NOBODY: Final = "(nobody)"

Listed = tuple[str, GroupStatus]  # table, group


@click.group()
def readers() -> None:
    """Look at groups of readers, which share the changes of a table.

    \b
      columnar readers list
      columnar readers drop search pages
    """


@readers.command("list")
@click.argument("table", required=False, shell_complete=completing("table"))
@with_server
def list_(server: Server, table: str | None) -> None:
    """List the groups of TABLE, or of all tables that you may read and that are enabled: a line for each member.

    Age is how long ago all that a member's ranges had handed out was committed, of the range that waits longest: it
    grows while a member works or hangs, and is at most some 10 s while there is nothing to do. With --json also each
    range of rows.

    \b
      columnar readers list
      columnar readers list pages
    """
    found = _found(server, table)
    output = server.output
    if output.as_json:
        output.json([{"table": name, **_json(group)} for name, group in found])
        return
    output.records(
        [(name, group, member) for name, group in found for member in _members(group)],
        lambda one: one,
        ("Group", "Table", "Member", "Lease", "Ranges", "Moving", "Age"),
        lambda one: (
            one[1].name,
            one[0],
            one[2][0],
            output.for_people(age_text, one[2][1]),
            *_figures(one[1], one[2][0], lambda ms: output.for_people(age_text, ms)),
        ),
        numbers=(3, 4, 5, 6),
        nothing="There are none yet. Programs make them: connection.changes(TABLE, group=NAME)",
    )


@readers.command()
@click.argument("group")
@table_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_server
def drop(server: Server, group: str, table: str, yes: bool) -> None:
    """Forget GROUP of TABLE with its positions. Its next member begins the group anew.

    \b
      columnar readers drop search pages --yes
    """
    require_confirmation(f"Forget how far group {group} has read {table}?", yes)
    if not server.connection.admin.drop_reader_group(typed(table), group):
        raise Refused(f"table {table} has no group {group}; 'columnar readers list {table}' lists them")
    server.output.done(f"group {group} of {table} is gone", {"dropped": group, "table": table})


def _found(server: Server, table: str | None) -> list[Listed]:
    admin = server.connection.admin
    if table is not None:
        return [(table, group) for group in admin.reader_groups(typed(table))]
    found: list[Listed] = []
    for name in sorted(admin.tables()):
        try:
            found += [(readable(name), group) for group in admin.reader_groups(name)]
        except IOError as error:
            if hbase_class(error) not in _NOT_READ:
                raise
    return found


def _members(group: GroupStatus) -> list[tuple[str, int]]:
    """Return names and rests of leases, and a line for the ranges that nobody has."""
    members = [(one.name, max(0, one.left_ms)) for one in group.members]
    return members + ([(_NOBODY, -1)] if any(not one.owner for one in group.ranges) else [])


def _figures(group: GroupStatus, member: str, age: Any) -> tuple[object, ...]:
    """Return how many ranges a member has, how many of them move, and the age of the oldest commit."""
    ranges = [one for one in group.ranges if (one.owner or _NOBODY) == member]
    return len(ranges), sum(one.moves for one in ranges), age(max((one.age_ms for one in ranges), default=-1))


def _json(group: GroupStatus) -> dict[str, object]:
    return {
        "group": group.name,
        "members": [as_plain(one) for one in group.members],
        "ranges": [as_plain(one) for one in group.ranges],
    }
