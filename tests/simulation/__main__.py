"""``python -m tests.simulation``: one seed prints a whole run; many seeds run beside each other.

--seed N --seconds S -v             the run of one seed, step by step
--seed N --seeds M --seconds S      M seeds from N on; the first one that breaks a law ends it
--faults NAME                       with a deliberate fault, which is to be found
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.simulation.deliberate import FAULTS
from tests.simulation.world import run


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.simulation")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--seeds", type=int, default=1)
    asked.add_argument("--seconds", type=float, default=10.0)
    asked.add_argument("--faults", choices=list(FAULTS))
    asked.add_argument("--jobs", type=int, default=2)
    asked.add_argument("-v", "--verbose", action="store_true")
    options = asked.parse_args()
    if options.seeds == 1:
        began = time.process_time()
        sys.stdout.write(told(options.seed, options.seconds, options.faults, options.verbose))
        sys.stdout.write(f"{time.process_time() - began:.2f} s of CPU\n")
        return 0
    one = partial(told, seconds=options.seconds, fault=options.faults, is_verbose=False)
    with ProcessPoolExecutor(options.jobs) as pool:
        for text in pool.map(one, range(options.seed, options.seed + options.seeds), chunksize=1):
            sys.stdout.write(text)
            sys.stdout.flush()
    return 0


def told(seed: int, seconds: float, fault: str | None, is_verbose: bool) -> str:
    return run(seed, seconds, fault, is_verbose=is_verbose).summary() + "\n"


if __name__ == "__main__":
    sys.exit(main())
