"""``python -m tests.simulation``: one seed prints a whole run; many seeds run beside each other.

--seed N --seconds S -v             the run of one seed, step by step
--seed N --seeds M --seconds S      M seeds from N on; the first one that breaks a law ends it
--faults NAME                       with a deliberate fault, which must be found
--world lease                       leases and elections over a service that fails (``lease_world``), seeds of 20 s;
                                    --faults NAME,NAME: the seed that finds each, of --seeds; exit status 1: not found
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.simulation import lease_world
from tests.simulation.deliberate import FAULTS
from tests.simulation.lease_faults import FAULTS as LEASE_FAULTS
from tests.simulation.world import run


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.simulation")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--seeds", type=int, default=1)
    asked.add_argument("--seconds", type=float)
    asked.add_argument("--faults", metavar="NAME", help=f"{', '.join(FAULTS)}; of leases {', '.join(LEASE_FAULTS)}")
    asked.add_argument("--world", choices=["cluster", "lease"], default="cluster")
    asked.add_argument("--jobs", type=int, default=2)
    asked.add_argument("-v", "--verbose", action="store_true")
    options = asked.parse_args()
    known = LEASE_FAULTS if options.world == "lease" else FAULTS
    names = options.faults.split(",") if options.faults else []
    if unknown := set(names) - known.keys():
        asked.error(f"no faults of this world: {', '.join(sorted(unknown))}")
    if options.world == "lease":
        return leases(options, names)
    options.seconds = 10.0 if options.seconds is None else options.seconds
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


def leases(options: argparse.Namespace, names: list[str]) -> int:
    seconds = lease_world.SECONDS if options.seconds is None else options.seconds
    if options.seeds == 1 and not names:
        sys.stdout.write(lease_world.run(options.seed, seconds, is_verbose=options.verbose).summary() + "\n")
        return 0
    seeds = range(options.seed, options.seed + options.seeds)
    with ProcessPoolExecutor(options.jobs) as pool:
        if not names:
            seen: Counter[str] = Counter()
            for one in pool.map(partial(lease_world.seen_in, seconds=seconds), seeds, chunksize=20):
                seen += one
            sys.stdout.write(f"{options.seeds} seeds: {lease_world.counted(seen)}\n")
            return 0
        first = partial(lease_world.first_found, seeds=seeds, seconds=seconds)
        found = list(pool.map(first, names))
    for name, text in zip(names, found, strict=True):
        sys.stdout.write(f"{name}: {text or f'not found by {options.seeds} seeds'}\n")
    return 0 if all(found) else 1


def told(seed: int, seconds: float, fault: str | None, is_verbose: bool) -> str:
    return run(seed, seconds, fault, is_verbose=is_verbose).summary() + "\n"


if __name__ == "__main__":
    sys.exit(main())
