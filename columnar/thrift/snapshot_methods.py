"""Our methods on snapshots, staging folders and loading, which translate between structs of wire and master."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from columnar.errors import IllegalArgument
from columnar.model import schema
from columnar.model.cell import checked_row
from columnar.model.mutation import RowMutation
from columnar.operations.table_operations import TableOperations
from columnar.regions.write.applied import Applied
from columnar.regions.write.ingestion import IncomingRows, obstacles_of
from columnar.storage.data_folder import STAGING
from columnar.thrift import translate
from columnar.wire.idl import columnar

if TYPE_CHECKING:  # a server of a cluster has no master within
    from columnar.master.snapshot_manifest import SnapshotManifest
    from columnar.master.snapshots import Snapshots

_STAGES: Final = ("copy", "everything", "empty")


class SnapshotMethods:
    def __init__(self, operations: TableOperations, snapshots: Snapshots) -> None:
        self._access = operations.access
        self._writes = operations.writes
        self._snapshots = snapshots

    async def columnarSnapshotTake(self, _ctx: Any, name: str, table: bytes) -> Any:
        return _info(await self._snapshots.take_snapshot(name or "", table or b""))

    async def columnarSnapshotList(self, _ctx: Any) -> list[Any]:
        return [_info(manifest) for manifest in await self._snapshots.all()]

    def columnarSnapshotClone(self, _ctx: Any, name: str, table: bytes) -> Any:
        return self._snapshots.clone(name or "", table or b"")

    def columnarSnapshotRestore(self, _ctx: Any, name: str) -> Any:
        return self._snapshots.restore(name or "")

    def columnarSnapshotDelete(self, _ctx: Any, name: str) -> Any:
        return self._snapshots.delete(name or "")

    async def columnarStage(self, _ctx: Any, what: str, table: bytes) -> Any:
        if what == "copy":
            staged = await self._snapshots.staged.stage_copy(table or b"")
        elif what == "everything":
            staged = await self._snapshots.staged.stage_everything()
        elif what == "empty":
            staged = await self._snapshots.staged.stage_empty()
        else:
            raise IllegalArgument(f"'{what}' cannot be staged; only {', '.join(_STAGES)}")
        return columnar.Staged(token=staged.token, folder=staged.folder)

    def columnarStageRelease(self, _ctx: Any, token: str) -> Any:
        return self._snapshots.staged.release_staged(token or "")

    def columnarStageAdopt(self, _ctx: Any, token: str, table: bytes) -> Any:
        return self._snapshots.adopt_staged(token or "", table or b"")

    def columnarLoadTarget(self, _ctx: Any, table: bytes) -> Any:
        served = self._access.meant(table or b"")
        obstacles = obstacles_of(self._access.open_region(served, served.regions[0]))
        text = schema.to_json(served.schema).decode()
        return columnar.LoadTarget(schemaJson=text, starts=served.starts, obstacles=obstacles)

    def columnarIngest(self, _ctx: Any, table: bytes, token: str, files: Any) -> Any:
        served = self._access.meant(table or b"")
        if files is None or not files.files:
            raise IllegalArgument("columnarIngest needs sorted files")
        first, last = checked_row(files.firstRow), checked_row(files.lastRow)
        self._snapshots.staged.staging.known(token or "")
        paths = {}
        for space, names in files.files.items():
            if any(os.path.basename(name) != name for name in names):
                raise IllegalArgument("a sorted file is named without its folder")
            paths[space] = [os.path.join(STAGING, token, name) for name in names]
        allowed = {"versions", *(family.space for family in served.schema.families)}
        if not allowed.issuperset(paths):
            raise IllegalArgument(f"sorted files go into {', '.join(sorted(allowed))}, not {', '.join(sorted(paths))}")
        timestamp = translate.checked_timestamp(files.highestTimestamp) or 0
        incoming = IncomingRows(first, last, timestamp, files.rows or 0, paths)
        return self._writes.ingest(served, incoming)

    def columnarLoadRows(self, ctx: Any, table: bytes, rows: Any) -> Any:
        served = self._access.meant(table or b"")
        mutations: dict[bytes, RowMutation] = {}
        for one in rows or ():
            row = checked_row(one.row)
            operations, sends = translate.change_from_wire(served.schema, one.operations)
            if row in mutations:
                raise IllegalArgument("columnarLoadRows names each row once")
            mutations[row] = RowMutation(row, operations, sends=sends)
        translate.check_places(self._access, mutations.values())
        return self._writes.write_rows(ctx, served, mutations, _nothing)


def _nothing(_applied: Applied | None) -> None:
    return None


def _info(manifest: SnapshotManifest) -> Any:
    return columnar.SnapshotInfo(
        name=manifest.name,
        table=manifest.table.name.encode(),
        createdMs=manifest.created_ms,
        regions=len(manifest.regions),
        sizeBytes=manifest.size_bytes,
    )
