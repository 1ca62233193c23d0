"""One change that writes a million rows, through ``kill -9`` of the store at its middle.

    python -m tests.measure.fan_out [--rows 1000000]

Starts a store of its own.  The function keeps a checkpoint every CHECKPOINT rows; the store is killed when half of the
rows can be read, and started again.  It fails if a row is missing, if the second run does not begin after the last
checkpoint before the kill, or if the whole takes more than MOST_S for a million rows ("Done when" 2 of the flows).
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Final

from tests.measure.flow_functions import CHECKPOINT
from tests.measure.flow_store import FlowStore, flow_store, now_s

MOST_S: Final = 60.0  # for a million rows
PATIENCE_S: Final = 600.0
LOOK_S: Final = 0.02


def reached(store: FlowStore, row: int) -> None:
    """Wait until the row can be read."""
    table, until_s = store.connection.table(b"spread"), now_s() + PATIENCE_S
    while not table.row(b"%09d" % row):
        assert now_s() < until_s, f"row {row:,} was not written within {PATIENCE_S:.0f} s"
        time.sleep(LOOK_S)  # effects wake nobody who is outside of the store


def run(rows: int) -> list[str]:
    with flow_store() as store:
        store.register("spread", "source", "spread")
        begun_s = now_s()
        store.put("source", [b"%d" % rows])
        first = int(store.note(PATIENCE_S)[2])
        reached(store, rows // 2)
        store.process.kill()
        killed_s = now_s()
        store.process.start()
        store.connect()
        second = int(store.note(PATIENCE_S)[2])
        store.wait("spread", PATIENCE_S)
        took_s = now_s() - begun_s
        found = sum(1 for _ in store.connection.table(b"spread").scan(filter=b"KeyOnlyFilter()", batch_size=10_000))
    print(
        f"{rows:,} rows in {took_s:.1f} s, killed after {killed_s - begun_s:.1f} s; "
        f"begun at row {first:,}, and behind the kill at {second:,}"
    )
    problems = [] if found == rows else [f"{found:,} rows are there"]
    if first or not rows // 2 - CHECKPOINT * 2 <= second <= rows:
        problems.append("the second run did not begin behind the last checkpoint")
    if took_s > MOST_S * max(rows / 1e6, 0.1):
        problems.append(f"it took more than {MOST_S:.0f} s for a million rows")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    problems = run(parser.parse_args().rows)
    for problem in problems:
        print(f"MISSED: {problem}")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
