"""Opening the files that a cut left with the store's own code.

``Opener.view`` opens new states only: each region whose files, or whose part of the server log, differ from every state
opened before.  It writes such a region to memory (``/dev/shm`` if there is one), opens it with ``Region`` as the server
does, reads it from end to end and checks it as ``columnar check`` does.  Most cuts change one region or none.

``serve`` starts the whole server on the files, with catalogue, left-over folders and triggers.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from columnar.checking.findings import Report, Severity
from columnar.checking.region_check import RegionCheck
from columnar.checking.store_check import StoreCheck, faults_of
from columnar.client.errors import IOError
from columnar.clock import StoreClock, system_ms
from columnar.errors import ColumnarError
from columnar.master.catalogue import META_REGION_ID, META_SCHEMA, Catalogue
from columnar.model.mutation import RowMutation
from columnar.model.read import ReadSpec, projection
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table, to_json
from columnar.regions.life.opening import opened
from columnar.regions.read.row_reader import RowCursor, wire_cells
from columnar.regions.region import Region
from columnar.roles.meta_region import MetaRegion
from columnar.storage.commit import Committer
from columnar.storage.data_folder import SERVER_LOG
from columnar.storage.dead_logs import DeadLogs
from columnar.storage.ownership import Ownership
from columnar.storage.rocks import RocksEngine
from columnar.storage.server_log_files import begin_run
from columnar.storage.synced_bound import SYNCED
from tests.crash.cuts.copied import Copies, Damaged, write_files
from tests.crash.cuts.copying import BESIDE, SNAPSHOT, SOURCE
from tests.crash.cuts.recording import DATA, TRIGGER_MODULE, is_beside
from tests.crash.cuts.workload import AUDIT, LOGGED
from tests.support.serving import Serving

SHARED_MEMORY: Final = Path("/dev/shm")
REGIONS: Final = f"{DATA}/regions/"
LOG: Final = f"{DATA}/{SERVER_LOG}/"
LAG_MS: Final = 20_000

Files = Mapping[str, bytes]
Rows = dict[bytes, dict[bytes, bytes]]


class Unopened(Exception):
    """The store refuses the files that the cut left."""


@dataclass(slots=True)
class View:
    """The data that a reader finds, as table -> row -> column -> value, and the findings of the check."""

    tables: dict[bytes, Rows] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    unseen: tuple[bytes, ...] = ()  # tables that begin so were not looked at


@dataclass(slots=True)
class _RegionView:
    rows: Rows
    faults: list[str]


def scratch() -> Path:
    return Path(tempfile.mkdtemp(prefix="columnar-cuts-", dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None))


class Opener:
    """The opener, owned by one thread; ``opened`` counts the states of regions that were really opened."""

    def __init__(self) -> None:
        self._folder = scratch()
        self._loop = asyncio.new_event_loop()
        self._committer = Committer(self._loop)
        self._engine = RocksEngine()
        self._regions: dict[object, _RegionView | str] = {}
        self._catalogues: dict[object, Catalogue] = {}
        self._log_files: Files = {}  # of the state that is looked at
        self._in_log: dict[str, int] = {}
        self._schemas: dict[int, bytes] = {}  # of tables in catalogues that are kept, by their id
        self._copies = Copies(self._folder, self._rows_of_copy, self._rows_of_store)
        self.opened = 0

    def close(self) -> None:
        self._committer.close()
        self._loop.close()
        shutil.rmtree(self._folder)

    def view(self, files: Files) -> View:
        view = self._store(files)
        try:
            view.tables.update(self._copies.found({path: data for path, data in files.items() if not is_beside(path)}))
        except (Damaged, Unopened) as refused:
            view.faults.append(f"a copy: {refused}")
        return view

    def _rows_of_copy(self, files: Files, table: Table, info: RegionInfo) -> Rows:
        self._log_files, self._in_log = {}, {}
        found = self._read(files, table, info)
        if found.faults:
            raise Damaged("; ".join(found.faults))
        return found.rows

    def _rows_of_store(self, files: Files) -> Rows:
        """Return the rows of a whole data folder from which copies are made."""
        view = self._store({f"{DATA}/{path}": data for path, data in files.items()})
        if view.faults:
            raise Damaged("; ".join(view.faults))
        return view.tables.get(SOURCE, {})

    def _store(self, files: Files) -> View:
        by_region: dict[str, dict[str, bytes]] = {}
        for path, data in files.items():
            if path.startswith(REGIONS):
                folder, _, name = path[len(REGIONS) :].partition("/")
                held = by_region.setdefault(folder, {})  # it is there, also where it is empty or has a diary only
                if name and (not is_beside(path) or name == SYNCED):
                    held[name] = data
        self._log_files = {path[len(LOG) :]: data for path, data in files.items() if path.startswith(LOG)}
        self._in_log = self._dead_logs().left
        catalogue = self._catalogue(by_region.get("meta", {}))
        view = View()
        for name, entry in catalogue.tables.items():
            view.faults += [f"{name}: {fault}" for fault in faults_of(entry.regions)]
            rows = view.tables[name.encode()] = {}
            for info in entry.regions:
                if info.encoded not in by_region:
                    raise Unopened(f"{name} {info.encoded}: it has no folder")
                found = self._region(by_region[info.encoded], entry.schema, info)
                rows.update(found.rows)
                view.faults += found.faults
        return view

    def _dead_logs(self) -> DeadLogs:
        folder = self._folder / SERVER_LOG
        shutil.rmtree(folder, ignore_errors=True)
        write_files(folder, {name: data for name, data in self._log_files.items() if name})
        try:
            return begin_run(str(folder))[1]
        except ColumnarError as error:
            raise Unopened(f"the server's log: {error.wire_message}") from error

    def _part_of_log(self, region: str) -> object:
        return _key(self._log_files) if region in self._in_log else None

    def _catalogue(self, files: Files) -> Catalogue:
        key = _key(files), self._part_of_log("meta")
        if key not in self._catalogues:
            info = RegionInfo(META_SCHEMA.name, META_REGION_ID)
            with_folder = self._written(files, "meta")
            region = self._open(with_folder, META_SCHEMA, info)
            try:
                meta = MetaRegion(lambda: region)
                meta.open_meta()
                catalogue = self._catalogues[key] = Catalogue(meta.read_all(), _no_writes)
                for entry in catalogue.tables.values():
                    self._schemas[id(entry.schema)] = to_json(entry.schema)
            finally:
                region.close()
                shutil.rmtree(with_folder)
        return self._catalogues[key]

    def _region(self, files: Files, table: Table, info: RegionInfo) -> _RegionView:
        key = (_key(files), self._part_of_log(info.encoded), self._schemas[id(table)], info)
        found = self._regions.get(key)
        if found is None:
            try:
                found = self._regions[key] = self._read(files, table, info)
            except Unopened as refused:
                found = self._regions[key] = str(refused)
        if isinstance(found, str):
            raise Unopened(found)
        return found

    def _read(self, files: Files, table: Table, info: RegionInfo) -> _RegionView:
        if not files:
            return _RegionView({}, [])  # nobody has opened it yet
        folder = self._written(files, info.encoded)
        region = self._open(folder, table, info)
        try:
            report = Report()
            RegionCheck(region.store, table, info, report).run()
            faults = [finding.line() for finding in report.findings if finding.severity is Severity.ERROR]
            return _RegionView(dict(_rows_of(region)), faults)
        except ColumnarError as error:
            raise Unopened(f"{table.name} {info.encoded}: {error.wire_message}") from error
        finally:
            region.close()
            shutil.rmtree(folder)

    def _open(self, folder: Path, table: Table, info: RegionInfo) -> Region:
        self.opened += 1
        logs = self._engine.dead_logs = self._dead_logs() if folder.name in self._in_log else DeadLogs()
        ownership = Ownership(folder.name, 0, logs.unreplayed_parts(folder.name), is_sole=True)
        try:
            return opened(self._engine, str(folder), info, table, self._committer, StoreClock(system_ms), ownership)
        except ColumnarError as error:
            shutil.rmtree(folder)
            raise Unopened(f"{table.name} {info.encoded}: {error.wire_message}") from error

    def _written(self, files: Files, name: str) -> Path:
        folder = self._folder / name
        write_files(folder, files)
        return folder


def _key(files: Files) -> frozenset[tuple[str, int, int]]:
    return frozenset((name, len(data), hash(data)) for name, data in files.items())


def _rows_of(region: Region) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
    spec = ReadSpec(projection(region.table, []))
    cursor = RowCursor.over(region.store, region.views, spec.projection, b"", None, reverse=False)
    while (found := cursor.next_row()) is not None:
        row, raw = found
        if not region.info.contains_row(row):
            continue  # nobody reads it here
        cells = wire_cells(region.store, row, raw, spec, region.now_ms)
        if cells:
            yield row, {column: value for column, value, _ in cells}


async def _no_writes(_: list[RowMutation]) -> None:
    raise AssertionError("a look at a catalogue changes nothing")


def serve(files: Files, *, triggers: bool) -> View:
    """Start the whole server on the files; return its clients' reads and what ``columnar check`` then finds."""
    root = scratch()
    try:
        shutil.rmtree(root)
        write_files(root, files)
        view = View(unseen=BESIDE)
        store = Serving(root / DATA, trigger_modules=(TRIGGER_MODULE,) if triggers else ())
        try:
            store.start()
        except ColumnarError as error:
            raise Unopened(error.wire_message) from error
        try:
            connection = store.connect()
            for name in connection.tables():
                if not connection.is_table_enabled(name):
                    connection.enable_table(name)  # on its way to be dropped: its rows are still there
                view.tables[name] = {row: dict(cells) for row, cells in connection.table(name).scan()}
            for snapshot in connection.snapshots.list_snapshots():
                connection.snapshots.clone_snapshot(snapshot.name, b"again")
                rows = {row: dict(cells) for row, cells in connection.table(b"again").scan()}
                view.tables[SNAPSHOT + snapshot.name.encode()] = rows
                connection.delete_table(b"again", disable=True)
            if LOGGED in view.tables:
                connection.table(LOGGED).put(b"after", {b"f:x": b"the cut"})
                view.tables[LOGGED][b"after"] = connection.table(LOGGED).row(b"after")
            if triggers and AUDIT in view.tables and connection.triggers.list():
                if not connection.triggers.wait("audit", timeout_ms=LAG_MS):
                    view.faults.append("the trigger did not catch up")
                view.faults += _untold(view.tables[LOGGED], connection.table(AUDIT).scan())
        except IOError as error:
            raise Unopened(f"a client was refused: {error.message!r}") from error
        finally:
            store.stop()
        report = StoreCheck(RocksEngine(), str(root / DATA / "regions")).run()
        view.faults += [finding.line() for finding in report.findings if finding.severity is Severity.ERROR]
        return view
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _untold(logged: Rows, audit: Iterator[tuple[bytes, dict[bytes, bytes]]]) -> list[str]:
    """Return rows whose last value was not delivered to the trigger, against promise 5."""
    told = {row: cells[b"a:log"] for row, cells in audit}
    return [
        f"the trigger was never told of the last change of {row!r}"
        for row, cells in logged.items()
        if cells[b"f:x"].hex().encode() not in told.get(row, b"")
    ]
