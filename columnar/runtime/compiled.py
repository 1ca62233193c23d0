"""Compiled modules: the list of hot modules, the check that their compiled forms are fresh, and their import.

``columnar.runtime.compiling`` has mypyc compile the sources of the modules below to machine code, so no code is written
twice.  With the compiled modules a get takes some 27 % less of the loop's time.  Without them, as on a machine without
a C compiler, everything works from the sources.

    columnar/_compiled/TAG/SOURCES      digest of the compiled sources, and of the modules that they import
    columnar/_compiled/TAG/*.so         TAG names Python and platform, as ``cpython-311-x86_64-linux-gnu``

Invariant: either all compiled modules are used or none, and only if each was compiled from its present source.  So old
machine code never runs in place of a changed line.

COLUMNAR_COMPILED=no always runs the sources.  With COLUMNAR_COMPILED=background, a store that is started from a
checkout compiles outdated modules while it serves (``columnar.runtime.background_compiling``).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Final

HOT: Final = (
    "columnar.coordination.lease_gate",
    "columnar.coordination.lease_page",
    "columnar.flows.applier",
    "columnar.flows.at_hand",
    "columnar.flows.delivery_cursor",
    "columnar.flows.delivery_state",
    "columnar.flows.effects",
    "columnar.flows.fair_share",
    "columnar.flows.figures",
    "columnar.flows.rolling_rate",
    "columnar.flows.follower",
    "columnar.flows.follower_name",
    "columnar.flows.followers",
    "columnar.flows.governed_follower",
    "columnar.flows.governor",
    "columnar.flows.outbox",
    "columnar.flows.scheduled_trigger",
    "columnar.flows.write_line",
    "columnar.model.cell",
    "columnar.model.condition_text",
    "columnar.model.contribution",
    "columnar.model.extract",
    "columnar.model.histogram",
    "columnar.model.key_parts",
    "columnar.model.mutation",
    "columnar.model.number_cells",
    "columnar.model.read",
    "columnar.model.schema",
    "columnar.model.trigger_scope",
    "columnar.operations.access",
    "columnar.operations.reads",
    "columnar.operations.row_plan",
    "columnar.operations.scan_places",
    "columnar.operations.scanner_table",
    "columnar.operations.scanners",
    "columnar.operations.writes",
    "columnar.regions.write.applied",
    "columnar.regions.log.change_log",
    "columnar.regions.log.change_logging",
    "columnar.regions.log.change_record",
    "columnar.regions.write.column_draft",
    "columnar.regions.write.contribution_rows",
    "columnar.regions.write.contributions",
    "columnar.regions.write.drafting",
    "columnar.regions.read.family_view",
    "columnar.regions.read.found_rows",
    "columnar.regions.write.group_writes",
    "columnar.regions.write.guards",
    "columnar.regions.write.images",
    "columnar.regions.log.log_counts",
    "columnar.regions.log.log_cursors",
    "columnar.regions.log.log_tail",
    "columnar.regions.write.logged_puts",
    "columnar.regions.read.plain_rows",
    "columnar.regions.region",
    "columnar.regions.read.region_reads",
    "columnar.regions.life.retry",
    "columnar.regions.write.row_columns",
    "columnar.regions.write.row_draft",
    "columnar.regions.write.sync_groups",
    "columnar.regions.read.row_reader",
    "columnar.regions.server",
    "columnar.regions.tables",
    "columnar.regions.read.wide_row",
    "columnar.cluster.forwarding",
    "columnar.cluster.forwarding_state",
    "columnar.cluster.frame_writer",
    "columnar.cluster.method_routing",
    "columnar.cluster.peer_frames",
    "columnar.cluster.peer_link",
    "columnar.cluster.peer_server",
    "columnar.cluster.request_forwarder",
    "columnar.cluster.routes",
    "columnar.rights.rights_check",
    "columnar.storage.capture",
    "columnar.storage.commit",
    "columnar.storage.shared_rounds",
    "columnar.storage.layout",
    "columnar.storage.overlay",
    "columnar.storage.rocks_batch",
    "columnar.storage.rocks_store",
    "columnar.storage.server_log",
    "columnar.storage.stored_cells",
    "columnar.streams.change_filter",
    "columnar.streams.consolidation",
    "columnar.streams.region_reader",
    "columnar.thrift.reads",
    "columnar.thrift.translate",
    "columnar.thrift.writes",
    "columnar.topics.feed_follower",
    "columnar.triggers.call_effects",
    "columnar.triggers.call_sender",
    "columnar.triggers.contribution_buffer",
    "columnar.triggers.consumer",
    "columnar.triggers.delivery_source",
    "columnar.triggers.dispatcher",
    "columnar.triggers.dispatcher_state",
    "columnar.triggers.frames",
    "columnar.triggers.instructions",
    "columnar.triggers.intake",
    "columnar.triggers.message_consumer",
    "columnar.triggers.pool_state",
    "columnar.triggers.retry_state",
    "columnar.triggers.slices",
    "columnar.triggers.threads",
    "columnar.triggers.worker_state",
    "columnar.views.backfill",
    "columnar.views.contributions",
    "columnar.views.digests",
    "columnar.views.follower",
    "columnar.views.walks",
    "columnar.views.progress",
    "columnar.views.share_writes",
    "columnar.webui.counters",
    "columnar.wire.caller",
    "columnar.wire.codec",
    "columnar.wire.codec_binary",
    "columnar.wire.codec_compact",
    "columnar.wire.codec_replies",
    "columnar.wire.codec_structs",
    "columnar.wire.connection",
    "columnar.wire.connection_buffers",
    "columnar.wire.connection_table",
    "columnar.wire.framing",
    "columnar.wire.http.incoming_request",
    "columnar.wire.http.request_parser",
    "columnar.wire.http_transport",
    "columnar.wire.local_calls",
    "columnar.wire.sent_puts",
    "columnar.wire.raw_calls",
    "columnar.wire.server",
    "columnar.wire.service",
    "columnar.wire.walker",
)
# Imported by the hot modules: the compiler copies values of constants into the modules that use them.
_IMPORTED: Final = (
    "errors.py",
    "limits.py",
    "runtime/immediate_future.py",
    "runtime/loop_budget.py",
    "model",
    "storage",
    "operations",
    "regions",
    "cluster",
    "coordination/lease_gate.py",
    "coordination/lease_page.py",
    "wire",
    "thrift",
    "flows",
    "triggers",
    "views",
    "webui/counters.py",
)
SWITCH: Final = "COLUMNAR_COMPILED"
DIGEST_FILE: Final = "SOURCES"
_PACKAGE: Final = Path(__file__).parents[1]
_SUFFIX: Final = EXTENSION_SUFFIXES[0]


def tag() -> str:
    """Return the tag that identifies machine code for this interpreter and platform."""
    return _SUFFIX.split(".")[1]


def compiled_folder(package: Path = _PACKAGE) -> Path:
    return package / "_compiled" / tag()


def source_of(module: str, package: Path = _PACKAGE) -> Path:
    return package.joinpath(*module.split(".")[1:]).with_suffix(".py")


def digest(package: Path = _PACKAGE) -> str:
    """Return the digest of the sources from which compiled modules are made.  Takes some 2 ms."""
    found = hashlib.sha256(" ".join(HOT).encode())
    for part in _IMPORTED:
        place = package / part
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            source = path.read_bytes()
            found.update(b"%s %d\n" % (path.relative_to(package).as_posix().encode(), len(source)))
            found.update(source)
    return found.hexdigest()


class _Finder:
    """The entry of ``sys.meta_path`` that finds compiled modules by name, before their sources."""

    def __init__(self, compiled_modules: dict[str, Path]) -> None:
        """Pass the paths of compiled modules, by module name."""
        self._compiled_modules = compiled_modules

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        path = self._compiled_modules.get(name)
        if path is None:
            return None
        return importlib.util.spec_from_file_location(name, path, loader=ExtensionFileLoader(name, str(path)))


def _find_compiled_modules(folder: Path) -> dict[str, Path]:
    return {path.name.removesuffix(_SUFFIX): path for path in folder.glob("*" + _SUFFIX)}


def made_of(package: Path = _PACKAGE) -> str | None:
    """Return the digest of the sources from which the compiled modules were made; None if there are none."""
    try:
        return (compiled_folder(package) / DIGEST_FILE).read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None


def are_fresh(package: Path = _PACKAGE) -> bool:
    return made_of(package) == digest(package)


def is_checkout(package: Path = _PACKAGE) -> bool:
    """Return whether the package is in its source tree.  An installed package is never compiled later."""
    return (package.parent / "setup.py").is_file() and (package.parent / "pyproject.toml").is_file()


state = "interpreted"  # how this process runs the hot modules, as text for operators


def install() -> None:
    """Install the finder if the compiled modules are fresh.

    Call once per process, before any hot module is imported.
    """
    global state
    if os.environ.get(SWITCH) == "no":
        state = f"interpreted ({SWITCH}=no)"
    elif made_of() is None:
        how = "make compile" if is_checkout() else "there was no C compiler at the installation"
        state = f"interpreted (they were not compiled: {how})"
    elif not are_fresh():
        state = "interpreted (their sources changed since they were compiled: make compile)"
    else:
        found = _find_compiled_modules(compiled_folder())
        missing = [name for name in HOT if name not in found]
        if missing:
            how = "make compile" if is_checkout() else "install the wheel again"
            state = f"interpreted ({len(missing)} compiled modules are missing, {missing[0]} among them: {how})"
        else:
            sys.meta_path.insert(0, _Finder(found))
            state = "compiled"
