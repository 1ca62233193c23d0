"""The folders of incarnations: where each keeps its log and its clock.

    servers/NAME.NUMBER/log      what its regions wrote under shared fsyncs
    servers/NAME.NUMBER/clock    the highest timestamp that it gave
    server-log                   the log of a standalone, whose incarnation is called ``standalone.NUMBER``

An incarnation is text here, as ``s2.17``.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from columnar import clock
from columnar.storage.data_folder import SERVER_LOG

SERVERS: Final = "servers"
LOG: Final = "log"
STANDALONE: Final = "standalone"  # the name of the incarnations that a standalone's log belongs to


def folder_of(data: str, incarnation: str) -> str:
    return os.path.join(data, SERVERS, incarnation)


def log_of(data: str, incarnation: str) -> str:
    """The folder of the log that the incarnation writes, or wrote."""
    if incarnation.rpartition(".")[0] == STANDALONE:
        return os.path.join(data, SERVER_LOG)
    return os.path.join(folder_of(data, incarnation), LOG)


def clock_of(data: str, incarnation: str) -> int:
    """The highest timestamp that the incarnation may have given; 0: nothing is known.  Milliseconds."""
    is_standalone = incarnation.rpartition(".")[0] == STANDALONE
    return clock.read(data if is_standalone else folder_of(data, incarnation))


def newest_clock(data: str) -> int:
    """The highest timestamp that any process gave in the data folder, by the clocks' files.  Milliseconds."""
    newest_ms = clock.read(data)
    with suppress(FileNotFoundError), os.scandir(os.path.join(data, SERVERS)) as found:
        for folder in found:
            newest_ms = max(newest_ms, clock.read(folder.path))
    return newest_ms
