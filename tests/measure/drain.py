"""Pace of triggers: how many changes a second a store delivers, and how late a single change is delivered.

    python -m tests.measure.drain [--effects 0|1|4] [--changes 20000] [--batch 100] [--lags 500]

Starts a store of its own.  Changes are written while the trigger is paused; the time runs from the trigger's
resumption to the end of the wait for all of them.  Processor time is of the store's process and of its worker.  The
lag of a single change on an idle store runs from the acknowledgement of its put to the call of the function.
"""

from __future__ import annotations

import argparse
from itertools import count

from tests.measure.flow_store import FlowStore, flow_store, milliseconds, now_s

FUNCTIONS = {0: "none", 1: "one", 4: "four"}


def drain(store: FlowStore, effects: int, changes: int, batch: int) -> None:
    name = f"drained-{effects}-{batch}"
    if batch:
        store.register(name, "source", "batched", batch=batch, within_ms=50)
    else:
        store.register(name, "source", FUNCTIONS[effects])
    store.put("source", (b"warm%06d" % number for number in range(1_000)))
    store.wait(name)
    store.connection.triggers.pause(name)
    store.put("source", (b"%06d" % number for number in range(changes)))
    before = store.cpu_s()
    begun_s = now_s()
    store.connection.triggers.resume(name)
    store.wait(name)
    took_s = now_s() - begun_s
    store_us, worker_us = (1e6 * (end - start) / changes for start, end in zip(before, store.cpu_s(), strict=True))
    what = f"batches of {batch}" if batch else f"{effects} effects"
    print(
        f"{what}: {changes / took_s:,.0f} changes/s; CPU a change: store {store_us:.1f} us, worker {worker_us:.1f} us"
    )
    store.connection.triggers.remove(name)


def lags(store: FlowStore, changes: int) -> None:
    store.register("told", "quiet", "told")
    found = []
    for number in count():
        row = b"%06d" % number
        store.connection.table(b"quiet").put(row, {b"f:a": b"1"})
        acknowledged_s = now_s()
        at_s, _, seen = store.note()
        assert seen == row
        if number >= 50:  # the worker has imported the function
            found.append(max(0.0, at_s - acknowledged_s))
        if len(found) == changes:
            break
    print(f"idle lag of {changes} changes: {milliseconds(found)}")


def batch_sizes(store: FlowStore, batch: int, per_s: int, seconds: float) -> None:
    """Measure the changes of a call when ``per_s`` changes arrive in a second."""
    store.register("batches", "source", "told_batches", batch=batch, within_ms=50)
    begun_s, written = now_s(), 0
    while now_s() - begun_s < seconds:
        due = int((now_s() - begun_s) * per_s) - written
        if due > 0:
            store.put("source", [b"b%07d" % (written + number) for number in range(due)])
            written += due
    calls = []
    while sum(calls) < written:
        calls.append(store.note()[1])
    print(f"batches of up to {batch} at {written / seconds:,.0f} changes/s: {written / len(calls):.1f} changes a call")
    store.connection.triggers.remove("batches")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--effects", type=int, choices=sorted(FUNCTIONS), action="append")
    parser.add_argument("--changes", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=0, help="measure batches of so many changes, too")
    parser.add_argument("--lags", type=int, default=500, help="single changes; 0: none")
    given = parser.parse_args()
    with flow_store() as store:
        for effects in given.effects or sorted(FUNCTIONS):
            drain(store, effects, given.changes, 0)
        if given.batch:
            batch_sizes(store, given.batch, 2_000, 5.0)
            drain(store, 1, given.changes, given.batch)
        if given.lags:
            lags(store, given.lags)


if __name__ == "__main__":
    main()
