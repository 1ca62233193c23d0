"""A folder as programs of format 5 left it: triggers are rows of a system table, not of the catalogue."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

from columnar.master import derivation_rows
from columnar.master.derivation_rows import TRIGGERS_TABLE
from columnar.model.derivations import Triggers
from columnar.model.mutation import Put, RowMutation
from columnar.model.schema import Family, make_table
from columnar.regions.life.opening import opened
from columnar.regions.region import Region
from columnar.roles.leading import Leading
from columnar.storage.data_folder import DataFolder
from columnar.storage.process_stores import ProcessStores
from columnar.storage.rocks import RocksEngine

TABLE = make_table(TRIGGERS_TABLE, [Family("info")])
Rows = dict[bytes, dict[bytes, bytes]]  # row -> column, without its family -> value


def older_rows(triggers: Triggers, beginning: int = 0) -> Rows:
    """Return the rows that an older program would have."""
    found: Rows = {}
    for row, cells in derivation_rows.rows_of(triggers).items():
        name = row.removeprefix(b"tr/")
        found[name] = {column.removeprefix(b"info:"): value for column, value in cells.items()}
    if triggers.numbers is not None:
        held = {"beginning": beginning, "given": triggers.numbers.given, "removed": triggers.numbers.removed}
        found[b"#numbers"] = {b"numbers": json.dumps(held, sort_keys=True).encode()}
    return found


def make_older(data: Path, more: Rows | None = None) -> None:
    """Turn a folder that no process serves into an older one; ``more`` are rows beside those of its triggers."""
    asyncio.run(_make_older(data, more or {}))
    (data / "FORMAT").write_text("columnar-data 5\n")


async def _make_older(data: Path, more: Rows) -> None:
    folder = DataFolder.locked(str(data))
    stores = ProcessStores(folder, RocksEngine())
    stores.open()
    leading = Leading(stores)
    epoch = await leading.open()
    catalogue = leading.catalogue
    rows = older_rows(catalogue.derivations.triggers) | more
    (info,) = await catalogue.reserve(TRIGGERS_TABLE, [(b"", b"")])
    stores.region_folders.make([info.encoded])
    path, ownership = stores.region_folders.path(info.encoded), stores.ownership(info.encoded, epoch)
    region = opened(stores.engine, path, info, TABLE, stores.committer, stores.clock, ownership)
    await _write(region, rows)
    await catalogue.adopt(TABLE, [info])
    await catalogue.derivations.write_derivations(
        replace(catalogue.derivations.triggers, all=(), numbers=Triggers().numbers)
    )
    await quiesce(region)
    region.close()
    await leading.close(quiesce)
    stores.close()
    folder.close()


async def _write(region: Region, rows: Rows) -> None:
    mutations = [
        RowMutation(row, tuple(Put(b"info", column, value) for column, value in cells.items()))
        for row, cells in rows.items()
    ]
    durable = region.apply_many(mutations).durable
    assert durable is not None
    await durable


async def quiesce(region: Region) -> None:
    while not region.syncs.is_quiet:  # noqa: ASYNC110 - the committer's own last turn
        await asyncio.sleep(0)
