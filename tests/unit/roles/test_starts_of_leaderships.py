"""Starts of a leader, and repeated ones: who counts as ended, and one takeover of the catalogue at a time."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from columnar.cluster.peers import LinkTerms
from columnar.config import NodeConfig, StandaloneConfig
from columnar.coordination.node_record import NodeRecord
from columnar.errors import DamagedData, HostError
from columnar.model.owner import Incarnation
from columnar.roles import leading as leading_module
from columnar.roles import leading_node
from columnar.roles.leadership import LEAD_TRIES, Leadership
from columnar.roles.leading import Leading
from columnar.roles.leading_node import LeaderTerms, LeadingNode
from columnar.roles.leased_membership import LeasedMembership
from columnar.roles.membership import SOLE
from columnar.roles.meta_region import CatalogueTerms
from columnar.storage.data_folder import NODES_SINCE, DataFolder
from columnar.storage.process_stores import ProcessStores
from columnar.storage.rocks import RocksEngine

OWN = Incarnation("n1", 1)
N2 = Incarnation("n2", 2)
S2 = Incarnation("n2-s1", 3)
PATIENCE_S = 20.0


def record(*servers: str) -> NodeRecord:
    return NodeRecord("", N2.name, N2.number, "127.0.0.1:1", servers)


def leadership_of(coordination: Mock) -> Leadership:
    parts = Mock()
    parts.living.return_value = ()
    parts.settings.lease_s = 1.5
    return Leadership(parts, coordination, OWN, LinkTerms(), Mock(), Mock())


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_server_is_numbered_when_the_service_has_it_in_the_record() -> None:
    async def main() -> None:
        coordination = Mock()
        coordination.next_number.return_value = 7
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        published = asyncio.Event()

        def publish(_record: NodeRecord) -> asyncio.Future[None]:
            published.set()
            return written

        coordination.publish.side_effect = publish
        membership = LeasedMembership(Mock(settings=NodeConfig(1)), coordination, N2, b"", None, "")
        membership._record = record()
        numbering = asyncio.ensure_future(membership.number_server("n2-s1"))
        await published.wait()
        await settle()
        assert not numbering.done()
        assert coordination.publish.call_args.args[0].servers == ("n2-s1.7",)
        written.set_result(None)
        assert await numbering == Incarnation("n2-s1", 7)
        membership.forget_server(Incarnation("n2-s1", 7))
        assert coordination.publish.call_args.args[0].servers == ()

    asyncio.run(main())


def test_a_leader_reads_who_lives_after_it_has_seen_who_has_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that starts in between has a folder that the leader has not seen."""
    steps: list[str] = []
    named_in = leading_node.named_in

    def noted(catalogue: Any, data: str) -> set[Incarnation]:
        (tmp_path / "servers" / "n2-s1.3").mkdir(parents=True)
        steps.append("folders")
        return named_in(catalogue, data)

    async def find_living() -> Collection[Incarnation]:
        steps.append("records")
        return {S2}

    monkeypatch.setattr(leading_node, "named_in", noted)

    async def main() -> None:
        folder = DataFolder.locked(str(tmp_path))
        stores = ProcessStores(folder, RocksEngine())
        stores.open()

        async def answers() -> None:
            return

        leading = LeadingNode(StandaloneConfig(str(tmp_path)), stores, Mock(), LeaderTerms(CatalogueTerms(answers)))
        await leading.start(Mock(), SOLE, find_living)
        try:
            assert steps == ["folders", "records"]
            assert not leading.host.state.ledger.is_fenced(S2)
        finally:
            await leading.close()
            stores.close()
            folder.close()

    asyncio.run(main())


@pytest.mark.parametrize("lives", [True, False])
def test_a_server_that_counts_as_ended_gets_no_region_and_is_ended_if_it_lives(*, lives: bool) -> None:
    async def main() -> None:
        coordination, killed = Mock(), []
        coordination.start_calls.read_nodes.return_value = {record().key: record(*([str(S2)] if lives else []))}
        leadership = leadership_of(coordination)
        leading, work = Mock(), []
        leading.host.has_ended.return_value = True
        leading.host.events.spawn = lambda coroutine: work.append(asyncio.ensure_future(coroutine))
        leading.nodes.node_of = {}
        leading.nodes.add_server = leading.nodes.node_of.__setitem__
        leading.nodes.servers_of.return_value = frozenset()

        async def kill(server: Incarnation, _why: str) -> None:
            killed.append(server)

        leading.nodes.kill = kill
        leadership._members._nodes = {record().key: record(str(S2))}
        for _ in range(2):
            leadership._members.feed(leading)
        await asyncio.gather(*work)
        assert len(work) == 1
        assert killed == ([S2] if lives else [])
        leading.server_joined.assert_not_called()

    asyncio.run(main())


def test_a_node_that_ends_while_a_start_fails_has_ended_for_the_next_start() -> None:
    async def main() -> None:
        leadership = leadership_of(Mock())
        leadership._members._nodes = {}
        cast(Any, leadership)._lead = lambda *_: asyncio.sleep(0)
        leadership.elected(3)
        first, second = Mock(), Mock()
        for leading in (first, second):
            leading.nodes.servers_of.return_value = frozenset({S2})
            leading.host.has_ended.return_value = False
        leadership._members.take_members(first, {S2: N2})
        leadership.leading = first
        leadership.node_ended(record().key, record(), is_by_time=True)
        leadership._forget_leading()
        leadership._members.take_members(second, {S2: N2})
        for leading in (first, second):
            assert [call.args[0] for call in leading.server_ended.call_args_list] == [S2]
            leading.node_ended.assert_called_once_with(N2)

    asyncio.run(main())


def test_who_is_deposed_leads_no_more_at_once() -> None:
    async def main() -> None:
        leadership = leadership_of(Mock())
        leadership.leading = earlier = Mock()
        leadership.deposed("another leads")
        leadership.elected(4)
        leadership.node_ended(record().key, record(), is_by_time=True)
        earlier.server_ended.assert_not_called()
        await leadership.close()

    asyncio.run(main())


def test_a_repeated_start_waits_for_the_takeover_of_the_one_that_failed() -> None:
    async def main() -> None:
        leadership = leadership_of(Mock())
        running, most, may_go_on = 0, 0, threading.Event()
        lock, has_begun, loop = threading.Lock(), asyncio.Event(), asyncio.get_running_loop()

        def take_over(*_: object) -> bool:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            loop.call_soon_threadsafe(has_begun.set)
            assert may_go_on.wait(PATIENCE_S)
            with lock:
                running -= 1
            return True

        stores = Mock()
        stores.region_folders.take_over = take_over
        stores.region_folders.catalogue.return_value = "/nowhere"
        first = asyncio.ensure_future(leadership._take_catalogue_over(stores, 5))
        await has_begun.wait()
        first.cancel()
        await asyncio.wait([first])
        second = asyncio.ensure_future(leadership._take_catalogue_over(stores, 5))
        await asyncio.sleep(0.05)
        assert not second.done()
        may_go_on.set()
        await second
        assert most == 1

    asyncio.run(main())


def test_a_node_that_cannot_begin_to_lead_resigns(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        coordination, tries = Mock(), 0
        stepped_down = asyncio.Event()
        coordination.step_down.side_effect = stepped_down.set
        leadership = leadership_of(coordination)

        async def fail(_epoch: int) -> None:
            nonlocal tries
            tries += 1
            raise HostError("the folder of this machine is gone")

        monkeypatch.setattr("columnar.roles.leadership.LEAD_AGAIN_S", 0.0)
        cast(Any, leadership)._lead_once = fail
        leadership.elected(2)
        async with asyncio.timeout(PATIENCE_S):
            await stepped_down.wait()
        assert tries == LEAD_TRIES
        await leadership.close()

    asyncio.run(main())


@pytest.mark.parametrize(("generation", "name"), [(0, "meta"), (5, "meta.5")])
def test_a_damaged_catalogue_is_named_by_the_folder_that_the_leader_has_open(
    monkeypatch: pytest.MonkeyPatch, generation: int, name: str
) -> None:
    """An operator of nodes was sent to a folder that does not exist."""
    meta, stores = Mock(), Mock()
    meta.read_all.side_effect = DamagedData("a block is damaged")
    meta.close.side_effect = close_meta
    stores.folder.path, stores.folder.format = "/srv/c", NODES_SINCE - 1
    monkeypatch.setattr(leading_module, "MetaRegion", lambda *_: meta)
    with pytest.raises(DamagedData, match=rf"^/srv/c/regions/{re.escape(name)}: a block is damaged; put it back"):
        asyncio.run(Leading(stores, terms=CatalogueTerms(generation=generation)).open())


async def close_meta(_awaited: object) -> None:
    pass
