"""Whether a folder can hold the data of a cluster: two mounts of it are tried against each other.

    what is changed at one mount must be seen at the other, at once
    bytes     synced bytes are read whole, also by a reader that has looked at the file before
    names     new, removed and replaced files are seen, and folders list them
    rename    a path below a folder that the other mount has renamed is refused
    links     hard links; locks (``flock``); mappings, or writing in place instead

The rules follow from what a cluster does.  An owner reads the logs of dead servers: a stale size loses acknowledged
writes.  The next owner renames a region's folder, so that a node that was fenced and wakes up writes no more files.
A node holds a lock that keeps other programs out.

The checks do not know which two mounts they have: two on one machine, two machines, or one mount twice, which shows no
stale cache, but whether the file system has the calls at all (``quick_probe``).  Only ``conclude`` compares them: a
pass is a proof if the mounts differ.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal
from zlib import crc32

from columnar.storage.file_systems import name_of
from columnar.storage.probe_mount import MountUnavailable, ProbedMount, contents
from columnar.storage.probe_record import PROBED

ROUNDS: Final = 20
CHECK_S: Final = 60.0  # a check begins no further round then; what it has seen counts
STALE_S: Final = 5.0  # a change that is not seen then counts as never seen
GRACE_S: Final = 1.0  # within which a lock that was given up is free
SLOW_READ_S: Final = 1.0  # a longer wait for a file that the other machine has is worth a remark
SLOW_READ_REPAIR: Final = "on CephFS: ceph config set mds mds_tick_interval 0.2"
CLOCKS_MS: Final = 500.0  # clocks further apart are worth a remark
_POLL_S: Final = 0.01
_SIZES: Final = ((60, 100), (1_000, 5_000), (50_000, 250_000), (70_000, 600_000))  # looked at, then continued to

Outcome = Literal["ok", "fault", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A line of the report; only a ``fault`` makes the folder unsuitable."""

    outcome: Outcome
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """The two mounts, and how many rounds each check has."""

    one: ProbedMount
    other: ProbedMount
    rounds: int

    def in_rounds(self, most: int = ROUNDS) -> Iterator[tuple[int, ProbedMount, ProbedMount]]:
        """Yield the round's number, the mount that changes files, and the mount that must see it: in turn."""
        until_s = time.monotonic() + CHECK_S
        for number in range(min(self.rounds, most)):
            if number and time.monotonic() >= until_s:
                return
            yield (number, self.one, self.other) if number % 2 == 0 else (number, self.other, self.one)


class Tally:
    """Counts the rounds of a check that went well, and how long the others waited for the change."""

    def __init__(self) -> None:
        self.rounds = self.good = 0
        self.worst_s = 0.0
        self.is_seen = True  # every change was seen in the end

    def see(self, is_so: Callable[[], bool], grace_s: float = 0.0) -> None:
        """Count a round: a change that is seen at the first check is good; for others poll until it is seen.

        A change that is seen within ``grace_s`` is good, too.
        """
        self.rounds += 1
        if is_so():
            self.good += 1
            return
        begun_s = time.monotonic()
        while not is_so():
            if time.monotonic() - begun_s > STALE_S:
                self.is_seen = False
                break
            time.sleep(_POLL_S)  # a file system sends no event to other machines
        waited_s = time.monotonic() - begun_s
        self.good += self.is_seen and waited_s <= grace_s
        self.worst_s = max(self.worst_s, waited_s)

    def finding(self, name: str, good: str, means: str) -> Finding:
        count = f"{self.good} of {self.rounds}"
        if self.good == self.rounds:
            return Finding("ok", name, f"{count} {good}")
        how = f"the others after up to {self.worst_s:.1f} s" if self.is_seen else f"others not within {STALE_S:g} s"
        return Finding("fault", name, f"{count} {good}, {how}: {means}")


# --- checks ------------------------------------------------------------------------------------------------


def check_bytes(pair: Pair) -> Iterator[Finding]:
    """Read files whole that the other mount has continued and synced, after the reader has looked at them."""
    tally, reads_s = Tally(), []
    for number, writer, reader in pair.in_rounds():
        name, (first, whole) = f"bytes{number}", _SIZES[number // 2 % len(_SIZES)]
        writer.run_operation("append", name, number, 0, first)
        reader.run_operation("read", name)
        writer.run_operation("append", name, number, first, whole - first)
        begun_s = time.monotonic()
        found = reader.run_operation("read", name)
        reads_s.append(time.monotonic() - begun_s)
        tally.see(_reads(reader, name, number, whole, found))
        writer.run_operation("release", name)
        writer.run_operation("remove", name)
    means = "the next owner would take a dead server's log for shorter, and lose acknowledged writes"
    yield tally.finding("bytes", "files were read whole as soon as they were synced", means)
    if max(reads_s) > SLOW_READ_S:
        waited = f"{statistics.median(reads_s):.1f} s, at worst {max(reads_s):.1f} s"
        text = f"a file that the other machine has open is opened after {waited}, and so is a region that moves"
        yield Finding("note", "opening", f"{text}; {SLOW_READ_REPAIR}")


def _reads(reader: ProbedMount, name: str, seed: int, count: int, first: Any = None) -> Callable[[], bool]:
    """Return a check whether the reader has exactly these contents; ``first`` is the answer that it already gave."""
    expected = [count, count, crc32(contents(seed, count))]
    given = [first] if first is not None else []
    return lambda: bool((given.pop() if given else reader.run_operation("read", name)) == expected)


def check_names(pair: Pair) -> Iterator[Finding]:
    """See files that the other mount made and removed, also names that were missing when they were last looked at."""
    made, removed = Tally(), Tally()
    for number, writer, reader in pair.in_rounds(10):
        folder, name = f"names{number}", f"names{number}/one"
        writer.run_operation("mkdir", folder)
        reader.run_operation("names", folder)
        reader.run_operation("exists", name)
        writer.run_operation("write", name, number, 100)
        made.see(partial(_lists, reader, name, folder, ["one"]))
        writer.run_operation("remove", name)
        removed.see(partial(_lists, reader, name, folder, []))
    means = "the next owner would miss files of the dead server"
    yield made.finding("new names", "new files were found and listed at once", means)
    yield removed.finding("removed names", "removed files were gone at once", means)


def _lists(reader: ProbedMount, name: str, folder: str, names: list[str]) -> bool:
    """Tell whether the reader lists exactly these names in the folder, and finds the file if there is one."""
    exists = reader.run_operation("exists", name)
    return bool(exists) == bool(names) and bool(reader.run_operation("names", folder) == names)


def check_contents(pair: Pair) -> Iterator[Finding]:
    """See a file that the other mount replaced by a rename, and one that it wrote in place."""
    replaced, in_place, mapped = Tally(), Tally(), set()
    for number, writer, reader in pair.in_rounds(10):
        name, half = f"file{number}", f"file{number}new"
        writer.run_operation("write", name, 1, 4_096)
        reader.run_operation("read", name)
        writer.run_operation("write", half, 2, 4_096)
        writer.run_operation("rename", half, name)
        replaced.see(_reads(reader, name, 2, 4_096))
        mapped.add(bool(writer.run_operation("map", name, 3, 4_096)))
        in_place.see(_reads(reader, name, 3, 4_096))
    means = "a server would start from old numbers"
    yield replaced.finding("replaced files", "files that were replaced by a rename were new at once", means)
    yield in_place.finding("in place", "files that were written in place were new at once", means)
    text = "files can be mapped" if mapped == {True} else "files cannot be mapped, and are written by system calls"
    yield Finding("ok" if mapped == {True} else "note", "mappings", text)


def check_rename(pair: Pair) -> Iterator[Finding]:
    """Find paths below a folder refused as soon as the other mount has renamed it."""
    refused, moved = Tally(), Tally()
    for number, other, owner in pair.in_rounds(10):
        folder, target = f"region{number}", f"moved{number}"
        owner.run_operation("mkdir", folder)
        owner.run_operation("write", f"{folder}/one", 1, 100)
        owner.run_operation("names", folder)
        other.run_operation("exists", f"{folder}/one")
        other.run_operation("rename", folder, target)
        refused.see(_is_refused(owner, f"{folder}/two"))
        moved.see(_reads(owner, f"{target}/one", 1, 100))
    means = "a node that was fenced and wakes up would write into the next owner's folder"
    yield refused.finding("renamed folders", "old paths were refused at once", means)
    means = "an owner would not find its folder"
    yield moved.finding("new paths", "new paths were found at once", means)


def _is_refused(owner: ProbedMount, name: str) -> Callable[[], bool]:
    def is_refused() -> bool:
        try:
            owner.run_operation("write", name, 2, 100)
        except FileNotFoundError:
            return True
        return False

    return is_refused


def check_links(pair: Pair) -> Iterator[Finding]:
    """Link a file of the other mount, which then removes its name."""
    tally = Tally()
    for number, other, owner in pair.in_rounds(4):
        name, target = f"link{number}", f"linked{number}"
        owner.run_operation("write", name, number, 5_000)
        other.run_operation("link", name, target)
        tally.see(partial(_has_links, owner, target))
        owner.run_operation("remove", name)
        tally.see(_reads(other, target, number, 5_000))
    means = "a region cannot be taken over without copying all of it"
    yield tally.finding("hard links", "links counted and kept their contents", means)


def _has_links(owner: ProbedMount, name: str) -> bool:
    return bool(owner.run_operation("links", name) == 2)


def check_locks(pair: Pair) -> Iterator[Finding]:
    """Exclude the other mount by an exclusive lock, and its exclusive lock by a shared one."""
    excluded, shared = Tally(), Tally()
    for number, holder, other in pair.in_rounds(4):
        name = f"lock{number}"
        holder.run_operation("lock", name, False)
        excluded.see(partial(_is_excluded, other, name, from_shared=True))
        holder.run_operation("release", name)
        # A file system of several copies may need a moment to forget the refused locks.
        shared.see(partial(_share, other, holder, name), GRACE_S)
        other.run_operation("release", name)
        excluded.see(partial(_is_excluded, other, name, from_shared=False))
        for mount in (holder, other):
            mount.run_operation("release", name)
    means = "a second store could open the folder"
    yield excluded.finding("locks", "locks (flock) kept the other mount out", means)
    means = "a node could not start beside another"
    yield shared.finding("shared locks", "shared locks were given to both mounts", means)


def _is_excluded(mount: ProbedMount, name: str, *, from_shared: bool) -> bool:
    """Tell whether the mount gets no exclusive lock, and with ``from_shared`` no shared one either."""
    is_shared = from_shared and mount.run_operation("lock", name, True)
    return not is_shared and not mount.run_operation("lock", name, False)


def _share(one: ProbedMount, other: ProbedMount, name: str) -> bool:
    return bool(one.run_operation("lock", name, True) and other.run_operation("lock", name, True))


def check_time(pair: Pair) -> Iterator[Finding]:
    """Measure how long an fsync takes at each mount, and how far the clocks are apart."""
    times: list[float] = []
    for number in range(pair.rounds):
        mount = pair.one if number % 2 == 0 else pair.other
        times.append(mount.run_operation("append", f"sync{number % 2}", 1, 100 * number, 100))
    for number, mount in enumerate((pair.one, pair.other)):
        mount.run_operation("release", f"sync{number}")
        mount.run_operation("sync_names")
    text = f"100 bytes were synced within {statistics.median(times):.1f} ms, at worst {max(times):.1f} ms"
    yield Finding("ok", "fsync", f"{text}: no write is acknowledged sooner")
    before_ms = pair.one.run_operation("clock")
    other_ms = pair.other.run_operation("clock")
    after_ms = pair.one.run_operation("clock")
    apart_ms = max(before_ms - other_ms, other_ms - after_ms, 0.0)
    if apart_ms > CLOCKS_MS:
        yield Finding("note", "clocks", f"the clocks are {apart_ms / 1_000:.1f} s apart: let NTP set them")
    else:
        yield Finding("ok", "clocks", f"the clocks are at most {apart_ms + after_ms - before_ms:.0f} ms apart")


CHECKS: Final = (check_bytes, check_names, check_contents, check_rename, check_links, check_locks, check_time)
ONE_MOUNT: Final = (
    "both sides were the same mount, which shows no stale cache: a proof needs --listen and a second machine, or "
    "--also and a second mount (NFS: -o nosharecache, CephFS by the kernel: -o noshare)"
)


def probe(one: ProbedMount, other: ProbedMount, *, rounds: int = ROUNDS) -> Iterator[Finding]:
    """Try two mounts against each other and yield the findings as they come; ``one`` makes the probe's folder.

    Blocks, as a rule for some seconds; each check ends CHECK_S and a round after its beginning.  A mount that stalls
    ends the report.  Raises OSError if the folder of the probe cannot be made, and MountUnavailable before that.
    """
    yield from file_system_of(one)
    if other.place != one.place:
        yield from file_system_of(other)
    other.run_operation("is_there")
    one.run_operation("make")
    tally = Tally()
    tally.see(lambda: bool(other.run_operation("is_there")))
    yield tally.finding("same folder", "folder was seen at the other mount at once", "it is another folder, or stale")
    if tally.is_seen:
        yield from run_checks(Pair(one, other, rounds), CHECKS)


def conclude(one: ProbedMount, other: ProbedMount, *, has_passed: bool) -> Iterator[Finding]:
    """Record at ``one`` what a whole probe has shown, because nodes refuse file systems that need a proof.

    Raises OSError and MountUnavailable.
    """
    if not has_passed and one.run_operation("forget_passed"):
        yield Finding("note", "record", f"an earlier pass counts no more: {PROBED} is removed")
    is_one_mount = one.run_operation("identity") == other.run_operation("identity")
    if is_one_mount:
        yield Finding("note", "one mount", ONE_MOUNT)
    found = [mount.run_operation("verdict") for mount in (one, other)]
    kinds = sorted({each["kind"] for each in found if each["needs_proof"]})
    if not has_passed or not kinds:
        return
    names = " and ".join(name_of(kind) for kind in kinds)
    if is_one_mount:
        yield Finding("note", "record", f"a node starts on {names} only after two mounts have passed")
    else:
        one.run_operation("note_passed", kinds)
        yield Finding("ok", "record", f"{PROBED} notes that {names} has passed, so nodes start here")


def file_system_of(mount: ProbedMount) -> Iterator[Finding]:
    """Judge the mount by its type and its options."""
    found = mount.run_operation("verdict")
    name, kind = "file system", found["kind"] or "of unknown type"
    if found["refusal"]:
        yield Finding("fault", name, f"{mount.place} is {kind}. {found['refusal']}. Repair: {found['repair']}")
    else:
        yield Finding("ok", name, f"{mount.place} is {kind}")
    yield from (Finding("note", name, remark) for remark in found["remarks"])


def run_checks(pair: Pair, checks: tuple[Callable[[Pair], Iterator[Finding]], ...]) -> Iterator[Finding]:
    """Yield the findings of the checks; a check that the file system refuses is a fault.

    Ends after MountUnavailable.
    """
    for check in checks:
        name = check.__name__.removeprefix("check_")
        try:
            yield from check(pair)
        except MountUnavailable as gone:
            yield Finding("fault", name, gone.text)
            return
        except OSError as error:
            yield Finding("fault", name, f"the file system refuses it: {error}")
