"""Who sees pages and metrics: what a web server's thread answers, whatever the servers that decide do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast
from unittest.mock import Mock

import pytest

from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.refusals import PeerFault
from columnar.model.accounts import Account, Token
from columnar.model.node_messages import JudgeVisitor, Verdict
from columnar.model.owner import Incarnation
from columnar.model.rights import EXEC, Grant, RightsRecord, Scope
from columnar.rights import page_guard
from columnar.rights.page_guard import FAULT, MAY_SEE, NO_RIGHTS_YET, PageGuard, VisitorJudge
from columnar.rights.rights_check import RightsHolder
from columnar.roles.own_servers import OwnServers
from columnar.security.credentials import hash_of
from columnar.security.passwords import Passwords
from columnar.security.sign_in import SignIn

TOKEN = "clmn_secret"
ANN = Account("ann", tokens=(Token("laptop", hash_of(TOKEN), 1),))
RECORD = RightsRecord((Grant("ann", Scope(), EXEC),), {}, {"ann": ANN})
VISITOR = JudgeVisitor(f"Bearer {TOKEN}", "::1")
S1, S2 = Incarnation("n1-s1", 3), Incarnation("n1-s2", 4)


def test_a_visitors_secret_is_in_no_text() -> None:
    assert TOKEN not in repr(VISITOR)


# --- the guard -----------------------------------------------------------------------------------------


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that runs in another thread."""
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join()
    made.close()


def raising(error: BaseException) -> Callable[[JudgeVisitor], Awaitable[Verdict]]:
    async def decide(_visitor: JudgeVisitor) -> Verdict:
        raise error

    return decide


def refusal(decide: Callable[[JudgeVisitor], Awaitable[Verdict]], loop: asyncio.AbstractEventLoop) -> Any:
    return PageGuard(decide, loop).refusal(VISITOR.authorization, VISITOR.host, True)


def test_a_fault_of_a_server_is_an_answer_and_a_line_of_the_log(
    loop: asyncio.AbstractEventLoop, expected_faults: Callable[[], dict[str, int]], caplog: pytest.LogCaptureFixture
) -> None:
    for error in (PeerFault("KeyError: 1"), RuntimeError("cannot schedule new futures after shutdown")):
        assert refusal(raising(error), loop) == (503, FAULT.reason)
    assert expected_faults() == {page_guard.LOOP: 2}
    assert "KeyError: 1" in caplog.text
    assert TOKEN not in caplog.text


def test_a_store_that_stops_or_is_slow_answers_503(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refusal(raising(asyncio.CancelledError()), loop) == (503, "the store stops")
    monkeypatch.setattr(page_guard, "VERIFY_S", 0.01)
    status, why = refusal(lambda _visitor: asyncio.Event().wait(), loop)  # type: ignore[arg-type, return-value]
    assert (status, "in time" in why) == (503, True)
    closed = asyncio.new_event_loop()
    closed.close()
    assert refusal(raising(KeyError()), closed) == (503, "the store stops")


# --- the judge -----------------------------------------------------------------------------------------


def test_without_the_rights_of_users_no_credentials_are_wrong() -> None:
    """The accounts come with them: a right password would be refused, and count as a wrong one."""
    holder = RightsHolder((), SignIn(Passwords(memory_kib=1_024)))
    judge = VisitorJudge(holder).judge
    for _ in range(200):  # more than may fail
        assert asyncio.run(judge(VISITOR)) == NO_RIGHTS_YET
    holder.take_record(RECORD)
    assert asyncio.run(judge(VISITOR)) == MAY_SEE
    wrong = asyncio.run(judge(JudgeVisitor("Bearer clmn_other", "::1")))
    assert wrong.status == 401


# --- the servers of a node -----------------------------------------------------------------------------


def verdict_of(*answers: Verdict | Exception) -> tuple[Verdict, int]:
    """Return the verdict of a node whose servers give these answers, and how many of them were asked."""
    asked = []

    async def request_server(server: Incarnation, visitor: JudgeVisitor) -> Verdict:
        assert visitor is VISITOR
        asked.append(server)
        answer = answers[(S1, S2).index(server)]
        if isinstance(answer, Exception):
            raise answer
        return answer

    processes = Mock(living=dict.fromkeys((S1, S2)), request_server=request_server)
    servers = OwnServers([S1.name, S2.name], cast(Any, processes), Mock(), lambda: False, 1_000)
    return asyncio.run(servers.judge_visitor(VISITOR)), len(asked)


def test_a_server_that_does_not_know_the_rights_yet_leaves_the_decision_to_the_next() -> None:
    busy, refused = Verdict(503, "too many sign-ins from here have failed"), Verdict(403, "no")
    assert verdict_of(NO_RIGHTS_YET, MAY_SEE) == (MAY_SEE, 2)
    assert verdict_of(NotSent(), refused) == (refused, 2)
    assert verdict_of(NO_RIGHTS_YET, NO_RIGHTS_YET) == (NO_RIGHTS_YET, 2)
    assert verdict_of(NO_RIGHTS_YET, LinkBroke()) == (NO_RIGHTS_YET, 2)
    assert verdict_of(busy, MAY_SEE) == (busy, 1), "else each server would take guesses"
    assert verdict_of(refused, MAY_SEE) == (refused, 1)
    none, _ = verdict_of(NotSent(), LinkBroke())
    assert none.status == 503
