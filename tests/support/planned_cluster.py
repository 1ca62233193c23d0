"""A cluster around the master's pure half: servers, logs, stores and a catalogue of values, in virtual time.

Each region is a register.  A server that serves it writes the next number, and the number is acknowledged.  A number is
in the server's log and, after a flush, in the region's store; ``Data.serve`` finds a number that was lost, or that the
replay of an older log has overwritten.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from columnar.master.catalogue_rows import OperatorSettings
from columnar.master.cluster_state import ClusterState
from columnar.master.instructions import (
    Answer,
    Close,
    Fence,
    Merge,
    NotifyServer,
    Open,
    Output,
    RemoveLog,
    Renumber,
    Request,
    Split,
    UnassignRegion,
    Wake,
    Write,
)
from columnar.model.owner import Incarnation, Owner, OwnershipPeriod
from columnar.model.region_info import RegionInfo


@dataclass
class Data:
    """The data on disk beside the catalogue."""

    acknowledged: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    stores: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    complete: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    logs: dict[Incarnation, list[tuple[int, int, int]]] = field(default_factory=dict)  # region, epoch, number
    unsynced: dict[int, int] = field(default_factory=dict)  # of open regions: what their server has in memory

    def bring_in(self, region: int, owner: Owner) -> None:
        for tenure in owner.unreplayed_logs:
            assert tenure.server in self.logs, f"C6: the log of {tenure.server} is gone, and region {region} needs it"
            if tenure.epoch >= self.complete[region]:
                for named, epoch, number in self.logs[tenure.server]:
                    if (named, epoch) == (region, tenure.epoch):
                        self.stores[region] = number
        if owner.unreplayed_logs:
            self.complete[region] = owner.epoch

    def serve(self, region: int) -> None:
        found, wanted = self.stores[region], self.acknowledged[region]
        assert found == wanted, f"C4: region {region} is served with {found}, and {wanted} was acknowledged"
        self.unsynced[region] = found

    def write(self, server: Incarnation, region: int, epoch: int, *, flush: bool) -> None:
        self.acknowledged[region] += 1
        self.unsynced[region] = self.acknowledged[region]
        self.logs[server].append((region, epoch, self.acknowledged[region]))
        if flush:
            self.stores[region] = self.acknowledged[region]


@dataclass
class SimulatedServer:
    incarnation: Incarnation
    serving: dict[int, int] = field(default_factory=dict)  # region -> epoch
    refused: dict[int, int] = field(default_factory=dict)  # region -> the highest epoch given up
    behind: set[tuple[int, int]] = field(default_factory=set)  # of these, those that only its log holds
    busy_until_ms: int = 0
    opening: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Delays:
    write_ms: tuple[int, int] = (3, 30)
    message_ms: tuple[int, int] = (0, 3)
    open_ms: tuple[int, int] = (10, 20)
    close_ms: tuple[int, int] = (5, 40)
    fence_ms: tuple[int, int] = (5, 60)


class PlannedCluster:
    """The cluster.

    ``faults`` has the chances of 'lost' (a report), 'unwritten' (a write), 'unopened', 'damaged', 'behind' (a close).
    """

    def __init__(
        self,
        infos: list[RegionInfo],
        rng: Random,
        *,
        seed: int = 0,
        with_data: bool = True,
        delays: Delays | None = None,
        faults: dict[str, float] | None = None,
    ) -> None:
        self.rng = rng
        self.now_ms = 0
        self.delays = delays or Delays()
        self.faults = faults or {}
        self.data = Data() if with_data else None
        self.catalogue: dict[int, Owner] = {}
        self.infos = {info.region_id: info for info in infos}
        self.wishes = OperatorSettings()
        self.sealed: dict[Incarnation, tuple[tuple[str, int], ...]] = {}
        self.servers: dict[Incarnation, SimulatedServer] = {}
        self.holders: dict[int, SimulatedServer] = {}  # by region: who served it last
        self.numbers: dict[str, int] = defaultdict(int)
        self.zones: dict[str, str] = {}  # of servers that have one
        self.requests: dict[int, Request] = {}
        self.answers: dict[int, str | None] = {}
        self.changes: list[Split | Merge] = []
        self.refusing_writes = False
        self.cpu_s: list[tuple[float, str]] = []
        self.after_event: Callable[[list[Output]], None] = lambda _outputs: None
        self.seed = seed
        self._agenda: list[tuple[int, int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._life = 0  # of the master: what an older one waited for is void
        self._write_ends_ms = 0
        self.state = ClusterState([(info, None) for info in infos], {}, self.wishes, Random(seed))

    # --- time --------------------------------------------------------------------------------------

    def later(self, delay_ms: int, what: Callable[[], None]) -> None:
        self._sequence += 1
        heappush(self._agenda, (self.now_ms + delay_ms, self._sequence, self._life, what))

    def run(self, until_ms: int) -> None:
        while self._agenda and self._agenda[0][0] <= until_ms:
            self.now_ms, _, life, what = heappop(self._agenda)
            if life == self._life:
                what()
        self.now_ms = until_ms

    def _drawn(self, bounds: tuple[int, int]) -> int:
        return self.rng.randint(*bounds)

    def _happens(self, fault: str) -> bool:
        chance = self.faults.get(fault, 0.0)
        return chance > 0 and self.rng.random() < chance

    # --- the shell ---------------------------------------------------------------------------------

    def event(self, name: str, *args: object, **named: object) -> None:
        begun = time.process_time()
        of = self.state if hasattr(self.state, name) else self.state.tables
        outputs = getattr(of, name)(*args, now_ms=self.now_ms, **named)
        self.cpu_s.append((time.process_time() - begun, name))
        for output in outputs:
            self._carry_out(output)
        self.after_event(outputs)

    def _carry_out(self, output: Output) -> None:
        if isinstance(output, Write):
            self._write(output)
        elif isinstance(output, NotifyServer):
            self.later(self._drawn(self.delays.message_ms), lambda: self._hear(output))
        elif isinstance(output, Fence):
            self.kill(output.server)
        elif isinstance(output, RemoveLog):
            if self.data is not None:
                del self.data.logs[output.server]
        elif isinstance(output, Answer):
            assert output.request not in self.answers, "answered twice"
            self.answers[output.request] = output.error
            request = self.requests[output.request]
            if isinstance(request, UnassignRegion) and output.error is None:
                assert request.region in self.wishes.unassigned, "it holds over a restart"
        elif isinstance(output, Split | Merge):
            self._change(output)
        elif isinstance(output, Wake):
            self.later(max(1, output.at_ms - self.now_ms), lambda: self.event("tick"))

    def _write(self, write: Write) -> None:
        # Writes end in the order of their numbers: a delay of its own would let a later one pass.
        self._write_ends_ms = max(self._write_ends_ms, self.now_ms) + self._drawn(self.delays.write_ms)

        def end() -> None:
            if self.refusing_writes or self._happens("unwritten"):
                self.event("not_written", write.number)
                return
            for info, owner in write.owners:
                if info.region_id in self.infos:
                    self.catalogue[info.region_id] = owner
            self.sealed |= dict(write.sealed)
            for server in write.forgotten:
                self.sealed.pop(server, None)
                for owner in self.catalogue.values():
                    named = (owner.source, *owner.unreplayed_logs)
                    assert all(one is None or one.server != server for one in named), "C6"
            self.wishes = write.operator_settings or self.wishes
            self.event("row_written", write.number)

        self.later(self._write_ends_ms - self.now_ms, end)

    def _change(self, change: Split | Merge) -> None:
        self.changes.append(change)
        regions = (change.region,) if isinstance(change, Split) else change.regions

        def end() -> None:
            infos = [self.infos.get(region) for region in regions]
            owner = self.catalogue.get(regions[0])
            server = self.servers.get(owner.server) if owner is not None else None
            if None in infos or owner is None or server is None or self._happens("unchanged"):
                self.event("change_failed", regions, "it was called off")
                return
            if any(server.serving.get(region) != self.catalogue[region].epoch for region in regions):
                self.event("change_failed", regions, "the owner is not there")
                return
            self._commit(change, [info for info in infos if info is not None], server)

        self.later(self.rng.randint(20, 200), end)

    def _commit(self, change: Split | Merge, gone: list[RegionInfo], server: SimulatedServer) -> None:
        first = max(self.infos) + 1
        if isinstance(change, Split):
            middle = next(row for n in range(8) if gone[0].contains_row(row := gone[0].start + bytes([128 >> n])))
            bounds = [(gone[0].start, middle), (middle, gone[0].end)]
        else:
            bounds = [(gone[0].start, gone[1].end)]
        fresh = [RegionInfo(gone[0].table, first + n, *ends) for n, ends in enumerate(bounds)]
        row = self.state.tables.successor_owner(gone[0].region_id)
        for info in gone:
            del self.infos[info.region_id], self.catalogue[info.region_id], server.serving[info.region_id]
        for info in fresh:
            self.infos[info.region_id], self.catalogue[info.region_id] = info, row
            server.serving[info.region_id] = row.epoch
            self._served_by(info.region_id, server)
            if self.data is not None:
                self.data.unsynced[info.region_id] = 0
        self.event("changed", [info.region_id for info in gone], fresh)

    # --- servers -----------------------------------------------------------------------------------

    def start(self, name: str) -> Incarnation:
        self.numbers[name] += 1
        server = Incarnation(name, self.numbers[name])
        self.servers[server] = SimulatedServer(server)
        if self.data is not None:
            self.data.logs[server] = []
        self.event("joined", server, zone=self.zones.get(name, ""))
        self.later(self._drawn((5, 40)), lambda: self._say_hello(server))
        return server

    def _say_hello(self, server: Incarnation) -> None:
        if server in self.servers:
            self.event("hello", server, {}, {})

    def reconnect(self, server: Incarnation) -> None:
        found = self.servers[server]
        closed = {region: (epoch, (region, epoch) in found.behind) for region, epoch in found.refused.items()}
        self.event("hello", server, dict(found.serving), closed)

    def kill(self, server: Incarnation, *, asked: bool = False) -> None:
        """Kill a server: it answers nothing from now on, and the master is notified later."""
        if self.servers.pop(server, None) is None:
            return
        self.later(self._drawn(self.delays.fence_ms), lambda: self._is_fenced(server, asked))

    def _is_fenced(self, server: Incarnation, asked: bool) -> None:
        log = self.data.logs.get(server, []) if self.data is not None else []
        named = {(region, epoch) for region, epoch, _ in log}
        self.event("fenced", server, (("00000001.segment", 64 * len(log)),), named, asked=asked)

    def _hear(self, tell: NotifyServer) -> None:
        server = self.servers.get(tell.server)
        if server is None or self._happens("lost"):
            return
        ask = tell.request
        epoch = ask.epoch if isinstance(ask, Close) else ask.owner.epoch
        if isinstance(ask, Close):
            self._close(server, ask.region, epoch)
        elif epoch <= server.refused.get(ask.region, 0) or epoch <= server.serving.get(ask.region, 0):
            if server.serving.get(ask.region) == epoch:
                self._report(server, "opened", ask.region, epoch)
        elif isinstance(ask, Renumber) and ask.region in server.serving:
            server.serving[ask.region] = epoch
            self._report(server, "opened", ask.region, epoch)
        elif ask.region not in server.opening:
            self._open(server, ask)

    def _served_by(self, region: int, server: SimulatedServer) -> None:
        """Check that every earlier server of the region is dead or has closed it, so that it has at most one server."""
        other = self.holders.get(region)
        is_held = other is not None and other is not server and self.servers.get(other.incarnation) is other
        assert not (is_held and region in other.serving), f"C2: {other} and {server.incarnation} have {region}"
        self.holders[region] = server

    def _open(self, server: SimulatedServer, ask: Open | Renumber) -> None:
        server.busy_until_ms = max(server.busy_until_ms, self.now_ms) + self._drawn(self.delays.open_ms)
        server.opening[ask.region] = ask.owner.epoch

        def end() -> None:
            if self.servers.get(server.incarnation) is not server or server.opening.pop(ask.region, 0) == 0:
                return
            region, epoch = ask.region, ask.owner.epoch
            if epoch <= server.refused.get(region, 0):
                return
            if self._happens("unopened") or self._happens("damaged"):
                server.refused[region] = epoch
                is_damaged = self.faults.get("damaged", 0) > 0 and self.rng.random() < 0.5
                self._report(server, "failed", region, epoch, "it cannot be opened", is_damaged)
                return
            self._served_by(region, server)
            row = self.catalogue[region]
            assert row.epoch > epoch or row.ownership_period == OwnershipPeriod(server.incarnation, epoch), "C3"
            if self.data is not None:
                self.data.bring_in(region, ask.owner)
                self.data.serve(region)
            server.serving[region] = epoch
            self._report(server, "opened", region, epoch)

        self.later(server.busy_until_ms - self.now_ms, end)

    def _close(self, server: SimulatedServer, region: int, epoch: int) -> None:
        if server.serving.get(region, epoch) > epoch:
            return  # it goes on at a later epoch
        server.opening.pop(region, None)

        def end() -> None:
            if self.servers.get(server.incarnation) is not server or server.serving.get(region, epoch) > epoch:
                return
            server.refused[region] = max(epoch, server.refused.get(region, 0))
            if server.serving.pop(region, None) is not None and self.data is not None:
                if self._happens("behind"):
                    server.behind.add((region, epoch))
                else:
                    self.data.stores[region] = self.data.unsynced[region]
            is_behind = (region, epoch) in server.behind
            self._report(server, "closed", region, epoch, is_behind=is_behind)

        if region in server.serving:
            self.later(self._drawn(self.delays.close_ms), end)
        else:
            end()

    def _report(self, server: SimulatedServer, name: str, *args: object, **named: object) -> None:
        def arrive() -> None:
            if server.incarnation in self.servers:
                self.event(name, server.incarnation, *args, **named)

        if not self._happens("lost"):
            self.later(self._drawn(self.delays.message_ms), arrive)

    # --- work, people, the master ------------------------------------------------------------------

    def write_somewhere(self) -> None:
        """Make an acknowledged write to a region that is served."""
        assert self.data is not None, "a cluster with data"
        serving = [(one, region) for one in self.servers.values() for region in one.serving]
        if serving:
            server, region = self.rng.choice(serving)
            self.data.write(server.incarnation, region, server.serving[region], flush=self.rng.random() < 0.3)

    def ask(self, request: Request) -> int:
        self._sequence += 1
        number = self._sequence
        self.requests[number] = request
        self.event("add_request", number, request)
        return number

    def restart_master(self) -> None:
        """Restart the master: its children die with it, and the next master reads the catalogue and the logs."""
        self._life += 1
        self.servers.clear()
        self._write_ends_ms = 0
        rows = [(info, self.catalogue.get(region)) for region, info in self.infos.items()]
        self.state = ClusterState(rows, self.sealed, self.wishes, Random(self.seed + self._life))
        named = {one.server for one in self._tenures()} | {owner.server for owner in self.catalogue.values()}
        for server in sorted(named | set(self.data.logs if self.data is not None else ())):
            self._is_fenced(server, False)
        for name in sorted(self.numbers):
            self.start(name)
        self.later(100, lambda: self.event("begin_planning"))

    def _tenures(self) -> list[OwnershipPeriod]:
        owners = self.catalogue.values()
        return [one for owner in owners for one in (owner.source, *owner.unreplayed_logs) if one is not None]
