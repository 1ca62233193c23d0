"""``columnar snapshot take | list | clone | restore | delete``."""

from __future__ import annotations

from contextlib import closing

import click

from columnar.client import Snapshot
from columnar.shell.completion import completing, table_argument
from columnar.shell.connecting import Misused, Server, somebody_answers, with_server
from columnar.shell.shell_output import plain_fields, time_text
from columnar.shell.text import bytes_text, readable, typed

LONGEST_S = 3_600.0  # checksums of a large table take their time


@click.group()
def snapshot() -> None:
    """Keep a table as it is now, and bring it back.

    A snapshot shares its files with the table, so it costs only what the table changes afterwards. It lies in
    the store's own folder: for another disk see 'columnar backup' and 'columnar export'.
    """


@snapshot.command()
@click.argument("name")
@table_argument
@with_server
def take(server: Server, name: str, table: str) -> None:
    """Keep TABLE as it is now under NAME, while it serves.

    Each row is kept whole; rows written meanwhile may be in it or not.

    \b
      columnar snapshot take before-cleanup pages
    """
    with closing(server.patient(LONGEST_S)) as connection:
        made = connection.snapshots.take_snapshot(name, typed(table))
    server.output.done(
        f"snapshot {name} of {table}: {made.regions} regions, {bytes_text(made.size_bytes)}", _as_json(made)
    )


@snapshot.command("list")
@with_server
def list_(server: Server) -> None:
    """List the snapshots: table, age, regions, size.

    \b
      columnar snapshot list
    """
    output = server.output
    output.records(
        server.connection.snapshots.list_snapshots(),
        _as_json,
        ("Snapshot", "Table", "Taken", "Regions", "Size"),
        lambda one: (
            one.name,
            readable(one.table),
            output.for_people(time_text, one.created_ms),
            one.regions,
            output.for_people(bytes_text, one.size_bytes),
        ),
        numbers=(3, 4),
        nothing="There are none yet. Take one: columnar snapshot take NAME TABLE",
    )


@snapshot.command()
@click.argument("name", shell_complete=completing("snapshot"))
@click.argument("table")
@with_server
def clone(server: Server, name: str, table: str) -> None:
    """Make a new TABLE out of snapshot NAME. It has no triggers.

    \b
      columnar snapshot clone before-cleanup pages_old
    """
    with closing(server.patient(LONGEST_S)) as connection:
        connection.snapshots.clone_snapshot(name, typed(table))
    server.output.done(f"table {table} made from snapshot {name}", {"cloned": name, "table": table})


@snapshot.command()
@click.argument("name", shell_complete=completing("snapshot"))
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_server
def restore(server: Server, name: str, yes: bool) -> None:
    """Restore the table of snapshot NAME; all later writes are gone.

    Refused while triggers follow the table. A table that triggers write must be rebuilt from its sources afterwards.

    \b
      columnar snapshot restore before-cleanup
      columnar snapshot restore before-cleanup --yes
    """
    if not yes:
        if not somebody_answers():
            raise Misused("nobody can be asked here: say --yes to give up what was written since the snapshot")
        click.confirm(f"Give up what was written to the table since snapshot {name}?", abort=True, err=True)
    with closing(server.patient(LONGEST_S)) as connection:
        connection.snapshots.restore_snapshot(name)
    server.output.done(f"restored from snapshot {name}", {"restored": name})


@snapshot.command()
@click.argument("name", shell_complete=completing("snapshot"))
@with_server
def delete(server: Server, name: str) -> None:
    """Remove snapshot NAME; tables made from it stay.

    \b
      columnar snapshot delete before-cleanup
    """
    server.connection.snapshots.delete_snapshot(name)
    server.output.done(f"snapshot {name} is gone", {"deleted": name})


def _as_json(one: Snapshot) -> dict[str, object]:
    return plain_fields(one, "name", "table", "created_ms", "regions", "size_bytes")
