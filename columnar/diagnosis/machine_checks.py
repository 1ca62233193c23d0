"""(pure) The checks of the machine and the program: open files, memory, clock, kernel, Python, compiled modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from columnar.clock import AHEAD_MS, LAG_WARNING_MS
from columnar.coordination.clock_check import CLOCK_AHEAD_MS
from columnar.diagnosis.facts import Clock, Facts, FolderFacts, Limits, Memory, Program, Role
from columnar.diagnosis.findings import Finding
from columnar.diagnosis.units import duration_text, size_text
from columnar.limits import (
    GATHERED_BYTES,
    LOG_TAILS_BYTES,
    MIB,
    OPEN_REGIONS,
    SCANNERS_BYTES,
    SERVER_INPUT_BYTES,
    SERVER_OUTPUT_BYTES,
)
from columnar.memory_plan import ALONE, least_bytes
from columnar.storage.descriptors import FOR_OTHERS, PER_STORE

LITTLE_BYTES: Final = 256 * MIB  # a store with some tables and without load takes some 100
HEADROOM_BYTES: Final = 1024 * MIB
SWAPPED_BYTES: Final = 64 * MIB
BUFFERS_BYTES: Final = SERVER_INPUT_BYTES + SERVER_OUTPUT_BYTES + GATHERED_BYTES + SCANNERS_BYTES + LOG_TAILS_BYTES
REGION_MEMORY_BYTES: Final = MIB // 2  # of an open region


def check_machine(facts: Facts) -> Iterator[Finding]:
    yield from check_open_files(facts.limits, facts.folder.regions)
    yield from check_memory(facts.memory, min(facts.folder.regions, OPEN_REGIONS), facts.servers, facts.has_triggers)
    yield from check_clock(facts.clock, facts.folder, facts.role)
    yield from check_program(facts.program)


def check_open_files(limits: Limits, regions: int) -> Iterator[Finding]:
    """Yield whether the limit of descriptors is enough for the regions that the folder has."""
    if limits.files is None:
        yield Finding("note", "open files", "the limit of open files cannot be told on this system")
        return
    whose = f"process {limits.process.pid}" if limits.process is not None else "this command"
    stores = max(1, (limits.files - FOR_OTHERS) // PER_STORE)
    wanted = min(regions, OPEN_REGIONS)
    text = f"{whose} may open {limits.files:,} files: enough for {stores:,} open regions; the folder has {regions:,}"
    if stores < wanted:
        yield Finding(
            "warning",
            "open files",
            text,
            "regions beyond that are closed and opened again, 5 ms and 6 fsyncs each time",
            f"raise the hard limit to {wanted * PER_STORE + FOR_OTHERS:,}: LimitNOFILE= of the unit, or ulimit -Hn",
        )
    elif stores < OPEN_REGIONS:
        yield Finding(
            "note",
            "open files",
            text,
            f"a server opens up to {OPEN_REGIONS:,} regions",
            f"before the store grows, raise the hard limit to {OPEN_REGIONS * PER_STORE + FOR_OTHERS:,}",
        )
    else:
        yield Finding("ok", "open files", text)


def check_memory(memory: Memory, open_regions: int, servers: int, has_triggers: bool) -> Iterator[Finding]:
    bounds = [one for one in (memory.total_bytes, memory.group_bytes) if one is not None]
    if not bounds:
        yield Finding("note", "memory", "the memory of this machine cannot be told on this system")
    else:
        yield from _ordered(memory.ordered_bytes, min(bounds), servers, has_triggers)
        yield _bound(min(bounds), memory, open_regions, servers)
    if memory.group_kills:
        yield Finding(
            "warning",
            "memory",
            f"the kernel has ended {memory.group_kills} processes of this control group for its memory limit",
            "their clients lost connections; a store of one process was away until its restart",
            "raise the limit (MemoryMax= of the unit, limits.memory of the pod), or lower the load",
        )
    if memory.swapped_bytes >= SWAPPED_BYTES:
        yield Finding(
            "warning",
            "memory",
            f"{size_text(memory.swapped_bytes)} of the store are swapped out",
            "a request that needs them waits for the disk",
            "take swap away from the store (MemorySwapMax=0 of the unit), and give it the memory it needs",
        )
    if memory.headroom_bytes is not None and memory.headroom_bytes < HEADROOM_BYTES:
        yield Finding(
            "warning",
            "memory",
            f"the kernel does not overcommit (vm.overcommit_memory=2) and has {size_text(memory.headroom_bytes)} left",
            "processes that start reserve more than they use, and fail",
            "raise vm.overcommit_ratio, or add swap",
        )
    if memory.oom_score_adj is not None and memory.oom_score_adj > 0:
        yield Finding(
            "note",
            "memory",
            f"the store has oom_score_adj {memory.oom_score_adj}",
            "the kernel ends it before others when memory is short",
        )


def _ordered(ordered_bytes: int, bound_bytes: int, servers: int, has_triggers: bool) -> Iterator[Finding]:
    """Yield whether ``--memory`` is enough, and not more than there is."""
    least = least_bytes(servers if servers > 1 else ALONE, has_triggers=has_triggers)
    if 0 < ordered_bytes < least:
        yield Finding(
            "problem",
            "memory",
            f"--memory {size_text(ordered_bytes)} is too little for {servers} servers",
            "a start refuses it",
            f"give it {size_text(least)} or more",
        )
    elif ordered_bytes > bound_bytes:
        yield Finding(
            "warning",
            "memory",
            f"--memory {size_text(ordered_bytes)} is more than there is ({size_text(bound_bytes)})",
            "the kernel ends a store that takes what it was given",
            "lower --memory, or raise the limit",
        )


def _bound(bound_bytes: int, memory: Memory, open_regions: int, servers: int) -> Finding:
    whose = "the control group may use" if bound_bytes == memory.group_bytes else "the machine has"
    free = f", {size_text(memory.available_bytes)} are available" if memory.available_bytes is not None else ""
    pages = f"; transparent huge pages: {memory.huge_pages}" if memory.huge_pages else ""
    text = f"{whose} {size_text(bound_bytes)}{free}{pages}"
    needed = servers * BUFFERS_BYTES + open_regions * REGION_MEMORY_BYTES
    if bound_bytes < LITTLE_BYTES:
        return Finding(
            "warning",
            "memory",
            text,
            "a store needs some 100 MiB before its first request",
            f"give it {size_text(LITTLE_BYTES)} or more",
        )
    if bound_bytes < needed and not memory.ordered_bytes:
        return Finding(
            "note",
            "memory",
            text,
            f"requests, replies and scanners are bounded to {size_text(BUFFERS_BYTES)} for each server, and open "
            f"regions take half a MiB each: together {size_text(needed)} under the worst load",
            f"--memory {bound_bytes * 3 // 4 // MIB}MiB keeps them within the memory",
        )
    return Finding("ok", "memory", text)


def check_clock(clock: Clock, folder: FolderFacts, role: Role | None) -> Iterator[Finding]:
    """Yield whether the clock is set by a time server, and whether it was set back since the store gave timestamps."""
    is_of_nodes = role == "node" or folder.coordination != ""
    behind_ms = (folder.clock_ms or 0) - clock.now_ms - AHEAD_MS
    if behind_ms > LAG_WARNING_MS:
        yield Finding(
            "warning",
            "clock",
            f"this machine's clock is {duration_text(behind_ms / 1_000)} behind the last timestamp of the store",
            "it was set back: until it is there again, all writes get the same time and only their order differs",
            "set the clock right by a time server (chrony, ntpd)",
        )
    if clock.is_synchronised is None:
        yield Finding("note", "clock", "whether a time server sets the clock cannot be told on this system")
    elif not clock.is_synchronised:
        yield Finding(
            "warning" if is_of_nodes else "note",
            "clock",
            "no time server sets the clock, as the kernel says",
            f"a node whose clock differs by {CLOCK_AHEAD_MS // 1_000} s from the others' does not start"
            if is_of_nodes
            else "timestamps of cells are those of this clock",
            "run chrony, ntpd or systemd-timesyncd (in a container: on its host)",
        )
    elif behind_ms <= LAG_WARNING_MS:
        error = f", within {clock.error_ms:.0f} ms" if clock.error_ms is not None else ""
        yield Finding("ok", "clock", f"a time server sets the clock{error}")


def check_program(program: Program) -> Iterator[Finding]:
    what = f"columnar {program.version}, build {program.build}, Python {program.python}, {program.system}"
    yield Finding("ok", "program", what)
    if not program.is_linux:
        yield Finding("note", "program", "this is not Linux", "the store is measured on Linux; some checks need /proc")
    if program.hot_modules != "compiled":
        yield Finding(
            "note",
            "compiled modules",
            f"the hot modules of this installation are {program.hot_modules}",
            "the store has all functions, at two thirds of the requests a second",
        )
    if not program.has_uvloop:
        yield Finding(
            "warning",
            "event loop",
            "uvloop is missing",
            "asyncio's loop serves half as many requests",
            "pip install uvloop, at the version that constraints.txt names",
        )
    if program.is_root:
        yield Finding(
            "note",
            "user",
            "this is root",
            "a store needs no rights of root, and triggers run with its rights",
            "give it a user of its own: docs/service.md",
        )
