"""``columnar split``, ``columnar merge``: change which region holds which rows."""

from __future__ import annotations

from contextlib import closing
from typing import Final

import click

from columnar.client.regions import RegionAdmin
from columnar.shell.completion import completing
from columnar.shell.connecting import Server, with_server
from columnar.shell.text import readable, typed

LONGEST_S: Final = 600.0  # a merge copies the smaller region


@click.command()
@click.argument("what", metavar="TABLE|REGION", shell_complete=completing("table", "region"))
@click.argument("row", default="")
@with_server
def split(server: Server, what: str, row: str) -> None:
    """Split a region in two.

    At ROW, which becomes the first of the second half; without it in the middle of the region's bytes.
    Of a TABLE the region that holds ROW is split, or the largest one. Requests go on: those for the
    region wait for some hundredths of a second. Regions split by themselves when they grow large, so this is for
    spreading load ahead of time.

    \b
      columnar split pages Main
      columnar split pages
      columnar split 8f14e45fceea167a5a36dedd4bea2543
    """
    with closing(server.patient(LONGEST_S)) as connection:
        names = RegionAdmin(connection).split(typed(what), typed(row))
    shown = [readable(name) for name in names]
    server.output.done(f"now two regions: {' and '.join(shown)}", {"regions": shown})


@click.command()
@click.argument("region", shell_complete=completing("region"))
@click.argument("other", shell_complete=completing("region"))
@with_server
def merge(server: Server, region: str, other: str) -> None:
    """Merge two neighbouring regions.

    By their names or encoded names, in any order; one ends where the other begins. The smaller one is
    copied first, while both serve; then requests for the two wait for some hundredths of a second. A region that is
    written to faster than it can be copied, or whose triggers are far behind, is left as it is, and
    the command says so.

    \b
      columnar merge 8f14e45fceea167a5a36dedd4bea2543 c9f0f895fb98ab9159f51fd0297e236d
    """
    with closing(server.patient(LONGEST_S)) as connection:
        name = readable(RegionAdmin(connection).merge(typed(region), typed(other)))
    server.output.done(f"now one region: {name}", {"region": name})
