"""The upheaval of the simulated cluster: kills, stops, power cuts, moves, drains, messages that come late or twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from columnar.master.instructions import (
    AssignRegion,
    Close,
    DrainServer,
    MergeRegions,
    MoveRegion,
    Open,
    OwnerRequest,
    Request,
    SplitRegion,
    SwitchSetting,
    UnassignRegion,
)
from columnar.model.owner import Owner
from columnar.storage.server_log import Record
from tests.simulation.agenda import MS
from tests.simulation.server import Server
from tests.simulation.stores import Value, region_name

if TYPE_CHECKING:
    from tests.simulation.world import World

STOPS_US = ((50 * MS, 900 * MS), (2_800 * MS, 3_900 * MS))  # shorter, and about as long as the master waits
LEASED_STOPS_US = ((50 * MS, 900 * MS), (1_300 * MS, 1_900 * MS), (1_600 * MS, 3_900 * MS))  # ... as a lease lasts
SECOND = 1_000 * MS


class Upheaval:
    """The source of events; ``settings.chances`` has the chance of each kind that is no person's request."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._agenda = world.agenda
        self._rng = world.rng
        self.is_over = False
        chances = world.settings.chances
        self._kinds = [getattr(self, kind) for kind in chances]
        self._weights = list(chances.values())

    def begin(self) -> None:
        low, high = self._world.settings.upheaval_ms
        self._agenda.later(None, self._agenda.drawn(low * MS, high * MS), self._happen)

    def _happen(self) -> None:
        if self.is_over:
            return
        self._rng.choices(self._kinds, self._weights)[0]()
        self.begin()

    def _server(self) -> Server | None:
        servers = list(self._world.servers.values())
        return self._rng.choice(servers) if servers else None

    # --- processes -----------------------------------------------------------------------------------

    def kill(self) -> None:
        server = self._server()
        if server is not None:
            self._world.kill(server.process, "kill -9")

    def fence(self) -> None:
        """Fence a working server, as a person may."""
        server, master = self._server(), self._world.master
        if server is not None and master is not None:
            self._agenda.later(master.process, 0, lambda: master.event("silent", server.me, "asked for"))

    def stop(self) -> None:
        server, master = self._server(), self._world.master
        of_server = 0.7 if self._world.has_leases else 0.9
        process = server.process if server is not None and self._rng.random() < of_server else None
        if process is None and master is not None:
            process = master.process
        if process is None or process.is_stopped:
            return
        self._agenda.stop(process)
        self._world.trace(process, "SIGSTOP")
        goes_on = process
        stops_us = LEASED_STOPS_US if self._world.has_leases else STOPS_US
        self._agenda.later(None, self._agenda.drawn(*self._rng.choice(stops_us)), lambda: self._agenda.go_on(goes_on))

    def lead(self) -> None:
        """Kill the leader; another one leads when its lease is over, or at once if it could resign."""
        master, coordination = self._world.master, self._world.coordination
        if master is not None and coordination.leader is not None:
            self._world.kill(master.process, "kill -9")
            if self._rng.random() < 0.3:
                coordination.leader.sent_us -= 10 * SECOND

    def lead_and_kill(self) -> None:
        self.lead()
        self.kill()

    def cut(self) -> None:
        """Cut a machine off from the coordination; it still has its links and the disk."""
        master, server = self._world.master, self._server()
        process = master.process if master is not None and self._rng.random() < 0.4 else server and server.process
        if process is not None:
            until_us = self._agenda.now_us + self._agenda.drawn(300 * MS, 4 * SECOND)
            self._world.trace(process, "is cut off")
            self._world.coordination.hears_nothing[process] = until_us

    def reset(self) -> None:
        """Reset the links of some servers to the leader, or of all; all processes live."""
        master, one = self._world.master, self._server()
        if master is not None and one is not None:
            servers = list(self._world.servers.values()) if self._rng.random() < 0.5 else [one]
            for server in servers:
                self._world.trace(server.process, "loses its link to the leader")
                master.reset_link(server)

    def everything_dies(self) -> None:
        self._world.everything_dies(is_power_cut=False)

    def power_cut(self) -> None:
        self._world.everything_dies(is_power_cut=True)

    # --- people --------------------------------------------------------------------------------------

    def ask(self) -> None:
        world, rng, master = self._world, self._rng, self._world.master
        if master is None:
            return
        region, what = rng.choice(list(world.regions)), rng.random()
        name = rng.choice(world.server_names)
        if what < 0.80:
            self._request(MoveRegion(region, name if what < 0.70 else None))
        elif what < 0.90:
            self._request(UnassignRegion(region))
            self._agenda.later(None, self._agenda.drawn(50 * MS, 500 * MS), lambda: self._request(AssignRegion(region)))
        elif what < 0.98:
            self._request(DrainServer(name))
            self._agenda.later(
                None, self._agenda.drawn(200 * MS, SECOND), lambda: self._request(DrainServer(name, on=False))
            )
        else:
            self._request(SwitchSetting("balancer", rng.random() < 0.5))

    def change(self) -> None:
        """Split or merge some of the regions that exist when the request reaches the master."""
        rng, rows = self._rng, self._world.rows
        infos = sorted(self._world.regions.values(), key=lambda info: info.start)
        if rng.random() < 0.5:
            row = rng.choice(rows)
            found = [info for info in infos if info.contains_row(row) and info.start != row]
            if found:
                self._request(SplitRegion(found[0].region_id, row))
        elif len(infos) > 1:
            at = rng.randrange(len(infos) - 1)
            self._request(MergeRegions(infos[at].region_id, infos[at + 1].region_id))

    def _request(self, request: Request) -> None:
        master = self._world.master
        if master is not None:
            self._agenda.later(master.process, 0, lambda: master.ask(request))

    def evict(self) -> None:
        server = self._server()
        if server is not None and server.owning.stores:
            region = self._rng.choice(list(server.owning.stores))
            self._agenda.later(server.process, 0, lambda: server.owning.evict(region))

    # --- messages ------------------------------------------------------------------------------------

    def told_again(self) -> None:
        """Deliver a message twice, the second time late, as after the renewal of a link."""
        told, master = self._world.told, self._world.master
        known = [one for one in told if one[1].region in self._world.regions]  # others were forgotten on purpose
        if known and master is not None:
            master.send(*self._rng.choice(known))

    def old_leader(self) -> None:
        """Send the beliefs of a master that was replaced and does not know it."""
        server, master = self._server(), self._world.master
        if server is None or master is None or not master.durable:
            return
        region = self._rng.choice(list(master.durable))
        epoch = master.durable[region].epoch + self._rng.choice((0, 1, 1, 2))
        is_open = self._rng.random() < 0.7
        ask: OwnerRequest = (
            Open(region, Owner(server.me, epoch), "it believes so") if is_open else Close(region, epoch, "so")
        )
        if server.owning.hosting.leader == master.leader:
            master.send(server, ask, master.leader - 1, {})

    def stray_append(self) -> None:
        """Let a fenced writer that is not dead append to its log; the write is never acknowledged."""
        world, master = self._world, self._world.master
        if master is None:
            return
        sealed = [one for one in master.sealed_on_disk() if master.has_started(one)]  # none outlives the machine
        dead = [one for one in sealed if one in world.disk.logs and world.disk.logs[one].segments]
        if not dead:
            return
        server = self._rng.choice(dead)
        segment = list(world.disk.logs[server].segments.values())[-1]
        if not segment.frames or not segment.frames[-1]:
            return
        last = segment.frames[-1][-1]
        info = next(info for info in world.infos.values() if region_name(info.region_id) == last.region)
        row = next(row for row in world.rows if info.contains_row(row))
        if last.epoch not in world.had[server].get(info.region_id, ()):
            return  # it had given that up
        value = Value(world.next_argument(), 99, world.next_version())
        packed = b"%s=%s\n" % (row, value.packed())
        segment.frames.append([Record(last.region, last.epoch, last.number + 1, last.number, packed)])
        segment.synced = len(segment.frames)
