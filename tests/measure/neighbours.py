"""The lag of a trigger beside triggers that are slow, that write much, and that always fail.

    python -m tests.measure.neighbours [--seconds 10] [--per-s 100]

Starts a store of its own.  The lag of a change runs from the acknowledgement of its put to the call of the function.
"""

from __future__ import annotations

import argparse
import threading
import time
from dataclasses import dataclass, field

from tests.measure.flow_store import FlowStore, flow_store, milliseconds, now_s

BESIDE = {"nothing": "", "16 rows of 3 s": "slow", "8 fan-outs of 100,000": "fan_out", "a trigger that fails": "fails"}
ROWS = {"slow": 16, "fan_out": 8, "fails": 2_000}
PATIENCE_S = 60.0


@dataclass
class Heard:
    """The times at which the quiet trigger saw each row, received by a thread of its own."""

    store: FlowStore
    rows: int
    at_s: dict[bytes, float] = field(default_factory=dict)

    def hear(self) -> None:
        while len(self.at_s) < self.rows:
            at_s, _, row = self.store.note(PATIENCE_S)
            self.at_s[row] = at_s


def lags(store: FlowStore, rows: int, per_s: int, prefix: str) -> list[float]:
    heard, acknowledged_s = Heard(store, rows), dict[bytes, float]()
    hearing = threading.Thread(target=heard.hear)
    hearing.start()
    begun_s, table = now_s(), store.connection.table(b"quiet")
    for number in range(rows):
        row = f"{prefix}-{number}".encode()
        time.sleep(max(0.0, begun_s + number / per_s - now_s()))
        table.put(row, {b"f:a": b"1"})
        acknowledged_s[row] = now_s()
    hearing.join(PATIENCE_S)
    return [max(0.0, heard.at_s[row] - at_s) for row, at_s in acknowledged_s.items()]


def beside(store: FlowStore, what: str, function: str, rows: int, per_s: int) -> None:
    if function:
        store.register(function, "source", function)
        store.put("source", [f"{function}-{number}".encode() for number in range(ROWS[function])])
    print(f"beside {what}: lag of {rows} changes at {per_s}/s: {milliseconds(lags(store, rows, per_s, what[:2]))}")
    if function:
        store.connection.triggers.remove(function)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--per-s", type=int, default=100)
    given = parser.parse_args()
    for what, function in BESIDE.items():
        with flow_store() as store:
            store.register("told", "quiet", "told")
            lags(store, 50, given.per_s, "warm")
            beside(store, what, function, int(given.seconds * given.per_s), given.per_s)


if __name__ == "__main__":
    main()
