"""(pure) The facts of a diagnosis, as values; None stands for what the system does not tell.

Knows nothing of how they are gathered (``folder_facts``, ``machine_facts``, ``process_facts``, ``store_facts``), nor of
what they mean (``folder_checks``, ``machine_checks``, ``store_checks``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from columnar.storage.file_systems import UNKNOWN, Mount, Verdict

Role = Literal["standalone", "node"]


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    name: str = ""  # its command, cut
    user: int = -1  # its effective user; -1: unknown


@dataclass(frozen=True, slots=True)
class LockFacts:
    """The file LOCK of a data folder, which is read and never locked: a start at that moment must succeed."""

    is_locked: bool | None = None
    owner: str = ""  # the file's first line: "process 47", "nodes of a cluster"
    owner_lives: bool | None = None
    holders: tuple[Process, ...] = ()  # processes that are seen with the lock


@dataclass(frozen=True, slots=True)
class Rights:
    """The owner of the folder, its mode, and whether the user may use it."""

    owner: int
    mode: int  # permission bits
    user: int  # who runs the diagnosis
    may_use: bool  # that user may read, write and enter
    secret_mode: int | None = None  # of the file ``secret``; None without one


@dataclass(frozen=True, slots=True)
class Room:
    free_bytes: int  # for the user
    size_bytes: int
    free_files: int | None = None  # None: the file system has no bound of its own
    data_bytes: int = 0  # of the folder
    is_whole: bool = True  # False: the folder has more files than were counted


@dataclass(frozen=True, slots=True)
class Syncs:
    """Fsyncs of 4 KiB each, in a file of their own."""

    seconds: tuple[float, ...] = ()  # of each, in their order
    error: str = ""  # why the file could not be written or synced
    place: str = ""  # the folder in which it was


@dataclass(frozen=True, slots=True)
class FolderFacts:
    path: str
    state: Literal["folder", "missing", "file", "unreadable", "stalled"]
    error: str = ""  # of the system, if it is unreadable
    rights: Rights | None = None
    refusal: str = ""  # the sentence with which a start refuses the content
    format: int | None = None  # None: no store yet
    coordination: str = ""  # URL of the service of the nodes to which the folder belongs; empty: to one machine
    mount: Mount = UNKNOWN
    verdict: Verdict = field(default_factory=Verdict)
    passed: frozenset[str] = frozenset()  # types of file systems that ``probe-root`` has passed there
    room: Room | None = None
    regions: int = 0
    unreplayed: tuple[str, ...] = ()  # logs of processes that did not stop in order, by their place in the folder
    clock_ms: int | None = None  # the highest timestamp that was given


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a process."""

    files: int | None = None  # the hard limit: a store raises its own to it
    process: Process | None = None  # the running store; None: limits of the command itself


@dataclass(frozen=True, slots=True)
class Memory:
    total_bytes: int | None = None
    available_bytes: int | None = None
    group_bytes: int | None = None  # limit of the control group; None: no limit
    group_kills: int = 0  # processes of the group that the kernel has ended for memory, since it exists
    swapped_bytes: int = 0  # of the running store
    headroom_bytes: int | None = None  # of address space, where the kernel does not overcommit; None: it does
    huge_pages: str = ""  # the chosen word of transparent_hugepage/enabled
    oom_score_adj: int | None = None  # of the running store
    ordered_bytes: int = 0  # by --memory; 0: the store takes what the machine allows


@dataclass(frozen=True, slots=True)
class Clock:
    now_ms: int
    is_synchronised: bool | None = None  # as the kernel says
    error_ms: float | None = None  # its estimate


@dataclass(frozen=True, slots=True)
class Program:
    version: str
    build: str
    python: str
    hot_modules: str  # ``compiled.state``
    has_uvloop: bool
    system: str  # kernel's name and version
    is_linux: bool = True
    is_root: bool = False


@dataclass(frozen=True, slots=True)
class PortFacts:
    option: str  # of the store: --port
    host: str
    port: int
    listeners: tuple[Process, ...] = ()  # a process of another user has pid 0
    is_own: bool = False  # the running store of the folder listens there
    error: str = ""  # why the address cannot be used on this machine


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    cert: str
    key: str
    error: str = ""  # why a start refuses the files
    begins_s: float | None = None
    ends_s: float | None = None
    key_mode: int | None = None


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """A store that was asked over its port."""

    address: str
    is_wanted: bool  # the address was named; otherwise it is the default
    error: str = ""  # why there is no answer
    seconds: float = 0.0
    version: str = ""
    build: str = ""
    data: str = ""
    remarks: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()  # servers without an answer


@dataclass(frozen=True, slots=True)
class RunningStore:
    """A process of this machine that serves the folder, and its settings as its command line has them."""

    process: Process
    pids: frozenset[int]  # with its children
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def role(self) -> Role:
        node = self.settings.get("node")
        return "node" if isinstance(node, dict) and node.get("coordination") else "standalone"

    @property
    def address(self) -> str:
        """The store's address from this machine; empty if its settings do not tell it."""
        port = self.settings.get("port")
        if not isinstance(port, int) or port <= 0:
            return ""
        return f"{reachable(str(self.settings.get('host', '')))}:{port}"

    @property
    def speaks_tls(self) -> bool:
        return bool(self.settings.get("tls_cert"))


def reachable(host: str) -> str:
    """Return an address of this machine for one that a store listens on; of IPv6 in brackets."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - compared
    return f"[{host}]" if ":" in host else host


@dataclass(frozen=True, slots=True)
class Facts:
    program: Program
    folder: FolderFacts
    lock: LockFacts
    syncs: Syncs | None
    limits: Limits
    memory: Memory
    clock: Clock
    ports: tuple[PortFacts, ...] = ()
    certificate: CertificateFacts | None = None
    running: RunningStore | None = None
    store: StoreFacts | None = None
    role: Role | None = None  # that is to serve the folder; None: it was not said
    servers: int = 1  # processes that serve
    has_triggers: bool = False
    refusal: str = ""  # the line with which the start that is to follow refuses its settings
