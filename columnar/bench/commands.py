"""``columnar bench``: measure one endpoint, two against each other, how cost grows, or the machine alone.

The commands that start stores of several servers of their own stand in ``cluster_commands``, the ETH experiment in
``flows_command``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Any

import click
from rich.progress import Progress

from columnar.bench import options
from columnar.bench.address import Endpoint, EndpointFailed, spoken_to
from columnar.bench.bench_output import (
    CANNOT_MEASURE,
    Bar,
    console_of_output,
    give_up,
    machine,
    now,
    progress_bar,
    write_json,
)
from columnar.bench.cluster_commands import forwarding, scale
from columnar.bench.dataset import DataSet
from columnar.bench.endpoint import drop_tables, prepare, prepare_ycsb
from columnar.bench.flows_command import flows
from columnar.bench.growth_plan import PARTS, GrowthPlan
from columnar.bench.measuring import Line, Plan, count_runs, generators, measure
from columnar.bench.open_report import open_lines_of, open_remarks_of, open_table_of
from columnar.bench.options import Address
from columnar.bench.processes import Started, resident_mb
from columnar.bench.protocols import BINARY, WIRES
from columnar.bench.report import Footprint, Report, remarks_of, sides_of, table_of
from columnar.bench.tls_connections import context_of
from columnar.bench.workloads import STANDARD, WORKLOADS
from columnar.bench.ycsb import YCSB
from columnar.client.tls import ClientTls
from columnar.client.tls_options import tls_options


def _load_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the options that ``run`` and ``compare`` share."""
    for option in reversed(
        (
            click.option(
                "-w",
                "--workloads",
                default="all",
                show_default=True,
                callback=options.checked_workloads,
                help=f"Some of: {', '.join(STANDARD)} (together: all); {', '.join(YCSB)} (together: ycsb).",
            ),
            click.option("-c", "--connections", default="1,64", show_default=True, callback=options.numbers),
            options.rounds_option,
            options.seconds_option,
            options.rows_option,
            click.option(
                "--protocol",
                default=BINARY.name,
                show_default=True,
                type=click.Choice(list(WIRES)),
                help="Framed; a gateway of HBase has to be started for the compact one.",
            ),
            click.option(
                "--open",
                "open_share",
                metavar="SHARE",
                type=click.FloatRange(0.01, 1.0),
                help="Then open loop as well: operations arrive at this share of each endpoint's own"
                " closed-loop rate, as 0.5, whatever the answers do; a latency counts from when the"
                " operation was due.  Not for scans and load.",
            ),
            options.generators_option,
            options.json_option,
            click.option("--keep", is_flag=True, help="Leave the bench_ tables there; else they are dropped."),
            click.option("--reuse", is_flag=True, help="Take the tables as an earlier run with --keep left them."),
            tls_options,
        )
    ):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def bench() -> None:
    """Measure any HBase Thrift 1 endpoint that speaks framed Thrift, binary or compact.

    Tables whose names begin with bench_ are made, filled and dropped again.  The load comes from
    processes of its own, with calls packed beforehand; what they use of their cores is shown too.  With
    --start or --pid so is the processor time that the server spends on each unit of work: on a busy
    machine it says more than the rate.

    With --tls or another option of TLS the endpoint is asked over TLS.  Of two, the one that is written
    tls://HOST:PORT, where one is written so: the options say how that one is verified.

    \b
      columnar bench run 127.0.0.1:9090
      columnar bench compare 127.0.0.1:9090 127.0.0.1:9191
      columnar bench compare tls://127.0.0.1:9092 127.0.0.1:9090 --tls-ca ca.crt
      columnar bench forwarding
    """


bench.add_command(flows)
bench.add_command(forwarding)
bench.add_command(scale)


@bench.command("run")
@click.argument("endpoint", type=Address())
@click.option("--pid", "pids", multiple=True, type=int, help="A server process: its memory, and processor time.")
@click.option("--start", metavar="COMMAND", help="Start the server so, take its start-up time, end it afterwards.")
@_load_options
def run_command(endpoint: Endpoint, pids: tuple[int, ...], start: str | None, **load: Any) -> None:
    """Measure one endpoint.

    \b
      columnar bench run 127.0.0.1:9090
      columnar bench run 127.0.0.1:9090 -w get-cell,put -c 1,16,128 --json figures.json
    """
    _measure_and_show([endpoint], [pids], [start], **load)


@bench.command()
@click.argument("a", type=Address())
@click.argument("b", type=Address())
@click.option("--pid-a", "pids_a", multiple=True, type=int, help="A process of server A; its children count too.")
@click.option("--pid-b", "pids_b", multiple=True, type=int, help="A process of server B; may be given several times.")
@click.option("--start-a", metavar="COMMAND", help="Start server A so, take its start-up time, end it afterwards.")
@click.option("--start-b", metavar="COMMAND", help="The same for server B.")
@_load_options
def compare(
    a: Endpoint,
    b: Endpoint,
    pids_a: tuple[int, ...],
    pids_b: tuple[int, ...],
    start_a: str | None,
    start_b: str | None,
    **load: Any,
) -> None:
    """Measure two endpoints in turn within one run; the ratio is A over B.

    \b
    Our store beside an Apache HBase Thrift gateway (framed) with its three processes:
      columnar bench compare 127.0.0.1:9090 127.0.0.1:9191 \\
          --pid-a $STORE --pid-b $MASTER --pid-b $GATEWAY

    \b
    What TLS costs: our store with a certificate beside one without:
      columnar bench compare tls://127.0.0.1:9092 127.0.0.1:9090 --tls-ca ca.crt
    """
    _measure_and_show([a, b], [pids_a, pids_b], [start_a, start_b], **load)


@bench.command()
@click.argument("endpoint", type=Address())
@click.option("--only", "parts", multiple=True, type=click.Choice(PARTS), help="This part alone; may be repeated.")
@click.option("--rows", default=1_000_000, show_default=True, type=click.IntRange(1_000), help="The largest table.")
@click.option("--regions", default=100, show_default=True, type=click.IntRange(1), help="Of a table, at most.")
@click.option("--overwrites", default=10_000, show_default=True, type=click.IntRange(10), help="Of one cell, at most.")
@click.option("--seconds", default=5.0, show_default=True, type=click.FloatRange(0.05), help="Of one turn of puts.")
@click.option("--calls", default=400, show_default=True, type=click.IntRange(1), help="A figure is their median.")
@options.json_option
@tls_options
def growth(
    endpoint: Endpoint,
    parts: tuple[str, ...],
    rows: int,
    regions: int,
    overwrites: int,
    seconds: float,
    calls: int,
    json_path: str | None,
    tls: ClientTls | None,
) -> None:
    """How cost grows with rows, regions, and the overwrites and deletes of a cell.

    Steps that differ in one thing are timed in turn; below each column stands its worst figure over its
    best: 1 is flat.  Regions and puts over them need an endpoint that can make tables of several regions.

    \b
      columnar bench growth 127.0.0.1:9090
      columnar bench growth 127.0.0.1:9090 --only rows --rows 10000000
      columnar bench growth 127.0.0.1:9090 --only puts --only histories --json growth.json
    """
    from columnar.bench.growth import grown
    from columnar.bench.growth_report import as_json, remarks_of, table_of_group

    plan, groups = GrowthPlan(rows, regions, overwrites, seconds, calls, parts or PARTS), []
    console = console_of_output()
    console.print(f"{now()}, {machine()}", highlight=False)
    try:
        (endpoint,) = _with_tls([endpoint], tls)
        with progress_bar() as progress:
            for group in grown(endpoint, plan, Bar(progress)):
                groups.append(group)
                if group.steps:
                    console.print(group.title, table_of_group(group), sep="\n", highlight=False)
    except EndpointFailed as failure:
        give_up(failure)
    for remark in remarks_of(groups):
        console.print(remark, highlight=False)
    write_json(json_path, {"taken_at": now(), "machine": machine(), "plan": asdict(plan), "groups": as_json(groups)})


@bench.command()
@click.option("--seconds", default=12.0, show_default=True, type=click.FloatRange(0.05), help="Of watching the cores.")
@click.option(
    "--folder",
    default=".",
    show_default=True,
    type=click.Path(exists=True, file_okay=False, writable=True),
    help="Where fsyncs are timed: on the disk that the store's data would lie on.",
)
@options.json_option
def limits(seconds: float, folder: str, json_path: str | None) -> None:
    """What this machine gives, whatever a store does.

    How long a process is stopped that only reads the clock, one on each core (the kernel's own work, and
    the host's where the machine is virtual): no store has a lower percentile of its latency.  How long an
    fsync takes: no durable write is quicker.  And a byte to another process and back: no call is.

    \b
      columnar bench limits
      columnar bench limits --folder /var/lib/columnar --json limits.json
    """
    from columnar.bench.limit_probes import FSYNCS, ROUND_TRIPS, core_limits, fsync_limit, round_trip_limit
    from columnar.bench.limits import as_json, remarks_of_limits, table_of_limits

    with progress_bar() as progress:
        bar = Bar(progress)
        bar.began(f"watch the cores, {seconds:g} s", 0)
        found = list(core_limits(seconds))
        bar.began("a byte there and back", ROUND_TRIPS)
        found.append(round_trip_limit(bar.advance))
        try:
            for size, count in FSYNCS.items():
                bar.began(f"fsyncs of {size:,} bytes", count)
                found.append(fsync_limit(folder, size, bar.advance))
        except OSError as error:
            click.echo(f"columnar bench: no fsyncs in {folder}: {error.strerror}; choose another --folder", err=True)
            raise SystemExit(CANNOT_MEASURE) from error
    console = console_of_output()
    console.print(f"{now()}, {machine()}", table_of_limits(found), sep="\n", highlight=False)
    for remark in remarks_of_limits(found):
        console.print(remark, highlight=False)
    write_json(json_path, {"taken_at": now(), "machine": machine(), "limits": as_json(found)})


def _measure_and_show(
    endpoints: list[Endpoint],
    pids: list[tuple[int, ...]],
    starts: list[str | None],
    *,
    json_path: str | None,
    keep: bool,
    reuse: bool,
    workloads: tuple[str, ...],
    connections: tuple[int, ...],
    rounds: int,
    seconds: float,
    rows: int,
    generators: int,
    open_share: float | None,
    protocol: str,
    tls: ClientTls | None,
) -> None:
    endpoints = [replace(endpoint, protocol=protocol) for endpoint in endpoints]
    plan = Plan(workloads, connections, rounds, seconds, generators, DataSet(rows), open_share)
    lines: list[Line] = []
    try:
        endpoints = _with_tls(endpoints, tls)
        with ExitStack() as stack, progress_bar() as progress:
            servers = [_started(stack, command, endpoint) for command, endpoint in zip(starts, endpoints, strict=True)]
            pids_of_sides = [
                [*known, *(server.pids if server else [])] for known, server in zip(pids, servers, strict=True)
            ]
            idle = [_resident(each) for each in pids_of_sides]
            if not reuse:
                for endpoint in endpoints:
                    _fill(endpoint, plan, progress)
            cut_short = _measured(endpoints, plan, progress, lines, [tuple(each) for each in pids_of_sides])
            footprints = tuple(
                Footprint(server.start_s if server else None, before, _resident(each))
                for server, before, each in zip(servers, idle, pids_of_sides, strict=True)
            )
            if not keep and cut_short is None:
                for endpoint in endpoints:
                    drop_tables(endpoint)
    except EndpointFailed as failure:
        give_up(failure)
    closed = [sides_of(line) for line in lines]
    report = Report(
        now(),
        machine(),
        tuple(map(str, endpoints)),
        asdict(plan) | {"protocol": protocol},
        closed,
        footprints,
        open_lines_of(lines),
    )
    _show(report, plan, json_path)
    if cut_short is not None:
        give_up(cut_short)


def _with_tls(endpoints: list[Endpoint], tls: ClientTls | None) -> list[Endpoint]:
    """With TLS as the options say; EndpointFailed where its files cannot be used."""
    found = spoken_to(endpoints, tls)
    for endpoint in found:
        if endpoint.tls is not None:
            context_of(endpoint.tls)
    return found


def _started(stack: ExitStack, command: str | None, endpoint: Endpoint) -> Started | None:
    if command is None:
        return None
    server = Started.answering(command, endpoint)
    stack.callback(server.stop)
    return server


def _resident(pids: list[int]) -> float | None:
    return resident_mb(pids) if pids else None


def _fill(endpoint: Endpoint, plan: Plan, progress: Progress) -> None:
    """The tables that the workloads want."""
    on_ycsb = {WORKLOADS[workload].on_ycsb for workload in plan.workloads}
    tables = 2 * (False in on_ycsb) + (True in on_ycsb)
    task = progress.add_task(f"fill {endpoint}", total=tables * plan.data.rows)
    if False in on_ycsb:
        prepare(endpoint, plan.data, lambda count: progress.advance(task, count))
    if True in on_ycsb:
        prepare_ycsb(endpoint, plan.data, lambda count: progress.advance(task, count))
    progress.remove_task(task)


def _measured(
    endpoints: list[Endpoint], plan: Plan, progress: Progress, lines: list[Line], servers: list[tuple[int, ...]]
) -> EndpointFailed | None:
    """Return what cut it short; earlier measurements are in ``lines``, and worth showing."""
    task = progress.add_task("measure", total=count_runs(plan, len(endpoints)))
    turns = iter(range(count_runs(plan, len(endpoints))))

    def began(workload: str, connections: int, endpoint: Endpoint) -> None:
        progress.update(task, completed=next(turns), description=f"{workload} at {connections}, {endpoint}")

    with generators(plan.generators) as pool:
        try:
            measure(endpoints, plan, pool, began, lines, servers)
        except EndpointFailed as failure:
            if not lines:
                raise
            return failure
    return None


def _show(report: Report, plan: Plan, json_path: str | None) -> None:
    console = console_of_output()
    console.print(table_of(report))
    remarks = remarks_of(report)
    if plan.open_share is not None:
        console.print(open_table_of(report.opened, report.names, plan.open_share))
        left_out = [name for name in plan.workloads if not plan.opens(name)]
        remarks += open_remarks_of(report.opened, report.names, left_out)
    for remark in remarks:
        console.print(remark, highlight=False)
    write_json(json_path, report.as_json())
