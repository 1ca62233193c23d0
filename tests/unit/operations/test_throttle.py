"""Quotas of tables: buckets by a model clock, and what each kind of call is charged."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from columnar.errors import ClientGone, RequestTooBig, Throttled
from columnar.model.mutation import Put
from columnar.model.schema import Family, Table, make_table
from columnar.model.throttle_limits import limits_of
from columnar.operations.throttle import Throttle
from columnar.regions.read.found_rows import CELL_OVERHEAD_BYTES
from columnar.regions.tables import ServedTable
from columnar.thrift2.rows import RowMethods2, ScanMethods2
from columnar.wire.idl import hbase
from columnar.wire.idl2 import hbase2
from columnar.wire.service import CallContext, Later
from tests.support.region_house import House
from tests.support.service_calls import RowCalls

CTX = CallContext(1, "test")


def throttle(text: str) -> Throttle:
    return Throttle("t", limits_of(text), 0.0)


def refusal(held: Throttle, now_s: float, *, writes: bool = False) -> tuple[str, int]:
    with pytest.raises(Throttled) as raised:
        held.admit(writes, now_s)
    return raised.value.wire_message, raised.value.wait_ms


# --- buckets ---------------------------------------------------------------------------------------


def test_a_full_bucket_is_one_period_and_fills_evenly() -> None:
    held = throttle("2req/s")
    for _ in range(2):
        held.admit(False, 0.0)
        held.charge(False, 1, 10)
    message, wait_ms = refusal(held, 0.0)
    assert message == "RpcThrottlingException: number of requests exceeded - wait 500ms; table t has THROTTLE 2req/s"
    assert wait_ms == 500
    assert refusal(held, 0.4)[1] == 100
    held.admit(False, 0.5)
    held.charge(False, 1, 10)
    assert refusal(held, 0.5)[1] == 500
    for _ in range(2):  # however long nobody came, a period's amount is the most
        held.admit(False, 1_000.0)
        held.charge(False, 1, 10)
    assert refusal(held, 1_000.0)[1] == 500


def test_after_the_wait_that_it_tells_a_call_is_admitted() -> None:
    rng = random.Random(7)
    for _ in range(300):
        text = f"{rng.randint(1, 5_000)}{rng.choice(['req', 'B', 'KB'])}/{rng.choice(['s', 'min', 'hour'])}"
        held, now_s = throttle(text), rng.random() * 1e5
        held.admit(False, now_s)
        held.charge(False, rng.randint(1, 20_000), rng.randint(1, 1 << 24))
        try:
            held.admit(False, now_s)
        except Throttled as refused:
            with pytest.raises(Throttled):
                held.admit(False, now_s + refused.wait_ms / 1_000 - 0.0015)
            held.admit(False, now_s + refused.wait_ms / 1_000 + 1e-6)
        held.check_invariants()


def test_in_the_long_run_no_more_goes_through_than_the_limit() -> None:
    rng = random.Random(3)
    held, now_s, requests, size_bytes = throttle("50req/s,10KB/s"), 0.0, 0, 0
    largest = 4_000
    while now_s < 200.0:
        now_s += rng.random() * 0.01
        try:
            held.admit(True, now_s)
        except Throttled:
            continue
        rows, size = rng.randint(1, 3), rng.randint(1, largest)
        held.charge(True, rows, size)
        requests, size_bytes = requests + rows, size_bytes + size
        held.check_invariants()
    assert requests <= 50 * (now_s + 1) + 3
    assert 0.9 * 10_240 * now_s <= size_bytes <= 10_240 * (now_s + 1) + largest


def test_a_large_answer_is_paid_for_by_those_that_come_after_it() -> None:
    held = throttle("1KB/s")
    held.admit(False, 0.0)
    held.charge(False, 1, 10 * 1_024)
    message, wait_ms = refusal(held, 0.0)
    assert message.startswith("RpcThrottlingException: request size limit exceeded - wait 90")
    assert wait_ms == 9_001  # nine KB are owed, and one byte
    held.admit(False, 9.002)


def test_reads_and_writes_are_apart() -> None:
    held = throttle("read:1req/s,write:100B/s")
    held.admit(False, 0.0)
    held.charge(False, 1, 1 << 20)
    held.admit(True, 0.0)
    held.charge(True, 99, 1_000)
    assert refusal(held, 0.0)[0].startswith("RpcThrottlingException: number of read requests exceeded - wait 1000ms")
    assert refusal(held, 0.0, writes=True)[0].startswith("RpcThrottlingException: write size limit exceeded - wait ")


@pytest.mark.parametrize(
    ("text", "writes", "words"),
    [
        ("1req/s", True, "number of requests exceeded"),
        ("1B/s", True, "request size limit exceeded"),
        ("read:1req/s", False, "number of read requests exceeded"),
        ("write:1req/s", True, "number of write requests exceeded"),
        ("write:1B/s", True, "write size limit exceeded"),
        ("read:1B/s", False, "read size limit exceeded"),
    ],
)
def test_the_words_are_those_of_hbase(text: str, writes: bool, words: str) -> None:
    held = throttle(text)
    held.charge(writes, 1, 1)
    assert refusal(held, 0.0, writes=writes)[0].startswith(f"RpcThrottlingException: {words} - wait 1000ms")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("read:1B/s,read:1req/s,1B/s,1req/s", "number of requests"),
        ("read:1B/s,read:1req/s,1B/s", "request size limit"),
        ("read:1B/s,read:1req/s", "number of read requests"),
    ],
)
def test_of_several_limits_the_first_of_hbase_is_told(text: str, words: str) -> None:
    held = throttle(text)
    held.charge(False, 1, 1)
    assert refusal(held, 0.0)[0].startswith(f"RpcThrottlingException: {words} exceeded - wait 1000ms; ")


def test_a_refused_call_takes_nothing() -> None:
    held = throttle("10req/s,read:1req/s")
    held.charge(False, 1, 0)
    for _ in range(100):
        refusal(held, 0.0)
    held.admit(True, 0.0)


def test_a_clock_that_stands_still_or_goes_back_gives_nothing() -> None:
    held = throttle("1req/s")
    held.admit(False, 10.0)
    held.charge(False, 1, 0)
    assert refusal(held, 5.0)[1] == 1_000
    assert refusal(held, 10.5)[1] == 500


# --- calls -----------------------------------------------------------------------------------------


class Scene:
    """Table ``t`` with two regions and a quota, by a clock that stands still."""

    def __init__(self, text: str) -> None:
        self.now_s = 0.0
        self.house = House(table_of(text), (b"m",), now_s=lambda: self.now_s)
        self.calls = RowCalls(self.house)
        self.calls2 = RowMethods2(self.house.operations)
        self.scans2 = ScanMethods2(self.house.operations)

    def refill(self, seconds: float = 1_000.0) -> None:
        self.now_s += seconds

    def spent(self, *, writes: bool) -> tuple[int, int]:
        """(requests, bytes) that one kind of call took since the last refill."""
        scope = "write" if writes else "read"
        held = self.house.operations.access._throttle_of(self.house.served, self.now_s)
        left = {bucket.limit.kind: bucket.limit.amount - bucket.level for bucket in held._buckets}
        return round(left[scope, False]), round(left[scope, True])


BOTH = "read:1000req/s,read:1MB/s,write:1000req/s,write:1MB/s"


def table_of(text: str) -> Table:
    return make_table("t", [Family("a"), Family("b")], {"THROTTLE": text})


async def answered(found: Any) -> Any:
    if isinstance(found, Later):
        await found.future
        return found.result
    return await found if hasattr(found, "__await__") else found


def in_scene(text: str, play: Callable[[Scene], Awaitable[None]]) -> None:
    async def main() -> None:
        scene = Scene(text)
        try:
            await play(scene)
        finally:
            await scene.house.close()

    asyncio.run(main())


def mutations(*values: bytes) -> list[Any]:
    return [hbase.Mutation(column=b"a:q%d" % n, value=value) for n, value in enumerate(values)]


def batch(*rows: bytes) -> list[Any]:
    return [hbase.BatchMutation(row=row, mutations=mutations(b"value")) for row in rows]


CELL = len(b"a" + b"q0" + b"value") + CELL_OVERHEAD_BYTES
ANSWERED = CELL + 1  # the column is written with its colon
WRITES: dict[str, tuple[Callable[[Scene], Any], int, int]] = {
    "mutateRow": (lambda s: s.calls.mutateRow(CTX, b"t", b"r", mutations(b"value"), {}), 1, 1 + CELL),
    "mutateRowTs": (lambda s: s.calls.mutateRowTs(CTX, b"t", b"r", mutations(b"value"), 5, {}), 1, 1 + CELL),
    "mutateRows": (lambda s: s.calls.mutateRows(CTX, b"t", batch(b"a", b"z", b"b"), {}), 3, 3 * (1 + CELL)),
    "deleteAll": (lambda s: s.calls.deleteAll(CTX, b"t", b"r", b"a:q0", {}), 1, 1 + CELL - 5),
    "atomicIncrement": (lambda s: s.calls.atomicIncrement(CTX, b"t", b"r", b"b:n0", 1), 1, 1 + CELL - 5),
    "incrementRows": (
        lambda s: s.calls.incrementRows(CTX, [hbase.TIncrement(b"t", b"%d" % n, b"b:n0", 1) for n in range(4)]),
        4,
        4 * (1 + CELL - 5),
    ),
    "append": (lambda s: s.calls.append(CTX, hbase.TAppend(b"t", b"r", [b"a:q0"], [b"value"])), 1, 1 + CELL),
    "checkAndPut": (
        lambda s: s.calls.checkAndPut(CTX, b"t", b"r", b"a:no", b"x", mutations(b"value")[0], {}),
        1,
        1 + CELL,
    ),
    "put": (
        lambda s: s.calls2.put(
            CTX, b"t", hbase2.TPut(row=b"r", columnValues=[hbase2.TColumnValue(b"a", b"q0", b"value")])
        ),
        1,
        1 + CELL,
    ),
}  # fmt: skip
READS: dict[str, tuple[Callable[[Scene], Any], int, int]] = {
    "get": (lambda s: s.calls.get(CTX, b"t", b"r", b"a:q0", {}), 1, 1 + CELL),
    "getVer of a family": (lambda s: s.calls.getVer(CTX, b"t", b"r", b"a", 1, {}), 1, 1 + CELL - 2),
    "getRow": (lambda s: s.calls.getRow(CTX, b"t", b"r", {}), 1, 1 + ANSWERED),
    "getRow of no row": (lambda s: s.calls.getRow(CTX, b"t", b"none", {}), 1, 4),
    "getRows": (lambda s: s.calls.getRows(CTX, b"t", [b"r", b"none", b"r"], {}), 3, 2 * (1 + ANSWERED)),
    "get2": (lambda s: s.calls2.get(CTX, b"t", hbase2.TGet(row=b"r")), 1, 1 + ANSWERED),
    "get2 with a filter": (
        lambda s: s.calls2.get(CTX, b"t", hbase2.TGet(row=b"r", filterString=b"KeyOnlyFilter()")),
        1,
        1 + ANSWERED - 5,
    ),
    "getMultiple": (
        lambda s: s.calls2.getMultiple(
            CTX, b"t", [hbase2.TGet(row=b"r"), hbase2.TGet(row=b"r", filterString=b"KeyOnlyFilter()")]
        ),
        2,
        2 * (1 + ANSWERED) - 5,
    ),
    "getScannerResults": (
        lambda s: s.scans2.getScannerResults(CTX, b"t", hbase2.TScan(startRow=b"a"), 10),
        1,
        1 + ANSWERED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_charged_its_rows_and_bytes(name: str) -> None:
    call, requests, size_bytes = WRITES[name]

    async def play(scene: Scene) -> None:
        await answered(call(scene))
        assert scene.spent(writes=True) == (requests, size_bytes)
        assert scene.spent(writes=False) == (0, 0)

    in_scene(BOTH, play)


@pytest.mark.parametrize("name", READS)
def test_a_read_is_charged_its_rows_and_bytes(name: str) -> None:
    call, requests, size_bytes = READS[name]

    async def play(scene: Scene) -> None:
        await scene.house.put_value(b"r", b"value", b"a:q0")
        await answered(call(scene))
        assert scene.spent(writes=False) == (requests, size_bytes)
        assert scene.spent(writes=True) == (0, 0)

    in_scene(BOTH, play)


@pytest.mark.parametrize("name", [*WRITES, *READS])
def test_a_call_is_refused_before_it_does_anything(name: str) -> None:
    call, _, _ = {**WRITES, **READS}[name]

    async def play(scene: Scene) -> None:
        access, served = scene.house.operations.access, scene.house.served
        for writes in (False, True):
            access.charge(served, 2_000, 0, writes=writes)
        with pytest.raises(Throttled, match=r"requests exceeded - wait \d+ms"):
            await answered(call(scene))
        assert [scene.house.row(row) for row in (b"a", b"b", b"r", b"z", b"0")] == [[]] * 5
        scene.refill()
        await answered(call(scene))

    in_scene(BOTH, play)


def test_a_scanner_goes_on_after_a_refusal_without_a_hole() -> None:
    async def play(scene: Scene) -> None:
        names = [b"%02d" % n for n in range(20)]
        for name in names:
            await scene.house.put_value(name)
        scanner = scene.calls.scannerOpen(CTX, b"t", b"", [], {})
        found, refused = [], 0
        while True:
            try:
                rows = (await answered(scene.calls.scannerGetList(CTX, scanner, 3))).rows
            except Throttled as error:
                refused += 1
                scene.refill(error.wait_ms / 1_000 + 1e-6)
                continue
            if not rows:
                break
            found += [row for one in rows for row in names_of(one)]
        assert found == names
        assert refused >= 6, "one call in a second, after the first"

    in_scene("read:1req/s", play)


def names_of(found: Any) -> list[bytes]:
    """Of a row, or of a block of rows as they are stored."""
    return [found[0]] if isinstance(found, tuple) else list(found.keys)


def test_a_call_in_steps_is_charged_once_and_its_rest_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from columnar.operations import reads, writes

    monkeypatch.setattr(reads, "STEP_CELLS", 1)
    monkeypatch.setattr(writes, "STEP_S", 0.0)

    async def play(scene: Scene) -> None:
        rows = [b"%03d" % n for n in range(100)]
        await answered(scene.calls.mutateRows(CTX, b"t", batch(*rows), {}))
        assert scene.spent(writes=True)[0] == 100
        scene.refill()
        await answered(scene.calls.getRows(CTX, b"t", rows, {}))
        assert scene.spent(writes=False) == (100, 100 * (3 + ANSWERED))
        with pytest.raises(Throttled, match="number of read requests exceeded - wait 9100ms"):
            await answered(scene.calls.getRow(CTX, b"t", b"000", {}))

    in_scene("read:10req/s,read:1MB/s,write:10req/s,write:1MB/s", play)


def test_an_answer_that_became_too_large_is_charged_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from columnar.operations import reads

    monkeypatch.setattr(reads, "ROWS_BYTES", 2 * ANSWERED)

    async def play(scene: Scene) -> None:
        await scene.house.put_value(b"r", b"value", b"a:q0")
        with pytest.raises(RequestTooBig):
            await answered(scene.calls.getRows(CTX, b"t", [b"r"] * 5, {}))
        assert scene.spent(writes=False) == (2, 2 * (1 + ANSWERED))

    in_scene(BOTH, play)


def test_a_call_that_ends_with_its_client_is_charged_what_it_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    from columnar.operations import row_plan, writes

    monkeypatch.setattr(writes, "STEP_S", 0.0)
    monkeypatch.setattr(row_plan, "STEP_S", 0.0)
    monkeypatch.setattr(row_plan, "BATCH_BYTES", 300)
    left = [20]

    def has_gone() -> bool:
        left[0] -= 1
        return left[0] < 0

    async def play(scene: Scene) -> None:
        rows = [b"%03d" % n for n in range(100)]
        gone = CallContext(2, "gone", CTX.protocol, has_gone)
        with pytest.raises(ClientGone):
            await answered(scene.calls.mutateRows(gone, b"t", batch(*rows), {}))
        written = sum(bool(scene.house.row(row)) for row in rows)
        assert 0 < written < 100
        assert scene.spent(writes=True)[0] == written

    in_scene(BOTH, play)


def test_an_alter_that_leaves_the_quota_keeps_its_buckets_and_one_that_lifts_it_frees_the_table() -> None:
    async def play(scene: Scene) -> None:
        def altered(attributes: dict[str, str]) -> None:
            table = make_table("t", [Family("a"), Family("b")], attributes)
            scene.house.served = ServedTable(table, True, scene.house.served.regions)
            scene.house.server.tables.install(scene.house.served)

        def get() -> Any:
            return answered(scene.calls.get(CTX, b"t", b"r", b"a:q", {}))

        await get()
        with pytest.raises(Throttled):
            await get()
        altered({"THROTTLE": "1req/s", "READONLY": "true"})
        with pytest.raises(Throttled):
            await get()
        altered({"THROTTLE": "2req/s"})
        await get()
        await get()
        with pytest.raises(Throttled):
            await get()
        scene.house.server.tables.remove("t")
        altered({"THROTTLE": "2req/s"})  # another table of this name
        await get()
        altered({})
        for _ in range(10):
            await get()

    in_scene("1req/s", play)


def test_the_system_itself_is_not_held_up() -> None:
    """A region's own work goes past the quota: it is of requests."""

    async def play(scene: Scene) -> None:
        scene.house.operations.access.charge(scene.house.served, 1_000, 0, writes=True)
        await scene.house.put(b"r", Put(b"a", b"q", b"v"))

    in_scene("1req/s", play)
