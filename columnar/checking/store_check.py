"""The check of a whole data folder, or of copies of all its regions: catalogue, folders, regions, snapshots.

The check changes nothing.  Offline its caller holds the folder's lock.  Online it reads copies that were taken at one
moment (``master.snapshots.stage_everything``), and only the names in the live folder.

Blocks.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, NamedTuple

from columnar.backup.region_reader import cells_of, read_rows
from columnar.checking.findings import Report, Severity
from columnar.checking.region_check import RegionCheck
from columnar.errors import CallerError, ColumnarError, abbreviate
from columnar.master import snapshot_manifest
from columnar.master.catalogue import META_REGION_ID, META_SCHEMA, Catalogue, strays
from columnar.master.dead_servers import DeadServerLog, contradictions, read_dead_server_logs
from columnar.master.snapshot_manifest import MANIFEST
from columnar.model.mutation import RowMutation
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.read.family_view import views_of
from columnar.storage.api import Engine
from columnar.storage.data_folder import META, REGIONS, SERVERS, SNAPSHOTS
from columnar.storage.dead_logs import remedy_of
from columnar.storage.file_copies import check_file
from columnar.storage.region_entries import Entry, entries_by_region, newest_of
from columnar.storage.rocks_errors import refused
from columnar.storage.rocks_opening import begun, has_store
from columnar.storage.server_folders import have_logs, log_of

Progress = Callable[[int], None]  # bytes of values since the last call


class Damaged(NamedTuple):
    table: str
    info: RegionInfo
    can_be_opened: bool
    lost: str = ""  # the fault, if nothing is left to be saved: "its folder is missing"


class StoreCheck:
    """The check of a folder, to be used once: call ``run``, then read ``report`` and the fields for a repair."""

    def __init__(
        self,
        engine: Engine,
        regions_folder: str,
        progress: Progress = lambda _done: None,
        *,
        has_all_folders: bool = True,
    ) -> None:
        """Take ``has_all_folders``, which is False for a data folder of a version below ALL_FOLDERS_SINCE."""
        self._has_all_folders = has_all_folders
        self._engine = engine
        self._regions_folder = regions_folder
        self._newest: dict[str, Entry] = {}  # the newest folder of each region, by encoded name
        self._progress = progress
        self.report = Report()
        self.catalogue: Catalogue | None = None
        self.damaged: list[Damaged] = []

    def run(self) -> Report:
        for encoded, entries in entries_by_region(os.listdir(self._regions_folder)).items():
            newest = newest_of(entries)
            if newest is not None:
                self._newest[encoded] = newest
        self.catalogue = self._read_catalogue()
        if self.catalogue is not None:
            self._ranges(self.catalogue)
            for name in sorted(self.catalogue.tables):
                entry = self.catalogue.tables[name]
                self.report.totals["tables"] += 1
                for info in entry.regions:
                    self._region(entry.schema, info)
        return self.report

    def _path(self, encoded: str) -> str:
        """Return the path of the region's newest folder."""
        newest = self._newest.get(encoded)
        return os.path.join(self._regions_folder, encoded if newest is None else newest.name)

    # --- the catalogue -----------------------------------------------------------------------------

    def _read_catalogue(self) -> Catalogue | None:
        advice = "restore the store from a backup ('columnar restore-backup'), or copy the regions' folders aside"
        try:
            rows = read_rows(self._engine, self._path(META), META_SCHEMA)
            stray, sane = strays(rows)
            for row in stray:
                self.report.add_finding(
                    Severity.ERROR, "catalogue", f"row {abbreviate(row)} names a region of no table"
                )
            self._catalogue_region()
            return Catalogue(sane, _no_writes)
        except ColumnarError as error:
            self.report.add_finding(Severity.ERROR, "catalogue", f"cannot be read: {error.text}", advice)
        except (ValueError, KeyError, TypeError) as error:
            self.report.add_finding(Severity.ERROR, "catalogue", f"holds a row that is none of ours: {error!r}", advice)
        return None

    def _catalogue_region(self) -> None:
        """Check the other spaces of the catalogue too: an opening reads them, and fails if a block is damaged."""
        store = self._engine.open_reading(self._path(META))
        try:
            info = RegionInfo(META_SCHEMA.name, META_REGION_ID)
            RegionCheck(store, META_SCHEMA, info, self.report, "catalogue").run()
        finally:
            store.close()

    def _ranges(self, catalogue: Catalogue) -> None:
        for name, entry in sorted(catalogue.tables.items()):
            for fault in faults_of(entry.regions):
                if isinstance(fault, Hole):
                    text = f"no region holds the rows from '{abbreviate(fault.start)}' to '{abbreviate(fault.end)}'"
                    self.report.add_finding(Severity.ERROR, name, text, "'columnar repair' puts an empty region there")
                else:
                    text = f"regions {fault.left.encoded} and {fault.right.encoded} hold the same rows"
                    advice = (
                        "export the table from a backup, or copy both folders aside and drop one from a backup's view"
                    )
                    self.report.add_finding(Severity.ERROR, name, text, advice)

    # --- regions -----------------------------------------------------------------------------------

    def _region(self, table: Table, info: RegionInfo) -> None:
        place = f"{table.name} {info.encoded}"
        self._generation(info, place)
        path = self._path(info.encoded)
        if not os.path.isdir(path):
            self._without_folder(table, info, place)
            return
        if self._engine.is_emptied(path):
            self._lost(table, info, place, "its folder is empty, though a store was in it")
            return
        if self._engine.is_untouched(path):
            if not table.is_system:  # most stores have no triggers and no dead letters
                self.report.add_finding(Severity.NOTE, place, "nothing was ever read from it or written to it")
            return
        self.report.totals["regions"] += 1
        before = self.report.totals["value_bytes"]
        try:
            if begun(path) and not self._engine.exists(path):
                self.report.add_finding(
                    Severity.NOTE, place, "was being made when its process died: nothing was written to it"
                )
                return
            store = self._engine.open_reading(path)
        except (ColumnarError, OSError) as failure:
            error = failure if isinstance(failure, ColumnarError) else refused(failure, f"cannot read {path}")
            advice = "'columnar repair' saves what is readable"
            self.report.add_finding(Severity.ERROR, place, f"cannot be opened: {error.text}", advice)
            self.damaged.append(Damaged(table.name, info, False))
            return
        try:
            if not RegionCheck(store, table, info, self.report).run():
                self.damaged.append(Damaged(table.name, info, True))
        finally:
            store.close()
        self._progress(self.report.totals["value_bytes"] - before)

    def _generation(self, info: RegionInfo, place: str) -> None:
        """Report a folder of a higher generation than the catalogue names: its owner may not open it."""
        newest = self._newest.get(info.encoded)
        owner = self.catalogue.ownership.owners.get(info.region_id) if self.catalogue is not None else None
        named = owner.generation if owner is not None else 0
        if newest is not None and newest.generation > named:
            text = (
                f"its folder {newest.name} is of a higher generation than the catalogue's, {named}: no server opens it"
            )
            advice = (
                "put the newest copy of the catalogue back; or 'columnar repair' makes the folder that of the region"
            )
            self.report.add_finding(Severity.ERROR, place, text, advice)

    def _without_folder(self, table: Table, info: RegionInfo, place: str) -> None:
        if self._has_all_folders:  # else the next start makes it
            self._lost(table, info, place, "its folder is missing")

    def _lost(self, table: Table, info: RegionInfo, place: str, how: str) -> None:
        text = f"{how}, with all that was written to it"
        advice = "put it back from a copy; 'columnar repair' puts an empty one there"
        self.report.add_finding(Severity.ERROR, place, text, advice)
        self.damaged.append(Damaged(table.name, info, can_be_opened=False, lost=how))


class UnnamedFolders(NamedTuple):
    """Entries of the folder ``regions`` that no server opens."""

    orphans: list[str]  # of regions that the catalogue does not name
    replaced: list[str]  # of regions that have a newer folder


def folders_nobody_names(names: list[str], catalogue: Catalogue) -> UnnamedFolders:
    """Return the entries that are not the newest folder of a region that the catalogue names."""
    known = {META}
    for entry in catalogue.tables.values():
        known.update(info.encoded for info in entry.regions)
    dropped = {info.encoded for info in catalogue.dropped}
    found = UnnamedFolders([], [])
    for encoded, entries in entries_by_region(names).items():
        if encoded in dropped:
            continue
        newest = newest_of(entries) if encoded in known else None
        for one in entries:
            if one != newest:
                has_newer = newest is not None and (one.generation > 0 or newest.generation > 0)
                (found.replaced if has_newer else found.orphans).append(one.name)
    return UnnamedFolders(sorted(found.orphans), sorted(found.replaced))


def _has_data(path: str) -> bool:
    """Return whether there may be data; only a folder that can be read and has none is known to have none."""
    try:
        return has_store(path)
    except OSError:
        return True


def say_orphans(report: Report, names: UnnamedFolders, regions: str) -> None:
    """Report the folders; ``regions`` is the path of the folder that has them."""
    for name in names.orphans:
        is_full = _has_data(os.path.join(regions, name))
        text = "a folder that the catalogue does not name" + (
            "" if is_full else ", without data: an opening was cut off"
        )
        severity = Severity.WARNING if is_full else Severity.NOTE
        report.add_finding(severity, f"{REGIONS}/{name}", text, "'columnar repair' moves it to lost+found")
    for name in names.replaced:
        text = "an older generation of a region's folder"
        report.add_finding(Severity.NOTE, f"{REGIONS}/{name}", text, "the region's next opening removes it")


def check_snapshots(data: str, report: Report) -> None:
    """Compare each file of each snapshot with its checksum."""
    folder = os.path.join(data, SNAPSHOTS)
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path = os.path.join(folder, name, MANIFEST)
        place = f"{SNAPSHOTS}/{name}"
        if not os.path.exists(path):
            report.add_finding(Severity.WARNING, place, "half taken or half removed: it goes at the next start")
            continue
        report.totals["snapshots"] += 1
        try:
            with open(path, "rb") as manifest_file:
                manifest = snapshot_manifest.from_json(manifest_file.read(), path)
            for region in manifest.regions:
                for file, facts in region.files.items():
                    check_file(os.path.join(folder, name, region.folder, file), facts.size_bytes, facts.sha256)
        except ColumnarError as error:
            report.add_finding(Severity.ERROR, place, error.text, "delete it; it cannot be cloned or restored")


def newest_ms(engine: Engine, path: str, table: Table) -> int:
    """Return the highest timestamp in a store."""
    store = engine.open_reading(path)
    try:
        return max((cell.timestamp for cell in cells_of(store, views_of(table), 0)), default=0)
    finally:
        store.close()


async def _no_writes(_mutations: list[RowMutation]) -> None:
    raise CallerError("a check changes nothing")


class Hole(NamedTuple):
    start: bytes
    end: bytes  # empty: to the last row


class Overlap(NamedTuple):
    left: RegionInfo
    right: RegionInfo


def faults_of(regions: list[RegionInfo]) -> list[Hole | Overlap]:
    """Return holes and overlaps in the order of rows.  A table without regions is one hole."""
    found: list[Hole | Overlap] = []
    covered_to: bytes | None = b""  # rows below it are covered; None: all are
    widest: RegionInfo | None = None  # the region that reaches there
    for info in sorted(regions, key=lambda info: (info.start, info.region_id)):
        if covered_to is None or info.start < covered_to:
            assert widest is not None, "something reaches that far"
            found.append(Overlap(widest, info))
        elif info.start > covered_to:
            found.append(Hole(covered_to, info.start))
        end = info.end or None
        if covered_to is not None and (end is None or end > covered_to):
            covered_to, widest = end, info
    if covered_to is not None:
        found.append(Hole(covered_to, b""))
    return found


NAMED: Final = 3  # regions in one finding
_LEFT: Final = "servers of this folder were killed, and their logs may hold writes that regions lack"


def say_server_logs(report: Report, data: str, catalogue: Catalogue) -> None:
    try:
        pasts = read_dead_server_logs(catalogue, data)
        for text in contradictions(catalogue, data):
            report.add_finding(Severity.ERROR, "catalogue", text, remedy_of(data))
    except ColumnarError as error:
        report.add_finding(Severity.ERROR, SERVERS, error.text)
        return
    for server, log in sorted(pasts.items()):
        if log.damage:
            report.add_finding(Severity.ERROR, _place(data, server), log.damage, closed_text(log))
    if have_logs(data) and not any(log.damage for log in pasts.values()):
        report.add_finding(Severity.NOTE, SERVERS, _LEFT, "the next start brings them in")


def closed_text(log: DeadServerLog) -> str:
    """Return a clause that names the regions which stay closed for the damage."""
    regions = sorted({region for region, _ in log.named})
    more = f" and {len(regions) - NAMED} more" if len(regions) > NAMED else ""
    return f"until then {len(regions)} regions stay closed: {', '.join(regions[:NAMED])}{more}" if regions else ""


def _place(data: str, server: Incarnation) -> str:
    return os.path.relpath(log_of(data, str(server)), data)
