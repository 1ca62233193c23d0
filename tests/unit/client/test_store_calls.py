"""Calls of a client of several servers: where they go, what is repeated, what is raised, what is closed."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from columnar.client import owner_links
from columnar.client.errors import IOError, StoreIOError
from columnar.client.locations import KEPT_S, RETRY_S
from columnar.client.owner_links import CHECKED_EVERY_S, IDLE_S, UNREACHABLE_S
from columnar.client.store_socket import NoAnswer, NotConnected
from tests.support.client_of_fakes import Client, split
from tests.support.fake_servers import FakeLink

ROW = (b"t", b"a", b"f:n", 1)


# --- rows --------------------------------------------------------------------------------------------


def test_locations_are_asked_for_once_and_owners_called_directly() -> None:
    client = Client()
    split(client)
    for row in (b"c1", b"c2", b"b", b"c1"):
        client("atomicIncrement", b"t", row, b"f:n", 1)
    inc = "atomicIncrement"
    assert client.took() == [
        (0, "columnarRegionOwners"), (2, "columnarRoute"), (2, inc), (2, inc), (1, "columnarRoute"), (1, inc), (2, inc),
    ]  # fmt: skip
    assert client.store.forwarded == 0


def test_a_refusal_is_followed_and_remembered() -> None:
    client = Client()
    split(client)
    client(*("atomicIncrement", b"t", b"c", b"f:n", 1))
    client.store.move(2, client.store.addresses[1])
    client.took()
    assert client("atomicIncrement", b"t", b"c", b"f:n", 1) == 2
    assert client("atomicIncrement", b"t", b"c", b"f:n", 1) == 3
    inc = "atomicIncrement"
    assert client.took() == [(2, inc), (1, "columnarRoute"), (1, inc), (1, inc)]


def test_a_call_that_finds_no_owner_is_forwarded() -> None:
    """Two servers that name each other for ever."""
    client = Client()
    split(client)
    store = client.store
    answer = store.answer

    def misled(link: FakeLink, call: Any) -> Any:
        if call.method == "getRow" and link.routes:
            there = store.addresses[1 + store.addresses.index(link.address) % 2]
            store.calls.append((link.address, call.method))
            text = f"Region moved to: hostname={there.host} port={there.port} startCode=1. As of locationSeqNum=9."
            raise StoreIOError(f"RegionMovedException: {text}".encode())
        return answer(link, call)

    store.answer = misled  # type: ignore[method-assign]
    client("getRow", b"t", b"c", {})
    assert [server for server, method in client.took() if method == "getRow"] == [2, 1, 0]


def test_an_error_of_a_row_is_the_callers() -> None:
    client = Client()
    with pytest.raises(IOError, match="TableNotFoundException"):
        client("getRow", b"none", b"a", {})
    assert client.took() == [(0, "columnarRegionOwners"), (0, "getRow")]


def test_a_store_that_cannot_route_is_called_as_one_server() -> None:
    client = Client()
    client.store.is_old = True
    for _ in range(3):
        client("atomicIncrement", *ROW)
    assert client.took() == [(0, "columnarRegionOwners"), *[(0, "atomicIncrement")] * 3]
    client.now_s += 10 * KEPT_S
    client("atomicIncrement", *ROW)
    assert client.took() == [(0, "atomicIncrement")]


def test_a_write_of_unknown_outcome_is_raised_and_the_next_goes_on() -> None:
    for fault, value in (("undone", 1), ("done", 2)):
        client = Client()
        split(client)
        client("getRow", b"t", b"c", {})
        client.faults(fault)
        with pytest.raises(NotConnected):
            client("atomicIncrement", b"t", b"c", b"f:n", 1)
        assert client("atomicIncrement", b"t", b"c", b"f:n", 1) == value


def test_a_write_that_was_not_sent_is_sent_again() -> None:
    client = Client()
    split(client)
    client("getRow", b"t", b"c", {})
    client.faults("unsent")
    assert client("atomicIncrement", b"t", b"c", b"f:n", 1) == 1


def test_a_read_is_repeated() -> None:
    client = Client()
    split(client)
    client("atomicIncrement", b"t", b"c", b"f:n", 1)
    client.faults("done")
    assert [one.value for one in client("getRow", b"t", b"c", {})] == [1]
    client.faults("done", "done", "done")
    with pytest.raises(NotConnected):
        client("getRow", b"t", b"c", {})


def test_an_answer_that_does_not_come_in_time_is_raised() -> None:
    """The next server might take as long."""
    client = Client(gateways=2)
    split(client)
    client("getRow", b"t", b"c", {})
    (there,) = [link for link in client.links if link.address == client.store.addresses[2]]

    def late(_call: Any) -> Any:
        there.waits = False
        raise NoAnswer(3.0)

    there.receive = late  # type: ignore[method-assign]
    with pytest.raises(NoAnswer):
        client("getRow", b"t", b"c", {})


def test_a_dead_owner_is_left_alone_for_a_while() -> None:
    client = Client()
    split(client)
    client.store.living.discard(client.store.addresses[2])
    for _ in range(3):
        client("atomicIncrement", b"t", b"c", b"f:n", 1)
    made = [link.address for link in client.links]
    assert made.count(client.store.addresses[2]) == 1, "one attempt to connect"
    client.store.revive(client.store.addresses[2])
    client.now_s += UNREACHABLE_S
    client.took()
    assert client("atomicIncrement", b"t", b"c", b"f:n", 1) == 4
    assert (2, "atomicIncrement") in client.took()


def test_an_owner_that_died_between_calls_is_replaced_by_the_next() -> None:
    """Nobody refuses a call, and no connection breaks during one."""
    client = Client()
    split(client)
    client("getRow", b"t", b"c", {})
    client.store.kill(client.store.addresses[2])
    client.store.move(2, client.store.addresses[1])  # not to the server that answers for any
    client("getRow", b"t", b"c", {})
    client.now_s += RETRY_S
    client("getRow", b"t", b"c", {})
    client.store.forwarded = 0
    client("getRow", b"t", b"c", {})
    assert client.store.forwarded == 0


def test_a_late_answer_of_any_server_is_raised_and_its_connection_left() -> None:
    client = Client(gateways=2, routing=False)
    (link,) = client.links

    def late(_call: Any) -> Any:
        link.waits = False
        raise NoAnswer(3.0)

    link.receive = late  # type: ignore[method-assign]
    with pytest.raises(NoAnswer):
        client("getTableNames")
    assert not link.is_open
    client.took()
    assert client("getTableNames") == [b"t"]
    assert client.took() == [(1, "getTableNames")]


def test_an_interrupted_call_leaves_no_answer_to_the_next() -> None:
    client = Client()
    split(client)
    client("atomicIncrement", b"t", b"c", b"f:n", 1)
    link = client.links[-1]
    real = link.receive

    def interrupted(_call: Any) -> Any:
        link.receive = real  # type: ignore[method-assign]
        raise KeyboardInterrupt

    link.receive = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        client("atomicIncrement", b"t", b"c", b"f:n", 1)
    assert [one.value for one in client("getRow", b"t", b"c", {})] == [2]
    assert len([one for one in client.links if one.address == link.address]) == 2


# --- several rows ------------------------------------------------------------------------------------


def batch(*rows: bytes) -> list[SimpleNamespace]:
    return [SimpleNamespace(row=row, amount=1) for row in rows]


def test_a_batch_is_sent_to_all_owners_before_an_answer_is_read() -> None:
    client = Client()
    split(client)
    client("mutateRows", b"t", batch(b"a", b"b", b"c"), {})
    order: list[str] = []
    for link in client.links[1:]:
        for what in ("send", "receive"):
            _note(link, what, order)
    client("mutateRows", b"t", batch(b"a", b"b", b"c", b"a2"), {})
    assert order == ["send"] * 3 + ["receive"] * 3
    assert client.store.cells == {b"a": 2, b"b": 2, b"c": 2, b"a2": 1}
    assert client.store.forwarded == 0


def _note(link: FakeLink, what: str, order: list[str]) -> None:
    real = getattr(link, what)

    def noted(*args: Any) -> Any:
        order.append(what)
        return real(*args)

    setattr(link, what, noted)


def test_all_answers_are_read_if_one_is_an_error() -> None:
    client = Client()
    split(client)
    client("mutateRows", b"t", batch(b"a", b"b", b"c"), {})
    client.faults("undone")
    with pytest.raises(NotConnected):
        client("mutateRows", b"t", batch(b"a", b"b", b"c"), {})
    assert client.store.cells == {b"a": 1, b"b": 2, b"c": 2}
    client("mutateRows", b"t", batch(b"a", b"b", b"c"), {})
    assert client.store.cells == {b"a": 2, b"b": 3, b"c": 3}


def test_a_part_that_was_not_sent_goes_to_any_server() -> None:
    client = Client()
    split(client)
    client("mutateRows", b"t", batch(b"a", b"b", b"c"), {})
    client.faults("", "unsent")
    client("mutateRows", b"t", batch(b"a", b"b", b"c"), {})
    assert client.store.cells == {b"a": 2, b"b": 2, b"c": 2}
    assert client.took()[-1] == (0, "mutateRows")


def test_a_batch_that_cannot_be_encoded_leaves_no_answer_behind() -> None:
    client = Client()
    split(client)
    client("mutateRows", b"t", batch(b"a", b"b", b"c"), {})
    second = client.links[2]

    def cannot(_call: Any) -> None:
        raise TypeError("no bytes")

    second.send = cannot  # type: ignore[method-assign]
    with pytest.raises(TypeError):
        client("mutateRows", b"t", batch(b"a", b"b", b"c"), {})
    assert not any(link.waits for link in client.links)


def test_more_owners_than_connections_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner_links, "MOST_LINKS", 2)
    client = Client()
    split(client)
    client("mutateRows", b"t", batch(b"a", b"b", b"c"), {})
    assert client.store.cells == {b"a": 1, b"b": 1, b"c": 1}
    assert client.store.forwarded == 1, "both links wait for answers, so the third part goes to any server"
    for row in (b"a", b"b", b"c"):
        client.now_s += 1
        client("atomicIncrement", b"t", row, b"f:n", 1)
    owners = [link.address for link in client.links[1:] if link.is_open]
    assert owners == [client.store.addresses[n] for n in (1, 2)], "the one used least recently was closed"


def test_wrong_batches_are_for_the_server_to_refuse() -> None:
    client = Client()
    for rows in (None, [SimpleNamespace(row=None, amount=1)]):
        with pytest.raises(TypeError):
            client("mutateRows", b"t", rows, {})
        assert client.took() == [(0, "mutateRows")]
    client("getRows", b"t", [], {})
    assert client.took() == [(0, "getRows")]


# --- connections -------------------------------------------------------------------------------------


def test_the_first_address_that_answers_and_the_next_once_it_breaks() -> None:
    client = Client(gateways=3, routing=False)
    assert client.calls.address == client.store.addresses[0]
    client.store.living.discard(client.store.addresses[0])
    client("atomicIncrement", *ROW)
    assert client.took() == [(1, "atomicIncrement")]
    client.faults("unsent")
    client("atomicIncrement", *ROW)
    assert client.took() == [(2, "atomicIncrement")]
    client.faults("done")
    with pytest.raises(NotConnected):
        client("atomicIncrement", *ROW)
    assert client.took() == [(2, "atomicIncrement")]
    client.faults("done")
    assert client("getTableNames") == [b"t"]
    assert client.took() == [(1, "getTableNames"), (2, "getTableNames")], "the first address is dead, so left out"
    assert client.store.cells == {b"a": 3}


def test_the_error_names_each_address() -> None:
    client = Client(2, gateways=2, routing=False)
    client.store.living.clear()
    with pytest.raises(NotConnected, match=r"cannot connect to s1:9001: .*; cannot connect to s0:9000: "):
        client("getTableNames")
    client.store.revive(client.store.addresses[1])
    assert client("getTableNames") == [b"t"], "it is connected again"


def test_a_closed_client_calls_nobody() -> None:
    client = Client()
    split(client)
    client("getRow", b"t", b"c", {})
    client.calls.close()
    assert not client.calls.is_open()
    assert not any(link.is_open for link in client.links)
    with pytest.raises(NotConnected, match="the connection is closed"):
        client("getRow", b"t", b"c", {})
    client.took()
    client.calls.open()
    client("getRow", b"t", b"c", {})
    assert client.took() == [(2, "columnarRoute"), (2, "getRow")], "locations are kept"


def test_idle_connections_to_owners_are_closed() -> None:
    client = Client()
    split(client)
    client("getRow", b"t", b"c", {})
    client.now_s += IDLE_S - 1
    client("getRow", b"t", b"b", {})
    client.now_s += CHECKED_EVERY_S
    client("getRow", b"t", b"b", {})
    still = Counter(link.address for link in client.links if link.is_open)
    assert still == {client.store.addresses[0]: 1, client.store.addresses[1]: 1}
    assert client("getRow", b"t", b"c", {}) == []


def test_arguments_may_be_named() -> None:
    client = Client()
    split(client)
    assert client("atomicIncrement", b"t", row=b"c", column=b"f:n", value=4) == 4
    assert (2, "atomicIncrement") in client.took()
    with pytest.raises(TypeError, match="takes no argument raw"):
        client("atomicIncrement", b"t", raw=b"c")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        client("nothing")
