"""``columnar bench``: measure an endpoint in closed loop, or the machine alone.

Further commands, for two endpoints, open loop, growth and stores of their own, are in ``python -m benchmarks`` of a
checkout; they use the options and the output of this module.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Final, NoReturn

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from columnar.bench.address import Endpoint, EndpointFailed, parse_endpoint, spoken_to
from columnar.bench.dataset import ROWS
from columnar.bench.endpoint import client_of, drop_table, prepare
from columnar.bench.measuring import Generators, Line, Plan, generators, measure
from columnar.bench.protocols import BINARY, WIRES
from columnar.bench.report import Footprint, Report, remarks_of, sides_of, table_of
from columnar.bench.tls_connections import context_of
from columnar.bench.workloads import FURTHER, STANDARD, Workload
from columnar.client.tls import ClientTls
from columnar.client.tls_options import tls_options
from gauge.machine import machine, now
from gauge.processes import resident_mb

CANNOT_MEASURE: Final = 1  # exit status
_WIDTH: Final = 160  # of tables without a terminal
_IN_CHECKOUT: Final = ("compare", "growth", "forwarding", "scale", "flows")


class Bar:
    """A progress bar that begins anew for each piece of work."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def began(self, what: str, total: int = 0) -> None:
        self._progress.reset(self._task, total=total or None, description=what)

    def advance(self, count: int) -> None:
        self._progress.advance(self._task, count)

    def of_runs(self, total: int) -> Callable[[str], None]:
        """Return a function to call with a title as each of ``total`` runs begins."""
        counted = itertools.count()

        def began(what: str) -> None:
            self._progress.update(self._task, total=total, completed=next(counted), description=what)

        return began


@contextmanager
def progress_bar() -> Iterator[Bar]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress)


def console_of_output() -> Console:
    return Console(width=None if sys.stdout.isatty() else _WIDTH)


def write_json(path: str | None, figures: dict[str, Any]) -> None:
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


def give_up(failure: EndpointFailed) -> NoReturn:
    click.echo(f"columnar bench: {failure}", err=True)
    raise SystemExit(CANNOT_MEASURE)


class Address(click.ParamType[Endpoint]):
    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Endpoint:
        try:
            return value if isinstance(value, Endpoint) else parse_endpoint(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def workloads_option(known: dict[str, Workload], default: str, **groups: Sequence[str]) -> Callable[[Any], Any]:
    """Return the option that chooses some of ``known``; each of ``groups`` names several workloads."""

    def checked(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[Workload, ...]:
        names = [name for word in value.split(",") for name in groups.get(word.strip(), [word.strip()])]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise click.BadParameter(f"no workload is called {unknown[0]}; there are {', '.join(known)}")
        return tuple(known[name] for name in names)

    named = {group: ", ".join(names) for group, names in groups.items()}
    grouped = {name for names in groups.values() for name in names}
    single = [name for name in known if name not in grouped]
    some = "; ".join([*(f"{names} (together: {group})" for group, names in named.items()), *single])
    return click.option(
        "-w", "--workloads", default=default, show_default=True, callback=checked, help=f"Some of: {some}."
    )


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


def with_options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that gives a command the given options, in their order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


load_options = with_options(
    click.option("-c", "--connections", default="1,64", show_default=True, callback=numbers),
    rounds_option,
    seconds_option,
    rows_option,
    click.option(
        "--protocol",
        default=BINARY.name,
        show_default=True,
        type=click.Choice(list(WIRES)),
        help="Framed; a gateway of HBase has to be started for the compact one.",
    ),
    generators_option,
    json_option,
    click.option("--keep", is_flag=True, help="Leave the bench_ tables there; else they are dropped."),
    click.option("--reuse", is_flag=True, help="Take the tables as an earlier run with --keep left them."),
    tls_options,
)


class _Bench(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in _IN_CHECKOUT and not ctx.resilient_parsing:
            raise click.UsageError(f"in a checkout of Columnar: python -m benchmarks {args[0]}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=_Bench, context_settings={"help_option_names": ["-h", "--help"]})
def bench() -> None:
    """Measure any HBase Thrift 1 endpoint that speaks framed Thrift, binary or compact.

    Tables whose names begin with bench_ are made, filled and dropped again.  The load comes from
    processes of its own, with calls packed beforehand; what they use of their cores is shown too.  With
    --pid so is the processor time that the server spends on each unit of work: on a busy machine it says
    more than the rate.

    With --tls or another option of TLS, or written tls://HOST:PORT, the endpoint is called over TLS.

    \b
      columnar bench run 127.0.0.1:9090
      columnar bench limits

    A checkout of Columnar has more: python -m benchmarks --help.
    """


@bench.command("run")
@click.argument("endpoint", type=Address())
@click.option("--pid", "pids", multiple=True, type=int, help="A server process: its memory, and processor time.")
@workloads_option({**STANDARD, **FURTHER}, "all", all=tuple(STANDARD))
@load_options
def run_command(
    endpoint: Endpoint,
    pids: tuple[int, ...],
    json_path: str | None,
    keep: bool,
    reuse: bool,
    workloads: tuple[Workload, ...],
    connections: tuple[int, ...],
    rounds: int,
    seconds: float,
    rows: int,
    generators: int,
    protocol: str,
    tls: ClientTls | None,
) -> None:
    """Measure one endpoint.

    \b
      columnar bench run 127.0.0.1:9090
      columnar bench run 127.0.0.1:9090 -w get-cell,put -c 1,16,128 --json figures.json
    """
    plan = Plan(workloads, connections, rounds, seconds, generators, rows)
    lines: list[Line] = []
    try:
        endpoints = with_tls([replace(endpoint, protocol=protocol)], tls)
        with progress_bar() as bar:
            began = bar.of_runs(len(workloads) * len(connections) * rounds)
            take = partial(measure, endpoints, plan, began=began, servers=[pids])
            footprints, cut_short = measured(endpoints, [pids], plan, bar, lines, take, keep=keep, reuse=reuse)
    except EndpointFailed as failure:
        give_up(failure)
    settings = plan.as_json() | {"protocol": protocol}
    report = Report(now(), machine(), tuple(map(str, endpoints)), settings, list(map(sides_of, lines)), footprints)
    console_of_output().print(table_of(report), *remarks_of(report), sep="\n", highlight=False)
    write_json(json_path, report.as_json())
    if cut_short is not None:
        give_up(cut_short)


def with_tls(endpoints: Sequence[Endpoint], tls: ClientTls | None) -> list[Endpoint]:
    """Return the endpoints with TLS as the options say.  Raises EndpointFailed if the files cannot be used."""
    found = spoken_to(endpoints, tls)
    for endpoint in found:
        if endpoint.tls is not None:
            context_of(endpoint.tls)
    return found


def measured(
    endpoints: Sequence[Endpoint],
    pids: Sequence[tuple[int, ...]],
    plan: Plan,
    bar: Bar,
    lines: list[Line],
    take: Callable[[Generators], Iterator[Line]],
    *,
    keep: bool,
    reuse: bool,
) -> tuple[tuple[Footprint, ...], EndpointFailed | None]:
    """Fill the tables, put the measurements into ``lines``, and drop the tables.

    Returns the figures of the servers' processes, and the error that cut the measurement short or None.  Raises
    EndpointFailed if there are no lines; otherwise the earlier lines are worth showing.
    """
    idle = [_resident(each) for each in pids]
    tables = list(dict.fromkeys(table for workload in plan.workloads for table in workload.tables))
    for endpoint in endpoints if not reuse else ():
        prepare(endpoint, tables, plan.rows, bar)
    cut_short = None
    with generators(plan.generators) as pool:
        try:
            for line in take(pool):
                lines.append(line)
        except EndpointFailed as failure:
            if not lines:
                raise
            cut_short = failure
    footprints = tuple(Footprint(None, before, _resident(each)) for before, each in zip(idle, pids, strict=True))
    for endpoint in endpoints if not keep and cut_short is None else ():
        with client_of(endpoint) as client:
            for table in tables:
                drop_table(client, table.name)
    return footprints, cut_short


def _resident(pids: tuple[int, ...]) -> float | None:
    return resident_mb(pids) if pids else None


@bench.command()
@click.option("--seconds", default=12.0, show_default=True, type=click.FloatRange(0.05), help="Of watching the cores.")
@click.option(
    "--folder",
    default=".",
    show_default=True,
    type=click.Path(exists=True, file_okay=False, writable=True),
    help="Where fsyncs are timed: on the disk that the store's data would lie on.",
)
@json_option
def limits(seconds: float, folder: str, json_path: str | None) -> None:
    """Measure the limits that this machine sets to any store.

    How long a process is stopped that only reads the clock, one on each core (the kernel's own work, and
    the host's where the machine is virtual): no store has a lower percentile of its latency.  How long an
    fsync takes: no durable write is quicker.  And a byte to another process and back: no call is.

    \b
      columnar bench limits
      columnar bench limits --folder /var/lib/columnar --json limits.json
    """
    from columnar.bench.limits import limits_of_machine, remarks_of_limits, table_of_limits

    with progress_bar() as bar:
        try:
            found = list(limits_of_machine(seconds, folder, bar))
        except OSError as error:
            click.echo(f"columnar bench: no fsyncs in {folder}: {error.strerror}; choose another --folder", err=True)
            raise SystemExit(CANNOT_MEASURE) from error
    heading = f"{now()}, {machine()}"
    console_of_output().print(heading, table_of_limits(found), *remarks_of_limits(found), sep="\n", highlight=False)
    write_json(json_path, {"taken_at": now(), "machine": machine(), "limits": [asdict(limit) for limit in found]})
