"""``wikka jobs`` and ``wikka sizes``: the wiki's triggers with their dead letters, and how much the wiki has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from wikka_port.accounts.audit import Audit
from wikka_port.backup_report import NoReport, last_backup
from wikka_port.commands.serving_options import backup_report_option
from wikka_port.commands.store_options import StoreOptions, json_option, store_options
from wikka_port.feeds import iso_time
from wikka_port.maintenance import Letter, Maintenance, Refused, amounts_of, bytes_on_disk
from wikka_port.pages import Wiki, clock_ms
from wikka_port.visitors import COMMAND

REFUSED: Final = 1  # exit status


@contextmanager
def _maintenance(store: StoreOptions) -> Iterator[tuple[Wiki, Maintenance]]:
    with store.open_wiki() as wiki:
        try:
            yield wiki, wiki.maintenance
        except Refused as refused:
            click.echo(f"wikka: {refused}", err=True)
            raise SystemExit(REFUSED) from None


@click.group()
def jobs() -> None:
    """The wiki's triggers: their lag, and dead letters, which are changes that they gave up.

    \b
    List the triggers, and what failed:
      wikka jobs list
      wikka jobs dead
    Deliver it again once the cause is gone, or throw it away, and repair the indexes:
      wikka jobs retry wiki-indexes
      wikka jobs discard wiki-indexes --row 6666cd76f96956469e7be39d750cc7d9
    """


@jobs.command("list")
@json_option
@store_options
def list_triggers(store: StoreOptions, as_json: bool) -> None:
    """List the triggers with their lag."""
    with _maintenance(store) as (_wiki, maintenance):
        found = maintenance.triggers()
        has_triggers = maintenance.has_triggers
    if as_json:
        click.echo(json.dumps([asdict(one) for one in found], indent=1))
        return
    for one in found:
        lag = f"{one.lag_changes} changes wait, the oldest for {one.lag_s:.1f} s"
        click.echo(f"{one.name}  {one.state}  {lag}  {one.dead_letters} dead letters  {one.cause}".rstrip())
    if not has_triggers:
        click.echo("This wiki keeps its indexes itself: its store has no triggers.")


@jobs.command("dead")
@json_option
@store_options
def list_dead(store: StoreOptions, as_json: bool) -> None:
    """List dead letters, 100 at most."""
    with _maintenance(store) as (_wiki, maintenance):
        found = maintenance.letters()
    if as_json:
        click.echo(json.dumps([_as_data(one) for one in found], indent=1, ensure_ascii=False))
        return
    for one in found:
        click.echo(f"{one.trigger}  {_text(one.row)}  {one.page}  {iso_time(one.time_ms)}  {one.cause}")
    if not found:
        click.echo("There is no dead letter.")


def _as_data(one: Letter) -> dict[str, object]:
    return {**asdict(one), "row": _text(one.row), "time_ms": iso_time(one.time_ms)}


_ROW = click.option("--row", default="", metavar="ROW", help="Of this row alone, as wikka jobs dead shows it.")


@jobs.command("retry")
@click.argument("trigger")
@_ROW
@json_option
@store_options
def retry(store: StoreOptions, trigger: str, row: str, as_json: bool) -> None:
    """Deliver dead letters of TRIGGER again."""
    with _maintenance(store) as (wiki, maintenance):
        count = maintenance.retry(trigger, _row(row))
        _note(wiki, "dead letters retried", trigger, count)
    click.echo(json.dumps({"retried": count}) if as_json else f"{count} dead letters are delivered again.")


@jobs.command("discard")
@click.argument("trigger")
@_ROW
@json_option
@store_options
def discard(store: StoreOptions, trigger: str, row: str, as_json: bool) -> None:
    """Throw dead letters of TRIGGER away; ``wikka check --repair`` puts right what its index lacks then."""
    with _maintenance(store) as (wiki, maintenance):
        count = maintenance.discard(trigger, _row(row))
        _note(wiki, "dead letters discarded", trigger, count)
    click.echo(json.dumps({"discarded": count}) if as_json else f"{count} dead letters are thrown away.")


def _note(wiki: Wiki, what: str, trigger: str, count: int) -> None:
    if count:
        Audit(wiki.rows, clock_ms).note(what, user="", by=COMMAND, note=f"{trigger}: {count}")


def _row(given: str) -> bytes:
    return given.encode(errors="surrogateescape")


def _text(row: bytes) -> str:
    return row.decode(errors="surrogateescape")


@click.command("last-backup")
@backup_report_option
@json_option
def show_backup(backup_report: Path | None, as_json: bool) -> None:
    """Say when the last backup was made, of what size, and whether it was checked, as `columnar backup` noted it.

    The exit status is 1 if nothing is known of a backup.
    """
    if backup_report is None:
        raise click.UsageError("name the file by --backup-report, which `columnar backup --report` writes")
    try:
        found = last_backup(backup_report)
    except NoReport as why:
        click.echo(json.dumps({"known": False, "why": str(why)}) if as_json else f"wikka: {why}", err=not as_json)
        raise SystemExit(REFUSED) from None
    if as_json:
        click.echo(json.dumps({"known": True, **asdict(found)}, indent=1, ensure_ascii=False))
        return
    click.echo(f"{found.backup}  {iso_time(found.taken_ms)}  {found.bytes:,} bytes  {found.place}")
    said = {"": "not checked", "quick": "names and sizes checked", "whole": "every file read"}[found.checked]
    click.echo(f"{said}{f', {found.errors} errors' if found.checked else ''}")


@click.command()
@json_option
@store_options
def sizes(store: StoreOptions, as_json: bool) -> None:
    """Say how many pages, revisions, files, comments and accounts there are, and what the tables take on disk."""
    with _maintenance(store) as (wiki, maintenance):
        amounts = amounts_of(wiki.rows, wiki.count_pages_roughly())
        on_disk = bytes_on_disk(maintenance)
    if as_json:
        counted = {name: {"count": one.count, "how": one.how, "bytes": one.size_bytes} for name, one in amounts.items()}
        click.echo(json.dumps({"amounts": counted, "on_disk": on_disk}, indent=1))
        return
    for name, one in amounts.items():
        how = "" if one.how == "exact" else f"{one.how} "
        click.echo(f"{name:10} {how}{one.count:,}" + (f", {one.size_bytes:,} bytes" if one.size_bytes >= 0 else ""))
    for table, size_bytes in on_disk.items():
        click.echo(f"on disk    {table}: {size_bytes:,} bytes")
