"""The outbox's lines: order, room, targets that fail and refuse, and regions that are replaced, from printed seeds."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from columnar.errors import DamagedData
from columnar.flows import outbox_state
from columnar.flows.outbox_state import (
    BATCH_BYTES,
    BATCH_MESSAGES,
    ERROR_HEADER,
    LINE_MESSAGES,
    NAME_HEADER,
    OUTBOX_BYTES,
    OUTBOX_MESSAGES,
    REFUSED,
    TARGET_HEADER,
    OutboxState,
    Outgoing,
    Read,
    outgoing,
)
from columnar.model.send import Send
from columnar.regions.log.change_record import Sequence

A, B = b"queue:a", b"queue:b"


def at(n: int) -> Sequence:
    return Sequence(7, 1, n)


def send(target: bytes = A, body: bytes = b"x", name: bytes = b"") -> Send:
    return Send(target, b"", name, b"g", 0, 0, body, ((b"h", b"v"),))


class Log:
    """The records that stubs are read from again."""

    def __init__(self) -> None:
        self.sends: dict[Sequence, tuple[Send, ...]] = {}
        self.reads = 0

    def take(self, state: OutboxState, n: int, *sends: Send) -> None:
        self.sends[at(n)] = sends
        assert state.take_sends(at(n), sends)

    def read(self, sequence: Sequence) -> list[Outgoing] | None:
        self.reads += 1
        sends = self.sends.get(sequence)
        return None if sends is None else outgoing(sequence, sends)


def _no_stub(sequence: Sequence) -> list[Outgoing] | None:
    raise AssertionError(f"{sequence} is in memory")


def batches(state: OutboxState, now_s: float, read: Read = _no_stub) -> list[tuple[bytes, list[Outgoing]]]:
    found = [(target, state.begin_batch(target, read)) for target in state.due_targets(now_s)]
    assert not any(gone.out or gone.partly for _, (_, gone) in found)
    return [(target, batch) for target, (batch, _) in found]


def only(state: OutboxState, now_s: float = 0.0, read: Read = _no_stub) -> tuple[bytes, list[Outgoing]]:
    (batch,) = batches(state, now_s, read)
    return batch


def test_a_message_has_the_name_of_its_change_unless_it_has_its_own() -> None:
    state = OutboxState()
    state.take_sends(at(5), (send(), send(name=b"mine"), send()))
    assert [one.name for one in only(state)[1]] == [b"send-7-1-5-0", b"mine", b"send-7-1-5-2"]


def test_a_change_is_out_when_all_its_messages_are() -> None:
    state = OutboxState()
    state.take_sends(at(1), (send(A), send(B)))
    state.take_sends(at(2), (send(A),))
    assert [target for target, _ in batches(state, 0.0)] == [A, B]
    assert state.end_batch(A) == ([at(2)], [(at(1), b"\x00")])
    assert state.end_batch(B) == ([at(1)], [])
    assert state.has_room
    assert batches(state, 0.0) == []


def test_one_batch_of_a_line_is_under_way_and_later_messages_wait() -> None:
    state = OutboxState()
    state.take_sends(at(1), (send(),))
    assert len(only(state)[1]) == 1
    state.take_sends(at(2), (send(),))
    assert batches(state, 0.0) == []
    state.end_batch(A)
    assert [one.sequence for one in only(state)[1]] == [at(2)]


def test_batches_and_the_room_are_bounded() -> None:
    state = OutboxState()
    for n in range(1, LINE_MESSAGES + 1):
        state.take_sends(at(n), (send(),))
    assert len(only(state)[1]) == BATCH_MESSAGES
    large, log = OutboxState(), Log()
    log.take(large, 1, *(send(body=b"x" * (BATCH_BYTES // 2)) for _ in range(3)))
    assert len(only(large, 0.0, log.read)[1]) == 1
    large.take_sends(at(2), (send(B, body=b"x" * (OUTBOX_BYTES // 2)),))
    assert large.has_room
    large.take_sends(at(3), (send(b"queue:c", body=b"x" * (OUTBOX_BYTES // 2)),))
    assert not large.has_room


def test_a_target_that_fails_rests_for_a_growing_time_and_others_go_on() -> None:
    state, log = OutboxState(), Log()
    log.take(state, 1, send(A), send(B))
    batches(state, 0.0)
    state.fail_batch(A, 10.0, "full")
    assert state.obstacles == [(A, "full")]
    assert state.end_batch(B).out == []
    log.take(state, 2, send(B))
    assert only(state, 10.0)[0] == B
    assert state.next_due_s() == pytest.approx(10.1)
    assert only(state, 10.2, log.read)[0] == A
    state.fail_batch(A, 10.2)
    assert state.next_due_s() == pytest.approx(10.4)
    assert only(state, 10.5, log.read)[0] == A
    state.end_batch(A)
    assert state.obstacles == []


def test_a_target_that_pauses_takes_no_room_from_others_and_its_messages_are_read_again() -> None:
    state, log, n = OutboxState(), Log(), 0
    large = b"x" * (OUTBOX_BYTES // 8)
    for _ in range(4):
        log.take(state, (n := n + 1), send(A, large), send(A, b"%d" % n))
    assert only(state, 0.0, log.read)[0] == A
    state.fail_batch(A, 0.0)
    reads = log.reads
    state.check_invariants()
    while n < OUTBOX_MESSAGES + 100:
        assert state.has_room
        log.take(state, (n := n + 1), send(A, b"%d" % n), send(B, b"%d" % n))
        assert [one.send.body for one in only(state)[1]] == [b"%d" % n]
        state.end_batch(B)
    state.check_invariants()
    assert (state._messages, state._bytes) == (0, 0)
    assert log.reads == reads
    arrived: list[bytes] = []
    assert len(only(state, 1.0, log.read)[1]) == 1, "it tries with one"
    while True:
        (line,) = state._lines.values()
        arrived += [one.send.body for one in list(line.waiting)[: line.in_flight] if isinstance(one, Outgoing)]
        assert len(line.waiting) - line.stubs == line.in_flight <= BATCH_MESSAGES, "no other body is in memory"
        state.check_invariants()
        state.end_batch(A)
        if not batches(state, 1.0, log.read):
            break
    assert arrived == [large, b"1", large, b"2", large, b"3", large, b"4", *[b"%d" % one for one in range(5, n + 1)]]
    log.take(state, n + 1, send(A))
    only(state)


def test_a_refused_message_stays_in_memory_while_what_it_became_cannot_be_stored() -> None:
    state, log = OutboxState(), Log()
    log.take(state, 1, send())
    only(state)
    state.refuse_batch(A, "why")
    told = only(state)
    assert told[0] == REFUSED
    state.fail_batch(REFUSED, 0.0)
    log.take(state, 2, send(REFUSED, b"plain"))
    assert only(state, 1.0, log.read) == told
    state.check_invariants()
    state.end_batch(REFUSED)
    assert [one.send.body for one in only(state, 1.0, log.read)[1]] == [b"plain"]


def test_a_target_that_is_slow_leaves_room_for_others() -> None:
    state, log = OutboxState(), Log()
    for n in range(1, OUTBOX_MESSAGES + 1):
        log.take(state, n, send(A, b"x" * 500))
        if n == 1:
            only(state)  # which does not end
    assert state.has_room
    assert (state._messages, state._stubs) == (LINE_MESSAGES, OUTBOX_MESSAGES - LINE_MESSAGES)


def test_stubs_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_state, "OUTBOX_STUBS", 3)
    state, log = OutboxState(), Log()
    log.take(state, 1, send())
    only(state)
    state.fail_batch(A, 0.0)
    log.take(state, 2, send(), send())
    assert not state.has_room


def test_an_error_of_a_record_leaves_its_line_as_it_was_and_one_that_is_gone_is_passed() -> None:
    state, log = OutboxState(), Log()
    for n in range(1, 5):
        log.take(state, n, send(A, b"%d" % n), send(B) if n == 2 else send(A))
    batches(state, 0.0)
    state.fail_batch(A, 0.0)

    def damaged(_sequence: Sequence) -> list[Outgoing] | None:
        raise DamagedData("a bad block")

    with pytest.raises(DamagedData):
        state.begin_batch(A, damaged)
    state.check_invariants()
    del log.sends[at(1)], log.sends[at(2)]
    batch, gone = state.begin_batch(A, log.read)
    assert [one.send.body for one in batch] == [b"3"]
    assert gone == ([at(1)], [(at(2), b"\x00")])
    state.check_invariants()
    log.sends.clear()
    state.end_batch(A)
    assert state.begin_batch(A, log.read) == ([], ([at(3), at(4)], []))
    assert state.due_targets(99.0) == []


def test_the_message_that_is_refused_goes_aside_and_the_others_arrive_in_order() -> None:
    state = OutboxState()
    for n in range(1, 5):
        state.take_sends(at(n), (send(body=b"%d" % n),))
    arrived: list[bytes] = []
    for _ in range(20):
        for target, batch in batches(state, 0.0):
            if target == A and any(one.send.body == b"2" for one in batch):
                state.refuse_batch(A, "why")
                continue
            arrived += [one.send.body for one in batch]
            state.end_batch(target)
    assert sorted(arrived) == [b"1", b"2", b"3", b"4"]
    assert [body for body in arrived if body != b"2"] == [b"1", b"3", b"4"]


def test_what_is_refused_tells_where_it_should_have_gone_without_what_was_refused() -> None:
    state = OutboxState()
    state.take_sends(at(1), (Send(A, b"", b"", b"g", 5, 9, b"body", ((b"h", b"v"),)),))
    batches(state, 0.0)
    assert state.refuse_batch(A, "no priority here") is not None
    target, (told,) = only(state)
    headers = dict(told.send.headers)
    assert target == REFUSED
    assert (told.name, told.send.body, told.send.group, told.send.delay_ms, told.send.priority) == (
        b"send-7-1-1-0", b"body", b"g", 0, 0,
    )  # fmt: skip
    assert headers == {b"h": b"v", TARGET_HEADER: A, ERROR_HEADER: b"no priority here"}
    assert state.end_batch(REFUSED).out == [at(1)]


def test_refused_messages_of_one_name_are_two_messages() -> None:
    state = OutboxState()
    for n, target in ((1, A), (2, B)):
        state.take_sends(at(n), (Send(target, b"", b"same", b"", 0, 0, b"%d" % n, ()),))
    for target, _ in batches(state, 0.0):
        state.refuse_batch(target, "no")
    _, batch = only(state)
    assert [(one.name, one.send.body) for one in batch] == [(b"send-7-1-1-0", b"1"), (b"send-7-1-2-0", b"2")]
    assert all(dict(one.send.headers)[NAME_HEADER] == b"same" for one in batch)


def test_what_nothing_takes_is_reported_as_lost_once_it_is_bare() -> None:
    state = OutboxState()
    state.take_sends(at(1), (send(A), send(B)))
    batches(state, 0.0)
    state.end_batch(B)
    state.refuse_batch(A, "no")
    assert only(state)[1][0].send.headers
    state.refuse_batch(REFUSED, "no room for headers")
    assert only(state)[1][0].send.headers == ()
    lost = state.refuse_batch(REFUSED, "never")
    assert lost is not None
    assert lost.is_bare
    assert state.give_up(lost).out == [at(1)]
    assert state.has_room


def test_a_change_that_is_taken_again_sends_only_what_is_not_stored() -> None:
    state = OutboxState()
    assert state.take_sends(at(1), (send(A), send(B), send(A)), b"\x00")
    assert [(target, [one.number for one in batch]) for target, batch in batches(state, 0.0)] == [
        (B, [1]),
        (A, [2]),
    ]
    assert state.end_batch(A) == ([], [(at(1), b"\x00\x02")])
    assert state.end_batch(B) == ([at(1)], [])
    assert not state.take_sends(at(2), (send(A),), b"\x00")


def test_release_waits_for_what_is_in_flight_and_gives_all_changes_back_in_order() -> None:
    state = OutboxState()
    state.take_sends(at(1), (send(A), send(B)))
    batches(state, 0.0)
    state.end_batch(B)
    state.take_sends(at(2), (send(A), send(B)))
    state.take_sends(at(3), (send(B),))
    only(state)  # both of B
    assert state.release() == []
    assert state.is_releasing
    assert not state.has_room
    assert batches(state, 0.0) == []
    assert state.end_batch(B) == ([at(3)], [(at(2), b"\x01")])
    assert state.release() == [], "change 1 is on its way to A"
    state.fail_batch(A, 0.0)
    assert batches(state, 100.0) == [], "not even what failed"
    assert state.release() == [at(1), at(2)]
    assert not state.is_releasing
    state.check_invariants()


@pytest.mark.parametrize("seed", range(200))
def test_every_message_arrives_once_in_order_whatever_fails(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"seed {seed}")
    monkeypatch.setattr(outbox_state, "BATCH_MESSAGES", 3)
    monkeypatch.setattr(outbox_state, "OUTBOX_MESSAGES", 8)
    monkeypatch.setattr(outbox_state, "LINE_MESSAGES", 4)
    monkeypatch.setattr(outbox_state, "OUTBOX_STUBS", 10)
    rng = random.Random(seed)
    waiting = [(at(n), tuple(send(rng.choice((A, B)), b"%d.%d" % (n, m)) for m in range(rng.randrange(1, 4))))
               for n in range(1, 30)]  # fmt: skip
    bad = {one.body for _, sends in waiting for one in sends if rng.random() < 0.05}
    sent = {one.body for _, sends in waiting for one in sends}
    marks = dict.fromkeys((A, B, REFUSED), (at(0), 0))  # of a topic, which leaves out what is not above them
    stored: dict[bytes, dict[bytes, bytes]] = {A: {}, B: {}, REFUSED: {}}  # by name, in the order of arrival
    log, done, progress = dict(waiting), set[Sequence](), dict[Sequence, bytes]()
    state, under_way, now_s = OutboxState(), dict[bytes, list[Outgoing]](), 0.0
    while len(done) < len(log):
        now_s += 0.05
        chance = rng.random()
        if chance < 0.5:
            while waiting and state.has_room:
                sequence, sends = waiting.pop(0)
                assert state.take_sends(sequence, sends, progress.get(sequence, b""))
        elif chance < 0.55:
            waiting = sorted([*waiting, *((one, log[one]) for one in state.release())])
        for target, batch in batches(state, now_s, lambda sequence: outgoing(sequence, log[sequence])):
            assert target not in under_way
            under_way[target] = batch
        for target in [one for one in under_way if rng.random() < 0.5]:
            batch = under_way.pop(target)
            if target != REFUSED and any(one.send.body in bad for one in batch):
                state.refuse_batch(target, "bad")
            else:
                is_lost = rng.random() < 0.3  # the answer, or the request
                if not is_lost or rng.random() < 0.5:
                    for one in batch:
                        mark = (one.sequence, one.number)
                        assert target == REFUSED or one.name in stored[target] or marks[target] < mark
                        stored[target].setdefault(one.name, one.send.body)
                        marks[target] = max(marks[target], mark)
                if is_lost:
                    state.fail_batch(target, now_s)
                else:
                    ended = state.end_batch(target)
                    assert not done.intersection(ended.out)
                    done.update(ended.out)
                    progress.update(ended.partly)
            if state.is_releasing:
                waiting = sorted([*waiting, *((one, log[one]) for one in state.release())])
        state.check_invariants()
    arrived = Counter(body for bodies in stored.values() for body in bodies.values())
    assert arrived == Counter(sent)
    assert set(stored[REFUSED].values()) == bad
    for target in (A, B):
        bodies = list(stored[target].values())
        assert bodies == sorted(bodies, key=lambda body: [int(part) for part in body.split(b".")])
