"""``wikibench experiment``: several systems under the loads of a file, in turn, and one page with all tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from wikibench import experiments
from wikibench.errors import PlanError
from wikibench.experiments.plan import FILL, SIZES, Cell, Experiment, Json, cells_of
from wikibench.experiments.runner import Order, Runner, read_experiment
from wikibench.experiments.system import System, read_system
from wikibench.experiments.tables import (
    Page,
    check_tables,
    facts_of,
    has_system,
    html_of,
    json_of,
    loads_of,
    markdown_of,
    notes_beside,
    table_of,
)
from wikibench.options import Duration
from wikibench.statuses import CONTEXT, MET, MISSED, NOT_VALID, report_errors
from wikibench.whole_files import write_whole

DETAILS_CHARS: Final = 2_000_000  # of all results, at the end of the page
SHIPPED: Final = Path(experiments.__file__).parent


class Setting(click.ParamType[tuple[str, str]]):
    """``NAME=VALUE``."""

    name = "setting"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        name, equals, text = str(value).partition("=")
        if not equals or not name.isidentifier():
            self.fail(f"{value!r} is not of the form NAME=VALUE", param, ctx)
        return name, text


@click.command("experiment", context_settings=CONTEXT)
@click.argument("name", metavar="thesis|eth|scale|placement|FILE")
@click.option("--systems", help="Names of shipped systems, or files, with commas.  [default: the experiment's own]")
@click.option("--size", type=click.Choice(SIZES), default="quick", show_default=True)
@click.option("--budget", type=Duration(), help="Begin no cell that would end later, such as 2h.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Data, results, pages.  [default: NAME-SIZE]"
)
@click.option("--set", "given", type=Setting(), multiple=True, metavar="NAME=VALUE", help="A value a system needs.")
@click.option("--plan", "is_plan", is_flag=True, help="Print cells, order and time; run nothing.")
def experiment(
    name: str,
    systems: str | None,
    size: str,
    budget: float | None,
    out: Path | None,
    given: tuple[tuple[str, str], ...],
    is_plan: bool,
) -> None:
    """Measure systems side by side as an experiment's file says, and write one page with all tables.

    \b
    The experiments of the thesis on Wikka and HBase, with its own figures beside; first what would be done:
      wikibench experiment thesis --plan
      wikibench experiment thesis --size quick --out thesis-quick
      wikibench experiment thesis --systems columnar,mediawiki --size default --budget 2h
      wikibench experiment thesis --systems columnar,mediawiki,hbase
      wikibench experiment thesis --systems columnar,hbase-gateway --set gateway=127.0.0.1:9090
      wikibench experiment thesis --systems url --set address=http://127.0.0.1:8080 --set titles_file=names.txt

    \b
    Triggers beside doing it yourself; more region servers, here or on ZooKeeper; the balancer off and on:
      wikibench experiment eth
      wikibench experiment scale --systems servers-zookeeper:servers=1,servers-zookeeper:servers=2
      wikibench experiment placement

    \b
    OUT/index.html     all tables and plots, versions, and what else the machine did
    OUT/results.md     the same in Markdown, and results.json for programs

    Each cell's result is a file: the same command goes on where it was stopped, and tries again what failed.
    Systems are started and ended for each cell, take turns, and never run at the same time.

    Exit status: 0 every cell has a result, 1 some failed (the page says why), 3 the budget was too small for all.
    """
    with report_errors():
        found, digest = read_experiment(name, SHIPPED)
        check_tables(found.file, found.tables, [load.name for load in found.loads])
        names = [one.strip() for one in systems.split(",")] if systems else list(found.systems)
        known = tuple(read_system(one, SHIPPED / "systems") for one in names)
        if not known and not all(load.without_system for load in found.loads):
            raise PlanError("no system to measure: name some with --systems")
        words = found.sizes.get(size, {})
        cells = cells_of(found, {system.name: system.fill_estimate_s(words) for system in known}, size)
        if is_plan:
            _print_plan(cells)
            return
        folder = out if out is not None else Path(f"{Path(name).stem}-{size}")
        runner = Runner(Order(found, digest, size, known, dict(given), folder, budget), _say)
        runner.open()
        ending = runner.run(cells)
        results = list(runner.results.values())
        _write_pages(folder, _page(found, size, known, results), runner.results)
    sys.exit({"complete": MET, "failed": MISSED, "budget": NOT_VALID}[ending])


def _print_plan(cells: Sequence[Cell]) -> None:
    for number, cell in enumerate(cells, start=1):
        title = "its pages get in" if cell.load is None else cell.load.title
        click.echo(f"{number:4}  {cell.name:24}  about {cell.seconds:6.0f} s  {title}")
    minutes = sum(cell.seconds for cell in cells) / 60
    click.echo(f"{len(cells)} cells, about {minutes:.0f} minutes")


def _page(found: Experiment, size: str, known: Sequence[System], results: Sequence[Json]) -> Page:
    names = {system.name: system.title for system in known}
    loads = {FILL, *(load.name for load in found.loads if size in load.sizes)}
    meant = [
        one
        for one in found.tables
        if any(has_system(one, name) for name in names or [""]) and loads.intersection(loads_of(one))
    ]
    tables = tuple(table_of(one, names, results) for one in meant)
    return Page(f"{found.title} ({size})", found.about, facts_of(results), tables, notes_beside(meant, results))


def _write_pages(folder: Path, page: Page, results: dict[str, Json]) -> None:
    details = json.dumps(results, indent=1, ensure_ascii=False)
    drawings: list[str] = []
    if find_spec("matplotlib") is not None:
        from wikibench.experiments.drawings import drawings_of

        drawings = drawings_of(page)
    else:
        click.echo("the page has no plots: pip install 'columnar[plots]', and give the same command again", err=True)
    write_whole(folder / "index.html", html_of(page, details[:DETAILS_CHARS], drawings))
    write_whole(folder / "results.md", markdown_of(page))
    found = {**json_of(page), "cells": results}
    write_whole(folder / "results.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    click.echo(markdown_of(page))
    click.echo(f"page: {folder / 'index.html'}", err=True)


def _say(line: str) -> None:
    click.echo(line, err=True)
