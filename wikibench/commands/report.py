"""``wikibench report``: the page and the tables of a report.json, of this version or of the first."""

from __future__ import annotations

from pathlib import Path

import click

from wikibench.findings.csv_files import write_tables
from wikibench.report import HTML, read_report, write_page
from wikibench.statuses import CONTEXT, report_errors


@click.command("report", context_settings=CONTEXT)
@click.argument("path", metavar="REPORT.json", type=click.Path(exists=True, path_type=Path))
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The page; else report.html beside it.")
@click.option("--csv", type=click.Path(file_okay=False, path_type=Path), help="Write intervals.csv and kinds.csv here.")
def report_command(path: Path, out: Path | None, csv: Path | None) -> None:
    """Make the page of a report again, from its report.json or the folder with it.

    \b
    The page beside the JSON, elsewhere, and the figures for a spreadsheet:
      wikibench report out/report.json
      wikibench report last-year/ --out last-year.html
      wikibench report out/ --csv tables/

    The page opens from disk and makes no request to anywhere. Reports of version 1 can be read, too; they have
    no histograms of intervals, and no curve of service times.
    """
    with report_errors():
        report = read_report(path)
        folder = path if path.is_dir() else path.parent
        click.echo(f"report: {write_page(out or folder / HTML, report)}")
        if csv is not None:
            click.echo(f"tables: {', '.join(map(str, write_tables(csv, report)))}")
