"""The state machines of a lease, event by event: what a lost answer, a conflict and a failed poll lead to."""

from __future__ import annotations

from columnar.coordination.lease import (
    RETRY_MS,
    CreateRecord,
    Done,
    Failed,
    Found,
    HolderState,
    LeaseHolder,
    LeaseTimes,
    LeaseWatcher,
    PutRecord,
    ReadRecord,
    WasPolled,
    WasRead,
)
from columnar.coordination.membership import Membership

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
