"""The simulated cluster: one machine, its disk, its processes, clients, and the checks after every step."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random

from columnar.master.instructions import AssignRegion, DrainServer, MoveRegion, OwnerRequest, SwitchSetting
from columnar.master.placement_records import Phase, ServerState
from columnar.model.owner import Incarnation, Owner
from columnar.model.owner_messages import Segments
from columnar.model.region_info import RegionInfo
from tests.proofs.linearizability import Event
from tests.simulation.agenda import MS, Agenda, Process
from tests.simulation.catalogue import Catalogue, first_rows
from tests.simulation.clients import TABLE, Client, Op, judged, unsure_events
from tests.simulation.coordination import Coordination
from tests.simulation.deliberate import FAULTS_OF_LEASES
from tests.simulation.disk import Disk, Files
from tests.simulation.laws import Laws
from tests.simulation.leading import LeadingMaster
from tests.simulation.master import Master
from tests.simulation.server import Server
from tests.simulation.upheaval import Upheaval

SECOND = 1_000 * MS
REST_WITHIN_S = 90
RESTS = 3  # looks at the cluster, 0.25 s apart: what is on its way then has arrived
TOLD_KEPT = 40  # asks that may come again

CHANCES = {
    "kill": 1.0,
    "fence": 0.4,
    "stop": 0.8,
    "everything_dies": 0.2,
    "power_cut": 0.4,
    "ask": 6.0,
    "change": 3.0,
    "evict": 1.0,
    "told_again": 1.5,
    "old_leader": 0.7,
    "stray_append": 0.5,
}
FAULTS = {"fsync": 0.004, "catalogue": 0.02, "unopened": 0.02, "pause": 0.05}  # a pause that is called off

OF_MACHINES = {
    "kill": 0.6,
    "stop": 1.2,
    "lead": 0.6,
    "lead_and_kill": 0.4,
    "cut": 0.8,
    "reset": 0.8,
    "stray_append": 0.0,
}
FOUND_WITH: dict[str, dict[str, float]] = {  # deliberate fault -> chances that find it soon
    "answers unchecked": {"ask": 30.0},
    "no complete": {"kill": 3.0, "power_cut": 3.0, "ask": 9.0},
    "unclaimed": {"everything_dies": 4.0, "ask": 20.0},
    "behind forgotten": {"power_cut": 2.0},
    "no epochs": {"kill": 3.0, "power_cut": 1.0, "ask": 12.0},
    "seal ignored": {"kill": 4.0, "power_cut": 0.2, "everything_dies": 0.0, "stray_append": 40.0},
    "closed forgotten": {"told_again": 12.0, "ask": 12.0},
    "extents kept": {"kill": 0.2, "everything_dies": 0.0, "power_cut": 0.0, "ask": 12.0},
    "last rows uncopied": {"change": 12.0},
    "daughters unsynced": {"change": 12.0, "power_cut": 2.0},
    "complete inherited": {"change": 12.0},
    "unsure served": {"change": 20.0, "everything_dies": 3.0},
    "write unchecked": {"cut": 12.0, "kill": 4.0, "power_cut": 0.1, "everything_dies": 0.0, "change": 6.0},
    "log in place": {"stop": 6.0, "cut": 6.0, "ask": 12.0},
    "generation kept": {"stop": 3.0, "cut": 3.0, "ask": 12.0},
    "linked logs": {"stop": 6.0, "cut": 6.0, "ask": 12.0},
    "bound relinked": {"reset": 30.0, "change": 40.0},
    "holdings unasked": {"lead": 6.0, "ask": 20.0},
    "late leader obeyed": {"old_leader": 3.0},
}
FOUND_AMID: dict[str, dict[str, float]] = {  # the same of faults of the disk
    "extents kept": {"fsync": 0.05},
    "unsure served": {"catalogue": 0.5},
}


@dataclass(frozen=True)
class Settings:
    servers: int = 3
    regions: int = 5
    clients: int = 3
    think_ms: tuple[int, int] = (10, 120)
    upheaval_ms: tuple[int, int] = (20, 300)
    chances: dict[str, float] = field(default_factory=lambda: dict(CHANCES))
    faults: dict[str, float] = field(default_factory=lambda: dict(FAULTS))
    deliberate: frozenset[str] = frozenset()
    has_leases: bool = False  # a machine for each server and for each leader


def drawn_settings(rng: Random) -> Settings:
    """Return random settings: some worlds have no faults of the disk, some no deaths of the whole machine."""
    chances = {kind: weight * rng.choice((0.3, 1.0, 2.0)) for kind, weight in CHANCES.items()}
    faults = {kind: chance * rng.choice((0.0, 1.0, 3.0, 12.0)) for kind, chance in FAULTS.items()}
    counts = rng.randint(2, 4), rng.randint(4, 7), rng.randint(2, 4)
    has_leases = rng.random() < 0.5
    if has_leases:
        chances |= {kind: weight * rng.choice((0.3, 1.0, 2.0)) for kind, weight in OF_MACHINES.items()}
        faults |= {"commit": rng.choice((0.0, 0.05, 0.2))}
    return Settings(*counts, chances=chances, faults=faults, has_leases=has_leases)


def settings_for(fault: str) -> Settings:
    """Return the settings of a small and busy world for a deliberate fault."""
    chances = CHANCES | FOUND_WITH.get(fault, {})
    count = 2 if fault == "no epochs" else 3  # of servers and regions: regions come back where they were
    faults = FAULTS | FOUND_AMID.get(fault, {})
    has_leases = fault in FAULTS_OF_LEASES
    if has_leases:
        chances |= OF_MACHINES | FOUND_WITH.get(fault, {})
    return Settings(count, count, 4, (2, 30), (20, 200), chances, faults, frozenset({fault}), has_leases)


class World:
    def __init__(self, seed: int, settings: Settings | None = None, *, is_verbose: bool = False) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.settings = settings or drawn_settings(self.rng)
        self.agenda = Agenda(self.rng)
        self.agenda.after_step = self._after_step
        self.has_leases = self.settings.has_leases
        self.coordination = Coordination(self.agenda)
        self.seen: Counter[str] = Counter()  # what happened amid leases
        self.disk = Disk()
        self.laws = Laws(self)
        count = self.settings.regions
        self.rows = [b"%c%d" % (97 + number // 2, number % 2) for number in range(2 * count)]
        starts = [b"", *(b"%c" % (97 + number) for number in range(1, count)), b""]
        self.infos = {  # of all regions that ever were
            n + 2: RegionInfo(TABLE, n + 2, starts[n], starts[n + 1]) for n in range(count)
        }
        for region in self.infos:
            self.disk.stores[region] = Files()
        self.disk.meta = first_rows(self.infos.values(), count + 2)
        self.changes = [0, 0]  # splits and merges that were committed
        self.server_names = [f"s{number + 1}" for number in range(self.settings.servers)]
        self.servers: dict[Incarnation, Server] = {}  # that live
        self.processes: dict[Incarnation, Server] = {}  # with those that were fenced by time and run on
        self.started: dict[Incarnation, Server] = {}  # all that ever were
        self._numbers = 0
        self.changed: dict[Server, None] = {}  # in this step
        self.had: dict[Incarnation, dict[int, range]] = {}  # regions and epochs, when it died
        self.master: Master | None = None
        self.catalogue: Catalogue | None = None  # of the last master
        self.told: deque[tuple[Server, OwnerRequest, int, dict[Incarnation, Segments]]] = deque(maxlen=TOLD_KEPT)
        self.leaders: list[LeadingMaster] = []  # that have not ended, whether they know who leads or not
        self.starts = 0  # of all machines together
        self.unsure: list[tuple[Op, int]] = []
        self.clients = [Client(self, number) for number in range(self.settings.clients)]
        self._history: dict[bytes, list[Event]] = {row: [] for row in self.rows}
        self._faults = dict(self.settings.faults)
        self._ticks = self._versions = self._arguments = 0
        self._rows_of: dict[int, list[bytes]] = {}
        self._is_verbose = is_verbose
        self._upheaval = Upheaval(self)

    # --- chance and counts ---------------------------------------------------------------------------

    def chance(self, of: float) -> bool:
        return self.rng.random() < of

    def happens(self, fault: str) -> bool:
        of = self._faults.get(fault, 0.0)
        return of > 0.0 and self.rng.random() < of

    def has(self, deliberate: str) -> bool:
        return deliberate in self.settings.deliberate

    def tick(self) -> int:
        self._ticks += 1
        return self._ticks

    def next_version(self) -> int:
        self._versions += 1
        return self._versions

    def next_argument(self) -> int:
        self._arguments += 1
        return self._arguments

    def last_argument(self, row: bytes) -> int:
        """Return a register that the row may have."""
        puts = [event.call[1] for event in self._history[row][-4:] if event.call[0] in ("put", "check")]
        return self.rng.choice(puts) if puts else 0

    @property
    def regions(self) -> dict[int, RegionInfo]:
        """Return the regions of the table."""
        return self.master.catalogue.regions if self.master is not None else {}

    def rows_of(self, region: int) -> list[bytes]:
        rows = self._rows_of.get(region)
        if rows is None:
            info = self.infos[region]
            rows = self._rows_of[region] = [row for row in self.rows if info.contains_row(row)]
        return rows

    def destroy(self, region: int) -> None:
        """Remove its folder."""
        self.laws.destroys(region)
        self.disk.stores.pop(region, None)

    def rows_on_disk(self) -> Mapping[int, Owner]:
        """Return the owners' rows of the catalogue in force."""
        return self.catalogue.durable if self.catalogue is not None else {}

    def highest_epoch(self, region: int) -> int:
        row = self.master.durable.get(region) if self.master is not None else None
        return row.epoch if row is not None else 0

    def is_replaced(self, server: Incarnation) -> bool:
        """Return whether the server's regions were given to others."""
        return server in self.laws.sealed

    def note(self, row: bytes, event: Event) -> None:
        self._history[row].append(event)
        self.trace(None, event)

    def trace(self, process: Process | None, what: object) -> None:
        if self._is_verbose:
            sys.stdout.write(f"{self.agenda.now_us / 1e6:10.6f} {process.name if process else '':>10} {what}\n")

    # --- processes -----------------------------------------------------------------------------------

    def add_server(self, server: Server) -> None:
        for other in self.processes.values():
            self.agenda.link(server.process, other.process, _heard(other, server), _heard(server, other))
        self.servers[server.me] = self.processes[server.me] = self.started[server.me] = server

    def accepted(self, client: Client) -> Server | None:
        """Return the server to which the supervisor hands a connection, or None."""
        master = self.master
        is_closed = not self.has_leases and (master is None or master.process.is_stopped)
        if is_closed or not self.servers:
            return None
        server = self.rng.choice(list(self.servers.values()))
        self.agenda.link(server.process, client.process, lambda: client.server_ended(server), lambda: None)
        return server

    def kill(self, process: Process, why: str) -> None:
        if not process.is_dead:
            self.trace(process, f"dies: {why}")
            self.agenda.kill(process)
            for server in list(self.processes.values()):
                if server.process is process:
                    self._server_died(server)

    def _server_died(self, server: Server) -> None:
        self._note_regions(server)
        self.servers.pop(server.me, None)
        del self.processes[server.me]
        if self.has_leases and self.master is not None:
            is_reaped = self.chance(0.5)  # else its machine is gone
            if is_reaped:
                delay_us = self.agenda.drawn(5 * MS, 20 * MS)
                self.agenda.later(None, delay_us, lambda: self.coordination.strike_off(server.me))
            delay_us = self.agenda.drawn(50 * MS, 400 * MS) if is_reaped else self.agenda.drawn(300 * MS, 3_000 * MS)
            self.agenda.later(None, delay_us, lambda: self._start_machine(server.me.name))

    def _note_regions(self, server: Server) -> None:
        hosting, had = server.owning.hosting, server.owning.had()
        self.had.setdefault(server.me, {region: hosting.find(region).epochs for region in had})

    def ended_by_time(self, me: Incarnation) -> None:
        """Note that the lease of a server is over, whatever its process does from now on."""
        server = self.servers.pop(me, None)
        if server is not None:
            self._note_regions(server)
            self.trace(server.process, "is fenced by time")
            self.seen["zombies"] += not server.process.is_dead

    def everything_dies(self, *, is_power_cut: bool) -> None:
        """Kill the master and its children; a new master starts when none of them has the lock any more."""
        master, self.master = self.master, None
        if master is None:
            return
        self.kill(master.process, "power cut" if is_power_cut else "kill -9")
        if self.has_leases:
            self._machines_die(is_power_cut=is_power_cut)
            return
        for server in list(self.servers.values()):
            delay_us = 0 if is_power_cut else self.agenda.drawn(0, 3 * MS)
            self._later_or_now(delay_us, partial(self.kill, server.process, "its parent is dead"))
        if is_power_cut:
            self.disk.power_cut(self.rng)
        self.agenda.later(None, self.agenda.drawn(20 * MS, 600 * MS), self._start_master)

    def _machines_die(self, *, is_power_cut: bool) -> None:
        """Kill all machines at once; the disk and the coordination are elsewhere."""
        self.starts += 1
        for master in self.leaders:
            self.kill(master.process, "every machine dies")
        for server in list(self.processes.values()):
            self.kill(server.process, "every machine dies")
        if is_power_cut:
            self.disk.power_cut(self.rng)
        self.coordination.servers.clear()
        self.agenda.later(None, self.agenda.drawn(20 * MS, 600 * MS), self._start_machines)

    def _start_machines(self) -> None:
        self._lead()
        for name in self.server_names:
            self._start_machine(name)

    def _lead(self) -> None:
        self.leaders = [one for one in self.leaders if not one.process.is_dead]
        self.master = master = LeadingMaster(self)
        self.leaders.append(master)
        self.catalogue = master.catalogue
        self.trace(master.process, f"leads at epoch {master.leader}")
        master.start()

    def end_leader(self, master: Master) -> None:
        """Kill a leader amid a step, or stop it until its lease is over: the step and its messages come late."""
        if self.chance(0.5):
            self.kill(master.process, "amid a commit")
        elif not master.process.is_stopped:
            self.agenda.stop(master.process)
            self.trace(master.process, "SIGSTOP amid a commit")
            self.agenda.later(
                None, self.agenda.drawn(1_300 * MS, 3 * SECOND), lambda: self.agenda.go_on(master.process)
            )

    def _watch_leader(self) -> None:
        """Elect another leader if the leader's record stands still."""
        leader = self.coordination.leader
        if self.master is not None and leader is not None and self.coordination.is_over(leader):
            self._lead()
        self.agenda.later(None, 100 * MS, self._watch_leader)

    def _start_machine(self, name: str) -> None:
        """Start the next incarnation once the record of the last one is gone."""
        start = self.starts
        if self.master is None or any(server.me.name == name for server in self.servers.values()):
            return

        def again() -> None:
            if self.starts == start:
                self._start_machine(name)

        if any(server.name == name for server in self.coordination.servers):
            self.agenda.later(None, 100 * MS, again)
            return
        self._numbers += 1
        server = Server(self, Incarnation(name, self._numbers), None)
        self.add_server(server)
        server.start_leased()
        if isinstance(self.master, LeadingMaster):
            self.master.dial(server)

    def _later_or_now(self, delay_us: int, what: Callable[[], None]) -> None:
        if delay_us:
            self.agenda.later(None, delay_us, what)
        else:
            what()

    def _start_master(self) -> None:
        assert not self.servers, "they hold the lock"
        self.master = Master(self)
        self.catalogue = self.master.catalogue
        self.trace(self.master.process, f"leads at epoch {self.master.leader}")
        self.master.start()

    def _after_step(self) -> None:
        """Check the machines that the step has changed."""
        if self.changed:
            self.laws.after_step()
            for server in self.changed:
                server.check()
            self.changed.clear()
        master = self.master
        if master is not None and master.has_changed:
            master.has_changed = False
            master.state.check_invariants()

    # --- a run ---------------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Run the world.  Raises Violation, or AssertionError of a machine's own check."""
        if self.has_leases:
            self._start_machines()
            self._watch_leader()
        else:
            self._start_master()
        for client in self.clients:
            client.think()
        self._upheaval.begin()
        self.agenda.run(round(seconds * SECOND))
        self._come_to_rest()
        self._judge()

    def _come_to_rest(self) -> None:
        self._upheaval.is_over = True
        self._faults.clear()
        self.told.clear()
        for client in self.clients:
            client.is_stopped = True
        deadline_us = self.agenda.now_us + REST_WITHIN_S * SECOND
        asked_us = 0
        rests = 0
        while rests < RESTS:
            if self.agenda.now_us > deadline_us:
                self.laws.broken(f"nothing rests {REST_WITHIN_S} s after the last fault: {self._restless()}")
            if self.master is not None and self.agenda.now_us - asked_us > 5 * SECOND:
                asked_us = self.agenda.now_us
                self._ask_for_all(self.master)
            self.agenda.run(self.agenda.now_us + 250 * MS)
            rests = 0 if self._restless() else rests + 1
        self.laws.at_rest()

    def _ask_for_all(self, master: Master) -> None:
        def ask() -> None:
            for name in self.server_names:
                master.ask(DrainServer(name, on=False))
            for region, place in list(master.state.current.places.items()):
                if place.phase in (Phase.OFFLINE, Phase.FAILED_OPEN):
                    master.ask(AssignRegion(region))
            master.ask(SwitchSetting("balancer", False))

        self.agenda.later(master.process, 0, ask)

    def _restless(self) -> list[object]:
        master = self.master
        if master is None or master.process.is_stopped or master.process.is_dead:
            return ["no master"]
        places = master.state.current.places.values()
        servers = master.state.current.servers.values()
        found: list[object] = [place for place in places if place.phase is not Phase.OPEN]
        found += [server for server in servers if server.state is not ServerState.UP]
        found += [client.process for client in self.clients if not client.is_idle]
        found += [one.process for one in self.processes.values() if one.process.is_stopped]
        if self.has_leases and len(self.processes) < len(self.server_names):
            found.append("a machine is down")
        # A move to any server waits for one that may take regions, which may be minutes.
        asked = master.state.desired.requests.values()
        found += [one for one in asked if not (isinstance(one, MoveRegion) and one.server is None)]
        return found

    def _judge(self) -> None:
        """Read every row once more, then check that an order explains each row's history."""
        for row in self.rows:
            client = self.clients[0]
            before = len(self._history[row])
            while len(self._history[row]) == before:
                if client.is_idle:
                    client.read(row)
                self.agenda.run(self.agenda.now_us + 20 * MS)
        histories = {row: list(events) for row, events in self._history.items()}
        for row, event in unsure_events(self.unsure):
            histories[row].append(event)
        for row, history in histories.items():
            why = judged(row, history)
            if why is not None:
                self.laws.broken(why)

    @property
    def calls(self) -> int:
        return sum(len(history) for history in self._history.values())

    def summary(self) -> str:
        leader = self.master.leader if self.master is not None else 0
        leased = "".join(f", {count} {what}" for what, count in sorted(self.seen.items()))
        return (
            f"seed {self.seed}: {self.agenda.now_us / SECOND:.1f} s, {self.agenda.steps} steps, {self.calls} calls "
            f"answered, {len(self.unsure)} unsure, {leader} masters, {self.laws.served} stores opened, "
            f"{self.changes[0]} splits, {self.changes[1]} merges{leased}"
        )


def _heard(server: Server, ended: Server) -> Callable[[], None]:
    return lambda: server.gateway.link_ended(ended.me)


def run(seed: int, seconds: float, fault: str | None = None, *, is_verbose: bool = False) -> World:
    """Run a seed; a deliberate ``fault`` runs in a world that finds it soon."""
    world = World(seed, settings_for(fault) if fault else None, is_verbose=is_verbose)
    try:
        world.run(seconds)
    except AssertionError as error:
        error.add_note(f"python -m tests.simulation --seed {seed} --seconds {seconds:g} -v prints the whole run")
        raise
    return world
