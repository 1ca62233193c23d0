"""The takeover of the log of a server that ended by time: its process may wake, append, and remove segments.

    servers/NAME.NUMBER/log         the process has its files open, and removes segments by their paths
    servers/NAME.NUMBER/log.ended   links of the segments, and copies of all other files; readers prefer it (``log_of``)

Later appends of the process to a linked segment are behind the seal, where nobody reads.  The bounds (``SYNCED``) are
copied, so that later bounds do not contradict the seal.  Without the takeover a segment that the process removes, or a
bound that it raises, would make the log damaged for the next owners of its regions.

Functions block: they are for threads.
"""

from __future__ import annotations

import logging
import os
import secrets
from typing import Final

from columnar.errors import HostError
from columnar.storage.dead_logs import SUFFIX
from columnar.storage.durable_files import HALF, rename_durably, sync_folder
from columnar.storage.file_copies import remove_tree
from columnar.storage.region_takeover import copy_whole
from columnar.storage.rocks_errors import refused
from columnar.storage.server_folders import ENDED_LOG, LOG, folder_of

_log = logging.getLogger(__name__)

ATTEMPTS: Final = 20  # each failed attempt means that the process has begun or removed a segment meanwhile


def take_log_over(data: str, incarnation: str) -> None:
    """Take the log over, unless it was never begun or is taken over already.  Call before it is sealed.

    Raises HostError.
    """
    folder = folder_of(data, incarnation)
    source, target = os.path.join(folder, LOG), os.path.join(folder, ENDED_LOG)
    half = f"{target}.{secrets.token_hex(4)}{HALF}"  # a leader that was replaced may be taking it over, too
    try:
        for _ in range(ATTEMPTS):
            if not os.path.isdir(source) or os.path.isdir(target):
                return
            try:
                if _is_linked(source, half):
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
