"""Connections by policy, and addresses of one wiki that take turns."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.fake_wiki import FakeWiki
from wikibench.crew.local import replay_shared
from wikibench.errors import TargetError
from wikibench.http.pool import Connections, Wire, origin_of
from wikibench.live import LiveLine
from wikibench.outcome import Kind, Outcome
from wikibench.pacing import Pace, plan, planned_seconds, shape_of
from wikibench.run import replay
from wikibench.targets.target import parse_target
from wikibench.trace.lines import MISSING, SAVE, VIEW, Request
from wikibench.visits import Load

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Answers all requests with OK, and keeps each connection open; ``heads`` has the requests by connection."""

    def __init__(self) -> None:
        self.heads: list[list[str]] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads: list[str] = []
        self.heads.append(heads)
        try:
            while True:
                heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                writer.write(OK)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def on(
    servers: list[Server], do: Callable[[Wire, list[str]], Awaitable[Any]], connections: Connections = "pooled"
) -> int:
    async def go() -> int:
        listening = [await asyncio.start_server(server.talk, "127.0.0.1", 0) for server in servers]
        origins = [f"http://127.0.0.1:{one.sockets[0].getsockname()[1]}" for one in listening]
        wire = Wire(*origins, timeout_s=10.0, headers={}, connections=connections)
        try:
            await do(wire, origins)
            return wire.opened
        finally:
            await wire.close()
            for one in listening:
                one.close()

    return asyncio.run(go())


async def two_visits_of_three(wire: Wire, origins: list[str]) -> None:
    for _ in range(2):
        kept = wire.begin_visit()
        for _ in range(3):
            answer = await wire.exchange("GET", f"{origins[0]}/p", kept=kept)
            assert answer.status == 200
        wire.end_visit(kept)


@pytest.mark.parametrize(("connections", "by_connection"), [("pooled", [6]), ("visitor", [3, 3]), ("fresh", [1] * 6)])
def test_connections_are_for_all_for_a_visit_or_for_a_request(
    connections: Connections, by_connection: list[int]
) -> None:
    server = Server()
    assert on([server], two_visits_of_three, connections) == len(by_connection)
    assert [len(heads) for heads in server.heads] == by_connection
    closing = [head for heads in server.heads for head in heads if "Connection: close\r\n" in head]
    assert len(closing) == (6 if connections == "fresh" else 0)


def test_each_origin_has_its_own_connections() -> None:
    servers = [Server(), Server()]

    async def do(wire: Wire, origins: list[str]) -> None:
        for _ in range(3):
            for origin in origins:
                await wire.exchange("GET", f"{origin}/p")

    assert on(servers, do) == 2
    assert [[len(heads) for heads in server.heads] for server in servers] == [[3], [3]]
    assert [origin_of("http://h:1/a//b"), origin_of("http://h:1")] == ["http://h:1"] * 2


@pytest.mark.parametrize("connections", ["pooled", "fresh", "visitor"])
def test_visits_take_turns_among_the_addresses_and_an_edit_stays_at_its_own(connections: Connections) -> None:
    requests = [Request(1_000_000 + n * 1_000, f"http://w/Page{n}", SAVE if n % 5 == 4 else VIEW) for n in range(20)]
    pace, shape = Pace(), shape_of(requests)
    with FakeWiki() as one, FakeWiki() as other:
        load = Load(
            replace(parse_target(f"{one.url} {other.url}"), connections=connections),
            planned_s=planned_seconds(pace, shape),
            allow_edits=True,
        )
        result = replay(load, plan(lambda: requests, pace, shape))
        counts = Counter({"one": len(one.gets), "other": len(other.gets)})
        saves = [len(one.saves), len(other.saves)]
    assert result.recorder.count(Kind.EDIT_SAVE, [Outcome.REDIRECT]) == 4, "a form's cookie is good at its address only"
    assert counts == {"one": 10, "other": 10}
    assert saves == [2, 2]
    if connections == "visitor":
        assert result.connections == 20
    elif connections == "fresh":
        assert result.connections == 24


@pytest.mark.parametrize("workers", [1, 2])
def test_a_head_of_the_trace_is_sent_as_a_head_and_counts_as_its_view(workers: int) -> None:
    requests = [
        Request(1_000_000 + n * 2_000, f"http://w/{'Missing' if n % 4 > 1 else 'Page'}{n}", flag, attributes=attributes)
        for n, (flag, attributes) in enumerate(
            [(VIEW, ""), (VIEW, "s=200;m=HEAD"), (MISSING, "m=HEAD"), (MISSING, "v=HEAD;s=404")] * 5
        )
    ]
    pace, shape = Pace(), shape_of(requests)
    with FakeWiki() as wiki:
        load = Load(parse_target(wiki.url), planned_s=planned_seconds(pace, shape))
        planned = plan(lambda: requests, pace, shape)
        result = replay(load, planned) if workers == 1 else replay_shared(load, planned, workers, LiveLine(""))
        heads, gets = set(wiki.heads), set(wiki.gets)
    assert heads == {f"/Page{n}" for n in range(1, 20, 4)} | {f"/Missing{n}" for n in range(2, 20, 4)}
    assert gets == {f"/Page{n}" for n in range(0, 20, 4)} | {f"/Missing{n}" for n in range(3, 20, 4)}
    counted = {pair: one.response.count for pair, one in result.recorder.pairs.items()}
    assert counted == {(Kind.PAGE, Outcome.OK): 10, (Kind.MISSING, Outcome.EXPECTED_404): 10}


def test_a_head_follows_a_redirect_as_a_head() -> None:
    requests = [Request(1_000_000, "http://w/Redirect", attributes="m=HEAD")]
    pace, shape = Pace(), shape_of(requests)
    with FakeWiki() as wiki:
        result = replay(Load(parse_target(wiki.url), planned_s=1.0), plan(lambda: requests, pace, shape))
        assert (wiki.heads, wiki.gets) == (["/Redirect", "/Page"], [])
    assert result.recorder.count(Kind.PAGE, [Outcome.OK]) == 1


def test_addresses_with_different_logins_are_refused() -> None:
    target = parse_target("http://a:b@127.0.0.1:1 http://a:b@127.0.0.1:2")
    assert [one.origin for one in target.addresses()] == ["http://127.0.0.1:1", "http://127.0.0.1:2"]
    with pytest.raises(TargetError, match="different names and passwords") as caught:
        parse_target("http://127.0.0.1:1 http://a:secret@127.0.0.1:2")
    assert "secret" not in str(caught.value)
