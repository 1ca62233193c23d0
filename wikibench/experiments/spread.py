"""A step of a fill: gives the regions of a table to the servers in turn, by the store's own commands.

``python -m wikibench.experiments.spread TABLE --store HOST:PORT``.  After splits a table's regions are all at one
server.  The balancer leaves new servers alone for a minute, and would then move regions while a load runs.  So this
switches it off; the regions stay where they are put, also when the store starts again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

ROUNDS: Final = 5


def places_of(regions: Sequence[str], servers: Sequence[str]) -> dict[str, str]:
    """(pure) Return the server of each region: in turn, so that neighbours are apart."""
    return {region: servers[at % len(servers)] for at, region in enumerate(regions)}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--store", required=True, metavar="HOST:PORT")
    given = parser.parse_args(arguments)
    servers = sorted(str(one["name"]) for one in _json_of(given.store, "servers")["servers"] if one["state"] == "up")
    if len(servers) < 2:
        return 0
    _columnar(given.store, "balancer", "off")
    for _ in range(ROUNDS):  # what the balancer has begun may still arrive after it was switched off
        places = {one["encoded_name"]: one["server"] for one in _json_of(given.store, "regions", given.table)}
        wanted = places_of(list(places), servers)
        if not (misplaced := [region for region, server in wanted.items() if places[region] != server]):
            return 0
        for region in misplaced:
            _columnar(given.store, "move", region, wanted[region])
    sys.stderr.write(f"after {ROUNDS} rounds {len(misplaced)} regions of {given.table} are not where they belong\n")
    return 1


def _json_of(store: str, *words: str) -> Any:
    return json.loads(_columnar(store, *words, "--json"))


def _columnar(store: str, *words: str) -> str:
    """Run a command of the store; raise CalledProcessError, whose output stands in the log of the fill."""
    command = [sys.executable, "-m", "columnar", *words, "--store", store]
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
