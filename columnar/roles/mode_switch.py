"""Converts a data folder from the mode of several servers to the mode of one process, and the reverse.

    servers -> one process    ``to_one_process``: each region gets the records that it may lack from logs; then one
                              write removes owners and logs from the catalogue, and its epoch rises above all owners'
    one process -> servers    ``to_servers``: the server log is replayed, as for any region that no client has opened;
                              regions without an owner's row get a row of that process, above the catalogue's epoch
    nodes -> one machine      ``from_nodes``, before the catalogue is opened: the newest generation of each region's
                              folder becomes its only one, and the format falls; then as after servers

Each conversion finishes before anything is served.  Each may be interrupted at any point and repeated, because a log is
replayed with marks, and at an epoch that ``complete`` records; and the newest generation stays the newest.

A log is not replayed into a region merely because it names the region.  Otherwise a region that a server closed in
order, and a later server wrote to, would get its old values back.  Only two kinds of
ownership periods are replayed: those that the region's row lists as unreplayed, and the last owner's, if that owner's
log names the region.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from columnar.errors import ColumnarError, DamagedData, HostError
from columnar.master.catalogue import Catalogue
from columnar.master.dead_servers import (
    DeadServerLog,
    Owned,
    named_in,
    owned_by,
    read_dead_server_log,
    read_dead_server_logs,
)
from columnar.model.owner import Incarnation, Owner, OwnershipPeriod, find_unreplayed_logs, first_owner
from columnar.model.owner_messages import Segments
from columnar.model.region_info import RegionInfo
from columnar.roles.storage_fences import StorageFences
from columnar.runtime.slow_work import report_if_slow
from columnar.storage import server_folders
from columnar.storage.data_folder import REGIONS, VIEWS_SINCE, DataFolder
from columnar.storage.dead_logs import READ_AGAIN_S, READINGS, DeadLog, measure, read_repeatedly
from columnar.storage.log_takeover import take_log_over
from columnar.storage.opening_notes import opened_at
from columnar.storage.ownership import LogPart, Ownership
from columnar.storage.process_stores import FolderStores, ProcessStores
from columnar.storage.recovery import recover
from columnar.storage.region_takeover import end_generations
from columnar.storage.rocks import RocksEngine
from columnar.storage.server_folders import Seal
from columnar.storage.watched_folder import WatchedFolder

_log = logging.getLogger(__name__)


SLOW_S: Final = 1.5  # a log whose takeover takes longer is named to operators
TAKEOVERS: Final = 2  # logs of servers that ended by time, read at once
RETRY_S: Final = READ_AGAIN_S  # pause after the disk failed to read a log


class FolderDeadServerLogs:
    """The implementation of ``cluster_servers.DeadServerLogs``.  Owned by the loop."""

    def __init__(
        self,
        catalogue: Catalogue,
        stores: FolderStores,
        unread: dict[Incarnation, str],
        folder: WatchedFolder,
        synced_lengths: Callable[[str], Mapping[int, int]],
        fences: StorageFences | None = None,
    ) -> None:
        """Pass ``unread``, which this object fills for operators with the unreadable logs and the reasons.

        ``synced_lengths`` returns what a server, by its text, had synced of its segments by its node; any thread calls
        it.  ``fences`` shut the machines of servers that ended by time out of the folder.
        """
        self._synced_lengths = synced_lengths
        self._damaged_by_time: set[Incarnation] = set()  # ended by time, and their logs are not taken over yet
        self._folder = folder
        self._fences = fences
        self._delayed: dict[Incarnation, float] = {}  # whose takeover takes long, since when
        self._permits = asyncio.Semaphore(TAKEOVERS)
        self._unread = unread
        self._catalogue = catalogue
        self._stores = stores
        self._data = stores.folder.path
        self._readings: dict[Incarnation, asyncio.Future[Segments]] = {}  # readings of extents under way

    async def read_dead_server_log(self, server: Incarnation, *, is_by_time: bool = False) -> DeadServerLog:
        """Return the server's log.  Retries until it can be read, because its regions must not be served without it.

        With ``is_by_time`` the server's machine is fenced first, and then the log is taken over: the server's process
        may still append to it.

        A damaged log is read READINGS times, because caches of this machine may show an older state of its files.
        """
        died_ns = time.monotonic_ns()
        readings = 0  # number of readings that found damage
        if is_by_time and self._fences is not None:
            await self._fences.until_fenced(server)
        while True:
            seal, owned = self._catalogue.ownership.seal_of(server), owned_by(self._catalogue, server)
            try:
                dead_log = await self._read_in_thread(
                    server,
                    partial(self._read_dead_server_log, server, seal, owned, died_ns, is_by_time=is_by_time),
                    is_by_time=is_by_time,
                )
            except HostError as error:
                if self._unread.get(server) != error.text:
                    _log.error("the log of server %s cannot be read: %s; trying again", server, error.text)
                self._unread[server] = error.text
            else:
                readings += 1
                if not dead_log.damage or readings >= READINGS:
                    self._unread.pop(server, None)
                    return dead_log
                _log.error("the log of server %s, which is over, is damaged: %s", server, dead_log.damage)
                self._unread[server] = dead_log.damage
            await asyncio.sleep(RETRY_S)

    async def _read_in_thread(
        self, server: Incarnation, read: Callable[[], DeadServerLog], *, is_by_time: bool
    ) -> DeadServerLog:
        """Read in a thread.  Few logs of servers that ended by time are read at once: each may hold a thread up."""
        if not is_by_time:
            return await asyncio.to_thread(read)

        def note_wait() -> None:
            self._delayed[server] = asyncio.get_running_loop().time() - SLOW_S
            _log.warning("%s", self._delay_text(server))

        async with self._permits:
            try:
                return await report_if_slow(asyncio.to_thread(read), SLOW_S, note_wait)
            finally:
                self._delayed.pop(server, None)

    def list_delays(self) -> tuple[str, ...]:
        """Return sentences for operators about servers that ended, and whose regions wait."""
        fences = self._fences.remarks() if self._fences is not None else ()
        return (*fences, *(self._delay_text(server) for server in sorted(self._delayed)))

    def _delay_text(self, server: Incarnation) -> str:
        waited_s = asyncio.get_running_loop().time() - self._delayed[server]
        return (
            f"the file system has held back the log of server {server}, which ended, for {waited_s:.0f} s, and the "
            "server's regions wait: CephFS does so for 60 s, unless the client of the server's machine is evicted "
            "(--fence-command)"
        )

    def _read_dead_server_log(
        self, server: Incarnation, seal: Seal | None, owned: Owned, died_ns: int, *, is_by_time: bool
    ) -> DeadServerLog:
        """Return the dead server's log, after its extent, which the catalogue will record, is synced to disk."""
        synced = self._synced_lengths(str(server))
        if is_by_time:
            try:
                take_log_over(self._data, str(server), synced)
            except DamagedData as error:
                self._damaged_by_time.add(server)
                return DeadServerLog(None, owned, None, error.text)
        dead_log = read_dead_server_log(self._data, server, seal, owned, synced)
        if dead_log.log is not None and (seal is None or seal.is_of_files):
            server_folders.sync_extent(dead_log.log)
        try:
            opened = opened_at(server_folders.folder_of(self._data, str(server)), died_ns)
        except OSError as error:
            _log.warning("nobody can tell which regions server %s opened last: %s", server, error)
            return dead_log
        return replace(dead_log, opened=opened)

    async def remove(self, server: Incarnation) -> None:
        """Observe the server's clock, then remove its folder, which no row names any more."""
        newest_ms = await asyncio.to_thread(server_folders.clock_of, self._data, str(server))
        self._stores.clock.observe(newest_ms)
        try:
            await asyncio.to_thread(server_folders.remove, self._data, str(server))
        except HostError as error:
            _log.warning("%s; the next start removes it", error.text)

    async def extents(self, server: Incarnation, *, is_over: bool) -> Segments:
        """Return the present extent of the server's log.  Concurrent calls for an ended server share one reading.

        Raises HostError, DamagedData.
        """
        reading = self._readings.get(server)
        if reading is not None and is_over:
            return await asyncio.shield(reading)
        reading = asyncio.ensure_future(read_repeatedly(partial(self._extent, server, is_over)))
        if is_over:
            self._readings[server] = reading
            reading.add_done_callback(lambda _: self._readings.pop(server))
        return await asyncio.shield(reading)

    def _extent(self, server: Incarnation, is_over: bool) -> Segments:
        synced = self._synced_lengths(str(server))
        if is_over:
            if server in self._damaged_by_time:
                take_log_over(self._data, str(server), synced)
                self._damaged_by_time.discard(server)
            return server_folders.dead_log(self._data, str(server), None, synced, is_named=True).extent
        folder = server_folders.log_of(self._data, str(server))
        return DeadLog(folder, measure(folder, synced)).extent

    def free_bytes(self) -> int | None:
        room = self._folder.room
        return room.free_bytes if room is not None else None

    def is_folder_stalled(self) -> bool:
        return self._folder.is_stalled


# --- nodes -> one machine --------------------------------------------------------------------------------


def from_nodes(folder: DataFolder) -> None:
    """Convert a folder that nodes served, and from which a person has removed ``CLUSTER``.

    Call with the folder's exclusive lock, before any store is opened.  Blocks: 1 ms for each region.  Raises HostError.
    """
    if folder.is_shared:
        return
    regions = end_generations(os.path.join(folder.path, REGIONS))
    folder.lower_format(VIEWS_SINCE)
    _log.info(
        "the folder was served by nodes, of %d regions at a higher generation; one machine serves it", len(regions)
    )


# --- servers -> one process ----------------------------------------------------------------------------


async def to_one_process(catalogue: Catalogue, stores: FolderStores) -> None:
    """Convert the folder to one process.  Call before ``raise_epoch``.

    Raises HostError if a region cannot get the records that it lacks; then the folder is not converted.
    """
    data = stores.folder.path
    stores.clock.observe(server_folders.newest_clock(data))
    servers = named_in(catalogue, data)
    if not servers and not catalogue.ownership.owners:
        return
    dead_logs = read_dead_server_logs(catalogue, data)
    for server, dead_log in dead_logs.items():
        if dead_log.log is not None:
            stores.dead_logs.add_log(str(server), dead_log.log)
    try:
        for entry in catalogue.tables.values():
            for info in entry.regions:
                row = catalogue.ownership.owners.get(info.region_id)
                if row is not None:
                    _bring_home(stores, info, row, dead_logs)
    finally:
        for server in servers:
            stores.dead_logs.drop(str(server))
    await catalogue.ownership.forget_servers(catalogue.regions())
    for server in servers:
        server_folders.remove(data, str(server))
    _log.info("the folder was served by servers (%s); one process serves it now", ", ".join(map(str, sorted(servers))))


def _bring_home(
    stores: FolderStores, info: RegionInfo, row: Owner, dead_logs: Mapping[Incarnation, DeadServerLog]
) -> None:
    def is_in_log(period: OwnershipPeriod) -> bool:
        dead_log = dead_logs.get(period.server)
        return dead_log is not None and (info.encoded, period.epoch) in dead_log.named

    unreplayed = find_unreplayed_logs(row, is_in_log)
    if not unreplayed:
        return
    damages = [dead_logs[period.server].damage for period in unreplayed if period.server in dead_logs]
    parts = tuple(LogPart(str(period.server), period.epoch) for period in unreplayed)
    path = stores.region_folders.path(info.encoded)
    try:
        if not stores.region_folders.has(info.encoded):
            raise DamagedData(f"its folder {path} is missing")
        for damage in filter(None, damages):
            raise DamagedData(damage)
        stores.engine.open_store(path, frozenset(), None, Ownership(info.encoded, row.epoch + 1, parts)).close()
    except ColumnarError as error:
        raise HostError(
            f"region {info.encoded} of {info.table} lacks what servers' logs have, and cannot get it: {error.text}. "
            "Start the store with --servers 2, which serves the other regions"
        ) from error


# --- one process -> servers ----------------------------------------------------------------------------


def to_servers(catalogue: Catalogue, stores: FolderStores, *, recovers: bool = True) -> dict[int, Owner]:
    """Return rows of owners for the regions that have no owner's row, by region id.

    Blocks, for 15 ms per region that a crash left unreplayed.

    The owner is the earlier standalone process, whose log is empty when this returns; without ``recovers`` it was empty
    before (``empty_server_log``).  Raises HostError if a region cannot get the records that it lacks.
    """
    if recovers:
        _recover(stores)
    # ``recover`` may have raised a region's epoch one above that of the last run.
    row = first_owner(Incarnation(server_folders.STANDALONE, catalogue.ownership.epoch), catalogue.ownership.epoch + 1)
    regions = (info for entry in catalogue.tables.values() for info in entry.regions)
    return {info.region_id: row for info in regions if info.region_id not in catalogue.ownership.owners}


def empty_server_log(folder: DataFolder) -> None:
    """Replay the server log of an earlier standalone process, so that nodes may serve the folder.  Blocks.

    The folder must be locked exclusively.  Raises HostError, DamagedData.
    """
    stores = ProcessStores(folder, RocksEngine())
    stores.open()
    try:
        _recover(stores)
    finally:
        stores.close()


def _recover(stores: FolderStores) -> None:
    recover(stores.engine, stores.dead_logs, stores.region_folders)
    left = list(stores.dead_logs.left)
    if left:
        raise HostError(
            f"{len(left)} regions, the first is {left[0]}, lack what the server's log has, and cannot get it (the log "
            "above says why). Start the store without --servers, which serves the other regions"
        )
