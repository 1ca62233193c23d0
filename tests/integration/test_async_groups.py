"""Members of groups in asyncio programs: shares, commits, cancellations, and how a consumer ends.

``test_reader_groups`` has what consumers of both kinds promise.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from columnar.client import Connection, aio
from columnar.client.async_group_changes import AsyncGroupChanges
from columnar.client.changes import Change, Row, StreamEvent
from columnar.client.errors import WrongArgument
from tests.support.serving import Serving

KEPT = {"CHANGE_LOG": "3600"}
F: dict[str, dict[str, Any]] = {"f": {}}


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    serving = Serving(tmp_path_factory.mktemp("aio-groups")).start()
    yield serving
    serving.stop()


@pytest.fixture
def connection(serving: Serving) -> Connection:
    return serving.connect()


def address(serving: Serving) -> str:
    return f"127.0.0.1:{serving.store.port}"


def put_all(connection: Connection, table: str, count: int = 20) -> list[bytes]:
    rows = [b"%s%03d" % (b"az"[n % 2 :][:1], n) for n in range(count)]
    for row in rows:
        connection.table(table).put(row, {b"f:x": b"1"})
    return rows


def rows_of(events: list[StreamEvent]) -> list[bytes]:
    return [one.row for one in events if isinstance(one, Change | Row)]


def member(store: aio.AsyncConnection, table: str, **options: Any) -> AsyncGroupChanges:
    found = store.changes(table, group="g", **{"follow": False, **options})
    assert isinstance(found, AsyncGroupChanges)
    return found


def left_over(serving: Serving, table: str) -> list[bytes]:
    """Return the rows of the changes that the group has not committed."""
    with serving.connect().changes(table, group="g", follow=False) as found:  # type: ignore[attr-defined]
        return rows_of(list(found))


def members_of(connection: Connection, table: str) -> list[str]:
    (group,) = connection.admin.reader_groups(table)
    return [one.name for one in group.members]


def test_members_of_both_clients_share_the_rows(serving: Serving, connection: Connection) -> None:
    connection.create_table("shared", F, attributes=KEPT, splits=[b"m"])
    other: Any = serving.connect().changes("shared", group="g", follow=False)

    async def read() -> None:
        async with aio.connect(address(serving)) as store, member(store, "shared") as ours:
            for _ in range(3):
                await ours.poll(0)
                await ours.commit()
                other.poll(0)
                other.commit()
            assert (ours.ranges, other.ranges) == (1, 1)
            written = put_all(connection, "shared")
            got, rest = rows_of([one async for one in ours]), rows_of(list(other))
            assert len(got) == len(rest) == 10
            assert sorted(got + rest) == sorted(written)
            await ours.commit()
            other.commit()
        assert members_of(connection, "shared") == [other.member], "it left"
        other.leave_group()
        assert left_over(serving, "shared") == []

    asyncio.run(read())


def test_a_commit_counts_reply_by_reply(serving: Serving, connection: Connection) -> None:
    connection.create_table("partly", F, attributes=KEPT)

    async def read() -> None:
        async with aio.connect(address(serving)) as store:
            async with member(store, "partly") as ours:
                assert await ours.poll(0) == []
                written = put_all(connection, "partly")
                await anext(ours)
                await ours.commit()
            assert left_over(serving, "partly") == written, "the reply was not handed out in full"
            async with member(store, "partly") as ours:
                assert rows_of(await ours.poll(0)) == written
                await ours.commit()
            assert left_over(serving, "partly") == [], "all events of a poll count as handed out"

    asyncio.run(read())


def test_cancelled_reads_and_commits_lose_and_repeat_nothing(serving: Serving, connection: Connection) -> None:
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    connection.create_table("cut", F, attributes=KEPT)
    written = [b"%03d" % n for n in range(120)]
    table = serving.connect().table("cut")

    async def read() -> tuple[list[bytes], int]:
        rows, cuts, begun = [], 0, 0
        async with aio.connect(address(serving)) as store, member(store, "cut", follow=True) as ours:
            await ours.poll(0)
            while len(rows) < len(written):
                if begun == len(rows):  # nothing is left to read, so the next read waits for this
                    await asyncio.to_thread(table.put, written[begun], {b"f:x": b"1"})
                    begun += 1
                try:
                    async with asyncio.timeout(rng.choice([0, 0.0005, 0.002, 1])):
                        rows += rows_of([await anext(ours)])
                        await ours.commit()
                except TimeoutError:
                    cuts += 1
            await ours.commit()
        return rows, cuts

    rows, cuts = asyncio.run(asyncio.wait_for(read(), 120))
    assert sorted(rows) == sorted(written), f"seed {seed}"
    assert cuts > 20, f"seed {seed}"
    assert left_over(serving, "cut") == [], f"seed {seed}"


def test_a_cancelled_consumer_leaves_its_group_and_commits_nothing_half_done(
    serving: Serving, connection: Connection
) -> None:
    connection.create_table("cancelled", F, attributes=KEPT)
    written = put_all(connection, "cancelled", 3)

    async def read() -> None:
        works = asyncio.Event()

        async def handle(_batch: list[StreamEvent]) -> None:
            works.set()
            await asyncio.Event().wait()

        async with aio.connect(address(serving)) as store:
            consumer = store.consume("cancelled", group="g", handler=handle, start="beginning")
            task = asyncio.create_task(consumer.run())
            await asyncio.wait_for(works.wait(), 30)
            assert members_of(connection, "cancelled") == [consumer.changes.member]
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert members_of(connection, "cancelled") == []
            assert consumer.handled == 0

    asyncio.run(read())
    assert sorted(left_over(serving, "cancelled")) == sorted(written)


def test_what_members_do_wrong_is_refused(serving: Serving, connection: Connection) -> None:
    connection.create_table("wrong", F, attributes=KEPT)

    async def read() -> None:
        async with aio.connect(address(serving)) as store:
            with pytest.raises(WrongArgument, match="leave out position and part"):
                member(store, "wrong", part=(0, 2))
            with pytest.raises(WrongArgument, match="name of its group"):
                store.consume("wrong", group="", handler=lambda _batch: None)
            with pytest.raises(WrongArgument, match="at least 1"):
                store.consume("wrong", group="g", handler=lambda _batch: None, tries=0)
            async with member(store, "wrong") as ours:
                await ours.poll(0)
                put_all(connection, "wrong", 1)
                assert rows_of(await ours.poll(0)) == [b"a000"]
                waiting = asyncio.create_task(ours.poll(9_000))
                await asyncio.sleep(0)
                with pytest.raises(RuntimeError, match="another task"):
                    await ours.commit()
                waiting.cancel()
                await asyncio.wait([waiting])

    asyncio.run(read())
