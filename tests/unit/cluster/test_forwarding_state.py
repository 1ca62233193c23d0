"""A forwarded call, event by event."""

from __future__ import annotations

from dataclasses import replace

import pytest

from columnar.cluster.forwarding_state import FIRST_PAUSE_MS, ROUTING_TIMEOUT_MS, Do, ForwardedCall, OutOfPlace, State
from columnar.model.owner import Incarnation, OwnershipPeriod
from columnar.model.region_info import RegionInfo
from columnar.model.route import Route
from columnar.regions.life.retry import UNAVAILABLE_TIMEOUT_S

HERE, S1, S2 = Incarnation("gw", 1), Incarnation("s1", 1), Incarnation("s2", 1)
REGION = RegionInfo("t", 5)
OLD = Route(REGION, S1, 8)
MOVING = Route(REGION, S2, 9, OwnershipPeriod(S1, 8))
TAKEN = Route(REGION, S2, 9)
BOTH = pytest.mark.parametrize("is_write", [False, True])


def sent(is_write: bool, route: Route = OLD) -> ForwardedCall:
    call = ForwardedCall(HERE, is_write, 0)
    assert call.begin_call(route, 0) == (Do.SEND,)
    assert call.wake_at_ms == ROUTING_TIMEOUT_MS
    assert call.frame_written() == ()
    assert call.wake_at_ms is None, "the owner has a deadline of its own"
    return call


@BOTH
def test_an_answer_goes_to_the_client(is_write: bool) -> None:
    call = sent(is_write)
    assert call.server == S1
    assert call.answer_came() == (Do.ANSWER,)
    assert call.has_ended
    for late in (call.answer_came(), call.client_went(), call.woke(OLD, 99_999), call.route_changed(TAKEN, 1)):
        assert late == ()
    assert call.link_broke(TAKEN, 1) == ()


@BOTH
def test_an_owner_that_refuses_sends_the_call_on(is_write: bool) -> None:
    call = sent(is_write)
    assert call.not_local(MOVING, 3) == (Do.SEND,), "a later owner is tried at once"
    assert call.server == S2


@BOTH
def test_an_owner_that_has_not_heard_of_it_yet_is_asked_again_after_growing_pauses(is_write: bool) -> None:
    call, now_ms, pauses = sent(is_write), 0, []
    while True:
        doing = call.not_local(OLD, now_ms)
        if doing == (Do.REFUSE_UNAVAILABLE,):
            break
        assert doing == (Do.WAIT,)
        assert call.woke(OLD, now_ms) == (Do.WAIT,), "too soon"
        wake = call.wake_at_ms
        assert wake is not None
        pauses.append(wake - now_ms)
        now_ms = wake
        doing = call.woke(OLD, now_ms)
        if doing == (Do.REFUSE_UNAVAILABLE,):
            break
        assert doing == (Do.SEND,)
        call.frame_written()
    assert now_ms == ROUTING_TIMEOUT_MS == UNAVAILABLE_TIMEOUT_S * 1_000
    assert pauses[:4] == [FIRST_PAUSE_MS, 10, 20, 40]
    assert len(pauses) < 60


def test_a_broken_link_after_sending() -> None:
    read, write = sent(False), sent(True)
    assert read.link_broke(OLD, 0) == (Do.WAIT,)
    assert read.route_changed(TAKEN, 1) == (Do.SEND,)
    assert write.link_broke(TAKEN, 0) == (Do.REFUSE_UNSURE,)
    assert write.route_changed(TAKEN, 1) == ()


@BOTH
def test_a_region_that_moves_is_served_by_its_source_until_that_refuses(is_write: bool) -> None:
    """The next owner's row is on disk before the source pauses, flushes and closes, which may take a minute."""
    queued = ForwardedCall(HERE, is_write, 0)
    assert queued.begin_call(MOVING, 0) == (Do.SEND,)
    assert queued.server == S1
    assert queued.route_changed(MOVING, 1) == ()
    queued.frame_written()
    assert queued.not_local(MOVING, 2) == (Do.SEND,), "at once"
    assert queued.server == S2
    queued.frame_written()
    assert queued.not_local(MOVING, 3) == (Do.WAIT,), "it has not been told yet"
    assert queued.route_changed(replace(MOVING, source=None), 4) == (Do.WAIT,)
    assert queued.woke(replace(MOVING, source=None), 3 + 2 * FIRST_PAUSE_MS) == (Do.SEND,)
    assert queued.server == S2


def test_a_gateway_that_gets_a_region_asks_its_source_meanwhile() -> None:
    call = ForwardedCall(S2, True, 0)
    assert call.begin_call(MOVING, 0) == (Do.SEND,)
    assert call.server == S1
    call.frame_written()
    assert call.not_local(MOVING, 1) == (Do.SERVE_LOCALLY,)


def test_a_read_under_which_two_owners_ended_is_refused() -> None:
    """It may be what ended them: a third one would end, too."""
    read = sent(False)
    assert read.link_broke(TAKEN, 0) == (Do.SEND,)
    read.frame_written()
    assert read.link_broke(OLD, 1) == (Do.REFUSE_DEADLY,)
    assert read.has_ended


def test_a_link_that_breaks_twice_is_one_owner() -> None:
    read = sent(False)
    for now_ms in (0, 100):
        assert read.link_broke(OLD, now_ms) == (Do.WAIT,)
        assert read.woke(OLD, now_ms + 50) == (Do.SEND,)
        read.frame_written()
    assert read.answer_came() == (Do.ANSWER,)


@BOTH
def test_a_broken_link_before_sending(is_write: bool) -> None:
    call = ForwardedCall(HERE, is_write, 0)
    call.begin_call(OLD, 0)
    assert call.not_sent(OLD, 0) == (Do.WAIT,)
    assert call.woke(OLD, FIRST_PAUSE_MS) == (Do.SEND,)
    assert call.not_sent(TAKEN, 7) == (Do.SEND,)


@BOTH
def test_the_answer_of_an_owner_that_has_closed_the_region_is_waited_for(is_write: bool) -> None:
    """The change of the routes comes from the master, the answer over another link: either may be first."""
    call = sent(is_write)
    assert call.route_changed(TAKEN, 1) == ()
    assert call.answer_came() == (Do.ANSWER,)


@BOTH
def test_a_region_that_moves_has_an_owner_that_answers_or_refuses(is_write: bool) -> None:
    """A move without a failed request: the catalogue names the next owner while the old one still serves."""
    call = sent(is_write)
    assert call.route_changed(MOVING, 1) == ()
    assert call.state is State.SENT
    assert call.answer_came() == (Do.ANSWER,)


@BOTH
def test_a_region_that_is_split_while_a_call_is_with_its_owner(is_write: bool) -> None:
    call, daughter = sent(is_write), Route(RegionInfo("t", 9), S1, 1)
    assert call.route_changed(Route(RegionInfo("t", 10), S2, 12), 1) == (), "epochs of another region are other numbers"
    assert call.route_changed(daughter, 1) == ()
    assert call.not_local(daughter, 2) == (Do.SEND,)


def test_the_same_owner_at_a_higher_epoch_still_answers() -> None:
    """A move was called off: the region never left its owner."""
    assert sent(True).route_changed(replace(OLD, epoch=10), 1) == ()
    assert sent(True).route_changed(OLD, 1) == ()
    assert sent(True).route_changed(None, 1) == ()


@BOTH
def test_a_call_in_the_queue_of_a_link_goes_to_a_later_owner(is_write: bool) -> None:
    for route in (TAKEN, Route(RegionInfo("t", 9), S2, 1)):
        call = ForwardedCall(HERE, is_write, 0)
        call.begin_call(OLD, 0)
        assert call.route_changed(OLD, 1) == ()
        assert call.route_changed(route, 1) == (Do.RECALL, Do.SEND)
        assert call.server == S2


@BOTH
def test_a_call_that_waits_too_long(is_write: bool) -> None:
    call = ForwardedCall(HERE, is_write, 0)
    assert call.begin_call(None, 0) == (Do.WAIT,)
    assert call.wake_at_ms == ROUTING_TIMEOUT_MS
    assert call.woke(None, ROUTING_TIMEOUT_MS) == (Do.REFUSE_UNAVAILABLE,)
    queued = ForwardedCall(HERE, is_write, 0)
    queued.begin_call(OLD, 0)
    assert queued.woke(OLD, ROUTING_TIMEOUT_MS - 1) == ()
    assert queued.woke(OLD, ROUTING_TIMEOUT_MS) == (Do.RECALL, Do.REFUSE_UNAVAILABLE)


def test_a_client_that_goes() -> None:
    assert sent(True).client_went() == (Do.FORGET,)
    queued, waiting = ForwardedCall(HERE, True, 0), ForwardedCall(HERE, True, 0)
    queued.begin_call(OLD, 0)
    waiting.begin_call(None, 0)
    assert queued.client_went() == (Do.RECALL,)
    assert waiting.client_went() == ()
    assert waiting.route_changed(OLD, 1) == (), "it has not begun, and is never begun"


@BOTH
def test_a_region_that_comes_to_the_gateway_itself(is_write: bool) -> None:
    call = sent(is_write)
    assert call.not_local(Route(REGION, HERE, 9), 1) == (Do.SERVE_LOCALLY,)
    assert call.not_local(Route(REGION, HERE, 9), 2) == (Do.WAIT,), "the server has not heard of it yet"
    assert call.woke(Route(REGION, HERE, 9), 99) == (Do.SERVE_LOCALLY,)
    assert call.ended_locally() == ()
    assert call.state is State.ANSWERED


@BOTH
def test_an_error_of_the_owner_goes_to_the_client(is_write: bool) -> None:
    assert sent(is_write).failed() == (Do.REFUSE_FAILED,)


def test_events_out_of_place_are_mistakes() -> None:
    call = ForwardedCall(HERE, True, 0)
    for event in (call.frame_written, call.answer_came, call.failed, call.ended_locally):
        with pytest.raises(OutOfPlace):
            event()
    with pytest.raises(OutOfPlace):
        sent(True).not_sent(OLD, 1)


@BOTH
def test_a_region_that_stays_closed_is_refused_at_once_with_its_reason(is_write: bool) -> None:
    shut = replace(OLD, blocked_reason="nobody can open it")
    assert ForwardedCall(HERE, is_write, 0).begin_call(shut, 0) == (Do.REFUSE_BLOCKED,)
    call = ForwardedCall(HERE, is_write, 0)
    assert call.begin_call(None, 0) == (Do.WAIT,)
    assert call.route_changed(shut, 3) == (Do.REFUSE_BLOCKED,)
    call = sent(is_write)
    assert call.route_changed(shut, 3) == (), "its owner was asked, and answers or refuses"
    assert call.not_local(shut, 4) == (Do.REFUSE_BLOCKED,)
    assert call.has_ended
    call.check_invariants()
