"""A store in a process of its own, for tests that kill it (``store_process.StoreProcess``).

The port is written, whole or not at all, once requests are served; SIGTERM stops it in order.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from functools import partial
from pathlib import Path

import uvloop

from columnar.config import StandaloneConfig
from columnar.master.catalogue import Catalogue
from columnar.model.derivations import Triggers, ViewSet
from columnar.model.region_info import RegionInfo
from columnar.roles.standalone import Standalone

ROOT = Path(__file__).parents[2]


def die_where_told(order: Path, step: str) -> None:
    """At the step that stands in the file: of a split or a merge, of a trigger that is added, or of a start."""
    if order.exists() and order.read_text() == step:
        order.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def die_as_it_starts(order: Path) -> None:
    """Before or after the write that moves the triggers of an older folder to the catalogue."""
    drop = Catalogue.drop

    async def dropped(self: Catalogue, name: str, kept: Triggers, views: ViewSet | None = None) -> list[RegionInfo]:
        die_where_told(order, "not moved")
        found = await drop(self, name, kept, views)
        die_where_told(order, "moved")
        return found

    Catalogue.drop = dropped  # type: ignore[method-assign]


async def serve(folder: str, port_file: Path, modules: tuple[str, ...]) -> None:
    order = Path(folder + ".die")
    die_as_it_starts(order)
    store = Standalone.locked(StandaloneConfig(folder, port=0, web_port=-1, trigger_modules=modules))
    await store.start()
    store.leading.region_changes.at = store.leading.triggers.at = partial(die_where_told, order)
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    fresh = port_file.with_suffix(".new")
    fresh.write_text(str(store.port))
    os.replace(fresh, port_file)
    await told.wait()
    await store.stop()


def launched(folder: Path, port_file: Path, modules: tuple[str, ...], log: Path) -> None:
    """What the process does; ``log`` gets what it says."""
    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(said, stream)
    os.close(said)
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = str(ROOT)  # of its trigger worker
    logging.basicConfig(level=os.environ.get("COLUMNAR_LOG_LEVEL", "WARNING"))
    uvloop.run(serve(str(folder), port_file, modules))
