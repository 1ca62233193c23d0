"""``columnar check | repair``: check a store, and make the repairs that need no guessing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from columnar.checking.findings import Report, Severity
from columnar.checking.log_repair import bring_in_with_gaps, move_aside, salvage_server_log
from columnar.checking.repair import Repaired, repair
from columnar.checking.store_check import (
    StoreCheck,
    check_snapshots,
    folders_nobody_names,
    say_orphans,
    say_server_logs,
)
from columnar.client import ClientTls, ClusterAdmin, Connection
from columnar.client.store_options import DEFAULT_STORE, client_settings
from columnar.client.tls_options import tls_options
from columnar.client.user_options import ClientUser, user_options
from columnar.errors import ColumnarError, DamagedData
from columnar.shell.connecting import Misused, Refused, report_errors, secrets_of
from columnar.shell.progress import progress_bar
from columnar.shell.shell_output import Output
from columnar.shell.text import bytes_text
from columnar.storage.data_folder import ALL_FOLDERS_SINCE, FORMAT, META, NODES_SINCE, REGIONS, DataFolder, lost_format
from columnar.storage.dead_logs import DeadLogs
from columnar.storage.ownership import Ownership
from columnar.storage.recovery import recover
from columnar.storage.region_folders import RegionFolders
from columnar.storage.region_takeover import end_generations
from columnar.storage.rocks import RocksEngine
from columnar.storage.server_log_files import open_server_log

LONGEST_S = 3_600.0
FOUND = 1  # exit status: there are errors


@click.command()
@client_settings
@click.option("--data", metavar="DIR", help="Check this folder, which no process serves, instead of a running store.")
@click.option(
    "--store", envvar="COLUMNAR_STORE", default=DEFAULT_STORE, show_default=True, metavar="HOST:PORT",
    help="Running store to check; on this machine. Also from the environment's COLUMNAR_STORE.",
)  # fmt: skip
@tls_options
@user_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(data: str | None, store: str, as_json: bool, tls: ClientTls | None, user: ClientUser | None) -> None:
    """Read everything and say what is wrong: checksums, keys, values, logs, catalogue, folders, snapshots.

    A running store is checked by copies of all its regions, taken while it serves. Changes nothing. Exit status: 0
    no errors, 1 errors were found, 2 it could not be checked.

    \b
      columnar check
      columnar check --data /srv/columnar
    """
    output = Output(as_json)
    if data is not None:
        with locked(data) as folder:
            found, report = _checked_folder(folder, os.listdir(os.path.join(data, REGIONS)))
            say_log(folder, report)
            if found.catalogue is not None:
                say_server_logs(report, data, found.catalogue)
    else:
        report = _checked_online(store, tls, user)
    _print_report(output, report)
    if report.errors:
        raise SystemExit(FOUND)


@click.command("repair")
@click.option("--data", metavar="DIR", required=True, help="The folder; no process may serve it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def repair_(data: str, as_json: bool) -> None:
    """Check a folder and make the repairs that need no guessing.

    Logs of killed servers are replayed into their regions, damaged logs as far as they are readable. Folders that the
    catalogue does not name, and older generations of regions' folders, go to lost+found. Holes get an empty region. The
    readable rows of damaged files are saved into a new region, and the losses are printed. Nothing is removed.
    Remaining faults are listed with what to do. Exit status: 0 no faults remain, 1 faults remain, 2 the folder could
    not be checked.

    \b
      columnar repair --data /srv/columnar
    """
    output = Output(as_json)
    result, engine = Repaired(), RocksEngine()
    with locked(data, mends=result.done.append) as folder:
        if folder.format >= NODES_SINCE:
            _end_generations(folder, result)
        logs = _server_log_brought_in(folder, engine, result)
        found, before = _checked_folder(folder, [])
        catalogue = Ownership(META, 0, logs.unreplayed_parts(META), is_sole=True)
        if found.catalogue is not None or before.errors:
            repair(engine, data, found, catalogue, logs, result)
        result.left.extend(f"{name}: {_in_log(count)}; compare with a backup" for name, count in logs.left.items())
        after = _checked_folder(folder, os.listdir(os.path.join(data, REGIONS)))[1]
    if as_json:
        output.json({"done": result.done, "left": result.left, "errors_after": after.errors})
    else:
        for line in result.done:
            click.echo(f"done\t{line}")
        for line in result.left:
            click.echo(f"left\t{line}")
        for finding in after.findings:
            click.echo(finding.line())
    if result.left or after.errors:
        raise SystemExit(FOUND)


def _end_generations(folder: DataFolder, result: Repaired) -> None:
    """Make the newest folder of each region its only one; nodes that are started later take it over from there."""

    def dispose(path: str) -> None:
        result.done.append(f"{REGIONS}/{os.path.basename(path)} moved to {move_aside(folder.path, path)}")

    regions = end_generations(os.path.join(folder.path, REGIONS), dispose)
    if regions:
        result.done.append(f"the newest folders of {len(regions)} regions were renamed: nodes had replaced older ones")


def _server_log_brought_in(folder: DataFolder, engine: RocksEngine, result: Repaired) -> DeadLogs:
    """Replay the log of one process first, because its old batches would hide writes that the repair makes."""
    try:
        logs = open_server_log(folder)[1]
    except DamagedData as damage:
        logs = DeadLogs()
        engine.use_logs(logs)
        salvage_server_log(engine, folder.path, logs, damage.text, result.done.append, result.left.append)
        return logs
    engine.use_logs(logs)
    recover(engine, logs, RegionFolders(os.path.join(folder.path, REGIONS), engine))
    if logs.left:
        bring_in_with_gaps(engine, folder.path, logs, result.left.append)
    return logs


@contextmanager
def locked(data: str, mends: Callable[[str], None] | None = None) -> Iterator[DataFolder]:
    """Yield the locked data folder. Raises Misused if it is no data folder or is being served.

    With ``mends`` a lost ``FORMAT`` is written anew, and a message says so.
    """
    if not os.path.exists(os.path.join(data, FORMAT)) and not os.path.isdir(os.path.join(data, REGIONS)):
        raise Misused(f"{data} is no data folder: it has no FORMAT")
    try:
        lost = lost_format(data) if mends is not None else ""
        folder = DataFolder.locked(data, repairs_format=bool(lost), is_of_nodes=True)
    except ColumnarError as error:
        raise Misused(error.text) from None
    if mends is not None and lost:
        mends(f"{FORMAT}: written anew, as {lost}")
    try:
        yield folder
    except ColumnarError as error:
        raise Refused(error.text) from None
    finally:
        folder.close()


def _in_log(count: int) -> str:
    return f"{count} of its last batches stand in the server's log, and maybe only there"


def say_log(folder: DataFolder, report: Report) -> None:
    """Note the batches that maybe only the server log has after a crash, which the next start replays."""
    try:
        left = open_server_log(folder)[1].left
    except ColumnarError as error:
        report.add_finding(Severity.ERROR, "server-log", error.text)
        return
    for name, count in left.items():
        report.add_finding(Severity.NOTE, name, f"{_in_log(count)}: the next start brings them in")


def _checked_folder(folder: DataFolder, names: list[str]) -> tuple[StoreCheck, Report]:
    regions = os.path.join(folder.path, REGIONS)
    return _checked(folder.path, regions, names, has_all_folders=folder.format >= ALL_FOLDERS_SINCE)


def _checked(data: str, regions: str, names: list[str], *, has_all_folders: bool = True) -> tuple[StoreCheck, Report]:
    """Run the check; ``names`` are the entries of the live folder of regions."""
    with progress_bar("checking", None) as progress:
        found = StoreCheck(RocksEngine(), regions, progress, has_all_folders=has_all_folders)
        report = found.run()
        if found.catalogue is not None:
            say_orphans(report, folders_nobody_names(names, found.catalogue), os.path.join(data, REGIONS))
        check_snapshots(data, report)
    return found, report


def _checked_online(store: str, tls: ClientTls | None, user: ClientUser | None) -> Report:
    with report_errors(store):
        connection = Connection.at(store, timeout=round(LONGEST_S * 1_000), tls=tls, **secrets_of(user))
        try:
            with connection.snapshots.staged("empty") as look:
                data = _data_of(look.path)
                names = os.listdir(os.path.join(data, REGIONS))  # before the copies, which lack regions made later
            closed = _closed_regions(ClusterAdmin(connection), data)
            return closed if closed.errors else _checked_copies(connection, data, names)
        except ColumnarError as error:
            raise Refused(error.text) from None
        finally:
            connection.close()


def _closed_regions(admin: ClusterAdmin, data: str) -> Report:
    """Report the regions that no server can open, as a copy of the store would lack them or their missing writes."""
    report = Report()
    for one in admin.transitions():
        if one.kind == "failed":
            advice = f"when the cause is gone: 'columnar assign {one.encoded_name}'"
            report.add_finding(
                Severity.ERROR, f"{one.table.decode()} {one.encoded_name}", f"is closed: {one.why}", advice
            )
    if report.errors:
        text = "nothing else was looked at, as regions are closed"
        report.add_finding(
            Severity.NOTE, "store", text, f"stop the store, and 'columnar check --data {data}' reads everything"
        )
    return report


def _checked_copies(connection: Connection, data: str, names: list[str]) -> Report:
    live = os.path.join(data, REGIONS)
    with connection.snapshots.staged("everything") as copy:
        there = [name for name in names if os.path.exists(os.path.join(live, name))]
        return _checked(data, os.path.join(copy.path, REGIONS), there)[1]


def _data_of(staged: str) -> str:
    return os.path.dirname(os.path.dirname(staged))


def _print_report(output: Output, report: Report) -> None:
    looked: dict[str, object] = dict(report.totals)
    if output.as_json:
        listed = [
            {
                "severity": finding.severity.name.lower(),
                "place": finding.place,
                "text": finding.text,
                "advice": finding.advice,
            }
            for finding in report.findings
        ]
        output.json({"looked_at": looked, "findings": listed, "errors": report.errors})
        return
    if output.is_terminal:
        looked["value_bytes"] = bytes_text(report.totals["value_bytes"])
    output.facts({**looked, "errors": report.errors})
    for finding in report.findings:
        click.echo(finding.line())
