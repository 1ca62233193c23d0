"""``columnar backup | restore-backup``: the whole store, every table with its triggers and their logs."""

from __future__ import annotations

import os
import time

import click

from columnar.backup.store_backup import BackupFolder
from columnar.errors import CallerError, ColumnarError
from columnar.runtime.file_errors import files_in
from columnar.shell.connecting import Misused, Refused, Server, with_server
from columnar.shell.progress import progress_bar
from columnar.shell.shell_output import Output, time_text
from columnar.shell.text import bytes_text
from columnar.shell.transfer import patient
from columnar.storage.file_copies import files_of


@click.command()
@click.argument("folder", type=click.Path(file_okay=False))
@click.option("--keep", type=click.IntRange(1), help="Remove all but so many newest backups in the folder afterwards.")
@with_server
def backup(server: Server, folder: str, keep: int | None) -> None:
    """Save the whole store into FOLDER while it serves: every table, trigger, log and cursor.

    A further backup into the same folder copies only files that are new. No table can be made, changed or dropped
    while the copies are taken. Snapshots are not saved. Runs on the server's machine; FOLDER should be on a different
    disk.

    \b
      columnar backup /mnt/backups/store
      columnar backup /mnt/backups/store --keep 7
    """
    began = time.monotonic()
    with patient(server) as connection, files_in(folder), BackupFolder.made(folder).locked() as target:
        tables = sorted(name.decode() for name in connection.tables())
        with connection.snapshots.staged("everything") as copy:
            taken_ms = time.time_ns() // 1_000_000
            data = os.path.dirname(os.path.dirname(copy.path))
            with progress_bar("saving", _bytes_in(copy.path)) as progress:
                saved, done = target.save(copy.path, data, tables, taken_ms, progress)
        gone = target.keep(keep) if keep is not None else 0
    server.output.facts(
        {
            "backup": saved.name,
            "tables": len(saved.tables),
            "files": len(saved.files),
            "bytes": saved.size_bytes,
            "copied_files": done["copied_files"],
            "copied_bytes": done["copied_bytes"],
            "removed_backups": gone,
            "seconds": round(time.monotonic() - began, 1),
        }
    )


def _bytes_in(copy: str) -> int:
    regions = os.path.join(copy, "regions")
    folders = [os.path.join(regions, name) for name in os.listdir(regions)]
    return sum(os.path.getsize(os.path.join(folder, name)) for folder in folders for name in files_of(folder))


@click.command("restore-backup")
@click.argument("folder", type=click.Path(file_okay=False, exists=True))
@click.option("--data", metavar="DIR", help="The new data folder: not there yet, or empty.")
@click.option("--backup", "name", help="Which one; the newest where nothing is said.")
@click.option("--list", "listing", is_flag=True, help="Only say which backups there are.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def restore_backup(folder: str, data: str | None, name: str | None, listing: bool, as_json: bool) -> None:
    """Make a new data folder out of a backup in FOLDER; then start a store on it. Needs no server.

    \b
      columnar restore-backup /mnt/backups/store --list
      columnar restore-backup /mnt/backups/store --data /srv/columnar-restored
      columnar standalone --data /srv/columnar-restored
    """
    output = Output(as_json)
    try:
        with files_in(folder):
            source = BackupFolder.opened(folder)
        if listing:
            _list(output, source)
            return
        if data is None:
            raise Misused("say where the restored store goes: --data DIR")
        names = source.names()
        if not names:
            raise Refused(f"{folder} holds no backup yet")
        began = time.monotonic()
        chosen = source.read(name or names[-1])
        with files_in(data), progress_bar("restoring", chosen.size_bytes) as progress:
            source.restore(chosen, data, progress)
    except CallerError as error:
        raise Misused(error.text) from None
    except ColumnarError as error:
        raise Refused(error.text) from None
    seconds = round(time.monotonic() - began, 1)
    facts = {"backup": chosen.name, "tables": len(chosen.tables), "bytes": chosen.size_bytes, "data": data}
    output.facts({**facts, "seconds": seconds})


def _list(output: Output, source: BackupFolder) -> None:
    found = [source.read(name) for name in source.names()]
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
