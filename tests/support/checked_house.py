"""Sources and a view's table in one server in memory; changes wait until the test applies them to the view."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import pairwise

from columnar.errors import ColumnarError, DamagedData
from columnar.flows.applier import Applier
from columnar.flows.governor import Governor
from columnar.model.contribution import Member, pack_carried, unpack
from columnar.model.flow_status import CheckReport
from columnar.model.mutation import Operation, RowMutation
from columnar.model.read import ReadSpec, projection
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, Table, make_table
from columnar.model.view_definition import MEMBERS, ORDERED, TOTALS, View, to_json
from columnar.operations.scanner_table import ScannerTable
from columnar.operations.table_operations import TableOperations
from columnar.regions.hooks import LogPolicy
from columnar.regions.read.region_reads import get_row
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Applied
from columnar.runtime.background import Background
from columnar.storage.commit import Committer
from columnar.storage.layout import split_cell_key
from columnar.storage.memory import MemoryEngine
from columnar.views.check_owners import CheckOwners
from columnar.views.checking import ViewCheck
from columnar.views.contributions import Rules, Share, difference, operation_of, rules_of
from columnar.views.view_check_peer_handlers import ViewCheckPeerHandlers
from tests.support.held_engine import FakeClock
from tests.support.openings import region_at_once
from tests.support.recompute import Group, order_qualifier, recomputed

Change = tuple[Rules, Share, tuple[int, int, int]]


class CheckedHouse:
    """A server with sources and a view, made inside a running loop."""

    def __init__(self, view: View, tables: Sequence[Table], splits: Sequence[bytes] = ()) -> None:
        self.view = view
        self.rules = rules_of(view)
        self.committer = Committer(asyncio.get_running_loop())
        self.server = RegionServer(MemoryEngine(), "regions", self.committer, FakeClock(), open_regions=99)
        self._next_id = 10
        families = [Family(name.decode()) for name in (TOTALS, MEMBERS, ORDERED)]
        self.served = {one.name: self._serve(one, splits) for one in (make_table(view.name, families), *tables)}
        for table in tables:
            names = frozenset(family.bytes_name for family in table.families)
            self.server.set_policy(table.name, LogPolicy(names, frozenset()))
        operations = TableOperations(self.server, ScannerTable(lambda: 0.0))
        governor = Governor()
        self.asked = ViewCheckPeerHandlers(operations.access, self.server, governor, lambda _name: to_json(view))
        self.applier = Applier(operations.access, operations.writes, governor, Background("background work"))
        self.pending: deque[Change] = deque()
        self.owners = CheckOwners(self.asked, self.applier, self.caught_up)

    def _serve(self, table: Table, splits: Sequence[bytes]) -> ServedTable:
        infos = []
        for start, end in pairwise((b"", *splits, b"")):
            infos.append(RegionInfo(table.name, self._next_id, start, end))
            self._next_id += 1
        served = ServedTable(table, True, infos)
        self.server.folders.make([info.encoded for info in infos])
        self.server.tables.install(served)
        return served

    def region(self, table: str, row: bytes) -> Region:
        return region_at_once(self.server, self.served[table], row)

    def image(self, table: str, row: bytes) -> dict[bytes, bytes]:
        spec = ReadSpec(projection(self.served[table].schema, []))
        return {column: value for column, value, _ in get_row(self.region(table, row), row, spec)}

    def write(self, table: str, row: bytes, *operations: Operation) -> None:
        """Write a row of a source; the change waits in ``pending``."""
        before = self.image(table, row)
        applied = self.region(table, row).apply(RowMutation(row, operations))
        after = self.image(table, row)
        sequence = applied.sequence
        for rules in self.rules:
            if rules.table == table:
                for share in difference(rules, row, before, after).shares:
                    self.pending.append((rules, share, (sequence.origin, sequence.epoch, sequence.n)))

    def drain(self, most: int | None = None) -> None:
        for _ in range(len(self.pending) if most is None else min(most, len(self.pending))):
            rules, share, sequence = change = self.pending.popleft()
            said = operation_of(rules, share, sequence)
            try:
                self.damage(share.group, said)
            except ColumnarError:  # a member or total that cannot be read: tried again, as a follower does
                self.pending.append(change)

    def damage(self, group: bytes, *operations: Operation) -> Applied:
        """Write into the view's table."""
        return self.region(self.view.name, group).apply(RowMutation(group, operations))

    async def caught_up(self, _view: str) -> bool:
        self.drain()
        return True

    async def check(self, *, repair: bool = False) -> CheckReport:
        return await ViewCheck(self.view, self.view.name, self.owners).run(repair=repair)

    # --- what is there -------------------------------------------------------------------------------

    def rows(self, table: str) -> dict[bytes, dict[bytes, bytes]]:
        found: dict[bytes, dict[bytes, bytes]] = {}
        served = self.served[table]
        names = {
            row
            for info in served.regions
            for family in served.schema.families
            for row in _rows_in(self.region(table, info.start), family.space)
        }
        for row in names:
            image = self.image(table, row)
            if image:
                found[row] = image
        return found

    def differences(self) -> list[str]:
        """Return the groups in which the view differs from its recomputation."""
        expected = recomputed([(one, list(self.rows(one.table).items())) for one in self.rules]).groups
        held = self.rows(self.view.name)
        found = []
        for row in sorted(expected.keys() | held.keys()):
            cells, group = held.get(row, {}), expected.get(row, Group())
            totals = {name: value for name, value in cells.items() if name.startswith(b"v:")}
            wanted = {name: total.to_bytes(8, "big", signed=True) for name, total in group.totals(self.rules).items()}
            members = {name[2:]: _given(value) for name, value in cells.items() if name.startswith(b"m:")}
            standing = {name: given for name, given in members.items() if given is not None}
            if totals != wanted:
                found.append(f"{row!r} totals {totals} {wanted}")
            if standing.keys() != group.members.keys():
                found.append(f"{row!r} members {sorted(standing)} {sorted(group.members)}")
            ordered = {name[2:]: value for name, value in cells.items() if name.startswith(b"o:")}
            if ordered != {order_qualifier(share): pack_carried(share.carry) for _, share in group.ordered()}:
                found.append(f"{row!r} order {ordered}")
            for name, share in group.members.items():
                amounts = tuple(sorted(zip(self._names(name), share.amounts or (), strict=True)))
                if name in standing and (amounts, share.order or b"", share.carry) != standing[name]:
                    found.append(f"{row!r} {name!r} {standing[name]} {share}")
        return found

    def _names(self, member: bytes) -> list[bytes]:
        rules = next(one for one in self.rules if member.startswith(one.side))
        return [family + b":" + qualifier for family, qualifier in rules.totals]

    async def close(self) -> None:
        await self.server.close()
        self.committer.close()


def _rows_in(region: Region, space: str) -> set[bytes]:
    return {split_cell_key(key)[0] for key, _ in region.store.scan(space, b"", None)}


def _given(data: bytes) -> tuple[object, ...] | None:
    """Return the share of a member; None if it was withdrawn."""
    try:
        member: Member = unpack(data)
    except DamagedData:
        return ()
    return None if member.is_gone else (member.amounts, member.order, member.carried)
