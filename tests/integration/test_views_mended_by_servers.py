"""A view over two servers: damage is found and repaired at whoever has the region, and guards go when they may.

The view is made, and damaged past the door that lets nobody write it, by one process at a clock two hours behind; then
two servers serve the same folder.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from columnar.client import Connection, RegionAdmin, Source, View
from columnar.client.cluster import ClusterAdmin
from columnar.model.contribution import Member, pack
from columnar.model.mutation import Delete, Operation, Put, RowMutation
from columnar.storage import process_stores
from tests.support.cluster_process import ClusterProcess
from tests.support.serving import Serving

ROWS = 60
AUTHORS = (b"ann", b"bob", b"mia", b"zoe")
VIEW = View("authors", Source("pages", key=("meta:author",), sums={"size": "meta:size"}, order="meta:size desc"))
WAIT_MS = 60_000
BEHIND_MS = 2 * 3_600_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    folder = tmp_path_factory.mktemp("mended") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process_stores, "system_ms", lambda: time.time_ns() // 1_000_000 - BEHIND_MS)
        store = Serving(folder).start()
        try:
            fill(store.connect())
            damage(store)
        finally:
            store.stop()
    with ClusterProcess(folder, 2) as servers:
        yield servers


def author_of(number: int) -> bytes:
    return AUTHORS[number % len(AUTHORS)]


def row_of(number: int) -> bytes:
    return b"p%02d" % number


def fill(connection: Connection) -> None:
    """Each row was another author's before, who keeps a guard of it."""
    connection.create_table("pages", {"meta": {}}, splits=[b"p20", b"p40"])
    connection.views.add(VIEW)
    assert connection.views.wait("authors", timeout_ms=WAIT_MS)
    RegionAdmin(connection).split(b"authors", b"c")
    for turn in (1, 0):
        with connection.table("pages").batch() as batch:
            for number in range(ROWS):
                batch.put(row_of(number), {b"meta:author": author_of(number + turn), b"meta:size": b"%d" % number})
    assert connection.views.wait("authors", timeout_ms=WAIT_MS)


def damage(store: Serving) -> None:
    def write(group: bytes, *operations: Operation) -> None:
        def inside() -> None:
            access = store.store.serving.operations.access
            region = access.region_for(access.table(b"authors"), group)
            region.apply(RowMutation(group, operations))

        store.do(inside)

    far = (1 << 63, 1, 1)  # a sequence that no change of the row reaches
    false = Member(far, 0, False, ((b"v:count", 1), (b"v:size", 1_000)), b"o", b"\0", ())
    write(b"ann", Put(b"v", b"size", (7).to_bytes(8, "big")))
    write(b"bob", Delete(b"m", row_of(1)), Delete(b"m", row_of(57)))
    write(b"mia", Put(b"m", row_of(0), pack(false)), Put(b"o", b"\x80\0\1stray", b"\0\0"))
    write(b"zoe", Put(b"m", row_of(43), b"no member"), Delete(b"v", b"count"))
    write(b"nobody", Put(b"m", row_of(59), pack(false)), Put(b"v", b"count", (1).to_bytes(8, "big")))


def is_spread(admin: ClusterAdmin, table: bytes) -> bool:
    return len({one.server for one in admin.locations(table)}) > 1


def test_damage_is_found_and_repaired_at_its_owners(cluster: ClusterProcess) -> None:
    with closing(cluster.connection()) as connection:
        admin = ClusterAdmin(connection)
        assert is_spread(admin, b"pages")
        assert is_spread(admin, b"authors")
        found = connection.views.check("authors")
        assert {one.row for one in found.findings if one.kind == "row"} == {row_of(n) for n in (0, 1, 43, 57, 59)}
        assert {one.row for one in found.findings if one.kind == "group"} == {*AUTHORS, b"nobody"}
        assert (found.wrong, found.unsure) == (10, 0)
        repaired = connection.views.check("authors", repair=True)
        assert (repaired.wrong, repaired.repaired) == (10, 10)
        again = connection.views.check("authors")
        assert (again.wrong, again.unsure, again.members) == (0, 0, ROWS)
        for at, author in enumerate(AUTHORS):
            numbers = range(at, ROWS, len(AUTHORS))
            group = connection.view("authors").get(author)
            assert (group.count, group.sums["size"], group.highest) == (len(numbers), sum(numbers), numbers[-1])
        assert [one.key for one in connection.view("authors").groups()] == list(AUTHORS)


def test_guards_go_where_sources_are_spread(cluster: ClusterProcess) -> None:
    with closing(cluster.connection()) as connection:
        assert is_spread(ClusterAdmin(connection), b"pages")
        connection.table("pages").put(row_of(2), {b"meta:author": b"ann"})  # its guard is young
        assert connection.views.wait("authors", timeout_ms=WAIT_MS)
        assert members(connection) >= 2 * ROWS - 10
        connection.admin.major_compact(b"authors")
        left = members(connection)
        assert ROWS < left <= ROWS + 11, "young guards stay: of this change, and of the repair"
        assert connection.views.check("authors").wrong == 0


def members(connection: Connection) -> int:
    """Those that were withdrawn among them."""
    return sum(len(cells) for _, cells in connection.table("authors").scan(columns=[b"m"]))
