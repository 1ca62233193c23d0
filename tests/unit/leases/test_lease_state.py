"""Leases in a world of servers and holders: clocks that stand still, owners that change, late and lost calls.

Each seed is one history.  Time is the holders' time; a server's steady clock may stand still for a while, and begins
anywhere.
"""

from __future__ import annotations

import random

import pytest

from columnar.errors import DamagedData
from columnar.leases import lease_state as subject
from columnar.leases.lease_state import LeaseRequest, LeaseTimes, decide
from columnar.model.lease import UNKNOWN, Lease, pack, unpack

NAME = b"import"
SEEDS, STEPS = 300, 200


class Server:
    def __init__(self, rng: random.Random) -> None:
        self.behind_s = rng.uniform(-1e6, 1e6)  # its steady clock begins anywhere
        self.times = LeaseTimes()


class Holder:
    def __init__(self, name: bytes) -> None:
        self.name = name
        self.token, self.ends_s = 0, 0.0  # as it counts itself


class World:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now_s = 0.0
        self.servers = [Server(self.rng) for _ in range(3)]
        self.owner = self.servers[0]
        self.durable = self.written = UNKNOWN
        self.holders = [Holder(b"%d" % n) for n in range(4)]
        self.tokens: list[int] = []  # those that were answered, in their order
        self.given = 0

    def step(self) -> None:
        act = self.rng.choices(
            [self.wait, self.call, self.change_owner, self.crash, self.stand_still], weights=[4, 12, 2, 1, 1]
        )[0]
        act()

    def wait(self) -> None:
        self.now_s += self.rng.choice([0.01, 0.3, 1.0, 5.0])

    def change_owner(self) -> None:
        """The region goes to another server, or comes back to one that was its owner; each has what is durable."""
        self.owner = self.rng.choice(self.servers)
        self.written = self.durable

    def crash(self) -> None:
        """The owner starts again: its memory is gone, and what was not durable."""
        self.owner.times = LeaseTimes()
        self.owner.behind_s = self.rng.uniform(-1e6, 1e6)
        self.written = self.durable

    def stand_still(self) -> None:
        """The owner's machine sleeps, and its clock with it."""
        asleep_s = self.rng.choice([0.5, 20.0])
        self.now_s += asleep_s
        self.owner.behind_s += asleep_s

    def call(self) -> None:
        holder, sent_s = self.rng.choice(self.holders), self.now_s
        self.now_s += self.rng.choice([0.0, 0.0, 0.2, 3.0])  # on its way
        ttl_ms = self.rng.choice([500, 1_000, 4_000])
        token = holder.token if self.rng.random() < 0.6 else 0
        asked = LeaseRequest(holder.name, 0 if token and self.rng.random() < 0.2 else ttl_ms, token)
        if asked.ttl_ms == 0:
            holder.token = 0  # who releases a lease does not count on it from then on
        server_s = self.now_s - self.owner.behind_s
        end_s = self.owner.times.end_of(NAME, self.written, server_s)
        decision = decide(self.written, asked, is_expired=end_s <= server_s)
        if decision.is_changed:
            self.written = decision.lease
            self.owner.times.end_of(NAME, decision.lease, server_s)
            if self.rng.random() < 0.1:
                return self.crash()  # before the fsync: nobody is answered
            self.durable = self.written
        if decision.is_held and not token:
            self.check_alone(holder)
        self.now_s += self.rng.choice([0.0, 0.0, 0.2, 3.0])
        if self.rng.random() < 0.1:
            return None  # the answer is lost
        if decision.is_held:
            if not token:
                self.tokens.append(decision.lease.token)
            holder.token, holder.ends_s = decision.lease.token, sent_s + ttl_ms / 1_000
        elif token:
            holder.token = 0
        return None

    def check_alone(self, to: Holder) -> None:
        self.given += 1
        for other in self.holders:
            assert other is to or not (other.token and self.now_s < other.ends_s - 1e-6), "two hold the lease"


def test_a_lease_has_one_holder_at_a_time_and_tokens_only_rise() -> None:
    given = 0
    for seed in range(SEEDS):
        world = World(seed)
        try:
            for _ in range(STEPS):
                world.step()
            assert world.tokens == sorted(set(world.tokens)), "a token is given once, and later ones are higher"
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        given += world.given
    assert given > 20 * SEEDS, "leases do end, and are given again"


def test_an_expired_lease_may_be_renewed_until_another_has_it() -> None:
    stored = Lease(3, b"a", 1_000, 0)
    renewed = decide(stored, LeaseRequest(b"a", 2_000, 3), is_expired=True)
    assert (renewed.is_held, renewed.lease) == (True, Lease(3, b"a", 2_000, 1))
    given = decide(stored, LeaseRequest(b"b", 1_000, 0), is_expired=True)
    assert (given.is_held, given.lease) == (True, Lease(4, b"b", 1_000, 0))
    late = decide(given.lease, LeaseRequest(b"a", 1_000, 3), is_expired=False)
    assert (late.is_held, late.is_changed) == (False, False)
    assert not decide(given.lease, LeaseRequest(b"a", 0, 3), is_expired=False).is_changed, "nor does it release it"


def test_a_holder_that_asks_anew_gets_a_higher_token_and_the_earlier_one_is_dead() -> None:
    again = decide(Lease(3, b"a", 1_000, 5), LeaseRequest(b"a", 1_000, 0), is_expired=False)
    assert again.lease == Lease(4, b"a", 1_000, 0)
    assert not decide(again.lease, LeaseRequest(b"a", 1_000, 3), is_expired=False).is_held


def test_times_are_bounded_and_a_forgotten_one_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "LEASES_TIMED", 2)
    times, lease = LeaseTimes(), Lease(1, b"a", 1_000)
    for name in (b"1", b"2", b"3"):
        assert times.end_of(name, lease, 10.0) == 11.0
    assert times.end_of(b"3", lease, 10.5) == 11.0
    assert times.end_of(b"1", lease, 10.5) == 11.5, "held longer, never shorter"


def test_the_bytes_of_a_state() -> None:
    data = bytes.fromhex("01 0000000000000002 0000000000000000 0000000000002710 61")
    assert pack(Lease(2, b"a", 10_000)) == data
    assert unpack(data) == Lease(2, b"a", 10_000)
    for wrong in (b"", data[:20], b"\x02" + data[1:]):
        with pytest.raises(DamagedData, match="none of this version"):
            unpack(wrong)
