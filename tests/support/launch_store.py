"""A store in a process of its own, for tests that kill it: ``python launch_store.py FOLDER PORT_FILE [MODULE...]``.

The port is written, whole or not at all, once requests are served; SIGTERM stops it in order.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from functools import partial
from pathlib import Path

import uvloop

from columnar.config import StandaloneConfig
from columnar.standalone import Standalone


def die_where_told(order: Path, step: str) -> None:
    """At the step of a split or a merge that stands in the file."""
    if order.exists() and order.read_text() == step:
        order.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


async def serve(folder: str, port_file: Path, modules: tuple[str, ...]) -> None:
    store = Standalone.locked(StandaloneConfig(folder, port=0, web_port=-1, trigger_modules=modules))
    await store.start()
    store.leading.region_changes.at = partial(die_where_told, Path(folder + ".die"))
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    fresh = port_file.with_suffix(".new")
    fresh.write_text(str(store.port))
    os.replace(fresh, port_file)
    await told.wait()
    await store.stop()


if __name__ == "__main__":
    logging.basicConfig(level=os.environ.get("COLUMNAR_LOG_LEVEL", "WARNING"))
    uvloop.run(serve(sys.argv[1], Path(sys.argv[2]), tuple(sys.argv[3:])))
