"""Owners, sealed logs of dead incarnations, operator settings and the epoch: the catalogue's rows of a cluster.

    row ``r/...``   info:owner = JSON of the region's owner (``model.owner``); none in a standalone
    rows ``s/...``, ``w/...``   logs of dead incarnations, and operator settings (``catalogue_rows``)
    row ``e``       info:epoch = the last epoch that was begun (``raise_epoch``), eight bytes

Invariant: no region gets an owner after it was removed from its table: writes that remove regions and writes of owners
hold the same lock (``rows_change``).

Pure except for the argument ``write``, a function that applies mutations and returns when they are on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from columnar.master import catalogue_rows
from columnar.master.catalogue_rows import INFO, OperatorSettings, erase, put, region_row, u64
from columnar.model import owner
from columnar.model.mutation import Delete, RowMutation
from columnar.model.owner import Incarnation, Owner
from columnar.model.region_info import RegionInfo
from columnar.storage.server_folders import Seal

if TYPE_CHECKING:  # a standalone writes no plans, and saves their 0.3 MB
    from columnar.master.instructions import Write
    from columnar.model.owner_messages import Segments

_NONE: Final = "which is none of ours"


class OwnershipRows:
    def __init__(
        self,
        write: Callable[[list[RowMutation]], Awaitable[None]],
        rows_change: asyncio.Lock,
        is_of_table: Callable[[RegionInfo], bool],
    ) -> None:
        """``is_of_table``: whether a table has the region now."""
        self._write = write
        self.owners: dict[int, Owner] = {}  # by region id; a region without an entry has had no owner
        self.sealed: dict[Incarnation, Segments] = {}
        self._sealed_by_older: set[Incarnation] = set()  # sealed by older programs, at lengths of files
        self.unread: dict[bytes, str] = {}  # row -> why its owner or seal does not decode: a repair can omit it
        self.operator_settings = OperatorSettings()
        self.epoch = 0  # 0 if no owner has been named yet
        self._epoch_change = asyncio.Lock()  # each caller's epoch is written before the next one is chosen
        self._rows_change = rows_change
        self._is_of_table = is_of_table

    # --- rows on disk ------------------------------------------------------------------------------

    def take_row(self, row: bytes, cells: Mapping[bytes, bytes]) -> None:
        """Load the row of a seal, of the operator settings or of the epoch; ignore any other row."""
        if row.startswith(catalogue_rows.SEALED):
            self._take_seal(catalogue_rows.sealed_server(row), cells)
        elif row == catalogue_rows.OPERATOR_SETTINGS_ROW:
            self.operator_settings = catalogue_rows.operator_settings_from_json(cells[b"info:wishes"])
        elif row == b"e":
            self.epoch = int.from_bytes(cells[b"info:epoch"], "big")

    def take_owner(self, info: RegionInfo, cells: Mapping[bytes, bytes]) -> None:
        if b"info:owner" not in cells:
            return
        try:
            self.owners[info.region_id] = owner.from_json(cells[b"info:owner"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.unread[region_row(info)] = (
                f"the catalogue has an owner of region {info.encoded} of {info.table}, {_NONE}: {error!r}"
            )

    def _take_seal(self, server: Incarnation, cells: Mapping[bytes, bytes]) -> None:
        try:
            self.sealed[server] = catalogue_rows.sealed_from_json(cells[b"info:sealed"])
        except (ValueError, KeyError, TypeError) as error:
            self.unread[catalogue_rows.sealed_row(server)] = (
                f"the catalogue has a seal of the log of {server}, {_NONE}: {error!r}"
            )
        if b"info:whole" not in cells:
            self._sealed_by_older.add(server)

    def stored_rows(self) -> dict[bytes, dict[bytes, bytes]]:
        """Return the rows that should be on disk, except for the rows of regions."""
        rows = {}
        if self.epoch:
            rows[b"e"] = {b"info:epoch": u64(self.epoch)}
        for server, segments in self.sealed.items():
            cells = rows[catalogue_rows.sealed_row(server)] = {b"info:sealed": catalogue_rows.sealed_to_json(segments)}
            if server not in self._sealed_by_older:
                cells[b"info:whole"] = b"1"
        if self.operator_settings != OperatorSettings():
            rows[catalogue_rows.OPERATOR_SETTINGS_ROW] = {
                b"info:wishes": catalogue_rows.operator_settings_to_json(self.operator_settings)
            }
        return rows

    def owner_cells(self, info: RegionInfo) -> dict[bytes, bytes]:
        """Return the cells of the region's row that name its owner."""
        row = self.owners.get(info.region_id)
        return {} if row is None else {b"info:owner": owner.to_json(row)}

    # --- owners ------------------------------------------------------------------------------------

    async def raise_epoch(self, at_least: int = 0) -> int:
        """Begin an epoch that no earlier owner had, and that is at least ``at_least``; it is on disk on return.

        Called once per start, before any region opens.  A cluster calls it also for each start of a server; calls
        overlap when servers that died together start together.
        """
        async with self._epoch_change:
            epoch = max(self.epoch + 1, at_least)
            await self._write([put(b"e", epoch=u64(epoch))])
            self.epoch = epoch
            return epoch

    async def forget_servers(self, regions: Iterable[RegionInfo]) -> None:
        """Forget owners and dead logs: one process serves all ``regions``, and their stores have what the logs have.

        The epoch rises above the epochs of all owners, so that the next owner of each region has a higher epoch.
        """
        owned = [info for info in regions if info.region_id in self.owners]
        epoch = max([self.epoch, *(row.epoch + 1 for row in self.owners.values())])
        mutations = [_without_owner(region_row(info)) for info in owned]
        mutations += [erase(catalogue_rows.sealed_row(server)) for server in self.sealed]
        mutations += [_without_owner(row) if row.startswith(b"r/") else erase(row) for row in self.unread]
        await self._write([*mutations, put(b"e", epoch=u64(epoch))])
        self.owners, self.sealed, self.unread, self.epoch = {}, {}, {}, epoch

    def regions_went(self, regions: Iterable[RegionInfo]) -> None:
        """Forget the owners of regions that no table has any more; their rows are gone."""
        for info in regions:
            self.owners.pop(info.region_id, None)

    def regions_came(self, regions: Iterable[RegionInfo], row: Owner) -> None:
        """Note ``row`` as the owner of regions whose rows were written with that owner."""
        self.owners |= {info.region_id: row for info in regions}

    async def write_owners(self, write: Write) -> None:
        """Write the rows of a master's plan in one batch, except rows of regions that no table has any more."""
        async with self._rows_change:
            await self._write_owners(write)

    async def _write_owners(self, write: Write) -> None:
        owners = [(info, row) for info, row in write.owners if self._is_of_table(info)]
        mutations = [put(region_row(info), owner=owner.to_json(row)) for info, row in owners]
        sealed = {server: catalogue_rows.sealed_to_json(segments) for server, segments in write.sealed}
        mutations += [
            put(catalogue_rows.sealed_row(server), sealed=value, whole=b"1") for server, value in sealed.items()
        ]
        mutations += [erase(catalogue_rows.sealed_row(server)) for server in write.forgotten]
        if write.operator_settings is not None:
            mutations.append(
                put(
                    catalogue_rows.OPERATOR_SETTINGS_ROW,
                    wishes=catalogue_rows.operator_settings_to_json(write.operator_settings),
                )
            )
        if mutations:
            await self._write(mutations)
        self.owners |= {info.region_id: row for info, row in owners}
        self.sealed |= dict(write.sealed)
        self._sealed_by_older -= dict(write.sealed).keys()
        for server in write.forgotten:
            self.sealed.pop(server, None)
        self.operator_settings = write.operator_settings or self.operator_settings

    # --- logs of dead incarnations -----------------------------------------------------------------

    def seal_of(self, server: Incarnation) -> Seal | None:
        """Return the seal of the incarnation's log.  Returns None if it has none yet, or if the log was damaged."""
        lengths = self.sealed.get(server)
        return None if lengths is None else Seal(lengths, is_of_files=server in self._sealed_by_older)

    def firm_seals(self) -> dict[Incarnation, Segments]:
        """Return the seals whose lengths count whole frames, which are on disk."""
        return {one: lengths for one, lengths in self.sealed.items() if one not in self._sealed_by_older}


def _without_owner(row: bytes) -> RowMutation:
    return RowMutation(row, (Delete(INFO, b"owner"),))
