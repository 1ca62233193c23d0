"""The token of a session: the first and last change of each region, whatever wrote them and in whatever order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from columnar.client.errors import WrongArgument
from columnar.client.row_operations import Put
from columnar.client.sessions import ALL, SESSION_REGIONS, Session


class Store:
    """A connection whose writes answer the next token."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)
        self.calls: list[tuple[str, Any]] = []

    def table(self, name: bytes, _use_prefix: bool) -> SimpleNamespace:
        return SimpleNamespace(name=name)

    def call(self, method: str, *args: Any) -> Any:
        self.calls.append((method, args))
        if method == "columnarWait":
            return True
        if method == "columnarMutateRows":
            return self._token()
        if method == "columnarCheckAndMutateRows":
            return [SimpleNamespace(result=self._result()) for _ in args[1]]
        return self._result()

    def _result(self) -> Any:
        token = self._token()
        return SimpleNamespace(
            applied=bool(token), sequence=token or "9-9-9", timestamp=1, counters=[], failedCondition=-1
        )

    def _token(self) -> str:
        token = self.tokens.pop(0)
        if token == "lost":
            raise ConnectionResetError("the answer is lost")
        return token


def session_of(*tokens: str) -> Session:
    session = Session(Store())  # type: ignore[arg-type]
    for token in tokens:
        session.add(token)
    return session


def test_a_session_has_the_first_and_the_last_change_of_each_region() -> None:
    assert session_of("7-1-5", "7-1-3", "7-1-4", "8-2-1").token == "7-1-3-1-5,8-2-1"
    assert session_of("7-1-4", "7-1-3-2-1").token == session_of("7-1-3-2-1", "7-1-4").token == "7-1-3-2-1"
    assert session_of("7-1-10", "7-1-9").token == "7-1-9-1-10", "numbers, not text"
    assert session_of("").token == ""


def test_a_session_that_is_unsure_waits_for_all_and_stays_so() -> None:
    for session in (session_of(ALL, "7-1-5"), session_of("7-1-5", ALL), session_of(session_of(ALL).token)):
        assert session.token == ALL
    several = [f"{number}-1-1" for number in range(SESSION_REGIONS)]
    assert session_of(*several).token == ",".join(several)
    assert session_of(*several, "9999-1-1").token == ALL


@pytest.mark.parametrize("token", ["x", "7", "7-1", "7-1-2-3", "7-1-2-3-4-5", "7-1-b", "7-1-5,x"])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(WrongArgument, match="no token of a write"):
        session_of(token)


def test_a_session_without_writes_waits_for_nothing() -> None:
    store = Store("7-1-5")
    session = Session(store)  # type: ignore[arg-type]
    assert session.wait("v")
    assert store.calls == []
    session.table(b"t").mutate_rows({b"r": [Put(b"f:q", b"v")]})
    assert session.wait("v", timeout_ms=7, downstream=True)
    assert store.calls[-1] == ("columnarWait", (["v"], ["7-1-5"], 7, True))


def test_each_kind_of_write_adds_its_token_if_it_wrote() -> None:
    store = Store("7-1-1", "", "7-1-3", "7-1-4", "7-1-5")
    session = Session(store)  # type: ignore[arg-type]
    table = session.table(b"t")
    table.mutate_rows({b"a": [Put(b"f:q", b"v")], b"b": [Put(b"f:q", b"v")], b"c": [Put(b"f:q", b"v")]})
    assert session.token == "7-1-1-1-3"
    table.check_and_mutate(b"a", [], [Put(b"f:q", b"v")])
    assert session.token == "7-1-1-1-4"
    table.mutate(b"a", [Put(b"f:q", b"v")])
    assert session.token == "7-1-1-1-5"


def test_a_write_whose_answer_is_lost_makes_the_session_unsure() -> None:
    session = Session(Store("lost"))  # type: ignore[arg-type]
    with pytest.raises(ConnectionResetError):
        session.table(b"t").mutate_rows({b"a": [Put(b"f:q", b"v")]})
    assert session.token == ALL
