"""The takeover of the log of a server that ended by time: its process may wake, append, and remove segments.

    servers/NAME.NUMBER/log         the process has its files open, and removes segments by their paths
    servers/NAME.NUMBER/log.ended   links of the segments, and copies of all other files; readers prefer it (``log_of``)

Later appends of the process to a linked segment are behind the seal, where nobody reads.  The bounds (``SYNCED``) are
copied, so that later bounds do not contradict the seal.  Without the takeover a segment that the process removes, or a
bound that it raises, would make the log damaged for the next owners of its regions.

A takeover that finds less than the process had synced, by the record of its node, is not finished: this machine may see
the folder as it was a moment ago.

Functions block: they are for threads.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Mapping
from typing import Final

from columnar.errors import DamagedData, HostError
from columnar.storage.dead_logs import NO_LENGTHS, SUFFIX, measure
from columnar.storage.durable_files import HALF, rename_durably, sync_folder
from columnar.storage.file_copies import remove_tree
from columnar.storage.region_takeover import copy_whole
from columnar.storage.rocks_errors import refused
from columnar.storage.server_folders import ENDED_LOG, LOG, folder_of

_log = logging.getLogger(__name__)

ATTEMPTS: Final = 20  # each failed attempt means that the process has begun or removed a segment meanwhile


def take_log_over(data: str, incarnation: str, synced: Mapping[int, int] = NO_LENGTHS) -> None:
    """Take the log over, unless it was never begun or is taken over already.  Call before it is sealed.

    ``synced`` has the lengths that the incarnation had synced by its node's record (``dead_logs.measure``).
    Raises HostError, and DamagedData if the log has less.
    """
    folder = folder_of(data, incarnation)
    source, target = os.path.join(folder, LOG), os.path.join(folder, ENDED_LOG)
    half = f"{target}.{secrets.token_hex(4)}{HALF}"  # a leader that was replaced may be taking it over, too
    try:
        for _ in range(ATTEMPTS):
            if os.path.isdir(target) or not (synced or os.path.isdir(source)):
                return
            if synced:
                measure(source, synced)
            try:
                if _is_linked(source, half):
                    _check_links(half, synced)
                    rename_durably(half, target)
                    return
            except FileNotFoundError as missing:
                _log.info(
                    "the takeover of the log of server %s begins again: %s is gone", incarnation, missing.filename
                )
            except OSError:
                if not os.path.isdir(target):  # else another leader was faster
                    raise
            finally:
                remove_tree(half, missing_ok=True)
    except OSError as error:
        raise refused(error, f"cannot take the log {source} over") from error
    raise HostError(f"the log {source} is changed by its server all the time; it is not taken over")


def _check_links(half: str, synced: Mapping[int, int]) -> None:
    """Raise HostError if the links and copies have less than was synced, which the log itself had a moment ago."""
    try:
        if synced:
            measure(half, synced)
    except DamagedData as error:
        raise HostError(f"the mount shows a log in two states: {error.text}") from error


def _is_linked(source: str, half: str) -> bool:
    """Link and copy the log's files.  Returns False if other files came meanwhile.  Raises OSError."""
    os.mkdir(half)
    names = sorted(os.listdir(source), key=lambda name: not name.endswith(SUFFIX))
    for name in names:
        one, other = os.path.join(source, name), os.path.join(half, name)
        if name.endswith(SUFFIX):
            try:
                os.link(one, other)
                continue
            except FileNotFoundError:
                raise
            except OSError as error:  # a file system without links
                _log.info("%s is copied, because it cannot be linked: %s", one, error)
        copy_whole(one, other)
    sync_folder(half)
    return sorted(names) == sorted(os.listdir(source))
