"""``wikka check``: compare every index with the pages."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from wikka_port import consistency
from wikka_port.commands.store_options import StoreOptions, errors, settled_after, store_options
from wikka_port.consistency import CheckReport

_MAX_LISTED = 50  # differences printed of each check; --json prints all
DIFFERENCES = 1  # exit status


@click.command()
@store_options
@click.option("--repair", is_flag=True, help="Put right what differs.")
@click.option("--json", "as_json", is_flag=True, help="Everything that was found, for programs.")
@click.option("--contents", is_flag=True, help="Read all files, too, and compare their digests.")
@click.option("--settle", default=60.0, show_default=True, help="Seconds to wait for the triggers before looking.")
def check(store: StoreOptions, repair: bool, contents: bool, as_json: bool, settle: float) -> None:
    """Compute every index anew from the pages and say what is missing, stale or different.

    Exit status: 0 nothing differs, 1 something did (repaired, if asked), 2 the check could not be done.
    """
    with store.open_wiki() as wiki:

        def settled() -> None:
            if settled_after(wiki, settle) is None:
                errors.print("the triggers have not delivered everything: what they still will write counts as missing")

        console = Console(stderr=True)
        with console.status("") if sys.stderr.isatty() else nullcontext() as status:
            report = consistency.check(
                wiki, repair=repair, settle=settled, progress=_shower(status), with_contents=contents
            )
    if as_json:
        click.echo(json.dumps(_as_data(report, repair), indent=1))
    else:
        _print(report, repair)
    raise SystemExit(DIFFERENCES if report.differences else 0)


def _shower(status: Any) -> Callable[[str, int], None]:
    def show(step: str, done: int) -> None:
        if status is not None:
            status.update(f"{step} {done:,}" if done else step)

    return show


def _as_data(report: CheckReport, repair: bool) -> dict[str, Any]:
    def decode_cell(data: bytes | None) -> str | None:
        return None if data is None else data.decode(errors="backslashreplace")

    return {
        "pages": report.pages,
        "revisions": report.revisions,
        "links": report.links,
        "spare": len(report.spare),
        "repaired": repair,
        "left": len(report.left) if repair else len(report.differences),
        "differences": [
            {
                "kind": one.kind.value,
                "table": decode_cell(one.table),
                "row": decode_cell(one.row),
                "column": decode_cell(one.column),
                "expected": decode_cell(one.expected),
                "found": decode_cell(one.found),
            }
            for one in report.differences
        ],
    }


def _print(report: CheckReport, repair: bool) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{report.pages:,} pages, {report.revisions:,} revisions, {report.links:,} links looked at")
    if report.spare:
        after = "removed" if repair else "a repair removes them"
        console.print(f"{len(report.spare):,} cells of wanted that no list needs, since their pages are there: {after}")
    if not report.differences:
        console.print("0 differences")
        return
    table = Table("table", "missing", "stale", "different", "lost")
    counts = report.counts()
    for name in sorted({table_name for table_name, _ in counts}):
        table.add_row(name, *(str(counts[name, kind]) for kind in ("missing", "stale", "different", "lost")))
    console.print(table)
    for one in report.differences[:_MAX_LISTED]:
        console.print(f"  {one.kind.value:9} {one.text()}", markup=False)
    if len(report.differences) > _MAX_LISTED:
        console.print(f"  ... and {len(report.differences) - _MAX_LISTED:,} more (--json gives all)")
    if not repair:
        console.print(f"{len(report.differences):,} differences; put them right with: wikka check --repair")
    else:
        console.print(f"{len(report.differences):,} differences, {len(report.left):,} left after the repair")
        for one in report.left[:_MAX_LISTED]:
            console.print(f"  left: {one.text()}", markup=False)
