"""(pure) One group of consumers: who is in it, and who gets which partitions.  Events in, answers out.

    EMPTY       no members                                                  join -> PREPARING
    PREPARING   waits until the members have joined again                   all have, or the time is over -> COMPLETING
    COMPLETING  the members know each other; the leader assigns partitions  its sync -> STABLE
    STABLE      each member has its assignment                              join, leave, end of a session -> PREPARING

This is the classic protocol of Kafka (KIP-62, KIP-394) without static members.  Events are requests with a ``token``,
by which the answer is found: at once, or with a later event.  An event ``gone`` says that nobody waits for a token.

Invariants:
    I1. A token is answered once, or gone.
    I2. Members of a generation got the same leader and protocol, and the generation rises with each rebalance.
    I3. Tokens of joins wait in PREPARING only, tokens of syncs in COMPLETING only.
    I4. EMPTY has no members, the other states have some; PREPARING may be about to lose its last one.
    I5. The leader is a member in COMPLETING and STABLE, and every member knows the protocol.

Knows nothing of sockets, bytes, clocks and offsets.  A state that is lost (its server died) is an empty one: its
members' ids are unknown there, so they join again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from columnar.kafka.errors import KafkaError

GROUP_MEMBERS: Final = 1_000
GROUP_BYTES: Final = 4 * 1024 * 1024  # of the members' metadata and assignments
FIRST_JOINS_S: Final = 0.2  # a new group waits so long for more members
LEAST_SESSION_S: Final = 0.1
MOST_SESSION_S: Final = 1_800.0
MOST_REBALANCE_S: Final = 3_600.0

Token = int
Protocols = tuple[tuple[str, bytes], ...]  # names and a member's metadata, the preferred one first


class Phase(Enum):
    """The states, by the names that Kafka's tools show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class Join:
    member: str  # "": it has no id yet
    client: str
    host: str
    session_s: float
    rebalance_s: float
    protocol_type: str
    protocols: Protocols
    needs_id: bool  # a member without id gets one, and joins with it


@dataclass(frozen=True, slots=True)
class Joined:
    error: KafkaError
    member: str = ""
    generation: int = -1
    protocol: str = ""
    leader: str = ""
    members: tuple[tuple[str, bytes], ...] = ()  # ids and metadata, for the leader


@dataclass(frozen=True, slots=True)
class Synced:
    error: KafkaError
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    token: Token
    reply: Joined | Synced


@dataclass(slots=True)
class Member:
    id: str
    client: str
    host: str
    session_s: float
    rebalance_s: float
    protocols: Protocols
    expires_s: float
    assignment: bytes = b""
    join: Token | None = None  # that waits
    sync: Token | None = None  # that waits

    @property
    def is_waiting(self) -> bool:
        return self.join is not None or self.sync is not None

    def keep_alive(self, now_s: float) -> None:
        self.expires_s = now_s + self.session_s

    def begin_join(self, token: Token) -> None:
        self.join = token

    def begin_sync(self, token: Token) -> None:
        self.sync = token

    def end_join(self) -> Token | None:
        """Return the token of the join that waited."""
        token, self.join = self.join, None
        return token

    def end_sync(self) -> Token | None:
        """Return the token of the sync that waited."""
        token, self.sync = self.sync, None
        return token

    def take_settings(self, join: Join, now_s: float) -> None:
        self.session_s, self.rebalance_s, self.protocols = join.session_s, join.rebalance_s, join.protocols
        self.keep_alive(now_s)

    def assign(self, assignment: bytes) -> None:
        self.assignment = assignment

    def metadata(self, protocol: str) -> bytes:
        return next((data for name, data in self.protocols if name == protocol), b"")

    @property
    def size_bytes(self) -> int:
        return _size_of(self.protocols) + len(self.assignment)


@dataclass(slots=True)
class GroupState:
    new_id: Callable[[str], str]  # makes a member's id for a client's name
    phase: Phase = Phase.EMPTY
    generation: int = 0
    protocol_type: str = ""
    protocol: str = ""
    leader: str = ""
    members: dict[str, Member] = field(default_factory=dict)  # in the order of their first joins
    _given: dict[str, float] = field(default_factory=dict)  # ids without a member yet, and when they end
    _earliest_s: float = 0.0  # PREPARING: it does not end before
    _latest_s: float = 0.0  # PREPARING and COMPLETING: it ends then

    # --- events -------------------------------------------------------------------------------------------

    def join_group(self, token: Token, join: Join, now_s: float) -> list[Answer]:
        """A member joins, for the first time or again."""
        error = self._refuse(join)
        if error:
            return [Answer(token, Joined(error, join.member))]
        member = self.members.get(join.member)
        if member is not None:
            return self._join_again(token, member, join, now_s)
        member_id = join.member
        if member_id:
            del self._given[member_id]
        else:
            member_id = self.new_id(join.client)
            if join.needs_id:
                self._given[member_id] = now_s + join.session_s
                return [Answer(token, Joined(KafkaError.MEMBER_ID_REQUIRED, member_id))]
        self.protocol_type = join.protocol_type
        self.members[member_id] = Member(
            member_id, join.client, join.host, join.session_s, join.rebalance_s, join.protocols,
            now_s + join.session_s, join=token,
        )  # fmt: skip
        return self._rebalance(now_s)

    def sync_group(
        self, token: Token, member_id: str, generation: int, assignments: Sequence[tuple[str, bytes]], now_s: float
    ) -> list[Answer]:
        """A member asks for its assignment; the leader brings all of them."""
        error = self._refuse_member(member_id, generation)
        if error or self.phase is Phase.PREPARING:
            return [Answer(token, Synced(error or KafkaError.REBALANCE_IN_PROGRESS))]
        member = self.members[member_id]
        member.keep_alive(now_s)
        if self.phase is Phase.STABLE:
            return [Answer(token, Synced(KafkaError.NONE, member.assignment))]
        answers = self._answer_sync(member, KafkaError.REBALANCE_IN_PROGRESS)  # an earlier one, that was lost
        member.begin_sync(token)
        if member_id != self.leader:
            return answers
        if sum(len(data) for _, data in assignments) > GROUP_BYTES:
            return answers + self._answer_sync(member, KafkaError.UNKNOWN_SERVER_ERROR)
        for name, data in assignments:
            if name in self.members:
                self.members[name].assign(data)
        self.phase = Phase.STABLE
        for one in self.members.values():
            if one.sync is not None:
                one.keep_alive(now_s)
            answers += self._answer_sync(one, KafkaError.NONE)
        return answers

    def beat(self, member_id: str, generation: int, now_s: float) -> KafkaError:
        """A member lives."""
        error = self._refuse_member(member_id, generation)
        if error:
            return error
        member = self.members[member_id]
        member.keep_alive(now_s)
        return KafkaError.REBALANCE_IN_PROGRESS if self.phase is Phase.PREPARING else KafkaError.NONE

    def leave_group(self, member_id: str, now_s: float) -> tuple[KafkaError, list[Answer]]:
        """A member leaves."""
        if self._given.pop(member_id, None) is not None:
            return KafkaError.NONE, []
        if member_id not in self.members:
            return KafkaError.UNKNOWN_MEMBER_ID, []
        return KafkaError.NONE, self._remove([member_id], now_s)

    def check_commit(self, member_id: str, generation: int, now_s: float) -> KafkaError:
        """Return whether offsets may be committed by this member, or by one that is in no group."""
        if generation < 0 and not member_id:
            return KafkaError.NONE if self.phase is Phase.EMPTY else KafkaError.UNKNOWN_MEMBER_ID
        error = self._refuse_member(member_id, generation)
        if error:
            return error
        member = self.members[member_id]
        member.keep_alive(now_s)
        return KafkaError.REBALANCE_IN_PROGRESS if self.phase is Phase.COMPLETING else KafkaError.NONE

    def gone(self, token: Token, now_s: float) -> None:
        """Forget a token whose answer nobody waits for; its member lives for one more session."""
        for member in self.members.values():
            if token in (member.join, member.sync):
                member.end_join()
                member.end_sync()
                member.keep_alive(now_s)
                return

    def pass_time(self, now_s: float) -> list[Answer]:
        """End what is due."""
        self._given = {name: ends_s for name, ends_s in self._given.items() if ends_s > now_s}
        ended = [one.id for one in self.members.values() if not one.is_waiting and one.expires_s <= now_s]
        answers = self._remove(ended, now_s) if ended else []
        if self.phase is Phase.PREPARING:
            answers += self._complete_if_due(now_s)
        elif self.phase is Phase.COMPLETING and now_s >= self._latest_s:
            slow = [one.id for one in self.members.values() if one.sync is None]
            answers += self._remove(slow, now_s)
        return answers

    def next_s(self) -> float | None:
        """Return when ``pass_time`` has something to do; None: not before the next event."""
        times = [one.expires_s for one in self.members.values() if not one.is_waiting]
        times += self._given.values()
        if self.phase is Phase.PREPARING:
            is_complete = all(one.join is not None for one in self.members.values())
            times.append(self._earliest_s if is_complete else self._latest_s)
        elif self.phase is Phase.COMPLETING:
            times.append(self._latest_s)
        return min(times, default=None)

    @property
    def is_forgettable(self) -> bool:
        """Whether a new state would do: a member whose id was given and is not known any more asks for another one."""
        return self.phase is Phase.EMPTY

    # --- joins --------------------------------------------------------------------------------------------

    def _refuse(self, join: Join) -> KafkaError:
        is_known = join.member in self.members or join.member in self._given
        if join.member and not is_known:
            return KafkaError.UNKNOWN_MEMBER_ID
        if not LEAST_SESSION_S <= join.session_s <= MOST_SESSION_S or not 0 <= join.rebalance_s <= MOST_REBALANCE_S:
            return KafkaError.INVALID_SESSION_TIMEOUT
        others = [one for one in self.members.values() if one.id != join.member]
        if not join.member and len(self.members) + len(self._given) >= GROUP_MEMBERS:
            return KafkaError.GROUP_IS_FULL
        if _size_of(join.protocols) + sum(one.size_bytes for one in others) > GROUP_BYTES:
            return KafkaError.GROUP_IS_FULL
        names = {name for name, _ in join.protocols}
        if not join.protocol_type or not names or (others and join.protocol_type != self.protocol_type):
            return KafkaError.INCONSISTENT_GROUP_PROTOCOL
        if others and not names & self._common(others):
            return KafkaError.INCONSISTENT_GROUP_PROTOCOL
        return KafkaError.NONE

    def _join_again(self, token: Token, member: Member, join: Join, now_s: float) -> list[Answer]:
        is_same = member.protocols == join.protocols
        member.take_settings(join, now_s)
        is_repeat = self.phase is Phase.COMPLETING or (self.phase is Phase.STABLE and member.id != self.leader)
        if is_same and is_repeat:  # its answer was lost
            return [Answer(token, self._joined(member))]
        answers = self._answer_join(member, Joined(KafkaError.REBALANCE_IN_PROGRESS, member.id))
        member.begin_join(token)
        return answers + self._rebalance(now_s)

    def _rebalance(self, now_s: float) -> list[Answer]:
        """Have all members join again; a rebalance that is under way goes on."""
        answers: list[Answer] = []
        if self.phase is not Phase.PREPARING:
            for member in self.members.values():
                answers += self._answer_sync(member, KafkaError.REBALANCE_IN_PROGRESS)
                member.assign(b"")
            self._earliest_s = now_s + (FIRST_JOINS_S if self.phase is Phase.EMPTY else 0.0)
            self._latest_s = now_s + max((one.rebalance_s for one in self.members.values()), default=0.0)
            self._latest_s = max(self._latest_s, self._earliest_s)
            self.phase = Phase.PREPARING
        return answers + self._complete_if_due(now_s)

    def _complete_if_due(self, now_s: float) -> list[Answer]:
        if now_s < self._earliest_s:
            return []
        late = [name for name, one in self.members.items() if one.join is None]
        if late and now_s < self._latest_s:
            return []
        for name in late:
            del self.members[name]
        self.generation += 1
        if not self.members:
            self.phase, self.protocol, self.leader, self.protocol_type = Phase.EMPTY, "", "", ""
            return []
        self.phase = Phase.COMPLETING
        self._latest_s = now_s + max(one.rebalance_s for one in self.members.values())
        self.protocol = self._chosen()
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        answers: list[Answer] = []
        for member in self.members.values():
            member.keep_alive(now_s)
            answers += self._answer_join(member, self._joined(member))
        return answers

    def _joined(self, member: Member) -> Joined:
        is_leader = member.id == self.leader
        listed = [(one.id, one.metadata(self.protocol)) for one in self.members.values()] if is_leader else []
        return Joined(KafkaError.NONE, member.id, self.generation, self.protocol, self.leader, tuple(listed))

    def _common(self, members: Sequence[Member]) -> set[str]:
        return set.intersection(*({name for name, _ in one.protocols} for one in members))

    def _chosen(self) -> str:
        """Return the protocol that most members prefer, of those that all know."""
        common = self._common(list(self.members.values()))
        votes = Counter(next(name for name, _ in one.protocols if name in common) for one in self.members.values())
        return max(votes, key=lambda name: (votes[name], name))

    # --- members ------------------------------------------------------------------------------------------

    def _refuse_member(self, member_id: str, generation: int) -> KafkaError:
        if member_id not in self.members:
            return KafkaError.UNKNOWN_MEMBER_ID
        return KafkaError.NONE if generation == self.generation else KafkaError.ILLEGAL_GENERATION

    def _remove(self, names: Sequence[str], now_s: float) -> list[Answer]:
        answers: list[Answer] = []
        for name in names:
            member = self.members.pop(name)
            answers += self._answer_join(member, Joined(KafkaError.UNKNOWN_MEMBER_ID, name))
            answers += self._answer_sync(member, KafkaError.UNKNOWN_MEMBER_ID)
        return answers + self._rebalance(now_s)

    def _answer_join(self, member: Member, reply: Joined) -> list[Answer]:
        token = member.end_join()
        return [Answer(token, reply)] if token is not None else []

    def _answer_sync(self, member: Member, error: KafkaError) -> list[Answer]:
        token = member.end_sync()
        assignment = b"" if error else member.assignment
        return [Answer(token, Synced(error, assignment))] if token is not None else []

    # --- invariants ---------------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """Assert I3 to I5; the model holds I1 and I2."""
        for member in self.members.values():
            assert member.join is None or self.phase is Phase.PREPARING, "I3: a join waits"
            assert member.sync is None or self.phase is Phase.COMPLETING, "I3: a sync waits"
        assert bool(self.members) != (self.phase is Phase.EMPTY) or self.phase is Phase.PREPARING, "I4"
        if self.phase in (Phase.COMPLETING, Phase.STABLE):
            assert self.leader in self.members, "I5: the leader is gone"
            names = self._common(list(self.members.values()))
            assert self.protocol in names, "I5: a member does not know the protocol"


def _size_of(protocols: Protocols) -> int:
    return sum(len(name) + len(data) for name, data in protocols)
