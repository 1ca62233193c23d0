"""The invariants C1 to C6 of the cluster, over the whole simulated world, as plain checks.

    C1  an answer leaves only while its process has the region, at an epoch that it was assigned
    C2  no two live processes have a region, and no row is served twice; no owner begins before every earlier owner
        has closed the region or is dead
    C3  the epoch of an assigned region is on disk, and only rises there
    C4  a region is served with every write that was ever acknowledged or seen
    C5  only the owner carries out a call: C1 holds where the call is answered
    C6  the catalogue's rows on disk decide whether a log or a region's folder may be removed and must be found

``acknowledged`` has the versions on which clients may rely: of each row the highest in any answer that left its owner.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NoReturn

from columnar.master.instructions import Close, OwnerRequest
from columnar.model.owner import Incarnation, Owner
from columnar.model.owner_messages import Segments
from columnar.regions.life.region_state import AssignmentOutput, Refuse
from tests.simulation.stores import is_row, unpacked

if TYPE_CHECKING:
    from tests.simulation.clients import Op
    from tests.simulation.master import Master
    from tests.simulation.server import Server
    from tests.simulation.world import World


class Violation(AssertionError):
    pass


class Laws:
    def __init__(self, world: World) -> None:
        self._world = world
        self.acknowledged: dict[bytes, int] = {}
        self.sealed: dict[Incarnation, Segments] = {}  # what was there when the process was dead
        self._on_disk: dict[int, int] = {}  # epochs of the catalogue's rows
        self.served = 0

    def broken(self, what: str) -> NoReturn:
        raise Violation(f"{self._world.agenda.now_us / 1e6:.6f} s: {what}")

    # --- C1, C4 --------------------------------------------------------------------------------------

    def has_region(self, server: Server, region: int) -> None:
        if not server.owning.hosting.find(region).is_assigned:
            self.broken(f"C1: {server.me} answers for region {region}, which it does not have")

    def answers(self, server: Server, region: int, versions: Mapping[bytes, int]) -> None:
        if self._world.is_replaced(server.me):
            self.broken(f"C1: {server.me} answers for region {region}, and was fenced")
        for row, version in versions.items():
            if version > self.acknowledged.get(row, 0):
                self.acknowledged[row] = version

    def serves(self, server: Server, region: int, data: Mapping[bytes, bytes]) -> None:
        self.served += 1
        if self._world.is_replaced(server.me):
            return  # its lease is over, so nobody will hear of it
        for pair in data.items():
            if is_row(pair[0]) and self._world.disk.is_late(region, pair):
                self.broken(
                    f"C4: {server.me} serves {pair} of region {region}, written after the takeover of its folder"
                )
        info = self._world.infos[region]
        for row, wanted in self.acknowledged.items():
            if info.contains_row(row):
                found = unpacked(data.get(row)).version
                if found < wanted:
                    self.broken(
                        f"C4: {server.me} serves row {row.decode()} of region {region} with version {found}, "
                        f"and {wanted} was acknowledged"
                    )

    def refused(self, op: Op) -> None:
        if op.applied_at:
            self.broken(f"W2: {op} was refused as not served, and was carried out")

    # --- C2 ------------------------------------------------------------------------------------------

    def begins(self, server: Server, region: int, epoch: int) -> None:
        if self._world.is_replaced(server.me):
            return
        for other in self._world.servers.values():
            is_assigned = other.owning.hosting.find(region).is_assigned
            if other is not server and not other.process.is_dead and is_assigned:
                self.broken(f"C2: {server.me} begins region {region} at {epoch}, and {other.me} has it")

    def opens(self, server: Server, region: int) -> None:
        if self._world.is_replaced(server.me):
            return
        for other in self._world.servers.values():
            if other is not server and not other.process.is_dead and region in other.owning.stores:
                self.broken(f"C2: {server.me} opens the store of region {region}, and {other.me} has it open")

    def after_step(self) -> None:
        had: dict[int, Server] = {}
        for server in self._world.servers.values():
            if server.process.is_dead:
                continue
            for region in server.owning.had():
                if region in had:
                    self.broken(f"C2: {had[region].me} and {server.me} have region {region}")
                had[region] = server
        served: dict[bytes, Server] = {}
        for server in self._world.servers.values():
            for row in server.owning.served_rows() if not server.process.is_dead else ():
                if row in served:
                    self.broken(f"C2: row {row.decode()} is served by {served[row].me} and by {server.me}")
                served[row] = server

    # --- C3 ------------------------------------------------------------------------------------------

    def told(self, server: Incarnation, ask: OwnerRequest, durable: Mapping[int, Owner]) -> None:
        row = durable.get(ask.region)
        epoch = ask.epoch if isinstance(ask, Close) else ask.owner.epoch
        if row is None or row.epoch < epoch:
            self.broken(f"C3: {server} is told {ask}, and the row on disk is {row}")
        if not isinstance(ask, Close) and row.epoch == epoch and row.server != server:
            self.broken(f"C3: {server} is told {ask}, and the row on disk is {row}")

    def sends(self, master: Master) -> None:
        """Check a message that leaves a master."""
        if self._world.coordination.epoch > master.leader:
            self.broken(f"C2: leader {master.leader} acts, and {self._world.coordination.epoch} has begun")

    def told_by(self, leader: int, heard: int, doing: tuple[AssignmentOutput, ...]) -> None:
        if leader < heard and not all(isinstance(do, Refuse) for do in doing):
            self.broken(f"C2: leader {leader} was replaced by {heard}, and is obeyed: {doing}")

    def on_disk(self, rows: Mapping[int, Owner]) -> None:
        for region, row in rows.items():
            if row.epoch < self._on_disk.get(region, 0):
                self.broken(f"C3: the epoch of region {region} falls to {row.epoch}")
            self._on_disk[region] = row.epoch

    # --- C6 ------------------------------------------------------------------------------------------

    def fenced(self, server: Incarnation, extents: Segments, rows: Mapping[int, Owner]) -> None:
        """Check a seal: a later master may measure a log anew only if no row on disk has the log as unreplayed."""
        before = self.sealed.get(server, extents)
        for region, row in rows.items():
            if before != extents and any(tenure.server == server for tenure in row.unreplayed_logs):
                self.broken(f"C6: the log of {server} was sealed at {before}, and region {region} has it behind")
        self.sealed[server] = extents

    def reads(self, server: Incarnation, extents: Segments) -> None:
        """Check D1: nothing behind a seal is read.

        ``extents`` are those that the log still has: a reader's seal may name a segment that the living writer removed,
        because every region had its records.
        """
        sealed = self.sealed.get(server)
        if sealed is not None and any(length > dict(sealed).get(name, 0) for name, length in extents):
            self.broken(f"C6: the log of {server} was sealed at {sealed} and is read to {extents}")

    def finds(self, server: Incarnation, names: Collection[str]) -> None:
        """Check that every sealed segment is found; a living writer may have removed some, as above."""
        gone = [name for name, length in self.sealed.get(server, ()) if length and name not in names]
        if gone:
            self.broken(f"C6: the log of {server} was sealed with {gone}, and has them no more")

    def removes(self, server: Incarnation) -> None:
        rows = self._world.rows_on_disk()
        for region, row in rows.items():
            named = (row.server, *(tenure.server for tenure in row.unreplayed_logs))
            if server in named or (row.source is not None and row.source.server == server):
                self.broken(f"C6: the log of {server} is removed, and the row of region {region} is {row}")

    def destroys(self, region: int) -> None:
        master = self._world.master
        is_named = master is not None and master.catalogue.may_name(region)
        if is_named:
            self.broken(f"C6: the folder of region {region} is removed, and the catalogue may name it")

    # --- the end -------------------------------------------------------------------------------------

    def at_rest(self) -> None:
        infos = sorted(self._world.regions.values(), key=lambda info: info.start)
        edges = [b"", *(info.end for info in infos)]
        if [info.start for info in infos] != edges[:-1] or edges[-1]:
            self.broken(f"at rest: the table is {infos}")
        for region in self._world.regions:
            count = sum(server.owning.hosting.find(region).may_serve for server in self._world.servers.values())
            if count != 1:
                self.broken(f"at rest: region {region} is served by {count} servers")
