"""Each message that one process sends to another has an answer there: read from the sources and the real tables.

The senders are found by the syntax: a module that makes a message of ``message_codec``.  The receivers are the tables
of a started server and of a master, not a copy of them.
"""

from __future__ import annotations

import ast
import asyncio
import os
import re
import socket
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, cast
from unittest.mock import Mock

import pytest

import columnar
from columnar.cluster import message_codec
from columnar.cluster.peer_server import PeerServer
from columnar.config import RegionServerConfig, StandaloneConfig
from columnar.coordination.lease_page import LeasePage
from columnar.coordination.server_page import ServerPage
from columnar.roles.leading_node import register_master_answers
from columnar.roles.leased_membership import make_node_answers
from columnar.roles.own_servers import OwnServers
from columnar.roles.regionserver import ClusterServer
from columnar.storage.rocks import RocksEngine

SOURCES: Final = Path(columnar.__file__).parent
KINDS: Final = {kind.__name__ for kind in message_codec.kinds()}
CALLS: Final = re.compile(rf"\b({'|'.join(sorted(KINDS))})\(")

# Modules that make messages -> who gets them: a server from the leader or its node, the leader from a server or a node,
# a node from its server or the leader, or a server from another.  A module that is missing here says whom it asks, by a
# line of its own.
TO_SERVER: Final = (
    "roles/cluster_host",
    "roles/cluster_loops",
    "roles/cluster_owners",
    "roles/transition_requests",
    "master",
    "roles/cluster_status_gatherer",
    "roles/leading_node",
)
NODE_TO_SERVER: Final[Mapping[str, frozenset[str]]] = {
    "roles/server_processes": frozenset({"HandOver"}),
    "connections/connection_dispatcher": frozenset({"ReturnConnections"}),
    "roles/membership": frozenset({"FollowLeader"}),
    "roles/leased_membership": frozenset({"FollowLeader"}),
    "roles/settings_reload": frozenset({"LiveSettings"}),
    "rights/page_guard": frozenset({"JudgeVisitor"}),
    "roles/cluster_nodes": frozenset({"ChangeLogLevels"}),  # through a node, which changes its own too
}
TO_NODE: Final[Mapping[str, frozenset[str]]] = {
    "roles/cluster_nodes": frozenset({"ChangeLogLevels", "DescribeServers", "KillServer", "StartServer", "StopServer"}),
}
TO_MASTER: Final[Mapping[str, frozenset[str]]] = {
    "roles/region_owner": frozenset({"Commit", "Backfilled"}),
    "regions/life/region_assigner": frozenset({"CannotOpen"}),
    "roles/regionserver": frozenset({"Listening"}),
    "roles/leased_membership": frozenset({"AwaitRegions"}),
}
FROM_SERVER: Final[Mapping[str, frozenset[str]]] = {"roles/node_link": frozenset({"TakesConnections"})}
TO_OWNER: Final[Mapping[str, frozenset[str]]] = {
    "cluster/peers": frozenset({"LeaveLinks"}),
    "operations/distributed_reads": frozenset({"Rows"}),
    "operations/distributed_scans": frozenset({"Scan"}),
    "operations/distributed_calls": frozenset({"DeleteRows", "RegionStates", "Tend"}),
    "operations/distributed_writes": frozenset({"Apply", "Ingest"}),
    "roles/server_measures": frozenset({"OwnFigures", "ViewStatuses"}),
    "queues/queue_pushes": frozenset({"PushMessages"}),
    "topics/topic_pushes": frozenset({"AppendRecords"}),
    "queues/lease_settling": frozenset({"SettleLeases"}),
    "streams/group_rows": frozenset({"ReplaceCell"}),
    "streams/change_streams": frozenset({"ReadChanges", "WaitChanges"}),
    "triggers/cluster_triggers": frozenset({"FlowStatuses", "LogAgain", "TriggerStatuses", "WaitForDelivery"}),
    "views/checking": frozenset(
        {"GroupsPart", "ReadGroupMembers", "ReadSourceRows", "RepairGroup", "SayAgain", "SourcePart"}
    ),
}
WITHIN: Final[Mapping[str, frozenset[str]]] = {  # asked of an object of the same process
    "roles/region_owner": frozenset({"ReleaseDeliveries"}),
    "roles/server_measures": frozenset({"TriggerStatuses"}),
}


def made_in(path: Path) -> set[str]:
    """The messages that a module makes."""
    found = set[str]()
    text = path.read_text(encoding="utf-8")
    if not CALLS.search(text):  # most modules: to parse them all takes a second
        return found
    tree = ast.parse(text)
    imported = {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }  # ``bench`` has a class Rows of its own
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute) and called.attr in KINDS:
                found.add(called.attr)
            elif isinstance(called, ast.Name) and called.id in KINDS & imported:
                found.add(called.id)
    return found


@cache
def sent() -> tuple[tuple[str, set[str]], ...]:
    """(module as a path without suffix, messages)."""
    found = ((path.relative_to(SOURCES), made_in(path)) for path in sorted(SOURCES.rglob("*.py")))
    return tuple((path.with_suffix("").as_posix(), made) for path, made in found if made)


def is_to_server(module: str) -> bool:
    return module in TO_SERVER or module.split("/")[0] in TO_SERVER


def names(kinds: frozenset[type[Any]]) -> set[str]:
    return {kind.__name__ for kind in kinds}


@pytest.fixture(scope="module")
def server_tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], set[str], set[str]]:
    """What a started server answers: (to its leader, to other servers, to its node)."""
    return asyncio.run(_tables_of_a_server(tmp_path_factory.mktemp("server")))


async def _tables_of_a_server(folder: Path) -> tuple[set[str], set[str], set[str]]:
    (folder / "run").mkdir(mode=0o700)
    (folder / "regions").mkdir()
    config = RegionServerConfig(
        "s1", 1, str(folder), "c", str(folder / "run"), 1, "error", StandaloneConfig(str(folder), web_port=-1)
    )
    (control, master), (doorbell, door) = socket.socketpair(), socket.socketpair()
    for one in (control, doorbell):
        one.setblocking(False)
    page = LeasePage.create()
    page.write_endless()
    readings, descriptor = ServerPage.create()
    os.close(descriptor)
    server = ClusterServer(config, RocksEngine(), page, readings, lambda _why: None)
    with master, door:
        await server.start(control, doorbell)
        try:
            others, node = server.peer_server, server.node_link.answers
            return names(server.answering.kinds), names(others.kinds), names(node.kinds)
        finally:
            await server.stop()


def master_table() -> set[str]:
    answers = PeerServer({}, cast(Any, None), iter(()))
    register_master_answers(answers, cast(Any, Mock()), {}, cast(Any, None), cast(Any, None), cast(Any, None))
    return names(answers.kinds)


def node_table() -> set[str]:
    """What a node answers to the leader."""
    return names(make_node_answers(cast(Any, Mock())).kinds)


async def _parent_table() -> set[str]:
    """What a node answers to its servers."""
    return names(OwnServers([], cast(Any, Mock()), cast(Any, Mock()), bool, 1_000).answers.kinds)


TABLES: Final = (TO_MASTER, TO_OWNER, WITHIN, NODE_TO_SERVER, TO_NODE, FROM_SERVER)


def test_every_module_that_sends_is_known_with_the_receiver() -> None:
    for module, made in sent():
        if is_to_server(module):
            continue
        known = set[str]().union(*(table.get(module, ()) for table in TABLES))
        assert made == known, f"{module}: say above who gets {sorted(made ^ known)}"


def test_every_message_is_sent_by_somebody() -> None:
    assert set[str]().union(*(made for _, made in sent())) == KINDS


def test_a_server_answers_all_that_its_master_sends(server_tables: tuple[set[str], set[str], set[str]]) -> None:
    to_master, _, _ = server_tables
    for module, made in sent():
        if is_to_server(module):
            assert made <= to_master, f"{module} sends {sorted(made - to_master)}, which no server answers"


def test_a_server_answers_all_that_other_servers_send(server_tables: tuple[set[str], set[str], set[str]]) -> None:
    _, to_others, _ = server_tables
    for module, made in TO_OWNER.items():
        assert made <= to_others, f"{module} sends {sorted(made - to_others)}, which no server answers"


def test_a_master_answers_all_that_servers_send() -> None:
    for module, made in TO_MASTER.items():
        assert made <= master_table(), f"{module} sends {sorted(made - master_table())}, which no master answers"


def test_nothing_is_registered_that_nobody_sends(server_tables: tuple[set[str], set[str], set[str]]) -> None:
    to_master, to_others, to_node = server_tables
    by_master = set[str]().union(*(made for module, made in sent() if is_to_server(module)))
    assert to_master == by_master
    assert to_others == set[str]().union(*TO_OWNER.values())
    assert master_table() == set[str]().union(*TO_MASTER.values())
    assert to_node == set[str]().union(*NODE_TO_SERVER.values())
    assert node_table() == set[str]().union(*TO_NODE.values())
    assert asyncio.run(_parent_table()) == set[str]().union(*FROM_SERVER.values())
