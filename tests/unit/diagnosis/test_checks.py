"""The checks of ``columnar doctor``, each with facts that are given: what is found, and at which level."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from columnar.diagnosis.diagnosis import diagnose
from columnar.diagnosis.facts import (
    CertificateFacts,
    Clock,
    Facts,
    FolderFacts,
    Limits,
    LockFacts,
    Memory,
    PortFacts,
    Process,
    Program,
    Rights,
    Room,
    RunningStore,
    StoreFacts,
    Syncs,
)
from columnar.diagnosis.findings import LEVELS, Finding
from columnar.limits import MIB
from columnar.memory_plan import least_bytes
from columnar.storage.file_systems import Mount, Verdict, verdict_on

GIB = 1024 * MIB
NOW_MS = 1_800_000_000_000
EXT4 = Mount("ext4", "/dev/sda1", "/srv", "/", frozenset({"rw", "relatime"}))
FOLDER = FolderFacts(
    "/srv/data",
    "folder",
    rights=Rights(owner=951, mode=0o700, user=951, may_use=True),
    format=6,
    mount=EXT4,
    verdict=verdict_on(EXT4),
    room=Room(500 * GIB, 1_000 * GIB, 1_000_000, 10 * GIB),
    regions=30,
    clock_ms=NOW_MS,
)
WELL = Facts(
    Program("0.1.0", "0123456789ab", "3.11.2", "compiled", True, "Linux 6.1"),
    FOLDER,
    LockFacts(is_locked=False, owner="process 47", owner_lives=False),
    Syncs((0.001,) * 50, "", "/srv/data"),
    Limits(65_536),
    Memory(16 * GIB, 12 * GIB),
    Clock(NOW_MS, True, 1.5),
    ports=(PortFacts("--port", "127.0.0.1", 9090),),
    certificate=CertificateFacts("s.crt", "s.key", begins_s=0, ends_s=NOW_MS / 1_000 + 90 * 86_400, key_mode=0o600),
)
SERVER = Process(4711, "columnar, folder /srv/data", 951)


def folder(**changes: Any) -> Facts:
    return replace(WELL, folder=replace(FOLDER, **changes))


def mounted(kind: str, *options: str, **changes: Any) -> Facts:
    mount = Mount(kind, "source", "/srv", "/", frozenset(options))
    return replace(WELL, folder=replace(FOLDER, mount=mount, verdict=verdict_on(mount), **changes))


def worst(facts: Facts) -> Finding:
    return diagnose(facts)[0]


def test_a_store_that_is_well_has_only_ok() -> None:
    found = diagnose(WELL)
    assert {one.level for one in found} == {"ok"}
    assert {one.name for one in found} == {
        "content", "lock", "permissions", "mount", "space", "fsync", "port", "certificate", "open files", "memory",
        "clock", "program",
    }  # fmt: skip


HELD = LockFacts(is_locked=True, owner="process 4711", owner_lives=True, holders=(SERVER,))
RUNNING = RunningStore(SERVER, frozenset({4711}))
UNPROVED = Mount("fuse.example", "x", "/srv", "/", frozenset({"rw"}))

CASES: dict[str, tuple[Facts, str, str, str]] = {  # name -> facts, level, subject, part of the text
    "a stalled folder": (folder(state="stalled"), "problem", "folder", "does not answer"),
    "a file": (folder(state="file"), "problem", "folder", "is a file"),
    "an unreadable folder": (folder(state="unreadable", error="Permission denied"), "problem", "folder", "denied"),
    "a refused folder": (folder(refusal="it has format 12"), "problem", "content", "format 12"),
    "a missing folder": (folder(state="missing", format=None), "note", "content", "first start makes it"),
    "a folder in use": (replace(WELL, lock=HELD), "problem", "lock", "process 4711 (columnar, folder /srv/data)"),
    "a folder of ended parents": (
        replace(WELL, lock=replace(HELD, owner_lives=False, holders=(Process(4712, "python"),))),
        "problem",
        "lock",
        "children of process 4711, which has ended: process 4712",
    ),
    "a killed predecessor": (folder(unreplayed=("server-log",)), "note", "lock", "did not stop in order"),
    "a folder of nodes": (folder(coordination="etcd://h:2379/c"), "warning", "role", "etcd://h:2379/c"),
    "a folder of nodes for one": (
        replace(folder(coordination="etcd://h:2379/c"), role="standalone"),
        "problem",
        "role",
        "'columnar standalone' refuses",
    ),
    "another user's folder": (
        folder(rights=Rights(owner=951, mode=0o700, user=1000, may_use=False)),
        "problem",
        "permissions",
        "user 1000 may not",
    ),
    "a folder that others read": (
        folder(rights=Rights(owner=951, mode=0o755, user=951, may_use=True)),
        "warning",
        "permissions",
        "chmod 0700",
    ),
    "a secret that others read": (
        folder(rights=Rights(owner=951, mode=0o700, user=951, may_use=True, secret_mode=0o644)),
        "problem",
        "permissions",
        "/srv/data/secret",
    ),
    "a read-only mount": (mounted("ext4", "ro"), "problem", "mount", "read-only"),
    "a mount without barriers": (mounted("ext4", "rw", "nobarrier"), "problem", "mount", "power cut"),
    "a volatile overlay": (mounted("overlay", "rw", "volatile"), "problem", "mount", "volatile"),
    "a container's layer": (mounted("overlay", "rw"), "warning", "mount", "container"),
    "memory": (mounted("tmpfs", "rw"), "warning", "mount", "restart of the machine loses everything"),
    "a synchronous mount": (mounted("ext4", "rw", "sync"), "warning", "mount", "each write waits"),
    "a mount with discard": (mounted("ext4", "rw", "discard"), "note", "mount", "fstrim"),
    "a soft mount": (mounted("nfs4", "rw", "soft", "vers=4.2"), "warning", "mount", "mount it hard"),
    "objects for nodes": (
        mounted("fuse.s3fs", "rw", coordination="etcd://h/c"),
        "problem",
        "mount",
        "keeps files as objects",
    ),
    "an unproved file system for nodes": (
        mounted("fuse.example", "rw", coordination="etcd://h/c"),
        "problem",
        "mount",
        "probe-root",
    ),
    "a full disk": (folder(room=Room(10 * MIB, GIB)), "problem", "space", "the disk is full"),
    "a nearly full disk": (folder(room=Room(500 * MIB, GIB)), "warning", "space", "merge"),
    "less room than data": (folder(room=Room(5 * GIB, 20 * GIB, None, 10 * GIB)), "note", "space", "snapshots"),
    "no inodes": (folder(room=Room(5 * GIB, 20 * GIB, 40)), "problem", "inodes", "40 more files"),
    "few inodes": (folder(room=Room(5 * GIB, 20 * GIB, 400)), "warning", "inodes", "400 more files"),
    "a disk that fails": (
        replace(WELL, syncs=Syncs((), "No space left on device", "/srv")),
        "problem",
        "fsync",
        "No space",
    ),
    "a slow disk": (replace(WELL, syncs=Syncs((0.02,) * 50, "", "/srv")), "note", "fsync", "median 20 ms"),
    "a very slow disk": (replace(WELL, syncs=Syncs((0.08,) * 30, "", "/srv")), "warning", "fsync", "median 80 ms"),
    "one long fsync": (
        replace(WELL, syncs=Syncs((0.001,) * 49 + (0.9,), "", "/srv")),
        "note",
        "fsync",
        "longest 900 ms",
    ),
    "no fsync at all": (replace(WELL, syncs=Syncs((0.000_002,) * 50, "", "/srv")), "warning", "fsync", "eatmydata"),
    "few descriptors": (
        replace(WELL, limits=Limits(1_024), folder=replace(FOLDER, regions=900)),
        "warning",
        "open files",
        "12,212",
    ),
    "descriptors for now": (replace(WELL, limits=Limits(4_096)), "note", "open files", "26,512"),
    "little memory": (replace(WELL, memory=Memory(16 * GIB, GIB, 200 * MIB)), "warning", "memory", "256 MiB"),
    "bounds above the memory": (replace(WELL, memory=Memory(16 * GIB, GIB, 600 * MIB)), "note", "memory", "704 MiB"),
    "less than a start needs": (
        replace(WELL, memory=Memory(16 * GIB, GIB, ordered_bytes=MIB)),
        "problem",
        "memory",
        "--memory 1.0 MiB is too little",
    ),
    "more than there is": (
        replace(WELL, memory=Memory(16 * GIB, GIB, 2 * GIB, ordered_bytes=4 * GIB)),
        "warning",
        "memory",
        "more than there is (2.0 GiB)",
    ),
    "little memory for triggers": (
        replace(WELL, memory=Memory(16 * GIB, GIB, ordered_bytes=least_bytes()), has_triggers=True),
        "problem",
        "memory",
        "is too little",
    ),
    "refused settings": (replace(WELL, refusal="c.toml:2: no"), "problem", "settings", "c.toml:2: no"),
    "kills for memory": (
        replace(WELL, memory=Memory(16 * GIB, GIB, group_kills=3)),
        "warning",
        "memory",
        "ended 3 processes",
    ),
    "swap": (replace(WELL, memory=Memory(16 * GIB, GIB, swapped_bytes=GIB)), "warning", "memory", "swapped out"),
    "no overcommitment": (
        replace(WELL, memory=Memory(16 * GIB, GIB, headroom_bytes=MIB)),
        "warning",
        "memory",
        "overcommit",
    ),
    "the first to be ended": (replace(WELL, memory=Memory(16 * GIB, GIB, oom_score_adj=500)), "note", "memory", "500"),
    "a clock that was set back": (
        replace(WELL, clock=Clock(NOW_MS - 7_200_000, True)),
        "warning",
        "clock",
        "2.0 h behind",
    ),
    "a clock that nobody sets": (replace(WELL, clock=Clock(NOW_MS, False)), "note", "clock", "no time server"),
    "such a clock of a node": (
        replace(WELL, clock=Clock(NOW_MS, False), role="node"),
        "warning",
        "clock",
        "does not start",
    ),
    "an unknown clock": (replace(WELL, clock=Clock(NOW_MS)), "note", "clock", "cannot be told"),
    "interpreted modules": (
        replace(WELL, program=replace(WELL.program, hot_modules="interpreted (x)")),
        "note",
        "compiled modules",
        "(x)",
    ),
    "no uvloop": (replace(WELL, program=replace(WELL.program, has_uvloop=False)), "warning", "event loop", "uvloop"),
    "root": (replace(WELL, program=replace(WELL.program, is_root=True)), "note", "user", "root"),
    "a taken port": (
        replace(WELL, ports=(PortFacts("--web-port", "127.0.0.1", 9095, (Process(99, "nginx"),)),)),
        "problem",
        "port",
        "process 99 (nginx)",
    ),
    "a stranger's port": (
        replace(WELL, ports=(PortFacts("--port", "0.0.0.0", 9090, (Process(0),)),)),
        "problem",
        "port",
        "another user",
    ),
    "no such address": (
        replace(WELL, ports=(PortFacts("--port", "10.9.9.9", 9090, error="Cannot assign requested address"),)),
        "problem",
        "port",
        "10.9.9.9:9090",
    ),
    "a broken pair": (
        replace(WELL, certificate=CertificateFacts("c", "k", error="not a pair")),
        "problem",
        "certificate",
        "not a pair",
    ),
    "an expired certificate": (
        replace(WELL, certificate=CertificateFacts("c", "k", begins_s=0, ends_s=NOW_MS / 1_000 - 3_600)),
        "problem",
        "certificate",
        "expired 1.0 h ago",
    ),
    "a certificate of tomorrow": (
        replace(WELL, certificate=CertificateFacts("c", "k", begins_s=NOW_MS / 1_000 + 86_400, ends_s=NOW_MS)),
        "problem",
        "certificate",
        "1.0 d",
    ),
    "a certificate that ends": (
        replace(WELL, certificate=CertificateFacts("c", "k", begins_s=0, ends_s=NOW_MS / 1_000 + 86_400)),
        "warning",
        "certificate",
        "expires in 1.0 d",
    ),
    "a key that others read": (
        replace(WELL, certificate=CertificateFacts("c", "k", key_mode=0o640)),
        "warning",
        "certificate",
        "chmod 0600 k",
    ),
    "a store that does not answer": (
        replace(WELL, store=StoreFacts("h:9090", True, error="h:9090 took the connection")),
        "problem",
        "store",
        "took",
    ),
    "no store at the default": (
        replace(WELL, store=StoreFacts("h:9090", False, error="refused")),
        "note",
        "store",
        "no store",
    ),
    "a store with a remark": (
        replace(
            WELL, store=StoreFacts("h:9090", True, "", 0.1, "0.1.0", "0123456789ab", remarks=("a region is closed",))
        ),
        "problem",
        "store",
        "a region is closed",
    ),
    "silent servers": (
        replace(WELL, store=StoreFacts("h:9090", True, "", 0.1, "0.1.0", "0123456789ab", silent=("s2.1",))),
        "problem",
        "store",
        "s2.1",
    ),
    "a slow answer": (
        replace(WELL, store=StoreFacts("h:9090", True, "", 4.0, "0.1.0", "0123456789ab")),
        "warning",
        "store",
        "requests wait",
    ),
    "another build": (
        replace(WELL, store=StoreFacts("h:9090", True, "", 0.1, "0.1.0", "fedcba987654")),
        "note",
        "store",
        "fedcba987654",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_found(name: str) -> None:
    facts, level, subject, part = CASES[name]
    found = worst(facts)
    assert (found.level, found.name) == (level, subject)
    assert part in found.line()
    if level in ("warning", "problem"):
        assert found.why or found.advice, "a person can do something with it"


def test_a_running_store_is_no_fault() -> None:
    port = PortFacts("--port", "127.0.0.1", 9090, (SERVER,), is_own=True)
    store = StoreFacts("127.0.0.1:9090", True, "", 0.01, "0.1.0", "0123456789ab-dirty")
    facts = replace(WELL, lock=HELD, running=RUNNING, ports=(port,), store=store)
    assert {one.level for one in diagnose(facts)} == {"ok"}


def test_nodes_share_a_folder_that_a_probe_has_passed() -> None:
    facts = replace(
        mounted("fuse.example", "rw", coordination="etcd://h/c", passed=frozenset({"fuse.example"})), role="node"
    )
    assert worst(facts).level == "note", "only that nobody has measured it"
    remarked = replace(
        WELL, role="node", folder=replace(FOLDER, coordination="etcd://h/c", verdict=Verdict(remarks=("slow",)))
    )
    assert (worst(remarked).level, worst(remarked).text) == ("note", "slow")


def test_the_worst_comes_first() -> None:
    ends = CASES["a certificate that ends"][0].certificate
    facts = replace(CASES["a full disk"][0], limits=Limits(4_096), certificate=ends)
    levels = [one.level for one in diagnose(facts)]
    assert levels == sorted(levels, key=LEVELS.index)
    assert levels[:3] == ["problem", "warning", "note"]
