"""Change streams of asyncio programs: waits, cancellations, lost links, and each way into a store."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from columnar.client import Connection, aio
from columnar.client.async_link import AsyncLink
from columnar.client.changes import Change, ChangesGone, Idle, Row
from columnar.client.errors import StoreIOError, WrongArgument
from columnar.client.store_socket import NoAnswer, NotConnected, NotSignedIn
from columnar.config import RightsSettings
from columnar.model.accounts import Account, Token
from columnar.model.rights import ALL, Grant, RightsRecord, Scope
from columnar.security.credentials import hash_of, new_token
from columnar.security.passwords import Passwords
from columnar.security.scram import Verifier
from tests.support.certificates import Authority
from tests.support.serving import Serving

KEPT = {"CHANGE_LOG": "3600"}
F: dict[str, dict[str, Any]] = {"f": {}}
PASSWORD = "correct horse"
TOKEN = new_token(lambda _bytes: "a" * 43)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    serving = Serving(tmp_path_factory.mktemp("aio")).start()
    yield serving
    serving.stop()


@pytest.fixture
def connection(serving: Serving) -> Connection:
    return serving.connect()


def address(serving: Serving) -> str:
    return f"127.0.0.1:{serving.store.port}"


def put(table: Any, *rows: bytes) -> None:
    for row in rows:
        table.put(row, {b"f:x": b"1"})


async def rows_now(stream: aio.AsyncChanges) -> list[bytes]:
    return [one.row async for one in stream if isinstance(one, Change | Row)]


def test_a_snapshot_its_tail_and_a_second_stream(serving: Serving, connection: Connection) -> None:
    connection.create_table("whole", F, attributes=KEPT)
    put(connection.table("whole"), b"a", b"b")

    async def read() -> None:
        async with aio.connect(address(serving)) as store:
            stream = store.changes("whole", start="beginning", follow=False)
            assert await rows_now(stream) == [b"a", b"b"]
            put(connection.table("whole"), b"c", b"d")
            first = await anext(stream)
            assert await rows_now(stream) == [b"d"]
            again = store.changes("whole", start=first.position, follow=False, rows=("d", ""))
            assert await rows_now(again) == [b"d"]
            assert await rows_now(store.changes("whole", start=stream.position, follow=False)) == []

    asyncio.run(read())


def test_a_wait_blocks_no_other_task(serving: Serving, connection: Connection) -> None:
    """A hundred streams wait, and the loop goes on; each of them has the change."""
    connection.create_table("waits", F, attributes=KEPT)

    async def read() -> None:
        async with aio.connect(address(serving)) as store:
            streams = [store.changes("waits") for _ in range(100)]
            for stream in streams:
                assert await stream.poll(0) == []
            tasks = [asyncio.create_task(anext(stream)) for stream in streams]  # type: ignore[arg-type]
            await asyncio.sleep(0)  # each has sent its request, or is about to
            assert not any(task.done() for task in tasks)
            put(connection.table("waits"), b"r")
            found = await asyncio.wait_for(asyncio.gather(*tasks), 30)
            assert [one.row for one in found if isinstance(one, Change)] == [b"r"] * 100

    asyncio.run(read())


def test_cancellations_lose_and_repeat_nothing(serving: Serving, connection: Connection) -> None:
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    connection.create_table("cut", F, attributes=KEPT)
    written = [b"%05d" % n for n in range(400)]
    writer = threading.Thread(target=put, args=(serving.connect().table("cut"), *written))

    async def read() -> tuple[list[bytes], int]:
        rows, cuts = [], 0
        async with aio.connect(address(serving)) as store:
            stream = store.changes("cut", start="beginning", max_bytes=1)
            writer.start()
            while len(rows) < len(written):
                try:
                    async with asyncio.timeout(rng.choice([0, 0.0002, 0.001, 0.005, 1])):
                        event = await anext(stream)
                except TimeoutError:
                    cuts += 1
                else:
                    assert isinstance(event, Change | Row)
                    rows.append(event.row)
            assert [one for one in await stream.poll(1) if not isinstance(one, Idle)] == []
        return rows, cuts

    rows, cuts = asyncio.run(asyncio.wait_for(read(), 120))
    writer.join()
    assert rows == written, f"seed {seed}"
    assert cuts > 20, f"seed {seed}"


def test_a_restarted_store_is_read_on(tmp_path: Path) -> None:
    serving = Serving(tmp_path / "data").start()
    port = serving.store.port
    connection = serving.connect()
    connection.create_table("t", F, attributes=KEPT)
    put(connection.table("t"), b"a")

    async def read() -> list[bytes]:
        async with aio.connect(f"127.0.0.1:{port}") as store:
            stream = store.changes("t", start="beginning")
            event = await anext(stream)
            assert isinstance(event, Row)
            stopping = asyncio.create_task(anext(stream))  # type: ignore[arg-type]
            await asyncio.to_thread(serving.stop)
            with pytest.raises((NotConnected, StoreIOError)):
                await stopping
            with pytest.raises(NotConnected, match=f"cannot connect to 127.0.0.1:{port}"):
                await stream.poll(1)
            again = Serving(tmp_path / "data", port=port)
            await asyncio.to_thread(again.start)
            try:
                await asyncio.to_thread(lambda: put(again.connect().table("t"), b"b"))
                event = await asyncio.wait_for(anext(stream), 60)  # type: ignore[arg-type]
                assert isinstance(event, Change)
                return [event.row]
            finally:
                await asyncio.to_thread(again.stop)

    assert asyncio.run(read()) == [b"b"]


def test_errors_of_the_store_leave_the_link_usable(serving: Serving, connection: Connection) -> None:
    connection.create_table("errors", F)

    async def read() -> None:
        async with aio.connect(address(serving)) as store:
            stream = store.changes("errors", follow=False)
            with pytest.raises(StoreIOError, match="columnar alter errors --set CHANGE_LOG="):
                await stream.poll(0)
            link = stream._link
            connection.admin.alter_table("errors", attributes=KEPT)
            assert await stream.poll(0) == []
            assert stream._link is link
            connection.admin.alter_table("errors", attributes={"CHANGE_LOG": ""})
            put(connection.table("errors"), b"a")
            connection.admin.alter_table("errors", attributes=KEPT)
            with pytest.raises(ChangesGone, match="snapshot"):
                await stream.poll(0)

    asyncio.run(read())


def test_wrong_uses(serving: Serving, connection: Connection) -> None:
    connection.create_table("uses", F, attributes=KEPT)

    async def read() -> None:
        store = await aio.connect(address(serving))
        with pytest.raises(WrongArgument):
            store.changes("uses", start="tomorrow")
        stream = store.changes("uses")
        await stream.poll(0)
        waiting = asyncio.create_task(stream.poll(20_000))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another task"):
            await stream.poll(1)
        store.close()
        with pytest.raises(NotConnected):
            await waiting
        with pytest.raises(RuntimeError, match="closed"):
            await stream.poll(1)

    asyncio.run(read())


@asynccontextmanager
async def peer(answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[str]:
    """A server that is none of ours."""
    served: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(asyncio.current_task())
        with suppress(ConnectionError):
            await answer(reader, writer)
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.gather(*[task for task in served if task is not None])
        await asyncio.sleep(0)


def test_a_server_that_is_silent_ends_or_speaks_something_else() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def ends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)

    async def http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()

    async def read() -> None:
        for answer, error in ((silent, NoAnswer), (ends, NotConnected), (http, NotConnected)):
            async with peer(answer) as where:
                stream = aio.connect(where, timeout=100).changes("t")
                with pytest.raises(error):
                    await stream.poll(1)
                assert stream._link is not None
                assert not stream._link.is_open
        begun = time.monotonic()
        async with peer(silent) as where:
            with pytest.raises(NotConnected, match="in time"):
                await aio.connect(where, timeout=100, user="ann", password="x")
        assert time.monotonic() - begun < 20

    asyncio.run(read())


def test_the_first_address_that_answers_is_used(serving: Serving, connection: Connection) -> None:
    connection.create_table("several", F, attributes=KEPT)

    async def read() -> None:
        async with aio.connect(f"127.0.0.1:1,{address(serving)}") as store:
            assert await rows_now(store.changes("several", follow=False)) == []
        with pytest.raises(NotConnected, match=r"cannot connect to 127\.0\.0\.1:1"):
            await aio.connect("127.0.0.1:1")

    asyncio.run(read())


def test_each_way_in(tmp_path: Path) -> None:
    """TLS, password, token, Unix socket, and what is refused."""
    authority = Authority(tmp_path, "ours")
    pair = authority.sign("server")
    stranger = Authority(tmp_path, "stranger")
    socket = str(tmp_path / "clients")
    serving = Serving(
        tmp_path / "data", rights=RightsSettings(is_on=True, socket=socket), tls_cert=pair.cert, tls_key=pair.key
    ).start()
    account = Account(
        "ann",
        Passwords(memory_kib=1_024).hashed(PASSWORD),
        Verifier.of_password(PASSWORD, b"0123456789abcdef", 4_096).encoded,
        (Token("laptop", hash_of(TOKEN), 1),),
    )
    holder = serving.store.serving.rights
    assert holder is not None
    serving.do(lambda: holder.take_record(RightsRecord((Grant("ann", Scope(), ALL),), {}, {"ann": account})))
    with Connection(unix_socket=socket) as root:
        root.create_table("t", F, attributes=KEPT)
        put(root.table("t"), b"a")

    async def read(where: str, **options: Any) -> list[bytes]:
        async with aio.connect(where, **options) as store:
            return await rows_now(store.changes("t", start="beginning", follow=False))

    async def reads() -> None:
        where, ca = address(serving), {"tls_ca": authority.ca}
        assert await read(where, **ca, user="ann", password=PASSWORD) == [b"a"]
        assert await read(where, **ca, user="ann", token=TOKEN) == [b"a"]
        assert await read(f"unix:{socket}", user="ann") == [b"a"]
        with pytest.raises(NotSignedIn, match="not signed in as ann"):
            await read(where, **ca, user="ann", password="wrong")
        with pytest.raises(NotConnected, match="certificate"):
            await read(where, tls_ca=stranger.ca, user="ann", password=PASSWORD)
        with pytest.raises((StoreIOError, NotConnected)):
            await read(where, **ca)
        with pytest.raises(WrongArgument, match="network could read the token"):
            aio.connect("db.example.org", user="ann", token=TOKEN)

    try:
        asyncio.run(reads())
    finally:
        serving.stop()


def test_a_cancelled_call_leaves_no_answer_to_the_next_one(serving: Serving, connection: Connection) -> None:
    connection.create_table("answers", F, attributes=KEPT)

    async def read() -> None:
        store = aio.connect(address(serving))
        stream = store.changes("answers")
        await stream.poll(0)
        link = stream._link
        assert isinstance(link, AsyncLink)
        waiting = asyncio.create_task(stream.poll(20_000))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        assert not link.is_open
        put(connection.table("answers"), b"r")
        (event,) = await stream.poll(20_000)
        assert isinstance(event, Change)
        store.close()

    asyncio.run(read())
