"""(pure) The families of ``/metrics`` that a cluster's master has, made of its ``ClusterStatus``.

Knows nothing of what servers say of themselves (``families``), nor of Prometheus' form (``metrics``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from columnar.model.measures import COUNTER, GAUGE, HISTOGRAM, Family, by_label, single
from columnar.runtime.faults import FAULTS
from columnar.webui.cluster_status import PageStatus
from columnar.webui.families import log_lines_dropped, loop_faults


def of_cluster(status: PageStatus, silent: Collection[str]) -> Iterator[Family]:
    """``silent``: names of servers that did not send their own families in time."""
    look = status.cluster
    yield by_label("columnar_info", GAUGE, "Always 1; says the version.", "version", [(status.version, 1)])
    yield single("columnar_uptime_seconds", GAUGE, "Since the start.", status.uptime_s)
    yield log_lines_dropped(status.log_lines_dropped)
    yield from _of_servers(status, silent)
    yield from _of_tables(status)
    yield by_label("columnar_transitions", GAUGE, "Regions on their way, waiting, or failed.", "kind", status.kinds)
    yield single("columnar_regions", GAUGE, "Regions of all tables.", look.regions)
    yield single("columnar_unassigned_regions", GAUGE, "Regions without an owner.", look.unassigned)
    yield single("columnar_catalogue_writable", GAUGE, "0 where the disk refuses its writes.", look.is_writable)
    yield single("columnar_balancer_on", GAUGE, "1 where the balancer is on.", look.is_balancing)
    yield loop_faults(FAULTS.counts())  # of the master's own process
    yield single("columnar_fenced", COUNTER, "Servers that died or were killed.", status.fenced)
    yield by_label("columnar_moves", COUNTER, "Regions that got another owner, by why.", "reason", status.moves)
    pauses = tuple(((reason,), numbers) for reason, numbers in status.pauses)
    about = "From the last answer of one owner to the first of the next, as the master sees it."
    yield Family("columnar_region_pause_seconds", HISTOGRAM, about, ("reason",), pauses)
    if status.planning:
        yield Family("columnar_plan_seconds", HISTOGRAM, "Rounds of the planner.", (), (((), status.planning),))


def _of_servers(status: PageStatus, silent: Collection[str]) -> Iterator[Family]:
    servers = status.cluster.servers
    for name, about, values in (
        ("up", "1 where the server serves.", [one.state == "up" for one in servers]),
        (
            "told",
            "1 where its own metrics are on this page.",
            [_is_reporting(one.state, one.name in silent) for one in servers],
        ),
        ("regions", "Regions that it owns.", [one.regions for one in servers]),
        ("load", "Of its regions, averaged over a minute.", [one.load for one in servers]),
        ("busy_seconds", "In one step, while its requests wait; 0: not.", [one.busy_ms / 1000 for one in servers]),
        ("requests_per_second", "Reads and writes.", [one.requests_per_s for one in servers]),
    ):
        named = zip([one.name for one in servers], map(float, values), strict=True)
        yield by_label(f"columnar_server_{name}", GAUGE, about, "server", named)


def _is_reporting(state: str, is_silent: bool) -> bool:
    return state == "up" and not is_silent


def _of_tables(status: PageStatus) -> Iterator[Family]:
    tables = status.tables
    regions = [(one.name, one.regions) for one in tables]
    yield by_label("columnar_table_regions", GAUGE, "Regions of the table.", "table", regions)
    sizes = [(one.name, one.size_bytes) for one in tables]
    yield by_label("columnar_table_bytes", GAUGE, "Bytes on disk and in memtables, roughly.", "table", sizes)
    enabled = [(one.name, one.name not in status.disabled) for one in tables]
    yield by_label("columnar_table_enabled", GAUGE, "1 where requests are served.", "table", enabled)
