"""Groups of readers against a model: members that join, hang, die and come back late, with a clock that may stand."""

from __future__ import annotations

import random

import pytest

from columnar.errors import DamagedData, IllegalArgument, RegionTooBusy
from columnar.flows import position
from columnar.flows.position import Range
from columnar.model import reader_groups
from columnar.model.reader_groups import GROUP_LEASE_MS, GROUP_MEMBERS, GROUP_RANGES, checked_name
from columnar.regions.log.change_record import Sequence
from columnar.streams import groups
from columnar.streams.group_bytes import pack_group, pack_progress, unpack_group, unpack_progress
from columnar.streams.groups import Group, Progress
from tests.support.deep import seeds

STARTS = [b"", b"c", b"f", b"k", b"p", b"t", b"x"]
OLDEST = position.oldest()


def place(start: bytes, n: int) -> tuple[Range, ...]:
    return (Range(start, Sequence(1, 1, n), None),)


def begun(starts: list[bytes] = STARTS, now_ms: int = 0) -> Group:
    return groups.begin(position.Position((Range(b"", Sequence(1, 1, 0), None),)), starts, b"all", now_ms)


class World:
    """A group over logs of numbered changes: one log for each range, whose changes are 1, 2, 3 ..."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now_ms = 1_000_000
        self.group = begun(STARTS[: self.rng.randint(1, len(STARTS))], self.now_ms)
        self.logs = {one.start: 0 for one in self.group.ranges}
        self.committed = dict.fromkeys(self.logs, 0)  # as members were told
        self.given = dict.fromkeys(self.logs, 0)  # the highest change that a member got
        self.excused = dict.fromkeys(self.logs, False)  # repeats are due to a death, a hang or a refused commit
        self.valid: dict[tuple[bytes, int], str] = {}  # who has had a range in an epoch
        self.members: dict[str, Reader] = {}

    def take(self, group: Group, leaving: str = "") -> None:
        expired = {one.name for one in self.group.members if one.deadline_ms <= self.now_ms} | {leaving}
        for before, after in zip(self.group.ranges, group.ranges, strict=True):
            assert after.epoch >= before.epoch
            if after.epoch == before.epoch:
                assert after.owner == before.owner or not before.owner
            elif self.given[after.start] > self.committed[after.start]:
                waited = 0 < before.moves_by_ms <= self.now_ms
                is_due = before.owner in expired or waited or self.excused[after.start]
                assert is_due, "a range moved before its owner was done"
                self.excused[after.start] = True
        self.group = unpack_group(pack_group(group))
        assert self.group == group
        group.check_invariants()
        for one in group.ranges:
            if one.owner:
                assert self.valid.setdefault((one.start, one.epoch), one.owner) == one.owner, "two owners of an epoch"


class Reader:
    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.held: list[Progress] = []
        self.replies: list[list[Progress]] = []  # not committed, oldest first

    def pull(self) -> None:
        world = self.world
        world.take(groups.pull(world.group, self.name, self.held, world.now_ms))
        held = groups.progress_of(world.group, self.name, unpack_progress(pack_progress(self.held, "t"), "t"))
        start = groups.place_to_read(world.group, self.name, held)
        start.check_invariants()
        moved, has_events = [], False
        for one in world.group.ranges:
            here = start.range_of(one.start)
            assert here.p is not None
            if here.p == position.SKIPPED:
                moved.append((Range(one.start, here.p, None),))
                continue
            last = min(world.logs[one.start], here.p.n + world.rng.randint(0, 3))
            for n in range(here.p.n + 1, last + 1):
                self._get(one.start, n)
                has_events = True
            moved.append(place(one.start, last))
        if world.rng.random() < 0.05:
            for start, n in world.given.items():
                world.excused[start] |= n > world.committed[start]
            return  # the reply is lost
        self.held = groups.progress_after(world.group, self.name, held, position.join(moved), has_events=has_events)
        self.replies.append(self.held)

    def _get(self, start: bytes, n: int) -> None:
        world = self.world
        assert n > world.committed[start], f"{n} of {start!r} was committed before"
        assert n <= world.given[start] + 1 or world.excused[start], "a change was skipped"
        if n <= world.given[start]:
            assert world.excused[start], f"{n} of {start!r} came again, and nobody died"
        world.given[start] = max(world.given[start], n)

    def commit(self, *, late: bool) -> None:
        """Commit what was got; ``late``: an old reply, as a delayed message."""
        if not self.replies:
            return
        world = self.world
        at = world.rng.randrange(len(self.replies)) if late else len(self.replies) - 1
        held = self.replies[at]
        group, refused = groups.commit(world.group, self.name, held, world.now_ms, more=at < len(self.replies) - 1)
        owned = {(one.start, one.epoch) for one in world.group.ranges if one.owner == self.name}
        assert refused == [one.start for one in held if (one.start, one.epoch) not in owned]
        for one in held:
            if one.start in refused:
                continue
            p = one.place[0].p
            assert p is not None
            world.committed[one.start] = max(world.committed[one.start], p.n)
            if world.committed[one.start] == world.given[one.start]:
                world.excused[one.start] = False
        world.take(group)
        if not late:
            self.replies = [self.held]


def run(seed: int, steps: int) -> World:
    world = World(seed)
    rng = world.rng
    joined = 0
    for _ in range(steps):
        kind = rng.random()
        names = list(world.members)
        if kind < 0.06 and len(names) < 9:
            joined += 1
            world.members[f"m{joined}"] = Reader(world, f"m{joined}")
        elif kind < 0.30:
            world.logs[rng.choice(list(world.logs))] += 1
        elif kind < 0.60 and names:
            world.members[rng.choice(names)].pull()
        elif kind < 0.80 and names:
            world.members[rng.choice(names)].commit(late=rng.random() < 0.2)
        elif kind < 0.83 and names:
            gone = world.members.pop(rng.choice(names))
            if rng.random() < 0.5:
                world.take(groups.leave(world.group, gone.name, world.now_ms), gone.name)
        elif kind < 0.84 and names:
            name = rng.choice(names)
            world.take(groups.renew(world.group, name, world.now_ms))
        elif kind < 0.86:
            world.now_ms += GROUP_LEASE_MS // rng.choice((1, 2, 3, 10))  # somebody may have slept
        elif kind < 0.92:
            world.now_ms += rng.randint(0, 200)  # else the clock stands
    return world


def test_no_change_is_skipped_repeated_or_owned_twice() -> None:
    for seed in range(seeds("worlds of a group of readers", deep=2_000, short=40)):
        world = run(seed, 300)
        world.now_ms += GROUP_LEASE_MS + 1  # the dead are removed; those who are left finish the work
        left = [Reader(world, f"last{n}") for n in range(1 + seed % 4)]
        for _ in range(2 * max(world.logs.values()) + 8):
            for one in left:
                one.pull()
                one.commit(late=False)
        assert world.committed == world.logs, f"seed {seed}"


def test_members_have_equal_shares_after_two_pulls() -> None:
    for count in range(1, 12):
        group = begun()
        for now_ms in range(2):
            for n in range(count):
                group = groups.pull(group, f"m{n}", groups.progress_of(group, f"m{n}", []), now_ms)
        shares = [len(group.owned_by(f"m{n}")) for n in range(count)]
        assert sum(shares) == len(STARTS)
        assert max(shares) - min(shares) <= 1, shares


def test_a_range_waits_for_the_commit_of_its_owner_and_then_moves_at_once() -> None:
    group = groups.pull(begun([b"", b"m"]), "a", [], 0)
    held = [Progress(one.start, one.epoch, 1, place(one.start, 5)) for one in group.ranges]  # it got changes up to 5
    group = groups.pull(group, "b", [], 1)
    assert not group.owned_by("b"), "its owner is not done"
    group = groups.pull(group, "a", held, 2)
    assert not group.owned_by("b")
    assert groups.place_to_read(group, "a", held).range_of(b"z").p == position.SKIPPED, "no more of it"
    waiting, _ = groups.commit(group, "a", held, 3, more=True)
    assert not waiting.owned_by("b"), "what the commit does not cover is still with its owner"
    group, refused = groups.commit(group, "a", held, 3, more=False)
    (moved,) = group.owned_by("b")
    assert (moved.start, moved.place, refused) == (b"m", place(b"m", 5), [])
    _, refused = groups.commit(group, "a", held, 4, more=False)
    assert refused == [b"m"], "a is fenced"


def test_a_range_moves_at_the_latest_after_a_lease() -> None:
    group = groups.pull(begun([b"", b"m"]), "a", [], 0)
    held = [Progress(one.start, one.epoch, 1, place(one.start, 5)) for one in group.ranges]
    group = groups.pull(group, "b", [], 1)
    group = groups.pull(group, "b", [], GROUP_LEASE_MS - 5)
    group = groups.pull(group, "a", held, GROUP_LEASE_MS - 5)
    assert not group.owned_by("b")
    group = groups.pull(group, "a", held, GROUP_LEASE_MS + 1)
    (moved,) = group.owned_by("b")
    assert moved.place == place(b"m", 0), "from the last commit on"


def test_a_lone_member_that_was_slow_may_still_commit() -> None:
    group = groups.pull(begun(), "a", [], 0)
    held = [Progress(one.start, one.epoch, 1, place(one.start, 5)) for one in group.ranges]
    group, refused = groups.commit(group, "a", held, 100 * GROUP_LEASE_MS, more=False)
    assert not refused
    assert all(one.place == place(one.start, 5) for one in group.ranges)


def test_a_dead_member_is_replaced_when_its_lease_has_ended() -> None:
    group = groups.pull(begun(), "a", [], 0)
    waiting = groups.pull(group, "b", [], GROUP_LEASE_MS - 1)
    assert not waiting.owned_by("b")
    assert waiting.next_deadline_ms("b") == GROUP_LEASE_MS
    group = groups.pull(waiting, "b", [], GROUP_LEASE_MS)
    assert len(group.owned_by("b")) == len(STARTS)


def test_fast_pulls_write_nothing() -> None:
    group = groups.pull(begun(), "a", [], 0)
    for now_ms in range(0, groups.RENEWED_AFTER_MS, 500):
        assert groups.pull(group, "a", groups.progress_of(group, "a", []), now_ms) is group
    renewed = groups.pull(group, "a", groups.progress_of(group, "a", []), groups.RENEWED_AFTER_MS)
    assert renewed is not group
    assert groups.pull(renewed, "a", [], groups.RENEWED_AFTER_MS + 1) is renewed


def test_an_idle_member_commits_its_place_with_its_lease() -> None:
    """Or the log would be trimmed up to there, and the group's changes be gone, though nobody missed one."""
    group = groups.pull(begun([b""]), "a", [], 0)
    (held,) = groups.progress_of(group, "a", [])
    read = position.Position((Range(b"", Sequence(1, 1, 900), None),))
    idle = groups.progress_after(group, "a", [held], read, has_events=False)
    busy = groups.progress_after(group, "a", [held], read, has_events=True)
    assert groups.pull(group, "a", idle, groups.RENEWED_AFTER_MS).ranges[0].place == place(b"", 900)
    assert groups.pull(group, "a", busy, groups.RENEWED_AFTER_MS).ranges[0].place == place(b"", 0)


def test_the_bounds() -> None:
    many = groups.begin(OLDEST, [b""] + [b"%08d" % n for n in range(3 * GROUP_RANGES)], b"", 0)
    assert len(many.ranges) <= GROUP_RANGES
    group = begun([b""])
    for n in range(GROUP_MEMBERS):
        group = groups.pull(group, f"m{n}", [], 0)
    with pytest.raises(RegionTooBusy, match="1000 members"):
        groups.pull(group, "one more", [], 0)
    group = groups.pull(group, "one more", [], GROUP_LEASE_MS)
    assert [one.name for one in group.members] == ["one more"]


def test_a_group_made_anew_believes_no_member_of_the_one_that_was_dropped() -> None:
    dropped = groups.pull(begun([b"", b"m"], now_ms=1_000), "a", [], 1_000)
    held = [Progress(one.start, one.epoch, 1, place(one.start, 5)) for one in dropped.ranges]
    anew = groups.pull(begun([b"", b"m"], now_ms=1_001), "a", held, 1_001)
    assert groups.progress_of(anew, "a", held) == groups.progress_of(anew, "a", [])
    after, refused = groups.commit(anew, "a", held, 1_002, more=False)
    assert refused == [b"", b"m"]
    assert [one.place for one in after.ranges] == [one.place for one in anew.ranges]


def test_a_place_beyond_its_range_is_none_of_the_members() -> None:
    group = groups.pull(begun([b"", b"m"]), "a", [], 0)
    forged = Progress(b"", group.ranges[0].epoch, 1, (Range(b"", None, None), Range(b"z", None, None)))
    group, refused = groups.commit(group, "a", [forged], 1, more=False)
    assert refused == [b""]


@pytest.mark.parametrize("data", [b"x", b"\x93\x01\xa1t\x90", position.pack(OLDEST, "t"), b"\xc1", b"\x94" * 9])
def test_positions_that_are_none_are_refused(data: bytes) -> None:
    with pytest.raises(IllegalArgument, match="position"):
        unpack_progress(data, "t")


def test_a_position_of_another_table_is_refused() -> None:
    with pytest.raises(IllegalArgument, match="of table t, not of u"):
        unpack_progress(pack_progress([], "t"), "u")


@pytest.mark.parametrize("data", [b"", b"\x93\x01", b"\x94\x02\xc4\x00\x90\x90", b"\x94\x01\xc4\x00\x90\x91\x01"])
def test_states_that_are_none_are_damage(data: bytes) -> None:
    with pytest.raises(DamagedData):
        unpack_group(data)


def test_names() -> None:
    assert checked_name("a", "group") == "a"
    assert checked_name("host-1.2_x", "member")
    for wrong in ("", "a b", "a\x00b", "-a", "ä", "a" * (reader_groups.NAME_CHARACTERS + 1), "a\n"):
        with pytest.raises(IllegalArgument, match="name of a group"):
            checked_name(wrong, "group")


def test_a_member_that_works_on_keeps_what_it_has_and_what_is_to_move() -> None:
    group = groups.pull(begun([b"", b"m"]), "a", [], 0)
    held = [Progress(one.start, one.epoch, 1, place(one.start, 5)) for one in group.ranges]  # its handler has these
    group = groups.pull(group, "b", [], 1_000)
    assert any(one.moves_by_ms for one in group.ranges)
    now_ms = 1_000
    for _ in range(20):
        now_ms += GROUP_LEASE_MS // 2
        group = groups.renew(group, "a", now_ms)
        group = groups.pull(group, "b", [], now_ms)
        assert len(group.owned_by("a")) == 2
    group, refused = groups.commit(group, "a", held, now_ms, more=False)
    assert refused == []
    assert (len(group.owned_by("a")), len(group.owned_by("b"))) == (1, 1), "and then it moves at once"


def test_a_renewal_that_comes_too_late_makes_nobody_a_member() -> None:
    group = groups.pull(begun([b"", b"m"]), "a", [], 0)
    group = groups.pull(group, "b", [], GROUP_LEASE_MS + 1)
    assert len(group.owned_by("b")) == 2
    assert groups.renew(group, "a", GROUP_LEASE_MS + 2) == group
