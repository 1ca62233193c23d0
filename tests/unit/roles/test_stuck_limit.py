"""A node gives a server whose loop stands still more time if its data are on a network folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from columnar.config import NodeConfig, StandaloneConfig
from columnar.master.liveness import CHECK_INTERVAL_MS, STUCK_MS, STUCK_ON_NETWORK_MS
from columnar.model.owner import Incarnation
from columnar.roles import own_servers
from columnar.roles.node import Node
from columnar.storage.file_systems import UNKNOWN, Mount

SERVER = Incarnation("s1", 1)


def mount(kind: str) -> Mount:
    return Mount(kind, "source", "/", "/", frozenset())


@pytest.mark.parametrize(
    ("found", "limit_ms"),
    [
        (mount("ext4"), STUCK_MS),
        (mount("overlay"), STUCK_MS),
        (UNKNOWN, STUCK_MS),
        (mount("ceph"), STUCK_ON_NETWORK_MS),
        (mount("nfs4"), STUCK_ON_NETWORK_MS),
        (mount("fuse.example"), STUCK_ON_NETWORK_MS),
    ],
)
def test_a_stuck_server_is_killed_after_the_limit_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Mount, limit_ms: int
) -> None:
    monkeypatch.setattr(own_servers, "mount_of", lambda _: found)
    killed: list[int] = []

    async def run() -> None:
        node = Node.locked(StandaloneConfig(str(tmp_path)), NodeConfig(1))
        now_ms, watch = 0, node.servers.watch
        watch._now_ms = lambda: now_ms
        watch._dead = lambda _server, _why: killed.append(now_ms)
        watch.joined(SERVER)
        while now_ms < 2 * STUCK_ON_NETWORK_MS and not killed:
            watch.heard(SERVER, 7)
            watch._check_servers()
            now_ms += CHECK_INTERVAL_MS
        await node.servers.close()
        node.lease_page.close()
        node.folder.close()

    asyncio.run(run())
    assert killed == [limit_ms]


def test_a_system_that_does_not_tell_gives_the_shorter_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_path: str) -> Mount:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(own_servers, "mount_of", fails)
    assert own_servers.stuck_limit_ms(str(tmp_path)) == STUCK_MS
