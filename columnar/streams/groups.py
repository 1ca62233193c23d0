"""(pure) Groups of readers: which member reads which rows of a table, and from which position on.

A group has ranges of rows, which stay as they were when it began: positions name rows, so splits and merges of regions
change nothing.  A range has at most one owner.  Events (``pull``, ``commit``, ``leave``) return the group as it is
then, the same object if there is nothing to write.

    free      nobody has it; the next event gives it to the member with the fewest
    owned     its owner reads it
    moving    it is to move to another member: its owner gets no more of its changes, and hands it over with its next
              commit, or with a pull if nothing of it is uncommitted; at the latest after GROUP_LEASE_MS

A member that has not pulled for GROUP_LEASE_MS is removed by the next event of another member.  Until then its commits
count: it is alone, and nobody has got its ranges.

Invariants:
    I1. The epoch of a range rises whenever it loses its owner.  A commit counts only with the present epoch, so there
        are never two members whose commits of a range count.  Epochs begin at the time when the group begins, so a
        group of the same name that was dropped had other epochs, and its members' places count no more.
    I2. An owner begins at the committed place, so no change is skipped.
    I3. Within one epoch the committed place does not go back: a commit with an older serial changes nothing.
    I4. A range moves without repeats: its owner has committed all that was handed out (``serial``).  Repeats come only
        after a death, an expired lease, or a move that waited for GROUP_LEASE_MS.
    I5. After an event the members' ranges, without those that are moving, differ by at most one from an equal share, or
        a range that is moving will make it so.

Time comes in as ``now_ms``, a server's clock.  Servers' clocks that differ cost repeats, and never a change.

Knows nothing of logs, rows of system tables and clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from columnar.errors import RegionTooBusy
from columnar.flows import position
from columnar.flows.position import Position, Range
from columnar.model.reader_groups import (
    GROUP_LEASE_MS,
    GROUP_MEMBERS,
    GROUP_RANGES,
    GroupStatus,
    MemberStatus,
    RangeStatus,
)

RENEWED_AFTER_MS: Final = GROUP_LEASE_MS // 3  # pulls within this time write nothing
NOBODY: Final = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """A range as its owner has read it; the owner keeps this, and sends it with each call."""

    start: bytes
    epoch: int
    serial: int  # rises with each reply that has events
    place: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class GroupRange:
    start: bytes
    owner: str
    epoch: int
    serial: int  # of the last commit; within an epoch
    place: tuple[Range, ...]  # committed
    committed_ms: int  # when all that was handed out was committed, the last time
    moves_by_ms: int = 0  # 0: it does not move


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    deadline_ms: int  # of its lease


@dataclass(frozen=True, slots=True)
class Group:
    wanted: bytes  # names the changes that its members read (``change_stream.spec_digest``)
    members: tuple[Member, ...]  # in the order in which they joined
    ranges: tuple[GroupRange, ...]  # ascending from b""

    def stop_of(self, at: int) -> bytes:
        return self.ranges[at + 1].start if at + 1 < len(self.ranges) else b""

    def owned_by(self, name: str) -> list[GroupRange]:
        return [one for one in self.ranges if one.owner == name]

    def next_deadline_ms(self, but: str) -> int | None:
        """Return the time at which a pull of ``but`` may find more ranges without a call of another member."""
        times = [one.deadline_ms for one in self.members if one.name != but]
        times += [one.moves_by_ms for one in self.ranges if one.moves_by_ms and one.owner != but]
        return min(times, default=None)

    def check_invariants(self) -> None:
        """Check what each state must fulfil, for tests."""
        starts = [one.start for one in self.ranges]
        assert starts[:1] == [b""]
        assert starts == sorted(set(starts))
        names = {one.name for one in self.members}
        assert len(names) == len(self.members) <= GROUP_MEMBERS
        assert all(one.owner in names or (one.owner == NOBODY and not names) for one in self.ranges)
        assert all(one.owner != NOBODY for one in self.ranges if one.moves_by_ms)
        assert all(one.place[0].start == one.start for one in self.ranges)


# --- events ------------------------------------------------------------------------------------------


def begin(place: Position, starts: Sequence[bytes], wanted: bytes, now_ms: int) -> Group:
    """Return a group without members that reads from ``place`` on, with a range from each start, ascending from b"".

    If there are more starts than GROUP_RANGES, neighbours share a range.
    """
    step = -(-len(starts) // GROUP_RANGES)
    epoch = max(1, now_ms)  # I1; a range loses its owner far less than once a millisecond
    firsts = list(starts[::step])
    stops = [*firsts[1:], b""]
    ranges = [
        GroupRange(start, NOBODY, epoch, 0, position.clip(place, start, stop), now_ms)
        for start, stop in zip(firsts, stops, strict=True)
    ]
    return Group(wanted, (), tuple(ranges))


def pull(group: Group, name: str, held: Iterable[Progress], now_ms: int) -> Group:
    """Return the group after the member's pull, with which it may join.  Raises RegionTooBusy if there are too many."""
    known = _known(group, name, held)
    deadline_ms = next((one.deadline_ms for one in group.members if one.name == name), None)
    is_due = deadline_ms is None or deadline_ms - now_ms <= GROUP_LEASE_MS - RENEWED_AFTER_MS
    released = {
        one.start for one in group.ranges if one.owner == name and one.moves_by_ms and not _is_uncommitted(one, known)
    }
    if not is_due and not released and not _has_expired(group, name, now_ms):
        return group
    advanced = [_advanced(one, known, now_ms) if one.owner == name else one for one in group.ranges]
    ranges = [_freed(one) if one.start in released else one for one in advanced]
    members, ranges = _settled(group.members, ranges, name, now_ms, joins=deadline_ms is None)
    if len(members) > GROUP_MEMBERS:
        raise RegionTooBusy(f"a group has at most {GROUP_MEMBERS} members; end some, or try again later")
    return Group(group.wanted, _renewed(members, name, now_ms), tuple(ranges))


def commit(group: Group, name: str, held: Sequence[Progress], now_ms: int, *, more: bool) -> tuple[Group, list[bytes]]:
    """Return the group after the commit, and the starts of the ranges for which it did not count.

    ``more``: changes behind this commit were handed out, so no range is handed over yet.
    """
    known = _known(group, name, held)
    ranges = list(group.ranges)
    for at, one in enumerate(ranges):
        mine = known.get(one.start)
        if mine is None:
            continue
        if mine.serial >= one.serial:
            one = replace(one, serial=mine.serial, place=mine.place, committed_ms=now_ms)
        ranges[at] = _freed(one) if one.moves_by_ms and not more else one
    members, ranges = _settled(group.members, ranges, name, now_ms, joins=False)
    refused = [one.start for one in held if one.start not in known]
    return Group(group.wanted, _renewed(members, name, now_ms), tuple(ranges)), refused


def renew(group: Group, name: str, now_ms: int) -> Group:
    """Return the group with the member's lease renewed: it works on its changes, and is to keep what is to move.

    A member whose lease has ended, and whose ranges went to others, is none any more and stays none.
    """
    if all(one.name != name for one in group.members):
        return group
    moves_by_ms = now_ms + GROUP_LEASE_MS
    ranges = [
        replace(one, moves_by_ms=moves_by_ms) if one.owner == name and one.moves_by_ms else one for one in group.ranges
    ]
    members, ranges = _settled(group.members, ranges, name, now_ms, joins=False)
    return Group(group.wanted, _renewed(members, name, now_ms), tuple(ranges))


def leave(group: Group, name: str, now_ms: int) -> Group:
    """Return the group without the member; its ranges go to others from their committed places on."""
    members = tuple([one for one in group.members if one.name != name])
    if len(members) == len(group.members):
        return group
    ranges = [_freed(one) if one.owner == name else one for one in group.ranges]
    members, ranges = _settled(members, ranges, NOBODY, now_ms, joins=False)
    return Group(group.wanted, members, tuple(ranges))


# --- what a member reads -----------------------------------------------------------------------------


def progress_of(group: Group, name: str, held: Iterable[Progress]) -> list[Progress]:
    """Return the member's ranges where the member stands; those that are new to it, at their committed place."""
    known = _known(group, name, held)
    return [
        known.get(one.start) or Progress(one.start, one.epoch, one.serial, one.place) for one in group.owned_by(name)
    ]


def view_of(group: Group, name: str) -> list[tuple[bytes, int, bool]]:
    """Return what decides which ranges the member reads: a pull ends when this changes."""
    return [(one.start, one.epoch, bool(one.moves_by_ms)) for one in group.owned_by(name)]


def place_to_read(group: Group, name: str, held: Sequence[Progress]) -> Position:
    """Return the position from which the member's next changes are read: nothing is wanted of other rows."""
    mine = {one.start: one for one in held}
    parts: list[tuple[Range, ...]] = []
    for one in group.ranges:
        is_read = one.owner == name and not one.moves_by_ms
        parts.append(mine[one.start].place if is_read else (Range(one.start, position.SKIPPED, None),))
    return position.join(parts)


def progress_after(
    group: Group, name: str, held: Sequence[Progress], place: Position, *, has_events: bool
) -> list[Progress]:
    """Return the member's ranges after a read up to ``place``."""
    mine = {one.start: one for one in held}
    found: list[Progress] = []
    for at, one in enumerate(group.ranges):
        if one.owner != name:
            continue
        before = mine[one.start]
        if one.moves_by_ms:
            found.append(before)
            continue
        read = position.clip(place, one.start, group.stop_of(at))
        found.append(replace(before, place=read, serial=before.serial + has_events))
    return found


def status_of(group: Group, name: str, now_ms: int) -> GroupStatus:
    counts = Counter(one.owner for one in group.ranges)
    members = [MemberStatus(one.name, one.deadline_ms - now_ms, counts[one.name]) for one in group.members]
    ranges = [
        RangeStatus(
            one.start,
            group.stop_of(at),
            one.owner,
            one.epoch,
            max(0, now_ms - one.committed_ms),
            bool(one.moves_by_ms),
        )
        for at, one in enumerate(group.ranges)
    ]
    return GroupStatus(name, tuple(members), tuple(ranges))


# --- shares ------------------------------------------------------------------------------------------


def _known(group: Group, name: str, held: Iterable[Progress]) -> dict[bytes, Progress]:
    """Return, by start, what the member says of the ranges that it owns; other ranges are not its own any more."""
    owned = {
        one.start: (one.epoch, group.stop_of(at)) for at, one in enumerate(group.ranges) if one.owner == name != NOBODY
    }
    found: dict[bytes, Progress] = {}
    for one in held:
        epoch, stop = owned.get(one.start, (0, b""))
        if epoch == one.epoch and (not stop or one.place[-1].start < stop):
            found[one.start] = one
    return found


def _has_expired(group: Group, name: str, now_ms: int) -> bool:
    return any(one.deadline_ms <= now_ms for one in group.members if one.name != name) or any(
        0 < one.moves_by_ms <= now_ms for one in group.ranges
    )


def _is_uncommitted(one: GroupRange, known: Mapping[bytes, Progress]) -> bool:
    mine = known.get(one.start)
    return mine is not None and mine.serial > one.serial


def _advanced(one: GroupRange, known: Mapping[bytes, Progress], now_ms: int) -> GroupRange:
    """Return the owner's range, committed up to where the owner has read, if no event was handed out since."""
    mine = known.get(one.start)
    if mine is None or mine.serial != one.serial:
        return one
    return replace(one, place=mine.place, committed_ms=now_ms)


def _freed(one: GroupRange) -> GroupRange:
    return replace(one, owner=NOBODY, epoch=one.epoch + 1, serial=0, moves_by_ms=0)


def _renewed(members: Iterable[Member], name: str, now_ms: int) -> tuple[Member, ...]:
    deadline_ms = now_ms + GROUP_LEASE_MS
    return tuple([Member(name, max(deadline_ms, one.deadline_ms)) if one.name == name else one for one in members])


def _settled(
    members: tuple[Member, ...], ranges: list[GroupRange], name: str, now_ms: int, *, joins: bool
) -> tuple[tuple[Member, ...], list[GroupRange]]:
    """Remove members whose lease has ended, but for ``name``; release what has waited too long; share equally."""
    living = tuple([one for one in members if one.name == name or one.deadline_ms > now_ms])
    if joins:
        living = (*living, Member(name, now_ms + GROUP_LEASE_MS))
    names = {one.name for one in living}
    settled = [
        _freed(one)
        if one.owner != NOBODY and (one.owner not in names or (one.moves_by_ms and one.moves_by_ms <= now_ms))
        else one
        for one in ranges
    ]
    if living:
        _share([one.name for one in living], settled, now_ms)
    return living, settled


def _share(names: Sequence[str], ranges: list[GroupRange], now_ms: int) -> None:
    """Give each member an equal share: mark what is to move, and give away what is free."""
    has = Counter(one.owner for one in ranges if one.owner != NOBODY and not one.moves_by_ms)
    least, more = divmod(len(ranges), len(names))
    by_count = sorted(names, key=lambda name: -has[name])  # stable: those who have more keep the larger shares
    lacks = {name: least + (at < more) - has[name] for at, name in enumerate(by_count)}
    for at, one in enumerate(ranges):  # what was to move stays, if its owner lacks ranges now
        if one.moves_by_ms and lacks[one.owner] > 0:
            ranges[at] = replace(one, moves_by_ms=0)
            lacks[one.owner] -= 1
    for at in range(len(ranges) - 1, -1, -1):
        one = ranges[at]
        if one.owner != NOBODY and not one.moves_by_ms and lacks[one.owner] < 0:
            ranges[at] = replace(one, moves_by_ms=now_ms + GROUP_LEASE_MS)
            lacks[one.owner] += 1
    free = [at for at, one in enumerate(ranges) if one.owner == NOBODY]
    for at in free:
        name = max(names, key=lambda one: lacks[one])
        ranges[at] = replace(ranges[at], owner=name)
        lacks[name] -= 1
