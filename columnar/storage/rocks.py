"""The storage interface over RocksDB, through ``rocksdict`` in raw mode.

Each store is a RocksDB database, and each space is a column family in it.  All stores of an engine
share a block cache and a write-buffer budget, so memory does not grow with the number of
regions (``memory_plan``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import rocksdict

from columnar.errors import ColumnarError, DamagedData, HostError
from columnar.limits import MIB
from columnar.memory_plan import CACHE_BYTES, IN_MEMORY_CACHE_BYTES, WRITE_BUFFERS_BYTES, MemoryPlan, ordinary
from columnar.storage.api import DEFAULT_OPTIONS, SpaceOptions, Store
from columnar.storage.capture import Capture
from columnar.storage.data_folder import forget_opened, note_opened, was_opened
from columnar.storage.dead_logs import DeadLogs
from columnar.storage.durable_files import HALF, make_all_lasting, make_lasting, sync_folder_if_any
from columnar.storage.file_copies import HALF_CHECKPOINT, remove_tree
from columnar.storage.ownership import META_SPACE, Ownership
from columnar.storage.recovery import bring_in, has_unreplayed_writes, make_prefix
from columnar.storage.rocks_errors import emptied, refused, translated
from columnar.storage.rocks_files import RocksSortedFile
from columnar.storage.rocks_opening import Caches, begin_opening, end_opening, remove_begun, space_options
from columnar.storage.rocks_store import RocksStore
from columnar.storage.server_log_files import ServerLog
from columnar.storage.synced_bound import SYNCED

MANIFEST_BYTES: Final = 1 * MIB  # a longer MANIFEST is replaced by a new one, because each opening reads it
WAL_BYTES: Final = 64 * MIB  # of one region; beyond it the oldest spaces are flushed
BACKGROUND_JOBS: Final = 3  # of each store: one flush and two compactions
# Concurrent flushes of different stores: a flush waits for the disk, and a stop flushes every store.  With one flush
# thread, RocksDB's default, 200 stores took 22 ms each; with four 4 ms.
FLUSHES: Final = 4
LOG_FILES_KEPT: Final = 3
SYNCED_BYTES: Final = 512 * 1024  # a new file is synced in such pieces: one large fsync would delay fsyncs of the log


class RocksEngine:
    def __init__(
        self,
        *,
        cache_bytes: int = CACHE_BYTES,
        write_buffers_bytes: int = WRITE_BUFFERS_BYTES,
        in_memory_bytes: int = IN_MEMORY_CACHE_BYTES,
        plan: MemoryPlan | None = None,
    ) -> None:
        """``plan``: of the process; only its other parts are for readers of ``plan``."""
        self.plan = plan if plan is not None else ordinary()  # constant
        self._caches = Caches(rocksdict.Cache(cache_bytes), rocksdict.Cache(in_memory_bytes))
        self._env = rocksdict.Env()
        self._env.lower_thread_pool_cpu_priority()  # of compactions: neither the loop nor an fsync waits for them
        self._env.set_high_priority_background_threads(FLUSHES)
        # allow_stall would freeze the loop; without it RocksDB flushes when the budget is exceeded.
        self._write_buffers = rocksdict.WriteBufferManager(write_buffers_bytes, False)

        self.server_log: ServerLog | None = None  # the log that this process writes
        self.dead_logs = DeadLogs()  # replayed into stores when they are opened

    def use_logs(self, dead_logs: DeadLogs, server_log: ServerLog | None = None) -> None:
        """Replay ``dead_logs`` into stores when they are opened; notify ``server_log`` when stores are closed."""
        self.dead_logs, self.server_log = dead_logs, server_log

    @classmethod
    def planned(cls, plan: MemoryPlan) -> RocksEngine:
        """Return an engine with the caches and write buffers of the plan."""
        return cls(
            cache_bytes=plan.block_cache,
            write_buffers_bytes=plan.write_buffers,
            in_memory_bytes=plan.in_memory_cache,
            plan=plan,
        )

    def used_bytes(self) -> dict[str, int]:
        """Return what is in use of the plan's parts that the engine has, by name."""
        return {
            "block_cache": self._caches.shared.get_usage(),
            "in_memory_cache": self._caches.reserved.get_usage(),
            "write_buffers": self._write_buffers.get_usage(),
        }

    def closes(self, capture: Capture | None, sync: Callable[[], None]) -> None:
        """Sync a closing store, because a copy of its folder must find every batch in the store's own log.

        If the sync fails, the server's log notes that the store may lack batches.
        """
        try:
            sync()
        except ColumnarError:
            if capture is not None and self.server_log is not None:
                for epoch in capture.epochs:
                    self.server_log.closed_unsynced(capture.region, epoch)

    def database_options(self) -> Any:
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        options.set_write_buffer_manager(self._write_buffers)
        options.set_env(self._env)
        options.set_max_background_jobs(BACKGROUND_JOBS)
        options.set_max_open_files(64)
        # By default RocksDB starts and ends 16 threads for each space, to open tables, which takes microseconds.
        options.set_max_file_opening_threads(1)
        # With the default of 64 shards a shard would have room for one file only, so two files in the same shard would
        # evict each other at each get.
        options.set_table_cache_num_shard_bits(0)
        options.set_bytes_per_sync(SYNCED_BYTES)
        options.set_max_total_wal_size(WAL_BYTES)
        options.set_max_manifest_file_size(MANIFEST_BYTES)
        # Logs are not reused (recycle_log_file_num), though that makes fsyncs faster: after a power cut between a
        # flush and the next fsync RocksDB 9.8 reports that the files are "ahead of WALs" and cannot open the store.
        options.set_wal_recovery_mode(rocksdict.DBRecoveryMode.point_in_time())  # S2: a prefix, never a hole
        options.set_keep_log_file_num(LOG_FILES_KEPT)
        options.set_max_log_file_size(1 * MIB)
        options.set_stats_dump_period_sec(0)
        options.set_stats_persist_period_sec(0)
        options.set_skip_stats_update_on_db_open(True)
        return options

    def space_options(self, options: SpaceOptions) -> Any:
        return space_options(options, self._caches)

    def open_store(
        self,
        path: str,
        spaces: frozenset[str],
        options: Mapping[str, SpaceOptions] | None = None,
        ownership: Ownership | None = None,
    ) -> RocksStore:
        try:
            make_lasting(path)
            if self.is_emptied(path):
                raise DamagedData(emptied(path))
            remove_begun(path)
            if ownership is not None and ownership.unreplayed_logs:
                spaces |= {META_SPACE}
                if self.exists(path):
                    make_prefix(self, path, self.dead_logs, ownership)
        except OSError as error:
            raise refused(error, f"cannot make the store {path}") from error
        store = self._opened(path, spaces, options or {})
        if ownership is not None:
            try:
                self._make_owned(store, ownership)
            except ColumnarError:
                store.close()
                raise
        note_opened(path)
        return store

    def _make_owned(self, store: RocksStore, ownership: Ownership) -> None:
        """Replay into the store the writes that earlier owners acknowledged.  Raises DamagedData, HostError."""
        store.own(ownership.region, bring_in(store, self.dead_logs, ownership))
        if ownership.unreplayed_logs:
            self.dead_logs.brought_in(ownership.region)
            if self.server_log is not None:
                self.server_log.brought_in(ownership.region)

    def open_reading(self, path: str) -> RocksStore:
        if not self.exists(path):
            raise HostError(f"{path} holds no store")
        return self._opened(path, frozenset(), {}, reads_only=True)

    def _opened(
        self, path: str, spaces: frozenset[str], options: Mapping[str, SpaceOptions], *, reads_only: bool = False
    ) -> RocksStore:
        """Open the store in the folder, with its own spaces and ``spaces``.  Raises DamagedData, HostError."""
        access = rocksdict.AccessType.read_only() if reads_only else rocksdict.AccessType.read_write()
        found = begin_opening(path, reads_only=reads_only)
        names = spaces | found.spaces | {"default"}
        try:
            families = {name: self.space_options(options.get(name, DEFAULT_OPTIONS)) for name in names}
            database: Any = rocksdict.Rdict(path, self.database_options(), families, access)
        except Exception as error:  # rocksdict raises bare exceptions
            raise translated(error, path) from error
        bound = end_opening(path, database, found, reads_only=reads_only)
        return RocksStore(self, path, names, options, database, bound)

    def has_unreplayed_writes(self, store: Store, ownership: Ownership) -> bool:
        return has_unreplayed_writes(store, self.dead_logs, ownership)

    def repair_store(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(path, SYNCED))  # the bound before the repair
        try:
            rocksdict.Rdict.repair(path, self.database_options())
        except Exception as error:  # rocksdict raises bare exceptions
            raise translated(error, path) from error

    def sorted_file(self, path: str) -> RocksSortedFile:
        return RocksSortedFile.begun(path, self.space_options(DEFAULT_OPTIONS))

    def make_folders(self, paths: Sequence[str]) -> None:
        try:
            make_all_lasting(paths)
            for path in paths:
                forget_opened(path)
        except OSError as error:
            raise refused(error, f"cannot make the folder {error.filename or paths[0]}") from error

    def has_folder(self, path: str) -> bool:
        try:
            os.stat(path)
        except FileNotFoundError:
            return False
        except OSError:
            return True  # the opening raises the error
        return True

    def is_untouched(self, path: str) -> bool:
        return _is_empty(path) and not was_opened(path)

    def is_emptied(self, path: str) -> bool:
        return _is_empty(path) and was_opened(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(os.path.join(path, "CURRENT"))

    def destroy(self, path: str) -> None:
        """Remove the folder, which is renamed first, so that a crash leaves no half-removed region under its name."""
        try:
            doomed = f"{path}.deleted"
            if os.path.exists(doomed):
                remove_tree(doomed)  # left by a crash during the removal below
            for half in (path + HALF, path + HALF_CHECKPOINT):  # left by a crash while it was copied
                remove_tree(half, missing_ok=True)
            with suppress(FileNotFoundError):  # a thread of an earlier leader may be removing it, too
                os.rename(path, doomed)
                remove_tree(doomed)
            forget_opened(path)
            sync_folder_if_any(os.path.dirname(path))  # or a power cut may restore a folder that no row names
        except OSError as error:
            raise refused(error, f"cannot remove the folder {path}") from error


def _is_empty(path: str) -> bool:
    try:
        return not os.listdir(path)
    except OSError:
        return False  # the opening raises the error
