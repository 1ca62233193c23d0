"""Each step times a get, a short scan, a long one, a durable put, one after the other.

The steps take turns, there and back, for each kind of call, so that other load of the machine affects all steps alike;
the median of each figure counts.  Puts come last, because they change the data that the reads see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Final

from benchmarks.growth_lines import Line, line_to
from benchmarks.growth_report import Step
from columnar.bench import calls, dataset
from columnar.bench.address import Endpoint
from columnar.bench.calls import FRAME_HEAD
from columnar.bench.dataset import SMALL_BYTES, SMALL_COLUMN
from columnar.wire import idl
from gauge.rounds import zigzag_rounds

ROUNDS: Final = 8
LONG_SCANS: Final = 8  # number of rows at which they begin
LONG_SCAN_ROWS: Final = 10_000
ROWS_A_CALL: Final = 500
_VERSIONS: Final = 3


@dataclass(frozen=True, slots=True)
class Target:
    """The calls of one step."""

    what: str
    table: bytes
    keys: tuple[bytes, ...]  # in turn; each of these rows has the small column
    ranges: tuple[tuple[bytes, bytes], ...] = ()  # of short scans, one row in each; none: of each key
    long_scans: tuple[bytes, ...] = ()  # first rows of long scans
    long_rows: int = 0  # and how many rows they read


Timing = Callable[[Line, int], float]  # call number n of a kind


@dataclass(frozen=True, slots=True)
class Probe:
    column: str
    share: float  # of the calls that are requested
    packed: Callable[[Target], Timing]


def _get(target: Target) -> Timing:
    return _time_calls("get", [(target.table, key, SMALL_COLUMN) for key in target.keys])


def _get_versions(target: Target) -> Timing:
    return _time_calls("getVer", [(target.table, key, SMALL_COLUMN, _VERSIONS) for key in target.keys])


def _time_calls(method: str, arguments: list[tuple[bytes | int, ...]]) -> Timing:
    """Return a timing of a method whose answer is a list with at least one cell."""
    least = FRAME_HEAD + len(calls.good_begin(method, calls.LIST_SUCCESS)) + SMALL_BYTES
    packed = [calls.exchange(method, one, calls.LIST_SUCCESS, reply_bytes=least) for one in arguments]
    return lambda line, number: line.took_us(packed[number % len(packed)])


def _scan(target: Target) -> Timing:
    ranges = target.ranges or tuple((key, key + b"\x00") for key in target.keys)
    packed = [_opened(target.table, idl.hbase.TScan(startRow=a, stopRow=b, caching=100)) for a, b in ranges]
    return lambda line, number: line.scan_s(packed[number % len(packed)], 1, 100) * 1e6


def _long_scan(target: Target) -> Timing:
    rows = target.long_rows
    packed = [_opened(target.table, idl.hbase.TScan(startRow=at, caching=ROWS_A_CALL)) for at in target.long_scans]
    return lambda line, number: rows / line.scan_s(packed[number % len(packed)], rows, ROWS_A_CALL)


def _opened(table: bytes, scan: object) -> bytes:
    return calls.call("scannerOpenWithScan", table, scan)


def _put(target: Target) -> Timing:
    packed = [
        calls.exchange("mutateRow", (target.table, key, calls.puts([(SMALL_COLUMN, value)])), calls.VOID_SUCCESS)
        for key, value in ((key, dataset.text(key, SMALL_BYTES)) for key in target.keys)
    ]
    return lambda line, number: line.took_us(packed[number % len(packed)])


GET: Final = Probe("get us", 1.0, _get)
GET_VERSIONS: Final = Probe("get of 3 versions us", 1.0, _get_versions)
SHORT_SCAN: Final = Probe("short scan us", 0.5, _scan)
LONG_SCAN: Final = Probe("scanned rows/s", 0.02, _long_scan)
PUT: Final = Probe("durable put us", 1.0, _put)


def timed(
    endpoint: Endpoint, targets: Sequence[Target], probes: Sequence[Probe], each: int, advance: Callable[[int], None]
) -> tuple[Step, ...]:
    """Time a step of each target; a probe with the full share makes ``each`` calls.  Raises EndpointFailed.

    ``advance`` is called with the number of calls made.
    """
    taken: list[dict[str, list[float]]] = [{probe.column: [] for probe in probes} for _ in targets]
    with line_to(endpoint) as line:
        for probe in probes:
            packed = [probe.packed(target) for target in targets]
            count = _a_round(probe, each)
            for _, place in zigzag_rounds(ROUNDS, len(targets)):
                found = taken[place][probe.column]
                found += [packed[place](line, len(found) + number) for number in range(count)]
                advance(count)
    return tuple(
        Step(target.what, {column: median(found) for column, found in figures.items()})
        for target, figures in zip(targets, taken, strict=True)
    )


def calls_of(targets: Sequence[Target], probes: Sequence[Probe], each: int) -> int:
    """Return the number that ``timed`` will advance by."""
    return len(targets) * ROUNDS * sum(_a_round(probe, each) for probe in probes)


def _a_round(probe: Probe, each: int) -> int:
    return max(1, round(each * probe.share / ROUNDS))


def rows_target(what: str, table: bytes, rows: int, count: int, rng: Random) -> Target:
    """Return a target of ``count`` random rows of a table that was filled with ``rows`` rows."""
    long_rows = min(rows, LONG_SCAN_ROWS)
    return Target(
        what,
        table,
        tuple(dataset.row_key(rng.randrange(rows)) for _ in range(count)),
        long_scans=tuple(dataset.row_key(rng.randrange(rows - long_rows + 1)) for _ in range(LONG_SCANS)),
        long_rows=long_rows,
    )
