"""A restored data folder and the servers that its catalogue names: each gets a folder, without a log.

A copy of a region has all that its server's log had.  The catalogue of a backup still names the servers, and the
folder of a server that is named must be there (``storage.server_folders``).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from columnar.backup.region_reader import read_rows
from columnar.errors import HostError
from columnar.storage.data_folder import META, REGIONS
from columnar.storage.rocks import RocksEngine
from columnar.storage.server_folders import STANDALONE, make_spent

if TYPE_CHECKING:
    from columnar.model.mutation import RowMutation


def make_folders_of_servers(data: str) -> None:
    """Raises HostError, DamagedData.  Blocks."""
    from columnar.master.catalogue import META_SCHEMA, Catalogue, strays
    from columnar.master.dead_servers import named_in

    path = os.path.join(data, REGIONS, META)
    engine = RocksEngine()
    if not engine.exists(path):
        return  # a backup of nothing
    _, rows = strays(read_rows(engine, path, META_SCHEMA))
    named = [str(one) for one in sorted(named_in(Catalogue(rows, _no_writes), data)) if one.name != STANDALONE]
    try:
        make_spent(data, named)
    except OSError as error:
        raise HostError(f"cannot make folders in {data}: {error.strerror}") from error


async def _no_writes(_mutations: list[RowMutation]) -> None:
    raise AssertionError("the catalogue is only read")
