"""A group of consumers by its events: each rule alone, and many members at random with what they must see."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from columnar.kafka import group_state
from columnar.kafka.errors import KafkaError
from columnar.kafka.group_state import FIRST_JOINS_S, Answer, GroupState, Join, Joined, Phase, Synced
from tests.support.deep import seeds

RANGE = (("range", b"r"), ("sticky", b"s"))


class Group:
    """A group with a clock, whose answers are kept by token."""

    def __init__(self) -> None:
        numbers = itertools.count(1)
        self.state = GroupState(lambda client: f"{client}{next(numbers)}")
        self.now_s = 100.0
        self.answers: dict[int, Joined | Synced] = {}
        self._tokens = itertools.count(1)

    def keep(self, answers: Iterable[Answer]) -> None:
        for one in answers:
            assert one.token not in self.answers, "I1: a second answer"
            self.answers[one.token] = one.reply
        self.state.check_invariants()

    def join(self, member: str = "", **changes: Any) -> int:
        token = next(self._tokens)
        fields: dict[str, Any] = {
            "client": "c", "host": "h", "session_s": 10.0, "rebalance_s": 60.0, "protocol_type": "consumer",
            "protocols": RANGE, "needs_id": False,
        }  # fmt: skip
        self.keep(self.state.join_group(token, Join(member, **{**fields, **changes}), self.now_s))
        return token

    def sync(self, member: str, generation: int, assignments: Iterable[tuple[str, bytes]] = ()) -> int:
        token = next(self._tokens)
        self.keep(self.state.sync_group(token, member, generation, list(assignments), self.now_s))
        return token

    def leave(self, member: str) -> KafkaError:
        error, answers = self.state.leave_group(member, self.now_s)
        self.keep(answers)
        return error

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.keep(self.state.pass_time(self.now_s))

    def joined(self, token: int) -> Joined:
        reply = self.answers[token]
        assert isinstance(reply, Joined)
        return reply

    def beat(self, member: str, generation: int) -> KafkaError:
        return self.state.beat(member, generation, self.now_s)


def stable(count: int) -> tuple[Group, list[str]]:
    """Return a group with so many members, the leader first, each assigned its own name."""
    group = Group()
    tokens = [group.join() for _ in range(count)]
    group.wait(FIRST_JOINS_S)
    members = [group.joined(token).member for token in tokens]
    for member in reversed(members):
        group.sync(member, 1, [(one, one.encode()) for one in members] if member == members[0] else [])
    assert group.state.phase is Phase.STABLE
    return group, members


def test_members_that_join_together_are_one_generation() -> None:
    group = Group()
    tokens = [group.join(), group.join(), group.join()]
    assert not group.answers, "the first members wait for more"
    group.wait(FIRST_JOINS_S)
    replies = [group.joined(token) for token in tokens]
    assert {(one.generation, one.protocol, one.leader) for one in replies} == {(1, "range", replies[0].member)}
    assert [len(one.members) for one in replies] == [3, 0, 0]
    assert replies[0].members[0] == (replies[0].member, b"r")


def test_followers_wait_for_the_leaders_assignment() -> None:
    group, (leader, follower) = stable(2)
    assert sorted(one.assignment for one in group.answers.values() if isinstance(one, Synced)) == [b"c1", b"c2"]
    token = group.sync(follower, 1)
    assert group.answers[token] == Synced(KafkaError.NONE, follower.encode())
    assert group.beat(leader, 1) is KafkaError.NONE


def test_a_new_member_has_all_join_again() -> None:
    group, (leader, follower) = stable(2)
    new = group.join()
    assert group.beat(leader, 1) is KafkaError.REBALANCE_IN_PROGRESS
    assert group.answers[group.sync(follower, 1)] == Synced(KafkaError.REBALANCE_IN_PROGRESS)
    tokens = [group.join(leader), group.join(follower)]
    assert {group.joined(token).generation for token in [new, *tokens]} == {2}
    assert group.joined(new).leader == leader


def test_a_member_that_does_not_join_again_is_out() -> None:
    group, (leader, follower) = stable(2)
    token = group.join(leader, rebalance_s=5.0, session_s=1_000.0)
    for _ in range(7):
        group.wait(9.0)
        group.beat(follower, 1)
    assert group.joined(token).members == ((leader, b"r"),)
    assert group.beat(follower, 2) is KafkaError.UNKNOWN_MEMBER_ID


def test_a_member_whose_session_ends_is_out_and_the_others_learn_it() -> None:
    group, (leader, follower) = stable(2)
    group.wait(9.9)
    assert group.beat(leader, 1) is KafkaError.NONE
    group.wait(0.2)
    assert group.beat(leader, 1) is KafkaError.REBALANCE_IN_PROGRESS
    assert list(group.state.members) == [leader]
    assert group.answers[group.sync(follower, 1)].error is KafkaError.UNKNOWN_MEMBER_ID


def test_a_group_without_members_is_empty_and_goes_on_with_its_generations() -> None:
    group, (leader,) = stable(1)
    assert group.leave(leader) is KafkaError.NONE
    assert (group.state.phase, group.state.generation) == (Phase.EMPTY, 2)
    assert group.state.is_forgettable
    assert group.state.next_s() is None
    assert group.leave(leader) is KafkaError.UNKNOWN_MEMBER_ID


def test_a_member_is_given_its_id_first() -> None:
    group = Group()
    given = group.joined(group.join(needs_id=True))
    assert (given.error, given.member) == (KafkaError.MEMBER_ID_REQUIRED, "c1")
    assert not group.state.members
    token = group.join("c1", needs_id=True)
    group.wait(FIRST_JOINS_S)
    assert group.joined(token).member == "c1"
    lost = group.joined(group.join(needs_id=True)).member
    group.beat("c1", 1)
    group.wait(10.0)
    assert group.joined(group.join(lost)).error is KafkaError.UNKNOWN_MEMBER_ID


def test_an_id_that_was_given_is_good_for_one_member() -> None:
    group = Group()
    given = group.joined(group.join(needs_id=True)).member
    group.join(given)
    assert group.leave(given) is KafkaError.NONE
    assert group.joined(group.join(given)).error is KafkaError.UNKNOWN_MEMBER_ID


def test_a_member_that_the_leader_leaves_out_has_nothing() -> None:
    group, (leader, follower) = stable(2)
    tokens = [group.join(leader), group.join(follower)]
    assert [group.joined(token).generation for token in tokens] == [2, 2]
    group.sync(leader, 2, [(leader, b"all")])
    assert group.answers[group.sync(follower, 2)] == Synced(KafkaError.NONE, b"")


def test_the_leader_dies_before_its_assignment() -> None:
    group = Group()
    tokens = [group.join(session_s=10.0, rebalance_s=20.0) for _ in range(2)]
    group.wait(FIRST_JOINS_S)
    follower = group.joined(tokens[1]).member
    waiting = group.sync(follower, 1)
    group.wait(10.0)
    assert group.answers[waiting] == Synced(KafkaError.REBALANCE_IN_PROGRESS)
    assert group.joined(group.join(follower)).leader == follower


def test_a_leader_that_lives_and_never_assigns_is_out() -> None:
    group = Group()
    tokens = [group.join(session_s=10.0, rebalance_s=20.0) for _ in range(2)]
    group.wait(FIRST_JOINS_S)
    leader, follower = (group.joined(token).member for token in tokens)
    waiting = group.sync(follower, 1)
    for _ in range(3):
        group.wait(8.0)
        group.beat(leader, 1)
    assert group.answers[waiting] == Synced(KafkaError.REBALANCE_IN_PROGRESS)
    assert list(group.state.members) == [follower]


def test_a_join_whose_client_has_gone_holds_nobody_up() -> None:
    group = Group()
    group.join(session_s=3.0)
    other = group.join()
    group.state.gone(1, group.now_s)
    group.wait(3.0)
    assert 1 not in group.answers
    assert len(group.joined(other).members) == 1


def test_commits_need_the_generation() -> None:
    group, (leader, _) = stable(2)
    state, now_s = group.state, group.now_s
    assert state.check_commit(leader, 1, now_s) is KafkaError.NONE
    assert state.check_commit(leader, 0, now_s) is KafkaError.ILLEGAL_GENERATION
    assert state.check_commit("other", 1, now_s) is KafkaError.UNKNOWN_MEMBER_ID
    assert state.check_commit("", -1, now_s) is KafkaError.UNKNOWN_MEMBER_ID
    assert Group().state.check_commit("", -1, now_s) is KafkaError.NONE
    group.join(leader)
    assert state.check_commit(leader, 1, now_s) is KafkaError.NONE, "before it joins again it may commit"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"session_s": 0.01}, KafkaError.INVALID_SESSION_TIMEOUT),
        ({"session_s": 2_000.0}, KafkaError.INVALID_SESSION_TIMEOUT),
        ({"rebalance_s": -1.0}, KafkaError.INVALID_SESSION_TIMEOUT),
        ({"protocol_type": ""}, KafkaError.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, KafkaError.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, KafkaError.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (("other", b""),)}, KafkaError.INCONSISTENT_GROUP_PROTOCOL),
        ({"member": "stranger"}, KafkaError.UNKNOWN_MEMBER_ID),
        ({"protocols": (("range", bytes(5_000_000)),)}, KafkaError.GROUP_IS_FULL),
    ],
)
def test_joins_that_are_refused(changes: dict[str, Any], error: KafkaError) -> None:
    group, _ = stable(2)
    assert group.joined(group.join(**changes)).error is error
    assert group.state.phase is Phase.STABLE


def test_a_group_has_a_bound_of_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_state, "GROUP_MEMBERS", 3)
    group, members = stable(2)
    assert group.joined(group.join(needs_id=True)).error is KafkaError.MEMBER_ID_REQUIRED
    assert group.joined(group.join(needs_id=True)).error is KafkaError.GROUP_IS_FULL
    assert group.leave(members[1]) is KafkaError.NONE


# --- at random -------------------------------------------------------------------------------------------------


class Client:
    """A consumer: it joins, waits, syncs, beats; it may hang, die and lose answers."""

    def __init__(self, group: Group, rng: random.Random) -> None:
        self.group = group
        self.rng = rng
        self.member = ""
        self.generation = -1
        self.assignment: bytes | None = None
        self.token: int | None = None
        self.lives = True

    def act(self) -> None:
        if not self.lives:
            return
        if self.token is not None:
            reply = self.group.answers.get(self.token)
            if reply is not None:
                self.token = None
                self.take(reply)
        elif self.assignment is None:
            self.token = self.group.join(self.member, session_s=4.0, rebalance_s=3.0, needs_id=self.rng.random() < 0.5)
        else:
            self.judge(self.group.beat(self.member, self.generation))

    def take(self, reply: Joined | Synced) -> None:
        if isinstance(reply, Synced):
            self.assignment = reply.assignment if reply.error is KafkaError.NONE else None
            self.judge(reply.error)
        elif reply.error is KafkaError.MEMBER_ID_REQUIRED:
            self.member = reply.member
        elif reply.error:
            self.judge(reply.error)
        else:
            self.member, self.generation = reply.member, reply.generation
            shares = [(name, f"{reply.generation}/{n}".encode()) for n, (name, _) in enumerate(reply.members)]
            self.token = self.group.sync(self.member, self.generation, shares)

    def judge(self, error: KafkaError) -> None:
        if error:
            self.assignment = None
        if error is KafkaError.UNKNOWN_MEMBER_ID:
            self.member = ""

    def die(self) -> None:
        self.lives = False
        if self.token is not None and self.token not in self.group.answers:
            self.group.state.gone(self.token, self.group.now_s)


def play(seed: int, disturb: Callable[[random.Random, Group, list[Client]], None]) -> None:
    rng = random.Random(seed)
    group = Group()
    clients = [Client(group, rng) for _ in range(rng.randint(1, 6))]
    for step in range(400):
        if step < 250:
            disturb(rng, group, clients)
        for client in clients:
            if rng.random() < 0.9 or step >= 250:
                client.act()
        group.wait(rng.choice((0.0, 0.1, 0.5)) if step < 250 else 0.3)
        shares = [(one.generation, one.assignment) for one in clients if one.lives and one.assignment]
        assert len(shares) == len(set(shares)), "I2: two members have one share of a generation"
    living = [one for one in clients if one.lives]
    if living:
        assert group.state.phase is Phase.STABLE, "without disturbances a group becomes stable"
    assert {one.member for one in living} == set(group.state.members)
    assert {one.assignment for one in living} == {
        f"{group.state.generation}/{n}".encode() for n in range(len(living))
    }  # fmt: skip


def disturbed(rng: random.Random, group: Group, clients: list[Client]) -> None:
    what = rng.random()
    if what < 0.02:
        clients.append(Client(group, rng))
    elif what < 0.04:
        rng.choice(clients).die()
    elif what < 0.06:
        one = rng.choice(clients)
        if one.lives and one.member:
            group.leave(one.member)
            one.member, one.assignment = "", None
    elif what < 0.08:  # its connection breaks, and it asks again
        one = rng.choice(clients)
        if one.token is not None and one.token not in group.answers:
            group.state.gone(one.token, group.now_s)
            one.token = None
    elif what < 0.09:  # it hangs
        group.wait(rng.choice((1.0, 5.0)))


def test_members_at_random() -> None:
    for seed in range(seeds("groups of Kafka consumers", deep=5_000, short=60)):
        try:
            play(seed, disturbed)
        except BaseException:
            print(f"seed {seed}")
            raise
