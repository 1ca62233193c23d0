"""(pure) The metric families of ``/metrics``: of a server, made of its ``Status``, a node, and a cluster's master.

A standalone process shows its families itself.  A server of a cluster sends them to its master, which shows them with
the server's name.

Knows nothing of Prometheus' form (``metrics``) and of disks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from columnar.model.measures import COUNTER, GAUGE, HISTOGRAM, Family, by_label, single
from columnar.runtime import log_lines
from columnar.runtime.faults import FAULTS
from columnar.version import PYTHON, parts_of
from columnar.webui.cluster_status import PageStatus
from columnar.webui.node_status import NodeStatus
from columnar.webui.status import Status, TableLine


def of_process(status: Status) -> Iterator[Family]:
    yield build_info(status.version)
    yield single("columnar_uptime_seconds", GAUGE, "Since the start.", status.uptime_s)
    yield single("columnar_connections", GAUGE, "Clients connected now.", status.connections)
    yield single("columnar_open_regions", GAUGE, "Regions whose store is open.", status.open_regions)
    about = "Regions that cannot be written, as their disk is full or fails, or their files are damaged."
    yield single("columnar_unwritable_regions", GAUGE, about, status.unwritable_regions)
    yield single("columnar_open_scanners", GAUGE, "Scanners not yet closed.", status.open_scanners)
    used = [(one.name, one.used_bytes) for one in status.memory]
    yield by_label("columnar_memory_used_bytes", GAUGE, "Memory in use, by part of the plan.", "part", used)
    most = [(one.name, one.limit_bytes) for one in status.memory]
    yield by_label("columnar_memory_limit_bytes", GAUGE, "Bound of each part (--memory).", "part", most)
    yield single("columnar_commits", COUNTER, "Group commits: fsyncs of the log.", status.commits)
    yield single("columnar_slow_requests", COUNTER, "Requests slower than --slow-ms.", status.slow_requests)
    yield log_lines_dropped(log_lines.dropped())
    yield loop_faults(status.loop_faults)
    yield from _requests(status)


def build_info(full: str) -> Family:
    """Return the family that says which program runs; ``full`` is version and build in one text."""
    labels = (*parts_of(full), PYTHON)
    about = "Always 1; the labels name the program that runs."
    return Family("columnar_build_info", GAUGE, about, ("version", "build", "python"), ((labels, (1.0,)),))


def log_lines_dropped(lines: int) -> Family:
    return single("columnar_log_lines_dropped", COUNTER, "Lines of the log that nobody has read in time.", lines)


def loop_faults(counts: Iterable[tuple[str, float]]) -> Family:
    about = "Unexpected exceptions that a loop met and outlived; the log has their tracebacks."
    return by_label("columnar_faults", COUNTER, about, "loop", counts)


def _requests(status: Status) -> Iterator[Family]:
    methods = status.methods
    outcomes = [((one.name, "ok"), (float(one.calls - one.failed),)) for one in methods]
    outcomes += [((one.name, outcome), (float(count),)) for one in methods for outcome, count in one.errors]
    about = "Requests answered, by method and outcome."
    yield Family("columnar_requests", COUNTER, about, ("method", "outcome"), tuple(outcomes))
    latencies = [((one.name,), (*map(float, one.buckets), one.seconds)) for one in methods]
    about = "From the decoded request to its reply."
    yield Family("columnar_request_seconds", HISTOGRAM, about, ("method",), tuple(latencies))
    received = [(one.name, one.bytes_in) for one in methods]
    yield by_label("columnar_received_bytes", COUNTER, "Bytes of requests.", "method", received)
    sent = [(one.name, one.bytes_out) for one in methods]
    yield by_label("columnar_sent_bytes", COUNTER, "Bytes of replies.", "method", sent)


def of_tables(status: Status, size_of: Callable[[TableLine], int]) -> Iterator[Family]:
    """Yield the families of tables; ``size_of`` may block."""
    tables = status.tables
    regions = [(one.name, len(one.regions)) for one in tables]
    yield by_label("columnar_table_regions", GAUGE, "Regions of the table.", "table", regions)
    yield open_regions(status)
    sizes = [(one.name, size_of(one)) for one in tables]
    yield by_label("columnar_table_bytes", GAUGE, "Bytes on disk and in memtables, roughly.", "table", sizes)
    enabled = [(one.name, one.enabled) for one in tables]
    yield by_label("columnar_table_enabled", GAUGE, "1 where requests are served.", "table", enabled)


def open_regions(status: Status) -> Family:
    opened = [(one.name, one.open_regions) for one in status.tables]
    return by_label("columnar_table_open_regions", GAUGE, "Regions whose store is open.", "table", opened)


def of_triggers(status: Status) -> Iterator[Family]:
    found = status.triggers
    for name, about, values in (
        ("lag_changes", "Durable changes not yet delivered.", [one.lag_changes for one in found]),
        ("lag_seconds", "Age of the oldest of them.", [one.lag_seconds for one in found]),
        ("parked_rows", "Rows that wait for another attempt.", [one.parked_rows for one in found]),
        ("dead_letters", "Rows given up after the last attempt.", [one.dead_letters for one in found]),
        ("running", "0 where it is paused or blocked.", [one.state == "running" for one in found]),
    ):
        numbers = _of_triggers(status, values)
        yield Family(f"columnar_trigger_{name}", GAUGE, about, ("trigger", "table"), numbers)


def of_flows(status: Status) -> Iterator[Family]:
    """Yield the families of flows, with every follower, including idle ones."""
    found = status.flows
    for name, kind, about, values in (
        ("lag_changes", GAUGE, "Durable changes not yet delivered.", [one.lag_changes for one in found]),
        ("lag_seconds", GAUGE, "Age of the oldest of them.", [one.lag_seconds for one in found]),
        ("rate", GAUGE, "Deliveries a second, over the last minute.", [one.rate_per_s for one in found]),
        ("delivered", COUNTER, "Changes delivered.", [one.delivered for one in found]),
        ("failed_attempts", COUNTER, "Attempts that failed.", [one.failed for one in found]),
        ("parked_rows", GAUGE, "Rows that wait for another attempt.", [one.parked for one in found]),
        ("dead_letters", GAUGE, "Changes given up after the last attempt.", [one.dead for one in found]),
        ("idle_seconds", GAUGE, "Since the last delivery; -1: there was none.", [one.idle_s for one in found]),
    ):
        samples = tuple(((one.kind, one.name), (float(value),)) for one, value in zip(found, values, strict=True))
        yield Family(f"columnar_follower_{name}", kind, about, ("kind", "follower"), samples)
    runs = tuple(((one.kind, one.name), one.runs) for one in found if one.runs)
    yield Family("columnar_follower_run_seconds", HISTOGRAM, "Runs, of all their slices.", ("kind", "follower"), runs)


def _of_triggers(status: Status, values: Iterable[float]) -> tuple[tuple[tuple[str, ...], tuple[float, ...]], ...]:
    return tuple(
        ((one.name, one.table_name), (float(value),)) for one, value in zip(status.triggers, values, strict=True)
    )


def of_views(status: Status) -> Iterator[Family]:
    """Yield the families of views; none for a store without views."""
    found = status.views
    if not found:
        return
    for name, about, values in (
        ("lag_changes", "Durable changes that are not in the view.", [one.lag_changes for one in found]),
        ("lag_seconds", "Age of the oldest of them.", [one.lag_seconds for one in found]),
        (
            "rejected_rows",
            "Rows of the sources that cannot be read as the view says.",
            [one.rejected_rows for one in found],
        ),
        ("built_rows", "Rows that were there and have been shown to the view.", [one.built_rows for one in found]),
    ):
        numbers = [(one.table, float(value)) for one, value in zip(found, values, strict=True)]
        yield by_label(f"columnar_view_{name}", GAUGE, about, "view", numbers)


def of_streams(status: Status) -> Iterator[Family]:
    """Yield the families of change streams; none for a process without readers."""
    found = status.streams
    if found is None:
        return
    yield single("columnar_stream_waiting_readers", GAUGE, "Requests that wait for changes of regions.", found.waiting)
    yield single("columnar_stream_replies", COUNTER, "Replies to readers, with and without events.", found.replies)
    yield single("columnar_stream_sent_bytes", COUNTER, "Bytes of events in replies.", found.sent_bytes)
    about = "Events read for readers; several replies may share them."
    yield single("columnar_stream_events", COUNTER, about, found.events)


def of_node(status: NodeStatus) -> Iterator[Family]:
    """Yield the families of a node, whether it leads or not; none has a label."""
    yield single("columnar_node_ready", GAUGE, "1 if /ready answers 200.", int(not status.obstacles))
    yield single("columnar_node_leads", GAUGE, "1 if the node leads.", int(status.leader.is_own))
    about = "Epoch of the leader that the node follows, itself too; 0: it knows none."
    yield single("columnar_leader_epoch", GAUGE, about, status.leader.epoch)
    lease = status.lease
    if lease is not None:
        yield single("columnar_lease_holds", GAUGE, "1 if the node's lease holds.", int(lease.left_s > 0))
        about = "Until the lease of this node ends, without a renewal."
        yield single("columnar_lease_left_seconds", GAUGE, about, max(0.0, lease.left_s))
        about = "From the machine's clock to the fastest clock of all nodes; 0: it is the fastest."
        yield single("columnar_clock_offset_seconds", GAUGE, about, lease.clock_offset_s)


def of_cluster(status: PageStatus, silent: Collection[str]) -> Iterator[Family]:
    """Yield the master's families; ``silent`` names the servers that did not send their own in time."""
    look = status.cluster
    yield build_info(status.version)
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
