"""What a table's change log costs its writers: no log, CHANGE_LOG, and CHANGE_LOG_IMAGES.

    python -m tests.measure.change_images [--puts 10000] [--cells 10] [--rounds 3]

A store in this process.  Each put sets one cell of 100 bytes in a row of so many cells in one family; calls have 100
puts of different rows.  Reported for each kind of table, the median of the rounds: microseconds of the loop's thread
for a put, and bytes of the log for it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

from columnar.runtime import compiled
from gauge.machine import machine, now
from tests.support.serving import Serving

KINDS: Final = {
    "no log": {},
    "CHANGE_LOG": {"CHANGE_LOG": "3600"},
    "CHANGE_LOG_IMAGES": {"CHANGE_LOG": "3600", "CHANGE_LOG_IMAGES": "true"},
}
ROWS: Final = 1_000
BATCH: Final = 100
VALUE: Final = b"v" * 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--puts", type=int, default=10_000)
    parser.add_argument("--cells", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{now()}, {machine()}, {compiled.state}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        serving = Serving(Path(folder)).start()
        connection = serving.connect()
        cost_us: dict[str, list[float]] = {kind: [] for kind in KINDS}
        log_bytes: dict[str, float] = {}
        for at, attributes in enumerate(KINDS.values()):
            connection.create_table(f"t{at}", {"f": {}}, attributes=attributes)
            with connection.table(f"t{at}").batch(batch_size=BATCH) as batch:
                for n in range(ROWS):
                    batch.put(b"%05d" % n, {b"f:%d" % cell: VALUE for cell in range(options.cells)})
        for turn in range(options.rounds):
            for at, kind in enumerate(KINDS):
                region = serving.do(lambda at=at: serving.store.serving.server.open_regions_of(f"t{at}")[0])  # type: ignore[misc]
                size, begun_s = region.log.counts.size_bytes, serving.do(time.thread_time)
                with connection.table(f"t{at}").batch(batch_size=BATCH) as batch:
                    for n in range(options.puts):
                        batch.put(b"%05d" % (n % ROWS), {b"f:%d" % (turn % options.cells): b"%0100d" % n})
                cost_us[kind].append((serving.do(time.thread_time) - begun_s) / options.puts * 1e6)
                log_bytes[kind] = (region.log.counts.size_bytes - size) / options.puts
        serving.stop()
    for kind in KINDS:
        print(f"{kind:20} {median(cost_us[kind]):7.1f} us/put {log_bytes[kind]:8.0f} bytes/put")


if __name__ == "__main__":
    main()
