"""Options that several commands of ``columnar bench`` have."""

from __future__ import annotations

from typing import Any

import click

from columnar.bench.address import Endpoint, parse_endpoint
from columnar.bench.dataset import ROWS
from columnar.bench.workloads import STANDARD, WORKLOADS
from columnar.bench.ycsb import YCSB


class Address(click.ParamType[Endpoint]):
    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Endpoint:
        try:
            return value if isinstance(value, Endpoint) else parse_endpoint(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def checked_workloads(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[str, ...]:
    several = {"all": STANDARD, "ycsb": YCSB}
    names = tuple(name for word in value.split(",") for name in several.get(word.strip(), [word.strip()]))
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        raise click.BadParameter(f"no workload is called {unknown[0]}; there are {', '.join(WORKLOADS)}")
    return names


def numbers(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        found = tuple(int(number) for number in value.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise click.BadParameter("write numbers as 1,64")
    return found


rounds_option = click.option(
    "--rounds", default=3, show_default=True, type=click.IntRange(1), help="The median counts."
)
seconds_option = click.option(
    "--seconds", default=3.0, show_default=True, type=click.FloatRange(0.05), help="Of one turn of load."
)
rows_option = click.option("--rows", default=ROWS, show_default=True, type=click.IntRange(100), help="Of the data set.")
generators_option = click.option(
    "--generators", default=1, show_default=True, type=click.IntRange(1), help="Generator processes."
)
json_option = click.option("--json", "json_path", metavar="FILE", help="Write the figures here too.")
