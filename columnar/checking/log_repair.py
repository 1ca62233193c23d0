"""The repair of dead servers' logs: it replays them into their regions, and removes or sets aside the logs.

    an intact log   is replayed, as by a start, and removed
    a damaged log   its readable batches are replayed, the lost ones are reported; its folder goes to lost+found

Afterwards the catalogue names neither owners nor logs, as after a start of one process.  Each step may be cut off
anywhere and repeated: marks in the store say which batches of a log it has, and a log is removed only when the
catalogue no longer names it.

The log of one process (``server-log``) is salvaged by ``salvage_server_log``.  Blocks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from columnar.clock import ClockFile
from columnar.errors import ColumnarError
from columnar.master.catalogue import Catalogue
from columnar.master.dead_servers import DeadServerLog, contradictions, owned_by, read_dead_server_logs
from columnar.model.owner import Incarnation, Owner, OwnershipPeriod, find_unreplayed_logs
from columnar.model.region_info import RegionInfo
from columnar.storage import server_folders
from columnar.storage.api import Engine
from columnar.storage.data_folder import LOST_AND_FOUND, REGIONS, SERVER_LOG
from columnar.storage.dead_logs import DeadLog, DeadLogs
from columnar.storage.durable_files import make_lasting, sync_folder
from columnar.storage.log_salvage import SalvagedLog, salvaged
from columnar.storage.ownership import LogPart, Ownership
from columnar.storage.recovery import recover
from columnar.storage.region_folders import RegionFolders

Say = Callable[[str], None]


class ServerLogs:
    """The logs of all server incarnations that served a data folder, which no process serves now."""

    def __init__(self, engine: Engine, data: str, catalogue: Catalogue, logs: DeadLogs) -> None:
        """Take ``logs``, from which stores of ``engine`` get the batches that they lack; ``read`` fills it."""
        self._engine = engine
        self._data = data
        self._catalogue = catalogue
        self._logs = logs
        self._folders = RegionFolders(os.path.join(data, REGIONS), engine)
        self._pasts: dict[Incarnation, DeadServerLog] = {}
        self._salvaged: dict[Incarnation, SalvagedLog] = {}
        self._lacked: set[Incarnation] = set()  # servers whose logs have batches that a region could not get

    def read(self) -> None:
        """Read the dead servers' logs.  Raises HostError."""
        self._pasts = read_dead_server_logs(self._catalogue, self._data)
        for server, dead_log in self._pasts.items():
            log: DeadLog | None = dead_log.log
            if log is None:
                seal = self._catalogue.ownership.seal_of(server)
                folder = server_folders.log_of(self._data, str(server))
                log = self._salvaged[server] = salvaged(folder, seal.lengths if seal is not None else ())
            self._logs.add_log(str(server), log)

    def unreplayed_parts(self, info: RegionInfo) -> tuple[LogPart, ...]:
        """Return the parts of logs that the region may lack."""
        row = self._catalogue.ownership.owners.get(info.region_id)
        if row is None:
            return ()
        return tuple(LogPart(str(one.server), one.epoch) for one in find_unreplayed_logs(row, self._is_in_log(info)))

    def _is_in_log(self, info: RegionInfo) -> Callable[[OwnershipPeriod], bool]:
        return lambda period: (info.encoded, period.epoch) in self._pasts[period.server].named

    def bring_in_salvaged(self, info: RegionInfo, path: str, left: Say) -> None:
        """Replay the logs into the region's salvaged store at ``path``, a new store which lacks the lost data."""
        gaps = set[str]()
        for name in {part.log for part in self.unreplayed_parts(info)}:
            log = salvaged(server_folders.log_of(self._data, name), ())
            log.gaps = gaps
            self._logs.add_log(name, log)
        self.bring_in(info, path, left, has_own=True)
        for server, dead_log in self._pasts.items():
            if dead_log.log is not None:
                self._logs.add_log(str(server), dead_log.log)
        if gaps:
            what = "at least one batch that was acknowledged is lost"
            left(f"{info.table} {info.encoded}: {what}; compare with a backup")

    def bring_in(self, info: RegionInfo, path: str, left: Say, *, has_own: bool = False) -> None:
        """Replay the logs into the region's store at ``path``; with ``has_own`` its servers' logs are added already."""
        row, parts = self._catalogue.ownership.owners.get(info.region_id), self.unreplayed_parts(info)
        if row is None or not parts:
            return
        for server, log in () if has_own else self._salvaged.items():
            self._logs.add_log(str(server), log)  # it names less than its server owned, and counts as spent early
        try:
            self._engine.open_store(path, frozenset(), None, _claim(info, row, parts)).close()
        except ColumnarError as error:
            self._lack(info, parts, error.text, left)

    def lack(self, info: RegionInfo, why: str, left: Say) -> None:
        """Note that the region cannot get the batches that the logs have."""
        parts = self.unreplayed_parts(info)
        if parts:
            self._lack(info, parts, why, left)

    def _lack(self, info: RegionInfo, parts: Iterable[LogPart], why: str, left: Say) -> None:
        names = sorted({part.log for part in parts})
        self._lacked |= {server for server in self._pasts if str(server) in names}
        left(
            f"{info.table} {info.encoded}: it lacks what the logs of {', '.join(names)} have, and cannot get it: "
            f"{why}; compare with a backup"
        )

    # --- the end -----------------------------------------------------------------------------------

    async def end(self, done: Say, left: Say) -> None:
        """Remove owners from the catalogue, then the logs, once every region has all readable batches."""
        if not (self._pasts or self._catalogue.ownership.owners or self._catalogue.ownership.unread):
            return
        self._say_lost(left)
        for text in contradictions(self._catalogue, self._data):
            left(f"{text}; the region may lack acknowledged writes; compare with a backup")
        newest_ms = server_folders.newest_clock(self._data)
        await self._catalogue.ownership.forget_servers(self._catalogue.regions())
        clock = ClockFile.opened(self._data)
        try:
            clock.keep(max(newest_ms, clock.highest_ms))
        finally:
            clock.close()
        self._remove(done)

    def _remove(self, done: Say) -> None:
        for server in sorted(self._pasts):
            if server.name == server_folders.STANDALONE:
                continue  # its log is the folder's own
            if server in self._salvaged or server in self._lacked:
                path = server_folders.folder_of(self._data, str(server))
                if os.path.isdir(path):
                    done(f"the folder of server {server} moved to {move_aside(self._data, path)}")
            else:
                server_folders.remove(self._data, str(server))
            self._logs.drop(str(server))

    def _say_lost(self, left: Say) -> None:
        for server, log in sorted(self._salvaged.items()):
            lost = log.lost or [self._pasts[server].damage]
            for text in lost:
                left(f"the log of server {server}: {text}")
            regions = {info.encoded: info.table for entry in self._catalogue.tables.values() for info in entry.regions}
            owned = sorted({region for region, _ in owned_by(self._catalogue, server) if region in regions})
            for region in owned:
                if region in log.gaps:
                    left(f"{regions[region]} {region}: at least one batch that server {server} acknowledged is lost")
            if owned:
                named = ", ".join(f"{regions[region]} {region}" for region in owned)
                left(
                    f"regions of server {server} may lack acknowledged writes if the power failed when it died; else "
                    f"their own logs have them all: {named}; compare with a backup"
                )


def _claim(info: RegionInfo, row: Owner, parts: tuple[LogPart, ...]) -> Ownership:
    return Ownership(info.encoded, row.epoch + 1, parts)


def salvage_server_log(engine: Engine, data: str, logs: DeadLogs, why: str, done: Say, left: Say) -> None:
    """Replay the readable batches of the damaged log of one process, and move the log aside; ``why`` is the damage."""
    folder = os.path.join(data, SERVER_LOG)
    log = salvaged(folder, ())
    logs.add_log(SERVER_LOG, log)
    named = sorted({region for region, _ in log.named()})
    recover(engine, logs, RegionFolders(os.path.join(data, REGIONS), engine))
    for region, count in logs.left.items():
        left(f"{region}: {count} of its last batches stand in the server's log, and maybe only there")
    logs.drop(SERVER_LOG)
    for text in log.lost or [why]:
        left(f"the server's log: {text}")
    for region in sorted(log.gaps):
        left(f"{region}: at least one batch that was acknowledged is lost")
    done(f"what is readable of the server's log is in {len(named)} regions")
    done(f"{SERVER_LOG} moved to {move_aside(data, folder)}")


def bring_in_with_gaps(engine: Engine, data: str, logs: DeadLogs, left: Say) -> None:
    """Replay the intact log of one process into regions that refuse it because an earlier batch was lost."""
    log = salvaged(os.path.join(data, SERVER_LOG), ())
    logs.add_log(SERVER_LOG, log)
    recover(engine, logs, RegionFolders(os.path.join(data, REGIONS), engine))
    for region in sorted(log.gaps - logs.left.keys()):
        left(f"{region}: at least one batch that was acknowledged is lost; compare with a backup")


def move_aside(data: str, path: str) -> str:
    """Move ``path`` to lost+found; return its new place within the data folder."""
    aside = os.path.join(data, LOST_AND_FOUND)
    make_lasting(aside)
    name = os.path.basename(path)
    target, number = os.path.join(aside, name), 1
    while os.path.exists(target):
        number += 1
        target = os.path.join(aside, f"{name}.{number}")
    os.rename(path, target)
    sync_folder(aside)
    with suppress(FileNotFoundError):
        sync_folder(os.path.dirname(path))
    return f"{LOST_AND_FOUND}/{os.path.basename(target)}"
