"""``python -m tests.measure.scale``: what the leader of a large cluster bears, by its pure parts.

The state of a leader is built with ``--nodes`` servers, one for each node, and ``--regions`` regions in ``--tables``
tables.  Each figure is the CPU time of one event on the leader's loop, or bytes as they are sent or stored:

    start        the first plan: every region gets an owner, whose row is written and who opens it
    death        a server dies with its share of the regions, until the next owners are notified
    hello        a server links with its share of the regions
    move         one region moves by hand: request, row, closed, opened
    loads        the report of one server, which each server sends every 10 s
    tick         a second without events;  balance: a round over even loads
    routes       all routes as a server that starts gets them, its time to take them; one change, 1,000 changes
    catalogue    the cells that name regions' owners, and the time to read them
    addresses    the message with all servers' ports, which goes to each server
    records      the nodes' records in the coordination service: renewals, and polls of all records by every node

    --nodes 1000 --regions 1000000 --tables 1000 [--zones 3] [--service etcd]    the service answers real requests
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

from columnar.cluster import message_codec, peer_frames
from columnar.cluster.routes import Routes
from columnar.coordination.cas import CasStore, Versioned
from columnar.coordination.election import OBSERVE_MS, STANDBYS
from columnar.coordination.lease import LeaseTimes
from columnar.coordination.lease_requests import PolledRecords
from columnar.coordination.node_record import NODES, NodeRecord, encode_record
from columnar.master.catalogue_rows import OperatorSettings, region_row
from columnar.master.cluster_state import ClusterState
from columnar.master.instructions import Close, MoveRegion, NotifyServer, Open, Output, Write
from columnar.master.plan_draft import Draft
from columnar.master.planner import plan
from columnar.master.publishing import Publishing
from columnar.model import owner
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import Address, Addresses, RegionRates
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message
from tests.support.coordination_services import running

TIMES: Final = LeaseTimes.of_lease()
ANSWERS_S: Final = 3.0  # of requests to a real service


@contextmanager
def timed(what: str) -> Iterator[None]:
    begun = time.process_time()
    yield
    print(f"{what:34} {(time.process_time() - begun) * 1_000:12,.2f} ms", flush=True)


def memory_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024


def frame_of(message: Message[object]) -> bytes:
    return peer_frames.request_frame(1, *message_codec.to_plain(message))


class Leader:
    """The pure half of a leader, whose writes and servers answer at once."""

    def __init__(self, nodes: int, regions: int, tables: int, zones: int) -> None:
        self.now_ms = 0
        infos = [RegionInfo(f"t{n % tables}", n + 2, b"%09d" % n, b"%09d" % (n + tables)) for n in range(regions)]
        self.infos = infos
        self.state = ClusterState([(info, None) for info in infos], {}, OperatorSettings(), Random(1))
        self.servers = [Incarnation(f"node-{n:04}-s1", n + 1) for n in range(nodes)]
        for n, server in enumerate(self.servers):
            zone = f"z{n % zones}" if zones > 1 else ""
            self.state.joined(server, 0, zone=zone)
            self.state.hello(server, {}, {}, 0)

    def answer(self, outputs: list[Output], *, opens: bool = True) -> None:
        """Answer writes and, if ``opens``, requests of servers, until nothing is left."""
        waiting = list(outputs)
        while waiting:
            now, waiting = waiting, []
            for one in now:
                if isinstance(one, Write):
                    waiting += self.state.row_written(one.number, self.now_ms)
                elif isinstance(one, NotifyServer) and opens:
                    request = one.request
                    if isinstance(request, Close):
                        waiting += self.state.closed(one.server, request.region, request.epoch, self.now_ms)
                    elif isinstance(request, Open):
                        epoch = request.owner.epoch
                        waiting += self.state.opened(one.server, request.region, epoch, self.now_ms)

    def settle(self, event: Callable[[], list[Output]]) -> None:
        self.answer(event())


def measure_events(leader: Leader) -> None:
    state, servers = leader.state, leader.servers
    with timed("start: the first plan"):
        outputs = state.begin_planning(0)
    with timed("start: rows written, all opened"):
        leader.answer(outputs)
    leader.now_ms = 300_000
    leader.answer(state.tick(leader.now_ms))
    print(f"{'memory of the process':34} {memory_mib():12,.0f} MiB")
    dead = servers[0]
    share = list(state.current.servers[dead.name].regions)
    print(f"{'regions of a server':34} {len(share):12,}")
    with timed("death: until rows go out"):
        state.silent(dead, "it ended", leader.now_ms)
        named = [(region, state.ledger.rows[region].epoch) for region in share]
        outputs = state.fenced(dead, (), named, leader.now_ms)
    with timed("death: rows written, opened"):
        leader.answer(outputs)
    again = Incarnation(dead.name, len(servers) + 1)
    state.joined(again, leader.now_ms)
    other = servers[1]
    serving = {region: state.ledger.rows[region].epoch for region in state.current.servers[other.name].regions}
    with timed("hello of a server with regions"):
        leader.answer(state.hello(other, serving, {}, leader.now_ms))
    with timed("hello of a server without"):
        outputs = state.hello(again, {}, {}, leader.now_ms)
    leader.answer(outputs)
    for _ in range(2_000):
        leader.now_ms += 1_000
        leader.answer(state.tick(leader.now_ms))
        if not any(state.current.homes.astray.values()):
            break
    leader.now_ms += 120_000
    leader.answer(state.tick(leader.now_ms))
    region, target = next(iter(serving)), servers[2]
    with timed("move of one region, all steps"):
        leader.settle(lambda: state.add_request(1, MoveRegion(region, target.name, "asked for"), leader.now_ms))
    rates = [RegionRates(one, 1.0, 1.0, 0.0, 1 << 28, 1 << 34) for one in serving]
    with timed("loads of a server"):
        leader.settle(lambda: state.loads(other, rates, leader.now_ms))
    with timed("tick without work"):
        leader.settle(lambda: state.tick(leader.now_ms))
    with timed("balance: a round"):
        plan(state.desired, state.current, leader.now_ms, Random(1), balances_now=True)
    with timed("servers that may have regions"):
        Draft(state.desired, state.current, leader.now_ms, Random(1)).eligible  # noqa: B018 - its time


def measure_routes(leader: Leader) -> None:
    publishing, rows = Publishing(), leader.state.ledger.rows
    tables: dict[str, list[RegionInfo]] = {}
    for info in leader.infos:
        tables.setdefault(info.table, []).append(info)
    for infos in tables.values():
        bounds = [b"", *(info.start for info in infos[1:]), b""]
        infos[:] = [RegionInfo(info.table, info.region_id, bounds[n], bounds[n + 1]) for n, info in enumerate(infos)]
    with timed("routes: taken by the leader"):
        for table, infos in tables.items():
            publishing.stands(table, infos)
            for info in infos:
                publishing.owned(info, rows[info.region_id])
        publishing.take()
    with timed("routes: all, packed for a server"):
        everything = publishing.everything()
        frame = frame_of(everything)
    print(f"{'routes: bytes to a server':34} {len(frame) / 1e6:12,.1f} MB")
    routes = Routes()
    with timed("routes: all, taken by a server"):
        routes.replace(everything)
    for regions in (1, 1_000):
        wanted = [one for infos in tables.values() for one in infos][:regions]
        for one in wanted:
            publishing.owned(one, owner.moved(rows[one.region_id], leader.servers[regions % len(leader.servers)]))
        with timed(f"routes: a change of {regions:,}"):
            change = publishing.take()
        assert change is not None
        print(f"{'routes: its bytes':34} {len(frame_of(change)):12,} B, to each server")
        with timed("routes: its packing, for a server"):
            frame_of(change)
        with timed("routes: taken by a server"):
            routes.apply(change)


def measure_catalogue(leader: Leader) -> None:
    stored = [(region_row(info), owner.to_json(leader.state.ledger.rows[info.region_id])) for info in leader.infos]
    size = sum(len(row) + len(value) for row, value in stored)
    print(f"{'catalogue: rows and owners':34} {size / 1e6:12,.1f} MB")
    with timed("catalogue: owners read"):
        for _, value in stored:
            owner.from_json(value)


def records_of(nodes: int) -> dict[str, bytes]:
    found = {}
    for n in range(nodes):
        server = f"node-{n:04}-s1.{n + 1}"
        logs = {server: (("00000001", 64 << 20), ("00000002", 1 << 20))}
        record = NodeRecord("f" * 32, f"node-{n:04}", n + 1, f"10.0.{n // 256}.{n % 256}:9096", (server,), logs, 1, 1)
        found[record.key] = encode_record(record)
    return found


def measure_cluster_messages(leader: Leader) -> None:
    servers = leader.servers
    addresses = Addresses(tuple(Address(one, "10.0.0.1", 40_000, "10.0.0.1:40001") for one in servers))
    with timed("addresses: packed for a server"):
        frame = frame_of(addresses)
    print(f"{'addresses: bytes to a server':34} {len(frame):12,} B; to all {len(frame) * len(servers) / 1e6:,.1f} MB")


def measure_records(nodes: int, service: str) -> None:
    records = records_of(nodes)
    size = sum(map(len, records.values()))
    renewals = nodes * 1_000 / TIMES.renew_ms
    closely = min(nodes, STANDBYS + 1)  # the standbys, and a leader that is none of them
    polls = closely * 1_000 / TIMES.poll_ms
    observed = (nodes - closely) * 1_000 / OBSERVE_MS
    of_leader = (nodes - closely) * 1_000 / TIMES.poll_ms
    print(f"{'records: of all nodes':34} {size:12,} B, {size / nodes:.0f} each")
    print(f"{'records: renewals':34} {renewals:12,.0f} /s, {renewals * size / nodes / 1e6:.2f} MB/s")
    print(f"{'records: polls of all, standbys':34} {polls:12,.0f} /s, {polls * size / 1e6:,.1f} MB/s")
    print(f"{'records: polls of all, observers':34} {observed:12,.0f} /s, {observed * size / 1e6:,.1f} MB/s")
    print(f"{'records: polls of the leader':34} {of_leader:12,.0f} /s")
    polled = PolledRecords()
    polled.take({key: Versioned(value, 1) for key, value in records.items()})
    changed = {key: Versioned(value, 2) for key, value in records.items()}
    with timed("records: a poll decoded by a node"):
        polled.take(changed)
    if service:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, running(service, Path(folder)) as found:
            measure_service(found.connect("/scale", 5.0), records)


def measure_service(store: CasStore, records: dict[str, bytes]) -> None:
    """Measure one client of a service of one process: writes and lists, one at a time."""
    versions = {key: store.create_key(key, value) for key, value in records.items()}
    begun, count = time.monotonic(), 0
    keys = list(records)
    while time.monotonic() - begun < ANSWERS_S:
        key = keys[count % len(keys)]
        versions[key] = store.put_key(key, records[key], versions[key])
        count += 1
    print(f"{'service: renewals, one client':34} {count / (time.monotonic() - begun):12,.0f} /s")
    begun, count = time.monotonic(), 0
    while time.monotonic() - begun < ANSWERS_S:
        assert len(store.list_keys(NODES)) == len(records)
        count += 1
    print(f"{'service: polls, one client':34} {count / (time.monotonic() - begun):12,.0f} /s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--regions", type=int, default=1_000_000)
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--zones", type=int, default=1)
    parser.add_argument("--service", choices=("etcd", "zookeeper"), default="")
    wanted = parser.parse_args()
    print(f"{wanted.nodes:,} nodes, {wanted.regions:,} regions, {wanted.tables:,} tables, {wanted.zones} zones")
    leader = Leader(wanted.nodes, wanted.regions, wanted.tables, wanted.zones)
    measure_events(leader)
    measure_routes(leader)
    measure_catalogue(leader)
    measure_cluster_messages(leader)
    measure_records(wanted.nodes, wanted.service)
    print(f"{'memory of the process, at the most':34} {memory_mib():12,.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
