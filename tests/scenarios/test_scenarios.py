"""Scenarios as text: each ``*.txt`` beside this file is played against a store of its own, against three servers, and
against three nodes over an etcd.

A line at the margin is a call (``tests/support/thrift_lines.py`` says how it is written), the
indented lines under it are the answer.  ``pytest tests/scenarios --rewrite`` records the answers
anew; the difference is then for a person to read.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.thrift import TClient, TException
from thriftpy2.transport import TBufferedTransport, TSocket

from columnar.config import StandaloneConfig
from columnar.roles.standalone import Standalone
from columnar.wire.definitions import WireError
from columnar.wire.idl import SERVICE
from tests.support.cluster_process import ClusterProcess
from tests.support.deep import cases
from tests.support.many_nodes import CLUSTERS, NodesCluster, cluster_of
from tests.support.thrift_lines import answer_lines, error_line, parse

FILES = sorted(Path(__file__).parent.glob("*.txt"))
SCANNER_ID = re.compile(r"(?<=scanner ID is invalid: )\d+")


class Player:
    def __init__(self, ports: Sequence[int]) -> None:
        """Take the ports of the store; each connection goes to the next one of them."""
        self._ports = itertools.cycle(ports)
        self._clients: dict[int, Any] = {}
        self._names: dict[str, Any] = {}

    def _client(self, number: int) -> Any:
        if number not in self._clients:
            transport = TBufferedTransport(TSocket("127.0.0.1", next(self._ports), socket_timeout=20_000))
            transport.open()
            self._clients[number] = TClient(SERVICE, TBinaryProtocol(transport, decode_response=False))
        return self._clients[number]

    def play(self, line: str) -> list[str]:
        if line.startswith("close "):
            self._clients.pop(int(line.split()[1])).close()
            return ["ok"]
        number, method, arguments, target = parse(line, self._names)
        try:
            answer = getattr(self._client(number), method)(*arguments)
        except (TException, WireError) as error:
            return [error_line(error)]
        if target is not None:
            self._names[target] = answer
            return ["ok"]
        return answer_lines(answer)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


def played(text: str, *ports: int) -> str:
    player, lines = Player(ports), []
    try:
        for line in text.splitlines():
            if line.startswith("    "):
                continue
            lines.append(line)
            if line and not line.startswith("#"):
                lines += [f"    {answer}".rstrip() for answer in player.play(line)]
    finally:
        player.close()
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_scenario(file: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    text = file.read_text()

    async def main() -> str:
        store = Standalone.locked(StandaloneConfig(str(tmp_path), port=0, web_port=-1))
        await store.start()
        try:
            return await asyncio.to_thread(played, text, store.port)
        finally:
            await store.stop()

    found = asyncio.run(main())
    if request.config.getoption("--rewrite"):
        file.write_text(found)
        text = found
    assert found == text


@pytest.fixture(
    scope="module", params=cases("scenarios over servers and over nodes", deep=CLUSTERS, short=CLUSTERS[:1])
)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterProcess | NodesCluster]:
    with cluster_of(request.param, tmp_path_factory.mktemp("cluster") / "data", 3) as running:
        yield running


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_three_servers_answer_as_one(file: Path, cluster: ClusterProcess | NodesCluster) -> None:
    """Each connection goes to another of them than the last, wherever the rows are."""
    text = file.read_text()
    ports = cluster.ports() if isinstance(cluster, NodesCluster) else [cluster.port]
    try:
        found = played(text, *ports)
    finally:
        cluster.drop_all()
    assert SCANNER_ID.sub("N", found) == SCANNER_ID.sub("N", text), "but for scanners' ids, which name their server"
