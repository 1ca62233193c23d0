"""The lease's state machines, event by event: what a lost answer, a conflict, a failed poll and a fence lead to."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from columnar.coordination.cas import Condition
from columnar.coordination.election import LEADER, OBSERVE_MS, Candidate, CandidateState
from columnar.coordination.lease import (
    RETRY_MS,
    CreateRecord,
    DeleteRecord,
    Done,
    Failed,
    Found,
    HolderState,
    LeaseHolder,
    LeaseTimes,
    LeaseWatcher,
    PollRecords,
    PutRecord,
    ReadRecord,
    Request,
    WasPolled,
    WasRead,
)
from columnar.coordination.membership import Ended, Membership

TIMES = LeaseTimes.of_lease()
KEY = "nodes/n1.1"


def held(now_ms: int = 1_000) -> LeaseHolder:
    holder = LeaseHolder(KEY, "mine", TIMES)
    assert holder.next_request(now_ms) == CreateRecord(KEY)
    holder.on_answer(Done(0), now_ms)
    return holder


def test_the_times_of_a_lease() -> None:
    assert LeaseTimes(1_500, 250, 100, 1_650, 600) == TIMES


def test_a_lease_is_counted_from_the_sending_of_its_renewal() -> None:
    holder = LeaseHolder(KEY, "mine", TIMES)
    assert not holder.is_valid(1_000)
    holder.next_request(1_000)
    assert holder.next_request(1_001) is None, "one request at a time"
    holder.on_answer(Done(0), 1_400)
    assert (holder.is_valid(2_499), holder.is_valid(2_500)) == (True, False)
    assert (holder.next_request(1_249), holder.next_request(1_400)) == (None, PutRecord(KEY, 0))


def test_an_unknown_renewal_is_read_back_and_counts_for_nothing() -> None:
    holder = held()
    holder.next_request(1_250)
    holder.on_answer(Failed.UNKNOWN, 1_850)
    assert (holder.state, holder.until_ms) == (HolderState.UNSURE, 2_500)
    assert holder.next_request(1_850) == ReadRecord(KEY)
    holder.on_answer(WasRead(Found(1, "mine")), 1_860)
    assert (holder.state, holder.until_ms) == (HolderState.RENEWING, 2_500), "the lease itself ends when it did before"
    assert holder.next_request(1_860) == PutRecord(KEY, 1)


def test_a_conflict_is_no_fence() -> None:
    """A renewal whose answer was lost may have raised the version."""
    holder = held()
    holder.next_request(1_250)
    holder.on_answer(Failed.CONFLICT, 1_251)
    assert holder.next_request(1_251) == ReadRecord(KEY)
    holder.on_answer(WasRead(Found(5, "mine")), 1_252)
    assert holder.next_request(1_252) == PutRecord(KEY, 5)


def test_a_record_that_is_gone_or_has_another_nonce_ends_the_lease() -> None:
    for found in (None, Found(1, "a clone's")):
        holder = held()
        holder.next_request(1_250)
        holder.on_answer(Failed.CONFLICT, 1_251)
        holder.next_request(1_251)
        holder.on_answer(WasRead(found), 1_252)
        assert (holder.state, holder.is_valid(1_252), holder.next_request(9_999)) == (HolderState.LOST, False, None)


def test_a_service_that_is_away_takes_no_lease() -> None:
    holder = held()
    for now_ms in range(1_250, 9_000, 50):
        assert holder.next_request(now_ms) == PutRecord(KEY, 0)
        holder.on_answer(Failed.UNAVAILABLE, now_ms)
    assert not holder.is_valid(9_000), "it acknowledges nothing"
    holder.next_request(9_000)
    holder.on_answer(Done(1), 9_005)
    assert holder.is_valid(9_005)


def test_a_record_that_was_taken_by_another_is_not_joined() -> None:
    for over in (None, 3):
        holder = LeaseHolder(KEY, "mine", TIMES, over=over)
        assert holder.next_request(0) == (CreateRecord(KEY) if over is None else PutRecord(KEY, 3))
        holder.on_answer(Failed.CONFLICT, 1)
        assert holder.state is HolderState.LOST


def test_a_version_that_stands_still_is_silent_after_the_lease_and_its_margin() -> None:
    watcher = LeaseWatcher(TIMES)
    for now_ms in range(0, 1_700, 50):
        watcher.on_polled({"nodes/a": 7, "nodes/b": now_ms}, now_ms)
        assert watcher.silent(now_ms) == ({"nodes/a": 7} if now_ms >= 1_650 else {})


def test_a_poll_that_failed_or_came_late_begins_all_counts_anew() -> None:
    for failure in ("failed", "late"):
        watcher = LeaseWatcher(TIMES)
        for now_ms in range(0, 1_601, 100):
            watcher.on_polled({KEY: 7}, now_ms)
        again_ms = 2_199 if failure == "failed" else 2_200
        if failure == "failed":
            watcher.on_poll_failed()
        for now_ms in range(again_ms, again_ms + 1_650, 50):
            watcher.on_polled({KEY: 7}, now_ms)
            assert watcher.silent(now_ms) == {}, failure
        watcher.on_polled({KEY: 7}, again_ms + 1_650)
        assert watcher.silent(again_ms + 1_650) == {KEY: 7}


def polled(candidate: Candidate, now_ms: int, nodes: dict[str, int], leader: Found | None) -> None:
    assert candidate.next_request(now_ms) == PollRecords(candidate.state is CandidateState.FOLLOWING)
    candidate.on_answer(WasPolled(nodes, leader), now_ms)


def leading(nodes: dict[str, int]) -> Candidate:
    """A candidate that has found no leader at 0, and leads by version 0."""
    candidate = Candidate(TIMES, map(str, itertools.count()).__next__)
    polled(candidate, 0, nodes, None)
    assert candidate.state is CandidateState.ACQUIRING
    assert candidate.next_request(0) == CreateRecord(LEADER)
    candidate.on_answer(Done(0), 5)
    assert (candidate.state, candidate.epoch, candidate.leads(5)) == (CandidateState.LEADING, 1, True)
    return candidate


def test_a_candidate_takes_a_silent_leaders_place_with_the_next_epoch() -> None:
    candidate = Candidate(TIMES, lambda: "mine")
    for now_ms in range(0, 1_650, 150):
        polled(candidate, now_ms, {}, Found(9, "theirs", epoch=4))
    polled(candidate, 1_650, {}, Found(9, "theirs", epoch=4))
    assert candidate.next_request(1_650) == PutRecord(LEADER, 9)
    candidate.on_answer(Done(10), 1_655)
    assert (candidate.epoch, candidate.leads(1_655)) == (5, True)


def fence_by(
    candidate: Candidate, now_ms: int, version: int, holder: Callable[[int], int]
) -> tuple[DeleteRecord, int, int]:
    """Answer the leader's requests, one each 50 ms, until it fences KEY, whose version ``holder`` says for a moment.

    Returns the fence, its moment and the leader's version.
    """
    while not isinstance(request := candidate.next_request(now_ms), DeleteRecord):
        if request == PutRecord(LEADER, version):
            version += 1
            candidate.on_answer(Done(version), now_ms)
        elif request is not None:
            candidate.on_answer(WasPolled({KEY: holder(now_ms)}, None), now_ms)
        now_ms += 50
    return request, now_ms, version


def test_a_fence_names_the_version_and_the_leaders_own_record() -> None:
    candidate = leading({})
    request, now_ms, version = fence_by(candidate, 50, 0, lambda _: 7)
    assert request == DeleteRecord(KEY, 7, Condition(LEADER, version))
    assert 1_750 <= now_ms <= 1_900, "first seen at 100"
    candidate.on_answer(Done(), now_ms + 5)
    assert candidate.members.take_ended(now_ms + 5) == {KEY: Ended(now_ms + 5, is_by_time=True)}, (
        "its lease was over before"
    )
    assert candidate.members.take_ended(now_ms + 5) == {}, "once"


def test_a_holder_that_renews_is_over_only_when_its_lease_must_be() -> None:
    candidate = leading({KEY: 0})
    candidate.members.request_fence(KEY)
    _, now_ms, version = fence_by(candidate, 50, 0, lambda now_ms: now_ms)
    assert 1_650 <= now_ms <= 1_800, "it is known for long enough (E5)"
    candidate.on_answer(Failed.CONFLICT, now_ms)
    request, now_ms, version = fence_by(candidate, now_ms, version, lambda now_ms: now_ms)
    assert request == DeleteRecord(KEY, now_ms - 50, Condition(LEADER, version))
    candidate.on_answer(Done(), now_ms)
    over_ms = now_ms - 50 + TIMES.fence_ms  # the version was first seen then
    assert candidate.members.take_ended(over_ms - 1) == {}
    assert candidate.members.take_ended(over_ms) == {KEY: Ended(over_ms, is_by_time=True)}


def test_a_request_to_fence_a_dead_holder_does_not_lengthen_the_wait() -> None:
    candidate = leading({KEY: 0})
    request: Request | None = None
    now_ms = 50
    while not isinstance(request, DeleteRecord):
        now_ms += 50
        if now_ms == 3_000:  # the holder renewed until 2,000, and somebody noticed only now
            candidate.members.request_fence(KEY)
        request = candidate.next_request(now_ms)
        match request:
            case PutRecord(_, written):
                candidate.on_answer(Done(written + 1), now_ms)
            case PollRecords():
                candidate.on_answer(WasPolled({KEY: min(now_ms, 2_000)}, None), now_ms)
    assert (request.version, request.key) == (2_000, KEY)
    assert now_ms < 3_200
    candidate.on_answer(Done(), now_ms)
    assert 0 <= candidate.members.ended[KEY].over_ms - (2_000 + TIMES.fence_ms) <= TIMES.poll_ms, "of the poll"


def test_a_leader_without_a_lease_fences_nobody() -> None:
    candidate = leading({KEY: 7})
    candidate.members.request_fence(KEY)
    assert candidate.next_request(1_600) == PutRecord(LEADER, 0)
    candidate.on_answer(Failed.UNAVAILABLE, 1_601)
    polled(candidate, 1_602, {KEY: 7}, None)
    assert candidate.next_request(1_603) is None


def test_a_leader_that_was_replaced_follows() -> None:
    candidate = leading({})
    assert candidate.next_request(250) == PutRecord(LEADER, 0)
    candidate.on_answer(Failed.CONFLICT, 251)
    assert candidate.next_request(252) == ReadRecord(LEADER)
    candidate.on_answer(WasRead(Found(1, "theirs", epoch=2)), 253)
    assert (candidate.state, candidate.leads(253)) == (CandidateState.FOLLOWING, False)
    polled(candidate, 260, {}, Found(1, "theirs", epoch=2))
    assert candidate.epoch == 2


def test_a_released_lease_ends_at_once_and_is_written_until_it_is_certain() -> None:
    holder = held()
    holder.release(1_100)
    assert not holder.is_valid(1_100)
    assert (holder.is_releasing, holder.next_request(1_100)) == (True, PutRecord(KEY, 0))
    holder.on_answer(Failed.UNKNOWN, 1_700)
    assert holder.next_request(1_700) == ReadRecord(KEY)
    holder.on_answer(WasRead(Found(0, "mine")), 1_701)
    assert holder.next_request(1_701) == PutRecord(KEY, 0), "it may be the older one that was read"
    holder.on_answer(Done(1), 1_702)
    assert (holder.state, holder.is_valid(1_702), holder.next_request(9_999)) == (HolderState.RELEASED, False, None)


def test_a_renewal_under_way_does_not_release_and_gives_no_lease() -> None:
    holder = held()
    holder.next_request(1_250)
    holder.release(1_251)
    holder.on_answer(Done(1), 1_255)
    assert (holder.state, holder.is_valid(1_255)) == (HolderState.RENEWING, False)
    assert holder.next_request(1_255) == PutRecord(KEY, 1), "the record does not say so yet"
    holder.on_answer(Done(2), 1_256)
    assert holder.state is HolderState.RELEASED


def test_a_vacated_record_is_taken_over_at_once_and_on_its_version() -> None:
    candidate = Candidate(TIMES, lambda: "mine")
    polled(candidate, 0, {}, Found(9, "theirs", epoch=4))
    assert candidate.state is CandidateState.FOLLOWING
    polled(candidate, 100, {}, Found(10, "theirs", epoch=4, is_vacated=True))
    assert candidate.next_request(100) == PutRecord(LEADER, 10)
    candidate.on_answer(Done(11), 105)
    assert (candidate.epoch, candidate.leads(105)) == (5, True)


def test_a_leader_that_resigns_acts_no_more_and_never_leads_again() -> None:
    candidate = leading({KEY: 7})
    candidate.members.request_fence(KEY)
    candidate.resign(50)
    assert (candidate.state, candidate.leads(50)) == (CandidateState.RESIGNING, False)
    assert candidate.next_request(50) == PutRecord(LEADER, 0)
    candidate.on_answer(Done(1), 55)
    assert candidate.has_resigned
    polled(candidate, 100, {}, Found(1, "0", epoch=1, is_vacated=True))
    assert candidate.state is CandidateState.FOLLOWING


def stepped_down() -> Candidate:
    """A candidate that led, and whose record says at 55 that its place is free."""
    candidate = leading({KEY: 7})
    candidate.members.request_fence(KEY)
    candidate.step_down(50)
    assert (candidate.state, candidate.leads(50)) == (CandidateState.RESIGNING, False)
    assert candidate.next_request(50) == PutRecord(LEADER, 0), "and it fences nobody"
    candidate.on_answer(Done(1), 55)
    assert (candidate.state, candidate.has_resigned) == (CandidateState.FOLLOWING, False)
    return candidate


FREE = Found(1, "0", epoch=1, is_vacated=True)


def test_a_candidate_that_stepped_down_leaves_its_place_to_others_for_a_while() -> None:
    candidate = stepped_down()
    polled(candidate, 100, {}, FREE)
    for now_ms in range(200, 100 + 2 * TIMES.fence_ms, 100):
        polled(candidate, now_ms, {}, FREE)
        assert candidate.state is CandidateState.FOLLOWING
    polled(candidate, 100 + 2 * TIMES.fence_ms, {}, FREE)
    assert candidate.state is CandidateState.ACQUIRING, "nobody else has taken it"


def test_a_candidate_that_stepped_down_may_lead_after_another() -> None:
    candidate = stepped_down()
    polled(candidate, 100, {}, FREE)
    polled(candidate, 200, {}, Found(2, "theirs", epoch=2))
    polled(candidate, 300, {}, Found(3, "theirs", epoch=2, is_vacated=True))
    assert candidate.next_request(300) == PutRecord(LEADER, 3)
    candidate.on_answer(Done(4), 305)
    assert (candidate.leads(305), candidate.epoch) == (True, 3)


def test_a_step_down_whose_answer_was_lost_is_written_until_it_is_certain() -> None:
    candidate = leading({})
    candidate.step_down(50)
    candidate.next_request(50)
    candidate.on_answer(Failed.UNKNOWN, 60)
    assert candidate.next_request(200) == ReadRecord(LEADER)
    candidate.on_answer(WasRead(Found(1, "theirs", epoch=2)), 201)
    assert (candidate.state, candidate.leads(201)) == (CandidateState.FOLLOWING, False)


def test_a_fence_under_way_at_a_resignation_is_noted() -> None:
    candidate = leading({})
    request, now_ms, _ = fence_by(candidate, 50, 0, lambda _: 7)
    candidate.resign(now_ms)
    candidate.on_answer(Done(), now_ms + 1)
    assert request.key in candidate.members.ended


def test_a_candidate_that_may_not_lead_only_polls() -> None:
    candidate = Candidate(TIMES, lambda: "mine", may_lead=False)
    polled(candidate, 0, {KEY: 1}, None)
    assert (candidate.state, candidate.next_request(50)) == (CandidateState.FOLLOWING, None)
    assert candidate.members.versions == {KEY: 1}


def test_an_epoch_exceeds_the_floor_and_counts_when_it_is_written() -> None:
    candidate = Candidate(TIMES, lambda: "mine", epoch_floor=30)
    polled(candidate, 0, {}, Found(9, "theirs", epoch=4, is_vacated=True))
    assert candidate.next_request(0) == PutRecord(LEADER, 9)
    assert (candidate.epoch, candidate.written_epoch) == (31, 0)
    candidate.lift_epoch(40, 1)  # of the write that is under way, the epoch is 31
    candidate.on_answer(Done(10), 2)
    assert (candidate.epoch, candidate.written_epoch) == (40, 31)
    assert candidate.next_request(2) == PutRecord(LEADER, 10), "at once"
    candidate.on_answer(Failed.UNKNOWN, 3)
    assert candidate.written_epoch == 31
    assert candidate.next_request(3) == ReadRecord(LEADER)
    candidate.on_answer(WasRead(Found(10, "mine", epoch=31)), 4)
    assert candidate.next_request(4) == PutRecord(LEADER, 10)
    candidate.on_answer(Done(11), 5)
    assert candidate.written_epoch == 40
    candidate.lift_epoch(35, 6)
    assert candidate.next_request(6) != PutRecord(LEADER, 11), "it is high enough"


def test_a_withdrawn_record_is_deleted_and_its_node_has_not_ended_by_time() -> None:
    candidate = leading({})
    assert candidate.next_request(100) == PollRecords(has_leader=False)
    candidate.on_answer(WasPolled({KEY: 8}, None, frozenset({KEY})), 101)
    assert candidate.next_request(101) == DeleteRecord(KEY, 8, Condition(LEADER, 0))
    candidate.on_answer(Done(), 102)
    assert candidate.members.take_ended(102) == {KEY: Ended(102, is_by_time=False)}


def test_a_withdrawn_record_that_vanishes_is_over_at_once_and_any_other_after_the_lease() -> None:
    other = "nodes/n2.2"
    candidate = leading({})
    candidate.next_request(100)
    candidate.on_answer(WasPolled({KEY: 8, other: 3}, None, frozenset({KEY})), 101)
    candidate.next_request(101)
    candidate.on_answer(Failed.UNKNOWN, 102)  # its deletion may have taken effect
    polled(candidate, 200, {}, None)
    assert candidate.members.take_ended(200) == {KEY: Ended(200, is_by_time=False)}
    assert candidate.members.take_ended(1_849) == {}
    assert candidate.members.take_ended(1_850) == {other: Ended(1_850, is_by_time=True)}


def test_a_new_leader_knows_when_nodes_without_a_record_are_over() -> None:
    candidate = Candidate(TIMES, lambda: "mine")
    polled(candidate, 0, {KEY: 1}, Found(9, "theirs", epoch=4))
    assert candidate.unlisted_over_ms is None, "it does not lead"
    polled(candidate, 100, {}, Found(10, "theirs", epoch=4, is_vacated=True))
    assert candidate.next_request(100) == PutRecord(LEADER, 10)
    candidate.on_answer(Done(11), 105)
    assert candidate.unlisted_over_ms is None, "it has not polled since then"
    polled(candidate, 200, {}, None)
    assert candidate.unlisted_over_ms == 1_750, "a record vanished at 100"
    candidate.next_request(300)
    candidate.on_answer(Failed.UNAVAILABLE, 300)
    assert candidate.next_request(355) == PutRecord(LEADER, 11)
    candidate.on_answer(Done(12), 356)
    polled(candidate, 400, {}, None)
    assert candidate.unlisted_over_ms == 2_050, "nodes may have come and gone between two polls"


OTHERS = frozenset(f"nodes/n{n}.{n}" for n in range(1, 6))  # the standbys
THEIRS = Found(9, "theirs", epoch=4)


def observing(leader: Found | None = THEIRS) -> Candidate:
    """A candidate that has polled at 0, and is not among the standbys."""
    candidate = Candidate(TIMES, lambda: "mine", key="nodes/n6.6")
    assert candidate.next_request(0) == PollRecords(has_leader=True)
    candidate.on_answer(WasPolled({KEY: 7}, leader, standbys=OTHERS), 0)
    return candidate


def test_an_observer_polls_the_leader_alone_until_it_is_time_for_all() -> None:
    candidate = observing()
    polls = []
    for now_ms in range(50, 2 * OBSERVE_MS + 300, 50):
        if (request := candidate.next_request(now_ms)) is not None:
            assert isinstance(request, PollRecords)
            polls.append((now_ms, request.has_holders))
            found = WasPolled({KEY: now_ms} if request.has_holders else {}, Found(now_ms, "theirs", epoch=4))
            candidate.on_answer(replace(found, standbys=OTHERS), now_ms)
    assert len(polls) > 2 * OBSERVE_MS // TIMES.poll_ms - 10, "as often as a standby"
    assert [now_ms for now_ms, has_holders in polls if has_holders] == [5_000, 10_000]
    assert candidate.members.versions == {KEY: 10_000}, "polls of the leader alone say nothing of holders"


def test_an_observer_becomes_a_standby_when_one_of_them_is_gone() -> None:
    candidate = observing()
    assert candidate.next_request(OBSERVE_MS) == PollRecords(has_leader=True, has_holders=True)
    candidate.on_answer(WasPolled({}, THEIRS, standbys=frozenset({"nodes/n6.6"})), OBSERVE_MS)
    assert candidate.next_request(OBSERVE_MS + 100) == PollRecords(has_leader=True, has_holders=True)


@pytest.mark.parametrize("leader", [None, Found(9, "theirs", 4, is_vacated=True)])
def test_an_observer_leaves_a_free_place_to_the_standbys_for_a_while(leader: Found | None) -> None:
    candidate = observing(leader)
    for now_ms in range(100, TIMES.stale_ms + 100, 100):
        assert candidate.state is CandidateState.FOLLOWING, now_ms
        assert candidate.next_request(now_ms) == PollRecords(has_leader=True, has_holders=False)
        candidate.on_answer(WasPolled({}, leader), now_ms)
    assert candidate.state is CandidateState.ACQUIRING


def test_an_observer_that_leads_begins_its_counts_anew() -> None:
    candidate = observing(None)
    now_ms = 0
    while candidate.state is not CandidateState.LEADING:
        now_ms += 100
        match candidate.next_request(now_ms):
            case CreateRecord():
                candidate.on_answer(Done(0), now_ms)
            case PollRecords():
                candidate.on_answer(WasPolled({}, None), now_ms)
    assert candidate.unlisted_over_ms is None
    request, fenced_ms, _ = fence_by(candidate, now_ms, 0, lambda _: 7)
    assert request.version == 7
    assert fenced_ms >= now_ms + TIMES.fence_ms, "though the record stood still since 0"
    assert (candidate.unlisted_over_ms or 0) >= now_ms + TIMES.fence_ms


def test_a_leader_that_cannot_write_fences_nobody_before_its_own_lease_is_over() -> None:
    """A service that is full refuses renewals, answers polls, and carries deletions out."""
    candidate = leading({KEY: 1})
    now_ms, version, refused_from_ms = 50, 0, 1_000
    sent: list[int] = []
    while now_ms < 4_000:
        request = candidate.next_request(now_ms)
        match request:
            case PutRecord(_, _) if now_ms >= refused_from_ms:
                candidate.on_answer(Failed.UNKNOWN, now_ms)
            case PutRecord(_, _):
                version += 1
                candidate.on_answer(Done(version), now_ms)
            case ReadRecord(_):
                candidate.on_answer(WasRead(Found(version, candidate.nonce, 1)), now_ms)
            case PollRecords():  # the holder renewed for the last time just before the leader did
                candidate.on_answer(WasPolled({KEY: min(now_ms, 800)}, None), now_ms)
            case DeleteRecord():
                sent.append(now_ms)
                candidate.on_answer(Done(), now_ms)
        now_ms += 10
    assert sent == []


def test_a_refused_renewal_is_not_repeated_without_a_pause() -> None:
    holder = held(1_000)
    now_ms, writes = 1_250, 0
    while now_ms < 2_250:
        match holder.next_request(now_ms):
            case PutRecord(_, _):
                writes += 1
                holder.on_answer(Failed.UNKNOWN, now_ms)
            case ReadRecord(_):
                holder.on_answer(WasRead(Found(0, "mine")), now_ms)
        now_ms += 1
    assert writes <= 2 + 1_000 // RETRY_MS


def test_nobody_is_fenced_for_a_time_in_which_the_own_node_cannot_renew() -> None:
    """As with an etcd without room, which answers polls and takes no renewal."""
    members = Membership(TIMES, "nodes/own")
    version, now_ms = 1, 0

    def poll(other: int, *, renews: bool) -> list[str]:
        nonlocal version, now_ms
        now_ms += TIMES.poll_ms
        version += renews
        answer = WasPolled({"nodes/own": version, "nodes/other": other, "nodes/dead": 7}, None)
        return [fence.key for fence in members.on_polled(answer, now_ms)]

    for _ in range(5):
        assert poll(3, renews=True) == []
    for _ in range(10 * TIMES.fence_ms // TIMES.poll_ms):
        assert poll(3, renews=False) == []
    assert poll(3, renews=True) == [], "the other one renews a moment later"
    silent = 0
    while poll(4, renews=True) != ["nodes/dead"]:
        silent += 1
        assert silent * TIMES.poll_ms <= TIMES.fence_ms
    assert (silent + 3) * TIMES.poll_ms >= TIMES.fence_ms


def test_a_dead_node_is_fenced_in_time_though_the_own_renewal_is_late_once() -> None:
    """As if the dead node's machine also ran the server of the service that this node has used."""
    members = Membership(TIMES, "nodes/own")
    late_ms = TIMES.fence_ms // 2 - TIMES.poll_ms
    fences: list[str] = []
    now_ms = 0
    while not fences:
        own = 1 if now_ms < late_ms else now_ms
        polled_now = WasPolled({"nodes/own": own, "nodes/dead": 7}, None)
        fences = [fence.key for fence in members.on_polled(polled_now, now_ms)]
        now_ms += TIMES.poll_ms
    assert fences == ["nodes/dead"]
    assert now_ms <= TIMES.fence_ms + 2 * TIMES.poll_ms
