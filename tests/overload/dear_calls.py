"""One dear call of each kind, at a size and at twice it, beside a client that gets one cell again and again.

    python -m tests.overload.dear_calls [--tries 5] [--seconds 15]

Prints for each: its least time at both sizes and their ratio, the longest get beside it, how much the store grew.
Then a loader of batches of 2 MB, alone and beside a writer of rows of 20 MB.  Exit status 1 where twice the size costs
over 2.5 times, a get waited over 100 ms, the store grew over ``GROWTH_BYTES`` or the loader made fewer calls than the
writer.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from columnar.bench import calls
from columnar.limits import COLUMNS_PER_CALL, MESSAGE_BYTES, MIB, MUTATIONS_PER_CALL, REPLY_BYTES, ROW_OPERATIONS
from columnar.wire import idl
from tests.overload import neighbours
from tests.support.standalone_store import StoreProcess

RATIO: Final = 2.5
GET_S: Final = 0.1
GROWTH_BYTES: Final = 6 * MESSAGE_BYTES + 2 * REPLY_BYTES  # a message of small parts decoded, and what it answers
NOISE_S: Final = 0.02  # below it no ratio is taken
REPLY, STRUCT = 2, 12  # of Thrift's message types and types of fields
TABLE: Final = b"dear"
WIDE: Final = 300_000
_SPAWN = multiprocessing.get_context("spawn")
H, C = idl.hbase, idl.columnar


@dataclass(frozen=True)
class Dear:
    name: str
    size: int  # at least; and twice it
    frame: Callable[[int, int], bytes]  # of a size, for a number that differs at each call
    refused: bool = False


def _appends(size: int, number: int) -> bytes:
    return calls.call("append", H.TAppend(TABLE, b"append%d" % number, [b"a:x"] * size, [b"v" * 50] * size))


def _ours(size: int, number: int) -> bytes:
    operations = [C.RowOperation(kind=3, column=b"a:x", value=b"v" * 50)] * size
    return calls.call("columnarCheckAndMutate", TABLE, b"ours%d" % number, [], operations)


def _one_row(size: int, number: int) -> bytes:
    return calls.call("mutateRows", TABLE, calls.batch([(b"same%d" % number, [(b"a:x", b"v")])] * size))


def _many_rows(size: int, number: int) -> bytes:
    rows = [(b"many%d-%06d" % (number, row), [(b"a:x", b"v")]) for row in range(size)]
    return calls.call("mutateRows", TABLE, calls.batch(rows))


def _columns(size: int, number: int) -> bytes:
    return calls.call("mutateRow", TABLE, b"wide%d" % number, calls.puts([(b"a:%06d" % n, b"v") for n in range(size)]))


def _empty(size: int, number: int) -> bytes:
    return calls.call("mutateRow", TABLE, b"empty%d" % number, [H.Mutation(column=b"a:x")] * size)


def _delete(size: int, number: int) -> bytes:
    return calls.call("deleteAllRow", TABLE, b"broad%d-%d" % (size, number))


DEAR: Final = (
    Dear("appends to one cell", 5_000, _appends),
    Dear("more appends to one cell", ROW_OPERATIONS // 2, _appends),
    Dear("appends with a condition", ROW_OPERATIONS // 2, _ours),
    Dear("one row named again and again", 10_000, _one_row),
    Dear("one row named very often", 50_000, _one_row),
    Dear("rows of a batch", 50_000, _many_rows),
    Dear("columns of one row", ROW_OPERATIONS // 2, _columns),
    Dear("too many columns", COLUMNS_PER_CALL // 2, _columns, refused=True),
    Dear("empty mutations", MUTATIONS_PER_CALL // 2, _empty, refused=True),
    Dear("a wide row deleted", WIDE // 2, _delete),
)


@dataclass
class Figures:
    took: tuple[float, float]
    longest_get: float
    grown: int


def furnish(store: StoreProcess, tries: int) -> None:
    with closing(store.connection()) as connection:
        connection.create_table(TABLE, {"a": {}})
        connection.create_table(neighbours.TABLE, {"a": {}})
        with connection.table(neighbours.TABLE).batch(batch_size=1_000) as batch:
            for number in range(neighbours.ROWS):
                batch.put(neighbours.key(number), {b"a:x": b"v" * 100})
        table = connection.table(TABLE)
        for number in range(tries):
            for size in (WIDE // 2, WIDE):
                for first in range(0, size, ROW_OPERATIONS):
                    cells = {b"a:%06d" % n: b"v" for n in range(first, min(size, first + ROW_OPERATIONS))}
                    table.put(b"broad%d-%d" % (size, number), cells)


def get_beside(port: int, ours: Any) -> None:
    """In a process of its own: tells the longest get since it was last asked, until it is told to end."""
    line = neighbours.Line(port)
    frame = calls.call("get", neighbours.TABLE, neighbours.key(7), b"a:x")
    begin = calls.good_begin("get", calls.list_of(1))
    gc.disable()
    longest, pause = 0.0, threading.Event()
    while True:
        begun = time.perf_counter()
        line.good(frame, begin)
        longest = max(longest, time.perf_counter() - begun)
        if ours.poll():
            if ours.recv() == "end":
                return
            ours.send(longest)
            longest = 0.0
        pause.wait(neighbours.PAUSE_S)


@contextmanager
def beside(port: int) -> Iterator[Callable[[], float]]:
    """Ask how long the longest get took since the last question."""
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=get_beside, args=(port, theirs))
    process.start()

    def longest() -> float:
        ours.send("how long")
        found: float = ours.recv()
        return found

    try:
        longest()
        yield longest
    finally:
        ours.send("end")
        process.join(10)
        process.kill()


def is_refusal(reply: bytes) -> bool:
    """frame:u32 version:u16 type:u16 name:u32+bytes number:u32 field: a struct of another number than 0, or a fault."""
    body = reply[16 + int.from_bytes(reply[8:12], "big") :]
    return reply[7] != REPLY or (body[0] == STRUCT and body[1:3] != b"\0\0")


def measure(store: StoreProcess, dear: Dear, tries: int, longest: Callable[[], float]) -> Figures:
    least = [float("inf"), float("inf")]
    worst, before = 0.0, store.resident_bytes()
    store.forget_peak()
    for number in range(tries):
        for place, size in enumerate((dear.size, 2 * dear.size)):
            frame = dear.frame(size, 2 * number + place if dear.frame is not _delete else number)
            line = neighbours.Line(store.port)
            longest()
            begun = time.perf_counter()
            reply = line.ask(frame)
            least[place] = min(least[place], time.perf_counter() - begun)
            worst = max(worst, longest())
            line.close()
            if is_refusal(reply) != dear.refused:
                raise SystemExit(f"{dear.name}, {size}: {reply[:300]!r}")
    return Figures((least[0], least[1]), worst, store.peak_bytes() - before)


def loaded(port: int, seconds: float, prefix: bytes) -> int:
    """Batches of 2 MB that were answered."""
    line, count, ends = neighbours.Line(port), 0, time.monotonic() + seconds
    frame = calls.call(
        "mutateRows", TABLE, calls.batch([(prefix + b"%04d" % n, [(b"a:x", b"v" * 1_000)]) for n in range(2_000)])
    )
    while time.monotonic() < ends:
        line.good(frame, calls.good_begin("mutateRows", calls.VOID_SUCCESS))
        count += 1
    return count


def write_large(port: int, stop: Any, written: Any) -> None:
    line = neighbours.Line(port)
    cells = [(b"a:%d" % n, b"v" * MIB) for n in range(20)]
    frame = calls.call("mutateRow", TABLE, b"large", calls.puts(cells))
    while not stop.is_set():
        line.good(frame, calls.good_begin("mutateRow", calls.VOID_SUCCESS))
        written.value += 1


def loaders(store: StoreProcess, seconds: float) -> tuple[int, int, int]:
    """Batches alone, beside a writer of large rows, and how many of these there were."""
    alone = loaded(store.port, seconds, b"alone")
    stop, written = _SPAWN.Event(), _SPAWN.Value("i", 0)
    writer = _SPAWN.Process(target=write_large, args=(store.port, stop, written))
    writer.start()
    try:
        return alone, loaded(store.port, seconds, b"beside"), written.value
    finally:
        stop.set()
        writer.join(60)
        writer.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=5, help="of each call at each size; the least counts")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each load")
    given = parser.parse_args()
    wrong = []
    with (
        tempfile.TemporaryDirectory(prefix="columnar-dear-") as folder,
        StoreProcess(Path(folder) / "data", is_forked=False) as store,
    ):
        furnish(store, given.tries)
        with beside(store.port) as longest:
            for dear in DEAR:
                found = measure(store, dear, given.tries, longest)
                small, large = found.took
                ratio = large / small if large > NOISE_S else 1.0
                print(
                    f"{dear.name:30} {dear.size:7}: {1_000 * small:7.1f} ms, "
                    f"twice it {1_000 * large:7.1f} ms ({ratio:.2f}), "
                    f"longest get {1_000 * found.longest_get:6.1f} ms, grew {found.grown // MIB:4} MiB",
                    flush=True,
                )
                if ratio > RATIO or found.longest_get > GET_S or found.grown > GROWTH_BYTES:
                    wrong.append(dear.name)
        alone, with_writer, large = loaders(store, given.seconds)
        print(f"batches of 2 MB in {given.seconds:g} s: {alone} alone, {with_writer} beside {large} rows of 20 MB")
        if with_writer < large:  # the engine takes from both in turn
            wrong.append("the loader")
    for name in wrong:
        print(f"PROBLEM: {name}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
