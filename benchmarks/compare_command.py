"""``python -m benchmarks compare``: measure two endpoints in turn, or one; with open loop and YCSB."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import click

from benchmarks.open_loop import measure_open
from benchmarks.open_report import OpenLine, open_json, open_remarks_of, open_side_of, open_table_of
from benchmarks.own_stores import Started
from benchmarks.ycsb import YCSB
from columnar.bench.address import Endpoint, EndpointFailed
from columnar.bench.commands import (
    Address,
    console_of_output,
    give_up,
    load_options,
    measured,
    progress_bar,
    with_tls,
    workloads_option,
    write_json,
)
from columnar.bench.measuring import Generators, Line, Plan, measure
from columnar.bench.report import Report, remarks_of, sides_of, table_of
from columnar.bench.workloads import STANDARD, Workload
from gauge.machine import machine, now


@click.command()
@click.argument("a", type=Address())
@click.argument("b", type=Address(), required=False)
@click.option("--pid-a", "pids_a", multiple=True, type=int, help="A process of server A; its children count too.")
@click.option("--pid-b", "pids_b", multiple=True, type=int, help="A process of server B; may be given several times.")
@click.option("--start-a", metavar="COMMAND", help="Start server A so, take its start-up time, end it afterwards.")
@click.option("--start-b", metavar="COMMAND", help="The same for server B.")
@workloads_option({**STANDARD, **YCSB}, "all", all=tuple(STANDARD), ycsb=tuple(YCSB))
@click.option(
    "--open",
    "open_share",
    metavar="SHARE",
    type=click.FloatRange(0.01, 1.0),
    help="Then open loop as well: operations arrive at this share of each endpoint's own closed-loop rate, as 0.5,"
    " whatever the answers do; a latency counts from when the operation was due.  Not for scans and load.",
)
@load_options
def compare(
    a: Endpoint,
    b: Endpoint | None,
    pids_a: tuple[int, ...],
    pids_b: tuple[int, ...],
    start_a: str | None,
    start_b: str | None,
    **load: Any,
) -> None:
    """Measure two endpoints in turn within one run, the ratio being A over B; or A alone.

    \b
    Our store beside an Apache HBase Thrift gateway (framed) with its three processes:
      python -m benchmarks compare 127.0.0.1:9090 127.0.0.1:9191 \\
          --pid-a $STORE --pid-b $MASTER --pid-b $GATEWAY

    \b
    The cost of TLS, our store with a certificate beside one without:
      python -m benchmarks compare tls://127.0.0.1:9092 127.0.0.1:9090 --tls-ca ca.crt
    """
    if b is None:
        _compare([a], [pids_a], [start_a], **load)
    else:
        _compare([a, b], [pids_a, pids_b], [start_a, start_b], **load)


def _compare(
    endpoints: list[Endpoint],
    pids: list[tuple[int, ...]],
    starts: list[str | None],
    *,
    json_path: str | None,
    keep: bool,
    reuse: bool,
    workloads: tuple[Workload, ...],
    connections: tuple[int, ...],
    rounds: int,
    seconds: float,
    rows: int,
    generators: int,
    open_share: float | None,
    protocol: str,
    tls: Any,
) -> None:
    plan = Plan(workloads, connections, rounds, seconds, generators, rows)
    lines: list[Line] = []
    opened: list[OpenLine] = []
    try:
        endpoints = with_tls([replace(endpoint, protocol=protocol) for endpoint in endpoints], tls)
        with ExitStack() as stack, progress_bar() as bar:
            servers = [_started(stack, command, endpoint) for command, endpoint in zip(starts, endpoints, strict=True)]
            pids = [(*known, *(server.pids if server else ())) for known, server in zip(pids, servers, strict=True)]
            kinds = sum(1 + (open_share is not None and workload.open_loop) for workload in workloads)
            began = bar.of_runs(kinds * len(connections) * rounds * len(endpoints))
            take = partial(_take, endpoints, plan, pids, began, open_share, opened)
            footprints, cut_short = measured(endpoints, pids, plan, bar, lines, take, keep=keep, reuse=reuse)
    except EndpointFailed as failure:
        give_up(failure)
    started = [server.start_s if server else None for server in servers]
    report = Report(
        now(),
        machine(),
        tuple(map(str, endpoints)),
        plan.as_json() | {"protocol": protocol, "open_share": open_share},
        list(map(sides_of, lines)),
        tuple(replace(found, start_s=start_s) for found, start_s in zip(footprints, started, strict=True)),
    )
    _show(report, plan, opened, open_share, json_path)
    if cut_short is not None:
        give_up(cut_short)


def _started(stack: ExitStack, command: str | None, endpoint: Endpoint) -> Started | None:
    if command is None:
        return None
    server = Started.answering(command, endpoint)
    stack.callback(server.stop)
    return server


def _take(
    endpoints: Sequence[Endpoint],
    plan: Plan,
    pids: Sequence[tuple[int, ...]],
    began: Callable[[str], None],
    open_share: float | None,
    opened: list[OpenLine],
    pool: Generators,
) -> Iterator[Line]:
    """Yield the lines of closed loop; measure each in open loop afterwards, and put the result into ``opened``."""
    for number, line in enumerate(measure(endpoints, plan, pool, began, pids)):
        yield line
        if open_share is not None and line.workload.open_loop:
            outcomes = measure_open(endpoints, plan, pool, began, line, number, open_share)
            opened.append(OpenLine(line.workload, line.connections, tuple(map(open_side_of, outcomes))))


def _show(report: Report, plan: Plan, opened: list[OpenLine], open_share: float | None, json_path: str | None) -> None:
    shown: list[Any] = [table_of(report)]
    remarks = remarks_of(report)
    if open_share is not None:
        shown.append(open_table_of(opened, report.names, open_share))
        left_out = [workload.name for workload in plan.workloads if not workload.open_loop]
        remarks += open_remarks_of(opened, report.names, left_out)
    console_of_output().print(*shown, *remarks, sep="\n", highlight=False)
    write_json(json_path, report.as_json() | {"opened": [open_json(line, report.names) for line in opened]})
