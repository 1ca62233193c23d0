"""The election, event by event: who leads, who only observes, whom a leader fences, and how it resigns."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from columnar.coordination.cas import Condition
from columnar.coordination.election import LEADER, OBSERVE_MS, Candidate, CandidateState
from columnar.coordination.lease import (
    CreateRecord,
    DeleteRecord,
    Done,
    Failed,
    Found,
    LeaseTimes,
    PollRecords,
    PutRecord,
    ReadRecord,
    Request,
    WasPolled,
    WasRead,
)
from columnar.coordination.membership import Ended

TIMES = LeaseTimes.of_lease()
KEY = "nodes/n1.1"


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
