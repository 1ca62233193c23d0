"""``columnar backup | restore-backup``: the whole store, every table with its triggers and their logs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from columnar.backup import backup_report
from columnar.backup.backup_report import note_check, write_report
from columnar.backup.places import make_key_file, read_key, store_at
from columnar.backup.repository import Progress, Repository
from columnar.backup.store_backup import restore_store, save_store
from columnar.backup.table_restore import fetch_table, fetch_table_at
from columnar.client import Connection
from columnar.errors import CallerError, ColumnarError
from columnar.model.trigger_registration import Registration
from columnar.runtime.file_errors import files_in
from columnar.shell.connecting import Misused, Refused, Server, output_of, require_confirmation, with_server
from columnar.shell.progress import progress_bar
from columnar.shell.shell_output import Output, time_text
from columnar.shell.text import bytes_text, moment_of, readable, typed
from columnar.shell.transfer import patient
from columnar.storage.file_copies import files_of


class _TakenByDefault(click.Group):
    """A group whose first word may be a place: ``columnar backup PLACE`` is ``columnar backup take PLACE``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in self.get_help_option_names(ctx):
            args = ["take", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_TakenByDefault)
def backup() -> None:
    """Save the whole store into PLACE, and look after the backups that are there.

    PLACE is a folder or s3://BUCKET/PREFIX; './list' is a folder of that name. 'columnar backup PLACE' is short for
    'columnar backup take PLACE'; 'columnar restore-backup' makes a data folder of a backup.

    \b
      columnar backup /mnt/backups/store --keep 7
      columnar backup s3://backups/store --key-file /etc/columnar/backup.key
      columnar backup list s3://backups/store
    """


_place = click.argument("place")
_endpoint = click.option(
    "--endpoint-url",
    metavar="URL",
    help="Of an S3 store, if not Amazon's; also in the environment's AWS_ENDPOINT_URL.",
)
_key_file = click.option(
    "--key-file", envvar="COLUMNAR_BACKUP_KEY_FILE", metavar="FILE", show_envvar=True,
    help="The key of encrypted backups: 'columnar backup new-key FILE' makes one.",
)  # fmt: skip
_report = click.option(
    "--report", metavar="FILE", help="Where to note time, size and check of the newest backup, for a wiki to show."
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add PLACE and the options by which a repository is opened."""
    return _place(_endpoint(_key_file(command)))


def made_repository(place: str, endpoint_url: str | None, key_file: str | None) -> Repository:
    """Return the repository at ``place``, begun if the place is empty."""
    return Repository.made(store_at(place, endpoint_url), read_key(key_file))


def opened_repository(place: str, endpoint_url: str | None, key_file: str | None) -> Repository:
    return Repository.opened(store_at(place, endpoint_url), read_key(key_file))


@contextmanager
def reported() -> Iterator[None]:
    """Report errors of a command that needs no server."""
    try:
        yield
    except CallerError as error:
        raise Misused(error.text) from None
    except ColumnarError as error:
        raise Refused(error.text) from None


@backup.command()
@place_options
@click.option("--keep", type=click.IntRange(1), help="Remove all but so many newest backups afterwards.")
@click.option("--every", metavar="DURATION", help="Make a backup each 6h, 1d or 30m, until SIGTERM or Ctrl-C.")
@click.option(
    "--metrics-file", metavar="FILE", help="With --every: where to write figures for Prometheus' node exporter."
)
@_report
@with_server
def take(
    server: Server, place: str, endpoint_url: str | None, key_file: str | None, keep: int | None, every: str | None,
    metrics_file: str | None, report: str | None,
) -> None:  # fmt: skip
    """Save the whole store into PLACE while it serves: every table, trigger, log and cursor.

    A further backup into the same place copies only files that are new, also after one that was interrupted. No table
    can be made, changed or dropped while the copies are taken. Snapshots are not saved. Runs on the server's machine;
    a folder should be on a different disk.

    \b
      columnar backup /mnt/backups/store
      columnar backup /mnt/backups/store --keep 7
      columnar backup s3://backups/store --endpoint-url https://s3.example.org
      columnar backup /mnt/backups/store --every 6h --keep 28
    """
    if every is None:
        if metrics_file is not None:
            raise Misused("--metrics-file is for --every")
        with patient(server) as connection, files_in(place):
            repository = made_repository(place, endpoint_url, key_file)
            server.output.facts(take_backup(connection, repository, keep, report_of=(report, place)))
        return
    from columnar.shell.backup_loop import interval_of, run_backups

    every_s = interval_of(every)
    read_key(key_file)  # a mistake is reported now
    store_at(place, endpoint_url)

    def make(watch: Callable[[], None]) -> dict[str, object]:
        with patient(server) as connection, files_in(place):
            repository = made_repository(place, endpoint_url, key_file)
            facts = take_backup(connection, repository, keep, watch, report_of=(report, place))
        server.output.facts(facts)
        return facts

    if not run_backups(every_s, lambda: made_repository(place, endpoint_url, key_file), make, metrics_file):
        click.get_current_context().exit(1)


def take_backup(
    connection: Connection,
    repository: Repository,
    keep: int | None,
    watch: Callable[[], None] = lambda: None,
    report_of: tuple[str | None, str] = (None, ""),
) -> dict[str, object]:
    """Save a backup, remove old ones, and return what a person wants to know.

    ``watch`` is called after each piece, and may raise to end the backup.  ``report_of`` has the file of the report, if
    one is wanted, and the place.
    """
    began = time.monotonic()
    tables = sorted(name.decode() for name in connection.tables())
    with connection.snapshots.staged("everything") as copy:
        taken_ms = time.time_ns() // 1_000_000
        data = os.path.dirname(os.path.dirname(copy.path))
        with progress_bar("saving", _bytes_in(copy.path)) as progress:
            saved, done = save_store(repository, copy.path, data, tables, taken_ms, _both(progress, watch))
    path, place = report_of
    if path is not None:
        with files_in(path):
            write_report(path, backup_report.report_of(saved, place))
    gone = 0
    try:
        gone = repository.keep(keep) if keep is not None else 0
    except CallerError as error:  # another backup is being saved; this one is whole
        click.echo(f"columnar: old backups stay for now: {error.text}", err=True)
    return {
        "backup": saved.name,
        "tables": len(saved.tables),
        "files": len(saved.files),
        "bytes": saved.size_bytes,
        "copied_files": done["copied_files"],
        "copied_bytes": done["copied_bytes"],
        "removed_backups": gone,
        "seconds": round(time.monotonic() - began, 1),
    }


def _both(progress: Progress, watch: Callable[[], None]) -> Progress:
    def note(done: int) -> None:
        progress(done)
        watch()

    return note


def _bytes_in(copy: str) -> int:
    regions = os.path.join(copy, "regions")
    folders = [os.path.join(regions, name) for name in os.listdir(regions)]
    return sum(os.path.getsize(os.path.join(folder, name)) for folder in folders for name in files_of(folder))


@backup.command("list")
@place_options
@_as_json
def list_(place: str, endpoint_url: str | None, key_file: str | None, as_json: bool) -> None:
    """List the backups in PLACE, the oldest first. Needs no server.

    \b
      columnar backup list /mnt/backups/store
    """
    with reported(), files_in(place):
        list_backups(output_of(as_json), opened_repository(place, endpoint_url, key_file))


@backup.command()
@place_options
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@_as_json
def remove(
    place: str, names: tuple[str, ...], endpoint_url: str | None, key_file: str | None, yes: bool, as_json: bool
) -> None:
    """Remove backups from PLACE, with the files that no other backup needs. Needs no server.

    Remains of interrupted backups go too. Refused while a backup is being saved into PLACE.

    \b
      columnar backup remove /mnt/backups/store 20261128T010203.004Z
    """
    with reported(), files_in(place):
        repository = opened_repository(place, endpoint_url, key_file)
        require_confirmation(f"Remove {', '.join(names)} from {place}?", yes)
        freed = repository.remove_backups(names)
        output_of(as_json).facts({"removed_backups": len(set(names)), "removed_bytes": freed})


@backup.command()
@place_options
@click.option("--backup", "name", help="Which one; the newest where nothing is said.")
@click.option("--all", "everything", is_flag=True, help="Every backup in PLACE.")
@click.option("--quick", is_flag=True, help="Only compare names and sizes; read no file.")
@_report
@_as_json
def check(
    place: str, endpoint_url: str | None, key_file: str | None, name: str | None, everything: bool, quick: bool,
    report: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Read a backup in PLACE, and say which files are missing or damaged. Needs no server.

    The exit status is 0 if all is there, 1 if something is missing or damaged.

    \b
      columnar backup check s3://backups/store
      columnar backup check /mnt/backups/store --all
    """
    if name and everything:
        raise Misused("choose --backup or --all")
    with reported(), files_in(place):
        repository = opened_repository(place, endpoint_url, key_file)
        names = repository.names()
        chosen = [repository.read_backup(one) for one in names] if everything else [repository.chosen(name)]
        total = {(file.sha256, file.bytes) for one in chosen for file in one.files}
        with progress_bar("reading", None if quick else sum(size for _, size in total)) as progress:
            found = list(repository.findings(chosen, progress, reads=not quick))
    if report is not None and chosen:
        now_ms = time.time_ns() // 1_000_000
        with reported(), files_in(report):
            note_check(report, chosen[-1], place, now_ms=now_ms, reads=not quick, errors=len(found))
    output = output_of(as_json)
    facts: dict[str, object] = {"backups": len(chosen), "files": len(total), "errors": len(found)}
    if as_json:
        output.json({**facts, "findings": found})
    else:
        for line in found:
            output.line(line)
        output.facts(facts)
    if found:
        click.get_current_context().exit(1)


@backup.command("new-key")
@click.argument("file")
def new_key(file: str) -> None:
    """Make FILE with a new key for encrypted backups, readable by its user alone.

    Keep a copy of it away from the store: without it the backups cannot be read.

    \b
      columnar backup new-key /etc/columnar/backup.key
    """
    with reported():
        make_key_file(file)


@backup.command("restore-table")
@place_options
@click.argument("table")
@click.argument("new_name", metavar="[NEW-NAME]", required=False)
@click.option("--backup", "name", help="Of which backup; the newest where nothing is said.")
@click.option("--at", metavar="TIME", help="As it was then: 2026-01-31T12:00, 15m for 15 minutes ago, or milliseconds.")
@with_server
def restore_table(
    server: Server, place: str, table: str, new_name: str | None, endpoint_url: str | None, key_file: str | None,
    name: str | None, at: str | None,
) -> None:  # fmt: skip
    """Make a table out of TABLE as it is in a backup in PLACE, under its own name or as NEW-NAME.

    The store serves meanwhile, and the table appears when it is whole, without triggers. A table that is there already
    is not touched. Only the table's files are fetched. Runs on the server's machine.

    With --at a backup from before that time is brought forward by the changes that the next backup has in its change
    log: the table needs the attribute CHANGE_LOG in both, with a time that reaches from one to the other.

    \b
      columnar backup restore-table /mnt/backups/store pages pages_yesterday
      columnar backup restore-table /mnt/backups/store pages pages_at_noon --at 2026-11-28T12:00
    """
    if name and at:
        raise Misused("choose --backup or --at")
    moment_ms = moment_of(at, time.time_ns() // 1_000_000) if at else None
    began = time.monotonic()
    with patient(server) as connection, files_in(place):
        source = opened_repository(place, endpoint_url, key_file)
        text = typed(table).decode(errors="replace")
        target = typed(new_name if new_name is not None else table)
        if target in connection.tables():
            raise Refused(
                f"table {readable(target)} is there already; give another name: restore-table PLACE {table} NAME"
            )
        with connection.snapshots.staged("empty") as staged:
            with files_in(staged.path), progress_bar(f"restoring {table}", None) as progress:
                if moment_ms is None:
                    chosen = source.chosen(name)
                    size, changes = fetch_table(source, chosen, text, staged.path, progress), None
                else:
                    chosen, size, changes = fetch_table_at(source, moment_ms, text, staged.path, progress)
            connection.snapshots.adopt_staged(staged, target)
    facts: dict[str, object] = {"table": readable(target), "backup": chosen.name, "bytes": size}
    if changes is not None:
        facts["changes"] = changes
    server.output.facts({**facts, "seconds": round(time.monotonic() - began, 1)})


@click.command("restore-backup")
@place_options
@click.option("--data", metavar="DIR", help="The new data folder: not there yet, or empty.")
@click.option("--backup", "name", help="Which one; the newest where nothing is said.")
@click.option("--list", "listing", is_flag=True, help="Only say which backups there are.")
@click.option("--paused", is_flag=True, help="Pause all triggers and served queues, to try the backup.")
@_as_json
def restore_backup(
    place: str, endpoint_url: str | None, key_file: str | None, data: str | None, name: str | None, listing: bool,
    paused: bool, as_json: bool,
) -> None:  # fmt: skip
    """Make a new data folder out of a backup in PLACE; then start a store on it. Needs no server.

    The restored store runs its triggers and posts the messages of its served queues as soon as it starts, also those
    that were done since the backup. With --paused it begins with all of them paused: try a backup like that beside the
    store that it was taken from.

    \b
      columnar restore-backup /mnt/backups/store --list
      columnar restore-backup /mnt/backups/store --data /srv/columnar-restored
      columnar standalone --data /srv/columnar-restored
      columnar restore-backup /mnt/backups/store --data /tmp/tried --paused
    """
    output = output_of(as_json)
    with reported():
        with files_in(place):
            source = opened_repository(place, endpoint_url, key_file)
            if listing:
                list_backups(output, source)
                return
            if data is None:
                raise Misused("say where the restored store goes: --data DIR")
            began = time.monotonic()
            chosen = source.chosen(name)
        with files_in(data), progress_bar("restoring", chosen.size_bytes) as progress:
            delivering = restore_store(source, chosen, data, progress, paused=paused)
    facts: dict[str, object] = {"backup": chosen.name, "tables": len(chosen.tables), "bytes": chosen.size_bytes}
    facts |= {"data": data, "seconds": round(time.monotonic() - began, 1)}
    _report_deliveries(output, facts, delivering, paused=paused)


def _report_deliveries(output: Output, facts: dict[str, object], found: list[Registration], *, paused: bool) -> None:
    """Print the facts, what is paused with the commands that resume it, or what will deliver."""
    kinds = {one.name: ("queue", one.queue) if one.queue else ("trigger", one.name) for one in found}
    if paused and output.as_json:
        facts["paused"] = [{"kind": kind, "name": name} for kind, name in kinds.values()]
    output.facts(facts)
    if paused and not output.as_json:
        for kind, name in kinds.values():
            output.line(f"{kind} {name} is paused; to resume it in the restored store: columnar {kind} resume {name}")
    elif found and not paused:
        names = ", ".join(f"{kind} {name}" for kind, name in kinds.values())
        click.echo(
            f"columnar: the restored store delivers as soon as it starts, also what was delivered since the backup: "
            f"{names}; to only try the backup restore it with --paused",
            err=True,
        )


def list_backups(output: Output, source: Repository) -> None:
    found = [source.read_backup(name) for name in source.names()]
    output.records(
        found,
        lambda one: {"backup": one.name, "tables": list(one.tables), "bytes": one.size_bytes},
        ("Backup", "Taken", "Tables", "Size"),
        lambda one: (
            one.name,
            output.for_people(time_text, one.taken_ms),
            len(one.tables),
            output.for_people(bytes_text, one.size_bytes),
        ),
        numbers=(2, 3),
    )
